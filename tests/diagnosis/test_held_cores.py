"""Tasks of SQL that hold several cores each."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.held_cores import HeldCores, cores_of_task
from tests.support.measured_tasks import measured

S = 1_000


def stage(run_ms: list[int], at_once: int = 2) -> EndedStage:
    return EndedStage(4, measured(run_ms, at_once=at_once))


def test_what_they_lose() -> None:
    """Eight tasks of 10 s on two of four cores at once; with all, they take half as long."""
    held = HeldCores(2)
    first = held.take(stage([10 * S] * 8))
    assert first is not None
    assert first.lost_ms == 20 * S
    assert (
        first.sentence
        == "each task holds 2 cores (spark.task.cpus=2) and computes with one, in a stage of SQL"
    )
    second = held.take(stage([10 * S] * 8))
    assert second is not None
    assert second.lost_ms == 40 * S
    assert second.sentence.endswith("in 2 stages of SQL")


def test_a_long_task() -> None:
    """It takes as long with more cores for the others."""
    issue = HeldCores(2).take(stage([10 * S] * 4 + [24 * S]))
    assert issue is not None
    assert issue.lost_ms == 32 * S - 24 * S


@pytest.mark.parametrize(
    ("cores", "ended"),
    [
        (1, stage([10 * S] * 8)),
        (2, stage([10 * S] * 8, at_once=4)),
        (2, stage([10 * S])),
        (8, stage([S] * 8)),
    ],
    ids=["one each", "others were given more", "a single task", "no executor has so many"],
)
def test_nothing_lost(cores: int, ended: EndedStage) -> None:
    assert HeldCores(cores).take(ended) is None


@pytest.mark.parametrize(
    ("conf", "cores"), [({}, 1), ({"spark.task.cpus": "2"}, 2), ({"spark.task.cpus": "two"}, 1)]
)
def test_the_setting(conf: dict[str, str], cores: int) -> None:
    assert cores_of_task(conf) == cores

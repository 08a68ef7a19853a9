"""Stages that have far more tasks than cores, each of which has next to nothing to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.stage_rules import FEWER_OF_ARROW, FEWER_OF_SHUFFLE, FEWER_OF_SOURCE
from spark_events.diagnosis.stages.tiny_tasks import TinyTasks, TinyTasksOfRun, tiny_tasks, tiny_tasks_issue
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.measured_tasks import measured

S = 1_000
CORES = 4


def stage(
    count: int = 400, run_ms: int = 6, around_ms: int = 8, cores: int = CORES, **more: Any
) -> EndedStage:
    """Return a stage of tasks that are all alike, each of which is scheduled and started for so long."""
    whole_ms = count * (run_ms + around_ms)
    delays = {
        "Scheduler_Delay": [around_ms - 1, around_ms, around_ms, count * (around_ms - 1)],
        "Executor_Deserialize_Time": [1, 1, 1, count],
        "Last_Finish": 1_000 + whole_ms // CORES,
    }
    return EndedStage(cores, measured([run_ms] * count, **{**delays, **more}))


def test_what_it_costs() -> None:
    """But for one task of each core: scheduling and starting them, and what each takes at least."""
    tiny = tiny_tasks(stage(), Thresholds())
    assert tiny == TinyTasks(
        1, 400, 400, 400 * 8, 400 * 6, 396 * (8 + 4) // CORES, {FEWER_OF_SOURCE: 396 * (8 + 4) // CORES}
    )


def test_no_longer_than_the_stage() -> None:
    """Delays of tasks overlap where a busy machine takes long to send them."""
    tiny = tiny_tasks(stage(Last_Finish=1_500), Thresholds())
    assert tiny is not None
    assert tiny.lost_ms == 500


@pytest.mark.parametrize(
    "healthy",
    [
        stage(count=39, cores=10),
        stage(count=31, cores=8),
        stage(run_ms=60),
        stage(run_ms=200, around_ms=900),
        stage(run_ms=150, around_ms=900, cpu_ms=400 * 60),
        stage(count=19, cores=2),
    ],
    ids=[
        "few tasks",
        "few for each core",
        "they compute",
        "they are long",
        "they compute while others do",
        "fewer than twenty",
    ],
)
def test_healthy_stages(healthy: EndedStage) -> None:
    assert tiny_tasks(healthy, Thresholds()) is None


@pytest.mark.parametrize(("count", "is_told_apart"), [(5_001, True), (5_000, False)])
def test_what_the_stage_itself_is_told_for(count: int, is_told_apart: bool) -> None:
    """One that has so many, and loses enough, is an issue of its own."""
    tiny = tiny_tasks(stage(count, around_ms=40), Thresholds())
    assert (tiny is None) is is_told_apart


def test_all_stages_add_up() -> None:
    run, one = TinyTasksOfRun(), tiny_tasks(stage(), Thresholds())
    few = tiny_tasks(stage(count=40), Thresholds())
    assert one is not None
    assert few is not None
    for _ in range(10):
        run.take("save at daily.py:7", one, CORES)
        issue = run.take("count at daily.py:9", few, CORES)
    assert issue.lost_ms == 10 * (one.lost_ms + few.lost_ms)
    assert issue.sentence == (
        "20 stages have 4,400 tasks, up to 400 each, for 4 cores, which run for 6 ms each on average: "
        "scheduling and starting them takes 35.2 s, running them 26.4 s; most of that is for save at daily.py:7"
    )


def test_no_place_has_most() -> None:
    run, one = TinyTasksOfRun(), tiny_tasks(stage(), Thresholds())
    assert one is not None
    for number in range(4):
        issue = run.take(f"save at daily.py:{number}", one, CORES)
    assert "most of that" not in issue.sentence


SHUFFLE, SOURCE, ARROW = (
    "Set spark.sql.shuffle.partitions",
    "Use fewer partitions",
    "Each of these tasks reads",
)


@pytest.mark.parametrize(
    ("lost_by", "advice"),
    [
        ({FEWER_OF_SHUFFLE: 60, FEWER_OF_SOURCE: 40}, SHUFFLE),
        ({FEWER_OF_SOURCE: 60, FEWER_OF_SHUFFLE: 40}, SOURCE),
        ({FEWER_OF_ARROW: 60}, ARROW),
        ({FEWER_OF_SHUFFLE: 40, FEWER_OF_ARROW: 40, FEWER_OF_SOURCE: 20}, SOURCE),
    ],
)
def test_advice(lost_by: dict[str, int], advice: str) -> None:
    """By where most of it is lost; what is good for partitions in general, if nowhere."""
    issue = tiny_tasks_issue(TinyTasks(1, 400, 400, 9, 9, 100, lost_by), CORES)
    assert issue.advice.startswith(advice)
    assert issue.sentence.startswith("a stage has 400 tasks, for 4 cores")


@pytest.mark.parametrize(
    ("does", "advice"),
    [
        ({"lists_files": True}, "Spark lists the files of many folders"),
        ({"of_delta_log": True}, "Delta puts the state of a table together"),
        ({"of_arrow": True}, ARROW),
        ({}, SOURCE),
    ],
)
def test_what_makes_them_fewer(does: dict[str, bool], advice: str) -> None:
    tiny = tiny_tasks(replace(stage(), **does), Thresholds())
    assert tiny is not None
    assert tiny_tasks_issue(tiny.plus(tiny), CORES).advice.startswith(advice)


def test_stages_that_read_shuffles() -> None:
    reads = stage(Bytes_Read=[10, 10, 10, 4_000], Without_Input=[400, 2_400])
    tiny = tiny_tasks(reads, Thresholds())
    assert tiny is not None
    assert tiny.lost_by == {FEWER_OF_SHUFFLE: tiny.lost_ms}

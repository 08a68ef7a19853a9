"""The rule about cached partitions on few executors: a stage that waits for one of them, and healthy ones."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.executors.cached_apart import CachedApart, LivingExecutor
from spark_events.diagnosis.stages.ended_stage import EndedStage
from tests.support.measured_tasks import measured

S = 1_000
TWO = {"1": LivingExecutor("a", 1, 0), "2": LivingExecutor("b", 1, 0)}
SHARED = {"1": LivingExecutor("a", 1, 0), "2": LivingExecutor("a", 1, 0)}


def stage(of_a: int, of_b: int, **others: Any) -> EndedStage:
    """Return a stage of tasks of three seconds each, so many on each of two hosts with one core each."""
    tasks = [3 * S] * (of_a + of_b)
    hosts = {host: (n, 3 * S * n, 0) for host, n in (("a", of_a), ("b", of_b)) if n}
    took_ms = 3 * S * max(of_a, of_b)
    return EndedStage(
        2, measured(tasks, at_once=2, hosts=hosts, Last_Finish=1_000 + took_ms, **others), reads_cache=True
    )


def test_an_executor_with_most_of_a_cache() -> None:
    """Seven of eight tasks take 21 s there, and all eight 12 s on both; it is told of all such stages."""
    apart = CachedApart()
    assert apart.take(stage(7, 1), TWO, "10s") is not None
    issue = apart.take(stage(8, 0), TWO, "10s")
    assert issue is not None
    assert issue.lost_ms == (21 - 12) * S + (24 - 12) * S
    assert issue.sentence.startswith("executor 1 runs 8 of 8 tasks in the most uneven of 2 stages, because")
    assert "spark.locality.wait=10s" in issue.advice


def test_executors_that_share_a_host() -> None:
    works = {"1": ["a", 7, 21 * S, 0], "2": ["a", 1, 3 * S, 0]}
    issue = CachedApart().take(stage(8, 0, Executors=works), SHARED, "3s")
    assert issue is not None
    assert issue.lost_ms == (21 - 12) * S


@pytest.mark.parametrize(
    ("uneven", "executors"),
    [
        (stage(5, 3), TWO),
        (stage(2, 1), TWO),
        (stage(7, 1), {**TWO, "2": LivingExecutor("b", 1, 9_000)}),
        (stage(7, 1), {"1": TWO["1"]}),
        (stage(7, 1), {**TWO, "1": LivingExecutor("c", 1, 0)}),
        (stage(8, 0), SHARED),
    ],
    ids=[
        "nearly even",
        "few tasks",
        "one came later",
        "one executor",
        "another was there before",
        "not known which of two",
    ],
)
def test_stages_that_do_not_wait_for_one(uneven: EndedStage, executors: dict[str, LivingExecutor]) -> None:
    assert CachedApart().take(uneven, executors, "3s") is None

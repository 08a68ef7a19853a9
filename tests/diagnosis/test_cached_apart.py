"""The rule about cached partitions on few executors: a stage that waits for one of them, and healthy ones."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.executors.cached_apart import CachedApart, LivingExecutor, locality_wait
from spark_events.diagnosis.issue import Issue
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


def cached() -> CachedApart:
    """Return the rule once an earlier stage has filled the cache, of RDD 7."""
    apart = CachedApart()
    apart.stage_succeeded([7])
    return apart


def took(
    uneven: EndedStage,
    executors: dict[str, LivingExecutor],
    apart: CachedApart | None = None,
    wait: str = "spark.locality.wait=10s",
    beside_ms: int = 0,
) -> Issue | None:
    return (apart or cached()).take(uneven, [7], executors, wait, lambda: beside_ms)


def test_an_executor_with_most_of_a_cache() -> None:
    """Seven of eight tasks take 21 s there, and all eight 12 s on both; it is told of all such stages."""
    apart = cached()
    assert took(stage(7, 1), TWO, apart) is not None
    issue = took(stage(8, 0), TWO, apart)
    assert issue is not None
    assert issue.lost_ms == (21 - 12) * S + (24 - 12) * S
    assert issue.sentence.startswith("executor 1 runs 8 of 8 tasks in the most uneven of 2 stages, because")
    assert "spark.locality.wait=10s" in issue.advice


def test_executors_that_share_a_host() -> None:
    works = {"1": ["a", 7, 21 * S, 0], "2": ["a", 1, 3 * S, 0]}
    issue = took(stage(8, 0, Executors=works), SHARED)
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
    assert took(uneven, executors) is None


def test_the_stage_that_fills_the_cache() -> None:
    """Where its tasks run has nothing to do with what is in the cache by then; nor after ``unpersist``."""
    apart = CachedApart()
    assert took(stage(7, 1), TWO, apart) is None
    apart.stage_succeeded([7])
    assert took(stage(7, 1), TWO, apart) is not None
    apart.unpersisted(7)
    assert took(stage(7, 1), TWO, apart) is None


def test_what_is_not_in_the_cache_is_not_where_tasks_wait_for() -> None:
    assert took(stage(7, 1, Without_Input=[8, 24 * S]), TWO) is None


def test_tasks_that_do_not_wait() -> None:
    """Then others would have taken them: the executor has more of them for another reason."""
    assert took(stage(7, 1), TWO, wait=locality_wait({"spark.locality.wait": "0s"})) is None


def test_executors_that_have_other_work() -> None:
    """That they do not take these tasks is no loss, or another one's."""
    assert took(stage(7, 1), TWO, beside_ms=1) is None


def test_an_executor_whose_tasks_take_longer() -> None:
    """It has its share of them, so it is slow, and does not have more of the cache."""
    runs = [6 * S] * 4 + [S] * 4
    hosts = {"a": (4, 24 * S, 0), "b": (4, 4 * S, 0)}
    slow = measured(runs, at_once=2, hosts=hosts, Last_Finish=1_000 + 24 * S)
    assert took(EndedStage(2, slow, reads_cache=True), TWO) is None


@pytest.mark.parametrize(
    ("conf", "wait"),
    [
        ({}, "spark.locality.wait=3s"),
        ({"spark.locality.wait": "10s"}, "spark.locality.wait=10s"),
        ({"spark.locality.wait": "0"}, ""),
        ({"spark.locality.wait": "0ms", "spark.locality.wait.node": "5s"}, "spark.locality.wait.node=5s"),
        ({"spark.locality.wait.process": "0s"}, "spark.locality.wait=3s"),
        ({"spark.locality.wait.process": "0s", "spark.locality.wait.node": "0s"}, ""),
    ],
)
def test_how_long_tasks_wait(conf: dict[str, str], wait: str) -> None:
    assert locality_wait(conf) == wait

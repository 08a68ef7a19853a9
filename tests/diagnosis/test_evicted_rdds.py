"""Cached RDDs whose partitions are computed again."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.evicted_rdds import EvictedRdds
from spark_events.diagnosis.issue import Issue
from tests.support.measured_tasks import measured

S = 1_000


def stage(at_s: int, tasks: int = 8, name: str = "pictures", **more: Any) -> dict[str, Any]:
    """Return the Stage Info of a stage that reads a cached RDD of eight partitions."""
    cached = {"RDD ID": 5, "Name": name, "Number of Partitions": 8, "Storage Level": {"Use Memory": True}}
    mapped = {"RDD ID": 6, "Name": "PythonRDD", "Number of Partitions": 8, "Storage Level": {}}
    return {
        "Number of Tasks": tasks,
        "RDD Info": [mapped, {**cached, **more}],
        "Submission Time": at_s * S,
        "Completion Time": (at_s + 20) * S,
    }


def told(
    without: int, run_s: list[int], second: dict[str, Any], first: dict[str, Any] | None = None
) -> Issue | None:
    """Return what is told of a second stage in which so many tasks found nothing in the cache."""
    rule = EvictedRdds()
    assert rule.take(first or stage(0), measured([10 * S] * 8, Without_Input=[8, 80 * S]), 4) is None
    again = [without, sum(sorted(run_s, reverse=True)[:without]) * S]
    told = rule.take(second, measured([run * S for run in run_s], Without_Input=again), 4)
    return told[0] if told else None


def test_some_are_gone() -> None:
    """The tasks that find theirs say what the stage does besides: 2 s, so it would take 4 s instead of 10 s."""
    issue = told(3, [10, 10, 10, 2, 2, 2, 2, 2], stage(30))
    assert issue is not None
    assert (issue.kind, issue.lost_ms) == ("recomputation", (10 - 2 * 2) * S)
    assert "the RDD pictures is cached and has 8 partitions, and yet 3 are computed again" in issue.sentence


def test_all_are_gone() -> None:
    """What the quickest stage took that computed them is what it costs at most."""
    issue = told(8, [12] * 8, stage(30), stage(0, name="MapPartitionsRDD"))
    assert issue is not None
    assert issue.lost_ms == 80 * S // 4
    assert issue.sentence.startswith("RDD 5 is cached")


def test_what_was_unpersisted_is_computed_anew() -> None:
    """On purpose; what is gone after that has been evicted."""
    rule, whole = EvictedRdds(), measured([10 * S] * 8, Without_Input=[8, 80 * S])
    assert rule.take(stage(0), whole, 4) is None
    rule.unpersisted(5)
    assert rule.take(stage(30), whole, 4) is None
    found = rule.take(stage(60), whole, 4)
    assert found is not None
    assert (found[0].evidence["recomputation.times"], found[1]) == (1, 80 * S // 4)


@pytest.mark.parametrize(
    "issue",
    [
        told(0, [2] * 8, stage(30)),
        told(3, [10] * 8, stage(10)),
        told(3, [10] * 8, stage(30, **{"Storage Level": {"Use Memory": False, "Use Disk": False}})),
        told(1, [10], stage(30, tasks=1)),
        told(3, [10] * 8, stage(30), stage(0, tasks=4)),
        told(3, [10] * 8, stage(30, **{"RDD ID": 7})),
    ],
    ids=[
        "all were found",
        "the stages ran at once",
        "it is cached no more",
        "a part of it",
        "only a part of it had been computed",
        "another RDD",
    ],
)
def test_nothing_is_computed_again(issue: Issue | None) -> None:
    assert issue is None

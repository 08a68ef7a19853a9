"""Cached RDDs whose partitions are computed again."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.rdds.evicted_rdds import EvictedRdds
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
    assert (
        "the RDD pictures is cached and has 8 partitions, and yet 3 of them are computed again"
        in issue.sentence
    )


def test_all_are_gone() -> None:
    """What the quickest stage took that computed them is what it costs at most: it does other things as well."""
    issue = told(8, [12] * 8, stage(30), stage(0, name="MapPartitionsRDD"))
    assert issue is not None
    assert (issue.lost_ms, issue.share_ms) == (None, 80 * S // 4)
    assert issue.sentence.startswith("RDD 5 is cached")
    assert "8 of them are computed again, in one stage (which takes at most 20.0 s)" in issue.sentence


def test_what_was_unpersisted_is_computed_anew() -> None:
    """On purpose; what is gone after that has been evicted."""
    rule, whole = EvictedRdds(), measured([10 * S] * 8, Without_Input=[8, 80 * S])
    assert rule.take(stage(0), whole, 4) is None
    rule.unpersisted(5)
    assert rule.take(stage(30), whole, 4) is None
    found = rule.take(stage(60), whole, 4)
    assert found is not None
    assert (found[0].evidence["recomputation.times"], found[0].share_ms) == (1, 80 * S // 4)


def test_what_else_a_stage_does_is_no_cost_of_its_rdd() -> None:
    """Parsing takes 10 s, and each iteration 90 s more: nobody knows that if no task finds its partition."""
    rule = EvictedRdds()
    assert rule.take(stage(0), measured([100 * S] * 8, Without_Input=[8, 800 * S]), 8) is None
    found = rule.take(stage(110), measured([100 * S] * 8, Without_Input=[8, 800 * S]), 8)
    assert found is not None
    assert (found[0].lost_ms, found[1]) == (None, 0)


def test_what_is_known_of_some_stages_is_what_it_cost() -> None:
    """6 s in the one that found some; the other one, of 20 s, is told beside it."""
    rule = EvictedRdds()
    assert rule.take(stage(0), measured([10 * S] * 8, Without_Input=[8, 80 * S]), 4) is None
    assert rule.take(stage(30), measured([10 * S] * 8, Without_Input=[8, 80 * S]), 4) is not None
    runs = [10 * S] * 3 + [2 * S] * 5
    found = rule.take(stage(60), measured(runs, Without_Input=[3, 30 * S]), 4)
    assert found is not None
    assert (found[0].lost_ms, found[0].share_ms, found[1]) == (6 * S, None, 6 * S)
    assert "in each of 2 stages (which takes at most 20.0 s, where none was found)" in found[0].sentence


@pytest.mark.parametrize(
    ("second", "told_of_them"),
    [(3, "3 of them are computed again, in each of 2 stages"), (1, "1 to 3 of them are computed again, in")],
    ids=["as many", "fewer"],
)
def test_partitions_that_several_stages_compute_again(second: int, told_of_them: str) -> None:
    """They may be the same each time: a stage computes 3 of 8, and so does the next, which is not 6 of 8."""
    rule = EvictedRdds()
    assert rule.take(stage(0), measured([10 * S] * 8, Without_Input=[8, 80 * S]), 4) is None
    for number, again in enumerate((3, second), 1):
        runs = [10 * S] * again + [2 * S] * (8 - again)
        found = rule.take(stage(30 * number), measured(runs, Without_Input=[again, again * 10 * S]), 4)
    assert found is not None
    assert f"has 8 partitions, and yet {told_of_them}" in found[0].sentence


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


FILES, ROWS = [15_457 + number for number in range(8)], [17_500] * 8


@pytest.mark.parametrize(
    ("read", "rows", "again"),
    [
        (FILES[:3] + [11_000] * 5, [17_500] * 3 + [279] * 5, 3),
        ([1 + size for size in FILES[:3]] + [11_000] * 5, [17_500] * 3 + [279] * 5, 0),
        (FILES[:3] + [11_000] * 5, [279] * 8, 0),
    ],
    ids=["the same bytes and rows", "other bytes", "other rows"],
)
def test_partitions_that_are_computed_from_files_again(read: list[int], rows: list[int], again: int) -> None:
    """What a task reads of its cached partition is not what was read from files to compute that one."""
    rule = EvictedRdds()
    first = stage(0, name="PythonRDD") | {"Stage Name": "count at jobs/nightly.py:25"}
    assert rule.take(first, measured([10 * S] * 8, read=FILES, rows=ROWS), 4) is None
    found = rule.take(stage(30), measured([10 * S] * 3 + [2 * S] * 5, read=read, rows=rows), 4)
    assert (found is not None) == bool(again)
    if found is not None:
        assert found[0].lost_ms == (10 - 2 * 2) * S
        assert found[0].sentence.startswith(
            "RDD 5 (of count at jobs/nightly.py:25) is cached and has 8 partitions, and yet 3 of them are computed"
        )


def test_more_partitions_than_are_known_by_their_longest_tasks() -> None:
    """Of the other tasks, nobody knows what they read."""
    rule = EvictedRdds()
    many = {"Number of Partitions": 16}
    sizes, rows = [15_457 + number for number in range(16)], [17_500] * 16
    rule.take(stage(0, 16, **many), measured([10 * S] * 16, read=sizes, rows=rows), 4)
    found = rule.take(stage(60, 16, **many), measured([10 * S] * 16, read=sizes, rows=rows), 4)
    assert found is not None
    assert "and yet at least 8 of them are computed again" in found[0].sentence

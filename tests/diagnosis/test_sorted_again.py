"""RDDs that are computed more than once where they are sorted."""

from __future__ import annotations

from typing import Any

from spark_events.diagnosis.rdds.sorted_again import SortedAgain

S = 1_000
PLACE = "sortByKey at a.py:3"


def stage(place: str = PLACE, source: int = 0, kept: bool = False) -> dict[str, Any]:
    """Return the Stage Info of a stage that computes an RDD of functions in Python."""
    level = {"Use Memory": kept, "Use Disk": False}
    return {
        "Stage Name": place,
        "RDD Info": [
            {"RDD ID": source, "Name": "ParallelCollectionRDD", "Parent IDs": []},
            {"RDD ID": source + 5, "Name": "PythonRDD", "Parent IDs": [source], "Storage Level": level},
        ],
    }


def lost(*stages: tuple[dict[str, Any], int]) -> list[int | None]:
    """Return what was said to be lost after each stage, and that what is told of each adds up to it."""
    rule, told, told_ms = SortedAgain(), [], 0
    for info, alone_s in stages:
        found = rule.take(info, lambda alone_s=alone_s: alone_s * S)
        told_ms += found[1] if found else 0
        told.append(found[0].lost_ms if found else None)
    assert told_ms == (told[-1] or 0)
    return told


def test_it_is_counted_and_sampled_before() -> None:
    """One time is needed; the longest, since what is loaded for the first one is loaded for any."""
    assert lost((stage(), 12), (stage(), 10), (stage(), 11)) == [None, 10 * S, 21 * S]


def test_a_cached_one() -> None:
    assert lost((stage(kept=True), 12), (stage(kept=True), 1), (stage(kept=True), 1)) == [None] * 3


def test_others() -> None:
    """Another RDD that the same line sorts, and other calls, compute nothing again."""
    assert lost((stage(), 12), (stage(source=100), 12)) == [None, None]
    assert lost((stage("collect at a.py:3"), 12), (stage("collect at a.py:3"), 12)) == [None, None]


def test_a_loop_that_sorts_something_else_in_each_turn() -> None:
    """It begins with the same RDD, and sorts it by other functions: each sort has lost what is its own."""
    written = {"Name": "internal.metrics.shuffle.write.recordsWritten", "Value": 100}
    last = {**stage(), "Accumulables": [written]}
    of_turn = (stage(), 12), (stage(), 10), (last, 11)
    assert lost(*of_turn, *of_turn) == [None, 10 * S, 21 * S, None, 31 * S, 42 * S]


def test_the_sentence() -> None:
    rule = SortedAgain()
    rule.take(stage(), lambda: 12 * S)
    found = rule.take(stage(), lambda: 10 * S)
    assert found is not None
    assert found[0].sentence.startswith("sortByKey at a.py:3 computes what it sorts 2 times, in 22.0 s")


def test_how_many_are_remembered() -> None:
    rule = SortedAgain()
    for number in range(2_000):
        rule.take(stage(f"sortBy at a.py:{number}"), lambda: S)
    assert len(rule._sorted) == 1_000

"""RDDs that several actions compute, each anew."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.rdds.computed_again import RddsComputedAgain

S = 1_000


def stage(place: str, source: int = 0, kept: bool = False, tasks: int = 8) -> dict[str, Any]:
    """Return the Stage Info of an action on an RDD of eight partitions."""
    level = {"Use Memory": kept, "Use Disk": False}
    return {
        "Stage Name": place,
        "Number of Tasks": tasks,
        "RDD Info": [
            {"RDD ID": source, "Name": "HadoopRDD", "Parent IDs": [], "Number of Partitions": 8},
            {
                "RDD ID": source + 5,
                "Name": "PythonRDD",
                "Parent IDs": [source],
                "Number of Partitions": 8,
                "Storage Level": level,
            },
        ],
    }


def told(*stages: tuple[dict[str, Any], int]) -> Issue | None:
    """Return what is told after the last of some stages, by how long each ran, in s."""
    rule, issue = RddsComputedAgain(), None
    for info, seconds in stages:
        issue = rule.take(info, seconds * S, lambda seconds=seconds: seconds * S)
    return issue


def test_three_actions() -> None:
    """All but the longest could be saved, if all they do is the same; nobody knows."""
    issue = told((stage("count at a.py:3"), 12), (stage("sum at a.py:4"), 10), (stage("max at a.py:5"), 11))
    assert issue is not None
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("recomputation", None, 21 * S)
    assert issue.sentence == (
        "3 stages compute what they need of the same RDD, each anew, for count at a.py:3, sum at a.py:4, "
        "max at a.py:5: all but the longest take 21.0 s"
    )


def of_checkpoint(place: str, rdd: int) -> dict[str, Any]:
    """Return the Stage Info of an action on an RDD whose checkpoint was written at a place."""
    return {
        "Stage Name": "sum at a.py:9",
        "RDD Info": [
            {"RDD ID": 20, "Name": "ReliableCheckpointRDD", "Callsite": place, "Parent IDs": []},
            {"RDD ID": rdd, "Name": "PythonRDD", "Parent IDs": [20]},
        ],
    }


@pytest.mark.parametrize(
    ("action_s", "again_s"), [(30, 4), (4, 30)], ids=["starts Python", "writes for long"]
)
def test_a_checkpoint_that_takes_another_time_than_its_action(action_s: int, again_s: int) -> None:
    rule = RddsComputedAgain()
    first = stage("count at a.py:3")
    first["RDD Info"].append({"RDD ID": 7, "Parent IDs": [5], "Number of Partitions": 8})
    assert rule.take(first, action_s * S, lambda: action_s * S) is None
    assert rule.take(stage("count at a.py:3"), again_s * S, lambda: again_s * S) is None
    issue = rule.checkpoints(of_checkpoint("count at a.py:3", 5))
    assert issue is not None
    assert (issue.share_ms, issue.sentence[:8]) == (4 * S, "2 stages")


def test_a_checkpoint_of_what_is_not_kept() -> None:
    rule = RddsComputedAgain()
    first, again = stage("count at a.py:3"), stage("count at a.py:3")
    first["RDD Info"].append({"RDD ID": 7, "Parent IDs": [5], "Number of Partitions": 8})
    for info, seconds in ((first, 12), (again, 10)):
        issue = rule.take(info, seconds * S, lambda seconds=seconds: seconds * S)
    assert issue is not None
    assert "checkpoint" not in issue.sentence
    for other in (of_checkpoint("count at a.py:4", 5), of_checkpoint("count at a.py:3", 7)):
        assert rule.checkpoints(other) is None
    issue = rule.checkpoints(of_checkpoint("count at a.py:3", 5))
    assert issue is not None
    assert issue.sentence.endswith(
        "all but the longest take 10.0 s; one of them writes its checkpoint, after count at a.py:3"
    )
    assert issue.advice.startswith("persist() the RDD before checkpoint()")
    assert rule.checkpoints(of_checkpoint("count at a.py:3", 5)) is None  # it is told


def test_a_cached_one_and_others() -> None:
    kept = stage("count at a.py:3", kept=True)
    assert told((kept, 12), (kept, 10)) is None
    assert told((stage("count at a.py:3"), 12), (stage("count at a.py:3", source=9), 12)) is None


def test_a_few_partitions() -> None:
    """take() and first() compute only these."""
    assert told((stage("take at a.py:3", tasks=1), 6), (stage("count at a.py:4"), 10)) is None


def test_one_that_does_far_more_than_the_other() -> None:
    """The lines of a file are counted, and then parsed: it is only read again."""
    assert told((stage("count at a.py:3"), 2), (stage("sum at a.py:4"), 30)) is None
    assert told((stage("sum at a.py:4"), 30), (stage("count at a.py:3"), 2)) is None
    issue = told((stage("count at a.py:3"), 2), (stage("sum at a.py:4"), 30), (stage("max at a.py:5"), 28))
    assert issue is not None
    assert issue.share_ms == 28 * S


def test_the_first_for_which_python_starts() -> None:
    """The second longest says how long is usual, and one that takes far less does not count."""
    actions = ((15, "count"), (10, "sum"), (9, "max"), (2, "min"), (1, "first"))
    issue = told(*((stage(f"{name} at a.py:{line}"), line) for line, name in actions[:-1]))
    assert issue is not None
    assert (issue.share_ms, issue.evidence["recomputation.times"]) == (21 * S, 4)
    assert told(*((stage(f"{name} at a.py:{line}"), line) for line, name in actions)) is None


def test_turns_of_a_loop() -> None:
    """What takes one turn half as long as another does the same, with a CPU of its own, say."""
    turns = [(stage("collect at a.py:9"), seconds) for seconds in (4, 9, 3, 8, 2)]
    issue = told(*turns)
    assert issue is not None
    assert (issue.share_ms, issue.evidence["recomputation.times"]) == (17 * S, 5)


def test_more_turns_than_are_kept() -> None:
    """All count, but for what takes far less at another place."""
    turns = [(stage("collect at a.py:9"), 9 + number % 2) for number in range(150)]
    issue = told(*turns)
    assert issue is not None
    assert (issue.share_ms, issue.evidence["recomputation.times"]) == ((150 * 19 // 2 - 10) * S, 150)
    assert told(*turns, (stage("first at a.py:11"), 1)) is None
    longest = told(*turns, (stage("collect at a.py:9"), 17))
    assert longest is not None
    assert (longest.share_ms, longest.evidence["recomputation.times"]) == (150 * 19 // 2 * S, 151)


def test_the_lines_of_a_file() -> None:
    """Spark calls their RDD by its path, which says more than a number."""
    files = [stage(f"count at a.py:{line}") for line in (3, 4)]
    for info in files:
        info["RDD Info"][0]["Name"] = "/data/readings"
    issue = told((files[0], 12), (files[1], 10))
    assert issue is not None
    assert "compute what they need of the RDD of /data/readings, each anew" in issue.sentence
    assert issue.evidence["recomputation.what"] == "the RDD of /data/readings"


def test_what_is_sorted_is_told_elsewhere() -> None:
    assert told((stage("sortByKey at a.py:3"), 12), (stage("sortByKey at a.py:3"), 10)) is None


def test_how_many_are_remembered() -> None:
    rule = RddsComputedAgain()
    for number in range(2_000):
        rule.take(stage("count at a.py:3", source=10 * number), S, lambda: S)
    assert len(rule._computed) == 1_000

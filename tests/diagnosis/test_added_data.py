"""Functions of an RDD that make many rows of few, such as all pairs of the members of a group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import PythonTimes, WithoutInput
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.stage_rules import stage_issues
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.why.answer import answer
from spark_events.why.found_issue import issue_of
from tests.support.measured_tasks import measured

KIB, MIB, S = 1 << 10, 1 << 20, 1_000


def told(
    run_s: list[float],
    read: list[int],
    written: list[int],
    in_rdd: bool = True,
    of_shuffle: bool = True,
    **others: Any,
) -> dict[str, Issue]:
    tasks = measured([round(each * S) for each in run_s], read, written=written)
    shuffled = WithoutInput(len(run_s), 0) if of_shuffle else WithoutInput()
    python = PythonTimes(round(sum(run_s) * S), in_rdd=in_rdd)
    stage = EndedStage(4, replace(tasks, without_input=shuffled), python, **others)
    return {issue.kind: issue for issue in stage_issues(stage, Thresholds())}


def test_some_tasks_make_many_rows() -> None:
    """Half of 16 tasks take 20 s instead of 1 s: 152 of 168 s are for what they make of as much data."""
    issues = told([20] * 8 + [1] * 8, [160 * KIB] * 16, [5 * MIB] * 8 + [3 * KIB] * 8)
    issue = issues["expanded-rows"]
    assert "straggler" not in issues
    assert issue.share_ms == pytest.approx(42 * S * 152 / 168, rel=0.02)
    assert issue.sentence == (
        "Python functions of an RDD make much more data than they read: tasks read at most 160 KiB, the median 160 KiB, and "
        "make at most 5 MiB of that, the median 3 KiB; they take 1.0 s at the median, and up to 20.0 s"
    )


@pytest.mark.parametrize(
    ("rows_from", "is_told"),
    [("join at feed.py:9", True), ("leftOuterJoin at feed.py:9", True), ("groupByKey at feed.py:9", False)],
)
def test_a_join_of_frequent_keys(rows_from: str, is_told: bool) -> None:
    read, written = [160 * KIB] * 16, [5 * MIB] * 8 + [3 * KIB] * 8
    issue = told([20] * 8 + [1] * 8, read, written, rows_from=rows_from)["expanded-rows"]
    assert issue.sentence.endswith(f"; {rows_from} divides the rows")
    assert ("bring it to all tasks by sc.broadcast()" in issue.advice) is is_told


def test_the_larger_groups_make_more() -> None:
    """They read more, too: what they make grows with the square of that."""
    issues = told([60] + [1] * 15, [80 * KIB] + [4 * KIB] * 15, [8 * MIB] + [10 * KIB] * 15)
    assert "skew" not in issues
    assert issues["expanded-rows"].share_ms == pytest.approx(60 * S * 59 / 75, rel=0.02)


def test_all_tasks_make_many_rows() -> None:
    issue = told([20] * 8, [160 * KIB] * 8, [5 * MIB] * 8)["expanded-rows"]
    assert issue.share_ms == 40 * S
    assert issue.sentence.endswith("tasks read 1.2 MiB in all, and make 40 MiB of that")


def test_one_of_them_is_late_all_the_same() -> None:
    """That all make many rows does not explain it."""
    issues = told([60] + [5] * 7, [160 * KIB] * 8, [5 * MIB] * 8)
    assert {"expanded-rows", "straggler"} <= issues.keys()


@pytest.mark.parametrize(
    ("written", "run_s", "others"),
    [
        ([200 * KIB] * 16, [20] + [1] * 15, {}),
        ([5 * MIB] * 8 + [3 * KIB] * 8, [20] * 8 + [1] * 8, {"in_rdd": False}),
        ([5 * MIB] * 8 + [3 * KIB] * 8, [20] * 8 + [1] * 8, {"of_shuffle": False}),
        ([5 * MIB] * 8 + [3 * KIB] * 8, [20] * 8 + [1] * 8, {"writes_files": True}),
        ([50 * KIB] * 8 + [3 * KIB] * 8, [20] * 8 + [1] * 8, {}),
        ([5 * MIB] * 1 + [3 * KIB] * 15, [2] * 16, {}),
    ],
    ids=[
        "as much as it reads",
        "no RDD",
        "of files, which are compressed",
        "into files",
        "little",
        "no longer for that",
    ],
)
def test_what_is_not_told(written: list[int], run_s: list[float], others: dict[str, bool]) -> None:
    assert "expanded-rows" not in told(run_s, [160 * KIB] * 16, written, **others)


def test_the_answer() -> None:
    attributes = {
        "issue": "expanded-rows",
        "subject": "stage 2.0 (distinct at a.py:44)",
        "shareMs": 50 * S,
        "expand.writtenBytes": 33 * MIB,
    }
    assert answer([issue_of(attributes, "WARN")], 100 * S, {}) == (
        "Of its time, 50 %, 50.0 s, may go to the additional data that functions make in the distinct at "
        "a.py:44 (stage 2.0)."
    )

"""The rule about window frames of many rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.costly_nodes.sliding_frames import sliding_frames
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

WINDOW = (
    "Window [sum(v#5L) windowspecdefinition(sensor#4, at#3L ASC NULLS FIRST, specifiedwindowframe({0})) AS s#7L], "
    "[sensor#4], [at#3L ASC NULLS FIRST]"
)


def told(frame: str, rows: int = 1_000_000, cpu_ms: int = 0, **metrics: int) -> list[Issue]:
    """Return what is told of a window in a stage of 40 s on four cores."""
    plan = Plan()(0, WINDOW.format(frame), 2, rows=rows, **metrics)(1, "Sort [sensor#4, at#3L]", 2)
    execution = executed(plan, s2=(0, 40))
    stages = {2: replace(execution.stages[2], cpu_ms=cpu_ms)}
    return list(sliding_frames(replace(execution, stages=stages), Thresholds()))


def test_a_frame_of_many_rows() -> None:
    """Of 160 s that tasks run, they have a CPU for 80; a million rows with frames of 2,000 explain 40 of these."""
    (issue,) = told("RowFrame, -1999, currentrow$()", cpu_ms=80 * S)
    assert (issue.kind, issue.lost_ms) == ("window", 20 * S)
    assert issue.sentence == (
        "for each of 1,000,000 rows, a window ordered by at aggregates a frame of up to 2,000 rows anew"
    )


@pytest.mark.parametrize(
    ("frame", "rows", "metrics"),
    [
        ("RowFrame, -98, currentrow$()", 1_000_000, {}),
        ("RowFrame, unboundedpreceding$(), currentrow$()", 1_000_000, {}),
        ("RangeFrame, unboundedpreceding$(), currentrow$()", 1_000_000, {}),
        ("RangeFrame, currentrow$(), currentrow$()", 1_000_000, {}),
        ("RangeFrame, -86400000000, currentrow$()", 9_000_000, {}),
        ("RowFrame, -1999, currentrow$()", 300_000, {}),
        ("RowFrame, -1999, currentrow$()", 9_000_000, {}),
        ("RowFrame, -1999, currentrow$()", 1_000_000, {"number_of_segment-tree_frames_prepared": 9}),
    ],
    ids=[
        "few rows",
        "all before",
        "all before by time",
        "the same time",
        "short ranges",
        "little work",
        "frames that partitions end",
        "trees",
    ],
)
def test_frames_that_are_quick(frame: str, rows: int, metrics: dict[str, int]) -> None:
    assert told(frame, rows, 80 * S, **metrics) == []


def test_on_both_sides_of_the_row() -> None:
    (issue,) = told("RowFrame, -1000, 999", cpu_ms=80 * S)
    assert issue.evidence["window.frameRows"] == 2_000


@pytest.mark.parametrize(
    "frame", ["-86400000000, currentrow$()", "-INTERVAL '7' DAY, currentrow$()", "-INTERVAL '01' HOUR, 0"]
)
def test_frames_of_a_range(frame: str) -> None:
    """Nobody knows how many rows they have; of 80 s that tasks have a CPU for, rows take 3 s where they are short."""
    (issue,) = told(f"RangeFrame, {frame}", cpu_ms=80 * S)
    assert (issue.kind, issue.lost_ms) == ("window", round(40 * S * 77 / 80))
    assert issue.sentence == (
        "for each of 1,000,000 rows, a window ordered by at aggregates all of its range anew"
    )


def test_what_has_no_running_totals() -> None:
    """The largest value of a frame is no difference of two others."""
    text = WINDOW.format("RangeFrame, -9, 0")
    for window, begins in (
        (text, "For sums, counts"),
        (text.replace("sum(v", "max(v"), "Aggregate by a coarser"),
    ):
        plan = Plan()(0, window, 2, rows=1_000_000)
        (issue,) = sliding_frames(executed(plan, s2=(0, 40)), Thresholds())
        assert issue.advice.startswith(begins)


def test_a_window_whose_text_is_cut() -> None:
    """The list of the columns that order it may be gone; each function names them, too."""
    many = ", ".join(
        f"sum(v#5L) windowspecdefinition(a#1, b#2, c#3 DESC NULLS LAST) AS s_{at}#7" for at in range(9)
    )
    text = WINDOW.format("RangeFrame, -9, 0").replace("[sensor#4]", f"{many}, [sensor#4]")[:500]
    assert "], [sensor" not in text
    plan = Plan()(0, text, 2, rows=1_000_000)
    (issue,) = sliding_frames(executed(plan, s2=(0, 40)), Thresholds())
    assert "a window ordered by at aggregates" in issue.sentence
    assert issue.evidence["window.frame"] == "ranges"


@pytest.mark.parametrize(
    ("function", "frame", "is_told"),
    [
        ("collect_list(v#5L, 0, 0)", "RowFrame, unboundedpreceding$(), currentrow$()", True),
        ("collect_set(v#5L, 0, 0)", "RangeFrame, unboundedpreceding$(), currentrow$()", True),
        ("collect_list(v#5L, 0, 0)", "RowFrame, unboundedpreceding$(), unboundedfollowing$()", False),
        ("sum(v#5L)", "RowFrame, unboundedpreceding$(), currentrow$()", False),
    ],
)
def test_frames_that_are_collected(function: str, frame: str, is_told: bool) -> None:
    """An array with one more row for each row takes longer each time; one for the whole partition is made once."""
    window = WINDOW.format(frame).replace("sum(v#5L)", function)
    plan = Plan()(0, window, 2, rows=1_000_000)(1, "Sort [sensor#4, at#3L]", 2)
    execution = executed(plan, s2=(0, 40))
    stages = {2: replace(execution.stages[2], cpu_ms=80 * S)}
    issues = list(sliding_frames(replace(execution, stages=stages), Thresholds()))
    assert [issue.sentence.partition("at ")[2] for issue in issues] == [
        "copies all before it in its partition into an array"
    ] * is_told


@pytest.mark.parametrize("frame", ["RowFrame, currentrow$()", "RangeFrame, currentrow$()", "RowFrame, 1"])
def test_frames_that_end_with_their_partition(frame: str) -> None:
    """Of 80 s that tasks have a CPU for, rows take 3 s where frames grow."""
    (issue,) = told(f"{frame}, unboundedfollowing$()", cpu_ms=80 * S)
    assert (issue.kind, issue.lost_ms) == ("window", 40 * S * 77 // 80)
    assert issue.sentence == (
        "for each of 1,000,000 rows, a window ordered by at aggregates all that follow in its partition anew"
    )


@pytest.mark.parametrize(
    ("frame", "cpu_s", "sorted_s"),
    [
        ("RowFrame, currentrow$(), unboundedfollowing$()", 9, 0),
        ("RowFrame, currentrow$(), unboundedfollowing$()", 80, 150),
        ("RowFrame, unboundedpreceding$(), unboundedfollowing$()", 80, 0),
        ("RowFrame, unboundedpreceding$(), currentrow$()", 80, 0),
    ],
    ids=["short partitions", "it sorts", "the whole partition", "a frame that grows"],
)
def test_frames_to_the_end_that_are_quick(frame: str, cpu_s: int, sorted_s: int) -> None:
    plan = Plan()(0, WINDOW.format(frame), 2, rows=1_000_000)
    plan(1, "Sort [sensor#4, at#3L]", 2, sort_time=sorted_s * S)
    execution = executed(plan, s2=(0, 40))
    stages = {2: replace(execution.stages[2], cpu_ms=cpu_s * S)}
    assert list(sliding_frames(replace(execution, stages=stages), Thresholds())) == []


@pytest.mark.parametrize(
    ("beside", "share_s"),
    [("Project [slow(at#3L) AS x#9]", 39), ("BatchEvalPython [f(at#3L)#9], [x#9]", None)],
    ids=["functions", "Python"],
)
def test_what_else_is_done_beside_frames_to_the_end(beside: str, share_s: int | None) -> None:
    """Nobody knows how long that takes: it may be the functions that do, or all else."""
    plan = Plan()(0, beside, 2)
    plan(1, WINDOW.format("RowFrame, currentrow$(), unboundedfollowing$()"), 2, rows=1_000_000)
    told = list(sliding_frames(executed(plan, s2=(0, 40)), Thresholds()))
    assert [(issue.lost_ms, issue.share_ms and issue.share_ms // S) for issue in told] == (
        [(None, share_s)] if share_s else []
    )

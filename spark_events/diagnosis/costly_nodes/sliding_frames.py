"""The rule about window frames of many rows, each of which Spark goes through again for each row.

Of a frame that ends with its partition, too: only one that begins with it grows from row to row, and if all
of its rows are collected, that are copied each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import Node, columns
from spark_events.diagnosis.plans.work_in_stage import (
    USUAL_FOR_A_ROW_US,
    in_stage_with,
    is_accounted_for,
    measured_ms,
    tasks_time,
)
from spark_events.diagnosis.thresholds import WINDOW, Thresholds

_BOUND = r"(-?\d+|currentrow\$\(\))"
_FRAME = re.compile(rf"specifiedwindowframe\(RowFrame, {_BOUND}, {_BOUND}\)", re.ASCII)
_SPECIFIED = re.compile(r"windowspecdefinition\((.*?), specifiedwindowframe\(", re.ASCII)
_ORDERED = re.compile(r"(\S+) (?:ASC|DESC)\b", re.ASCII)
_QUICK, _CALLING = ("Window", "WindowGroupLimit"), ("Project", "Filter", "HashAggregate", "SortAggregate")
_LEAST_ROWS = 100
_STEP_NS = 20
"""What a row of a frame takes, of a CPU; less, where nothing but a sum is made of it."""
_LEAST_SHARE = 0.2
"""Of the CPU time of a window's stages: if its frames can explain less, something else takes long."""
_MOST_TIMES = 4
"""If they would take so many times as long, they are shorter: a frame ends where its partition does."""
_LONG_FOR_A_ROW_US = 10
"""What a row takes of a CPU where partitions are long; less, where they are short, or its frame grows."""
_TREES = "number of segment-tree frames prepared"


class _Frames(NamedTuple):
    """Frames of which nobody knows how many rows they have, but how long a row takes.

    Attributes:
        text: what is in that of a window with such frames.
        cause: of the issue, besides its kind.
        done: what Spark does for each row.
        advice: what to do.
    """

    text: re.Pattern[str]
    cause: str
    done: str
    advice: str


_TOTALS = (
    "For sums, counts and averages, subtract running totals: sum() from UNBOUNDED PRECEDING to the row, "
    "minus the same as of the row before the frame{before}. Or aggregate by a coarser time before."
)
_OF_RANGES = _TOTALS.format(before="")
_NO_TOTALS = re.compile(r"\b(?:max|min)(?:_by)?\(", re.ASCII)
_COARSER = (
    "Aggregate by a coarser value before (an hour, a day), so that a frame has fewer rows: its largest and "
    "smallest values are those of these rows. Windows of sums, counts and averages alone may subtract "
    "running totals instead."
)
_OF_UNKNOWN_ROWS = (
    _Frames(
        re.compile(
            rf"specifiedwindowframe\(R(?:ow|ange)Frame, {_BOUND}, unboundedfollowing\$\(\)\)", re.ASCII
        ),
        "to the end",
        "aggregates all that follow in its partition anew",
        "Order it the other way round (DESC), and let frames begin with the partition (UNBOUNDED PRECEDING "
        "to CURRENT ROW): they grow by a row each time. Or subtract a running total from that of the "
        "partition.",
    ),
    _Frames(
        re.compile(
            r"specifiedwindowframe\(RangeFrame, (?!unbounded|currentrow\$\(\), currentrow)"
            r"[^,]+, (?!unbounded)"
        ),
        "ranges",
        "aggregates all of its range anew",
        _OF_RANGES,
    ),
    _Frames(
        re.compile(
            r"collect_(?:list|set)\((?:(?!windowspecdefinition).)*windowspecdefinition\((?:(?!windowspec).)*?"
            r"specifiedwindowframe\(R(?:ow|ange)Frame, unboundedpreceding\$\(\), currentrow\$\(\)\)"
        ),
        "collected",
        "copies all before it in its partition into an array",
        "Collect once for each key (groupBy), and work on that array (transform, filter, slice, aggregate); "
        "or let frames have only the rows that you need (ROWS BETWEEN 20 PRECEDING AND CURRENT ROW).",
    ),
)


def grows_with_its_key(node: Node, execution: EndedExecution) -> bool:
    """Return whether a node is a window that takes long, and the longer for a row, the more its key has."""
    return bool(node.rows) and _of_unknown_rows(node, node.rows or 0, execution) is not None


def sliding_frames(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield windows whose frames have many rows: Spark aggregates all of a frame anew for each row."""
    for node in execution.nodes():
        frame_rows, rows = _longest_frame(node), node.rows
        if rows and (issue := _of_unknown_rows(node, rows, execution)) is not None:
            yield issue
            continue
        if frame_rows < _LEAST_ROWS or not rows or node.metrics.get(_TREES):
            continue
        run_ms, cpu_ms = tasks_time(node, execution)
        steps_ms = rows * frame_rows * _STEP_NS / 1e6
        took_ms = cpu_ms or run_ms
        if not took_ms or not _LEAST_SHARE * took_ms <= steps_ms <= _MOST_TIMES * took_ms:
            continue
        wall_ms = execution.wall_ms(node.stages)
        share = min(0.95, steps_ms / took_ms)
        yield _issue(node, frame_rows, rows, round(wall_ms * share))


def _of_unknown_rows(node: Node, rows: int, execution: EndedExecution) -> Issue | None:
    """Return that rows take long because of their frames, if nothing else in the stage may.

    Functions that are called there may: then what the window takes is not known.
    """
    frames = next((each for each in _OF_UNKNOWN_ROWS if each.text.search(node.text)), None)
    if node.name != "Window" or frames is None or node.metrics.get(_TREES):
        return None
    others = [each for each in in_stage_with(node) if each is not node]
    unknown = [each for each in others if not is_accounted_for(each) and each.name not in _QUICK]
    if any(each.name not in _CALLING for each in unknown):
        return None
    run_ms, cpu_ms = tasks_time(node, execution)
    own_share = max(0.0, 1 - measured_ms(others) / run_ms) if run_ms else 0.0
    each_us = (cpu_ms or run_ms) * own_share * 1_000 / rows
    if each_us < _LONG_FOR_A_ROW_US:
        return None
    took_ms = round(execution.wall_ms(node.stages) * own_share * (1 - USUAL_FOR_A_ROW_US / each_us))
    return Issue(
        WINDOW,
        f"{WINDOW} {frames.cause}",
        None if unknown else took_ms,
        None,
        f"for each of {rows:,} rows, {_window(node)} {frames.done}",
        _COARSER if frames.advice is _OF_RANGES and _NO_TOTALS.search(node.text) else frames.advice,
        evidence={"window.rows": rows, "window.frame": frames.cause},
        share_ms=took_ms if unknown else None,
        stages=node.stages,
    )


def _issue(node: Node, frame_rows: int, rows: int, lost_ms: int) -> Issue:
    return Issue(
        WINDOW,
        f"{WINDOW} frames",
        lost_ms,
        None,
        f"for each of {rows:,} rows, {_window(node)} aggregates a frame of up to {frame_rows:,} rows anew",
        _TOTALS.format(before=" (lag)"),
        evidence={"window.rows": rows, "window.frameRows": frame_rows},
        stages=node.stages,
    )


def _window(node: Node) -> str:
    """Return what a sentence calls a window: by the columns that order the rows of its partitions."""
    specified = _SPECIFIED.search(node.text)
    ordered = _ORDERED.findall(specified[1]) if specified is not None else []
    by = ", ".join(name for text in ordered for name in columns(text)[-1:])
    return f"a window{f' ordered by {by}' if by else ''}"


def _longest_frame(node: Node) -> int:
    """Return how many rows the longest frame of a window has that slides; 0 if none does."""
    if node.name != "Window":
        return 0
    bounds = ([_offset(bound) for bound in frame] for frame in _FRAME.findall(node.text))
    return max((last - first + 1 for first, last in bounds), default=0)


def _offset(bound: str) -> int:
    return 0 if bound.startswith("c") else int(bound)

"""The report as one self-contained page: no script, nothing fetched, readable in light and dark."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from spark_events.api import printable
from spark_events.api.formatting import duration, moment, percent
from spark_events.history.report import MOST_SHOWN, Report, Row, job_name
from spark_events.history.timeline import JOB

WIDTH, LEFT, RIGHT = 1000, 220, 12
"""Of a drawing, in its own units: all of it, of the names on its left, of the margin on its right."""
_ROW, _AXIS, _CHART = 26, 22, 120
_STEPS_MS = tuple(
    size * 1_000 for size in (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)
)
_MOST_TICKS = 7
MOST_ROWS = 2_000
"""Of a table; the JSON has all."""
MOST_DAY_ROWS = 5_000


class Segment(NamedTuple):
    """A part of a job's timeline: where it stands, how wide it is, its state, and what it says."""

    x: float
    width: float
    state: str
    title: str


class Lane(NamedTuple):
    """One job's timeline."""

    name: str
    y: int
    segments: list[Segment]


class Point(NamedTuple):
    """A checkpoint in a chart: where it stands, whether it was late, and what it says."""

    x: float
    y: float
    late: bool
    title: str


class Chart(NamedTuple):
    """The checkpoints of a query against its SLA.

    Attributes:
        name: of the query.
        points: the worst checkpoint of each of 240 parts of the time.
        sla_y: where the line of the SLA stands.
        sla: what it says.
        top, bottom: what the edges stand for.
    """

    name: str
    points: list[Point]
    sla_y: float
    sla: str
    top: str
    bottom: str


class Tick(NamedTuple):
    """A mark on the axis of time."""

    x: float
    label: str


def page(report: Report) -> str:
    """Return a report as HTML.

    Args:
        report: what it says; all its texts are taken as text, never as markup.
    """
    environment = Environment(
        loader=PackageLoader("spark_events.history"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(duration=duration, moment=moment, percent=percent)
    environment.finalize = _finalized
    scale = _Scale(report)
    lanes = list(_lanes(report, scale))
    down = [row for row in report.uptime if row["state"] == "down"]
    return environment.get_template("page.html.j2").render(
        report=report,
        job_name=job_name,
        most_shown=MOST_SHOWN,
        most_rows=MOST_ROWS,
        most_day_rows=MOST_DAY_ROWS,
        down=down,
        overdue=[row for row in report.checkpoint_sla if row["overdue"]],
        totals=_totals(report),
        lanes=lanes,
        lanes_height=len(lanes) * _ROW,
        ticks=list(scale.ticks()),
        charts=list(_charts(report, scale)),
        days=_days(report),
        size={"width": WIDTH, "left": LEFT, "right": RIGHT, "row": _ROW, "axis": _AXIS, "chart": _CHART},
    )


class _Scale:
    """Where times stand in a drawing."""

    def __init__(self, report: Report) -> None:
        self._since_ms = report.since_ms
        self._length_ms = max(1, report.until_ms - report.since_ms)

    def x(self, ms: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (ms - self._since_ms) / self._length_ms, 2)

    def ticks(self) -> Iterator[Tick]:
        step = next((s for s in _STEPS_MS if self._length_ms / s <= _MOST_TICKS), None)
        if step is None:
            days = -(-self._length_ms // (_STEPS_MS[-1] * _MOST_TICKS))
            step = days * _STEPS_MS[-1]
        at = -(-self._since_ms // step) * step
        while at <= self._since_ms + self._length_ms:
            text = moment(at)
            yield Tick(self.x(at), text[5:10] if step % _STEPS_MS[-1] == 0 else text[11:])
            at += step


def _lanes(report: Report, scale: _Scale) -> Iterator[Lane]:
    by_job: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in report.intervals:
        by_job[tuple(row[name] for name in JOB)].append(row)
    for number, row in enumerate(report.uptime[:MOST_SHOWN]):
        segments = [
            Segment(
                scale.x(part["start_ms"]),
                # What is shorter than a pixel is seen all the same.
                max(1.0, round(scale.x(part["end_ms"]) - scale.x(part["start_ms"]), 2)),
                part["state"],
                f"{part['status']} for {duration(part['end_ms'] - part['start_ms'])}, "
                f"{moment(part['start_ms'])} to {moment(part['end_ms'])} UTC",
            )
            for part in by_job[tuple(row[name] for name in JOB)]
        ]
        # Outages are drawn last, over what is beside them.
        segments.sort(key=lambda segment: segment.state == "down")
        yield Lane(job_name(row), number * _ROW, segments)


def _charts(report: Report, scale: _Scale) -> Iterator[Chart]:
    by_query: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in report.durations:
        by_query[row["app_name"], row["query_name"]].append(row)
    for row in report.checkpoint_sla[:MOST_SHOWN]:
        points = by_query.get((row["app_name"], row["query_name"]))
        if not points:
            continue
        yield _chart(job_name(row), row["sla_ms"], points, scale)


def _chart(name: str, sla_ms: int, rows: list[Row], scale: _Scale) -> Chart:
    heights = [(row, max(1, row["duration_ms"], _late_gap_ms(row, sla_ms))) for row in rows]
    bottom_ms = min(sla_ms, *(ms for _, ms in heights)) / 1.5
    top_ms = max(sla_ms, *(ms for _, ms in heights)) * 1.5

    def y(ms: float) -> float:
        return round(_CHART * math.log(top_ms / ms) / math.log(top_ms / bottom_ms), 2)

    points = [
        Point(
            scale.x(row["time_ms"]),
            y(ms),
            ms > sla_ms,
            f"took {duration(row['duration_ms'])}, owed for {duration(row['gap_ms'])}, "
            f"{moment(row['time_ms'])} UTC",
        )
        for row, ms in heights
    ]
    sla = f"SLA {duration(sla_ms)}"
    return Chart(name, points, y(sla_ms), sla, duration(top_ms), duration(bottom_ms))


def _finalized(value: object) -> object:
    """Return what stands in the page in place of a value: no text has control characters."""
    return printable(value) if type(value) is str else value


def _late_gap_ms(row: Row, sla_ms: int) -> int:
    gap_ms: int = row["gap_ms"] or 0
    return gap_ms if gap_ms > sla_ms else 0


def _totals(report: Report) -> dict[str, Any]:
    completed = sum(row["completed"] for row in report.checkpoint_sla)
    met = sum(row["met"] for row in report.checkpoint_sla)
    owed = completed + sum(row["overdue"] for row in report.checkpoint_sla)
    return {
        "applications": sum(row["kind"] == "application" for row in report.uptime),
        "queries": sum(row["kind"] == "query" for row in report.uptime),
        "outages": sum(row["failures"] for row in report.uptime),
        "restarts": sum(row["restarts"] for row in report.uptime if row["kind"] == "query"),
        "completed": completed,
        "met_percent": 100 * met / owed if owed else None,
        "failures": sum(row["count"] for row in report.failures),
    }


def _days(report: Report) -> list[tuple[str, list[Row]]]:
    """Return the days with the rows of uptime and of checkpoints joined, where there are several.

    Of very many rows, the last days have theirs.
    """
    sla = {(row["date"], row["app_name"], row["query_name"]): row for row in report.checkpoint_sla_per_day}
    days = []
    rows_of_days = report.uptime_per_day
    if len(rows_of_days) > MOST_DAY_ROWS:
        first_left_out = rows_of_days[-MOST_DAY_ROWS - 1]["date"]
        whole_days = [row for row in rows_of_days if row["date"] > first_left_out]
        rows_of_days = whole_days or rows_of_days[-MOST_DAY_ROWS:]
    for date, rows in groupby(rows_of_days, key=lambda row: str(row["date"])):
        joined = [
            {**row, "sla": sla.get((date, row["app_name"], row["query_name"])) if row["query_name"] else None}
            for row in rows
        ]
        days.append((date, joined))
    several = len({row["date"] for row in report.uptime_per_day}) > 1
    return days if several else []

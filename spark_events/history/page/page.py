"""The report as one self-contained page: no script, nothing fetched, readable in light and dark."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from itertools import groupby
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from spark_events.api import printable
from spark_events.api.toolkit.formatting import cost, duration, moment, percent, size
from spark_events.history.figures.timeline import DOWN, LAST_FAILED, NOT_HEARD, STATES, STOPPED
from spark_events.history.options import UNSET_SLA_MS
from spark_events.history.page.headline import nothing_wrong, outages, wrong_now
from spark_events.history.reading.plausible import DAY_MS
from spark_events.history.report import MOST_SHOWN, Report, job_of
from spark_events.history.table import BAD, NEW_LINE, PAGE, TIMES, How, Part, Row, Shown, job_name
from spark_events.history.tables.all_tables import TABLES

WIDTH, LEFT, RIGHT = 1000, 220, 12
"""Of a drawing, in its own units: all of it, of the names on its left, of the margin on its right."""
_ROW, _AXIS, _CHART, _MARK = 26, 22, 120, 4
_NARROW, _NARROW_ROW = 380, 46
"""Of a timeline for phones: its width, and the height of a name with the bars below it."""
_LABEL = 30
"""How near two labels of an axis may be."""
_STEPS_MS = tuple(
    size * 1_000 for size in (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)
)
_MOST_TICKS, _MOST_NARROW_TICKS = 7, 4
_HALF_A_TICK = 26
"""Half the width of the label of a tick, in units of the drawing."""
_LONGEST_LABEL = 30
"""In characters: the longest name that surely fits left of a timeline."""
_ROUND_MS = (
    *(size * unit for unit in (1, 10, 100) for size in (1, 2, 5)),
    *(size * 1_000 for size in (1, 2, 5, 10, 30)),
    *(size * 60_000 for size in (1, 2, 5, 10, 30)),
    *(size * 3_600_000 for size in (1, 2, 6, 12, 24, 48, 168, 720, 8_760)),
)
_ROOM = 1.15
"""How much longer than the longest an axis has to be."""
MOST_ROWS = 2_000
"""Of a table; the JSON has all."""
MOST_DAY_ROWS = 5_000


class Band(NamedTuple):
    """An interval of a timeline: its place and width, its state, and its tooltip."""

    x: float
    width: float
    state: str
    title: str


class Lane(NamedTuple):
    """The timeline of one job, or of one executor: its whole name, and as much of it as fits."""

    name: str
    label: str
    y: int
    bands: list[Band]
    href: str = ""


class Point(NamedTuple):
    """A checkpoint in a chart: its place, whether it was late, and its tooltip."""

    x: float
    y: float
    late: bool
    title: str


class Chart(NamedTuple):
    """The checkpoints of a query against its SLA.

    Attributes:
        name: of the query.
        points: the worst checkpoint in each 240th of the period.
        sla_y: the position of the SLA line.
        sla: its label.
        top, bottom: the labels of the edges.
    """

    name: str
    points: list[Point]
    sla_y: float
    sla: str
    top: str
    bottom: str


class Tick(NamedTuple):
    """A mark on the axis of time; the anchor of its label keeps that within the drawing."""

    x: float
    label: str
    anchor: str


def page(report: Report, link: Callable[[Row], str] | None = None) -> str:
    """Return a report as HTML, with all its texts escaped.

    Args:
        report: of the history.
        link: returns where a click on an outage of a job leads; None leads nowhere.
    """
    scale = _Scale(report)
    template = environment("spark_events.history.page").get_template("page.html.j2")
    return template.render(
        report=report,
        job_name=job_name,
        most_shown=MOST_SHOWN,
        most_rows=MOST_ROWS,
        most_day_rows=MOST_DAY_ROWS,
        sections=[
            (table, table.shown_at(PAGE, report.until_now), table.on_page(report.tables[table.name]))
            for table in TABLES
            if table.heading
        ],
        cell=lambda column, row: _cell(column, row, report.until_ms),
        is_left=_is_left,
        anchor=lambda table: table.id or table.name.replace("_", "-"),
        new_line=NEW_LINE,
        unset_sla_ms=UNSET_SLA_MS,
        wrong=wrong_now(report) if link is None else None,
        fine=nothing_wrong(report),
        outages=outages(report),
        down=[row for row in report.tables.uptime if row["state"] == DOWN],
        silent=[row for row in report.tables.uptime if row["state"] == NOT_HEARD],
        last_failed=[row for row in report.tables.uptime if row["state"] == LAST_FAILED],
        overdue=[row for row in report.tables.checkpoint_sla if row["overdue"]],
        totals=_totals(report),
        lanes=list(_lanes(report, scale, link)),
        executor_lanes=list(_executor_lanes(report, scale)),
        ticks=list(scale.ticks()),
        narrow_ticks=list(scale.narrow_ticks()),
        charts=list(_charts(report, scale)),
        days=_days(report),
        size={
            "width": WIDTH,
            "left": LEFT,
            "right": RIGHT,
            "row": _ROW,
            "axis": _AXIS,
            "chart": _CHART,
            "narrow": _NARROW,
            "narrow_row": _NARROW_ROW,
            "label": _LABEL,
        },
    )


class Cell(NamedTuple):
    """A cell of a table: its class, and its parts, of which the styles are classes as well."""

    css: str
    parts: Sequence[Part]


_TEXTS: dict[How, Callable[[Any], str]] = {
    How.COUNT: "{:,}".format,
    How.AMOUNT: "{:,}".format,
    How.DURATION: lambda ms: duration(ms or None),
    How.PERCENT: percent,
    How.SIZE: size,
    How.MOMENT: moment,
    How.SHORT_MOMENT: lambda ms: moment(ms)[5:],
    How.MINUTE: lambda ms: moment(ms)[5:16],
    How.CLOCK: lambda ms: moment(ms)[11:],
}
"""How values are written; nothing where there is none."""
_STYLES = {**{state: f"state {state}" for state in (*STATES, LAST_FAILED)}, BAD: BAD}


def _cell(column: Shown, row: Row, until_ms: int) -> Cell:
    css = " ".join(("l",) * _is_left(column) + ("wrap",) * column.wraps)
    css = BAD if column.is_bad(row) else css
    if column.how is How.TEXT:
        return Cell(css, [part._replace(style=_STYLES.get(part.style, "")) for part in column.parts_of(row)])
    value = column.value_of(row)
    if value is None:
        text = ""
    elif column.how is How.AGO:
        text = f"{duration(until_ms - value)} ago"
    else:
        text = _TEXTS[column.how](value)
    return Cell(css, [Part(text)])


def _is_left(column: Shown) -> bool:
    return column.how in (How.TEXT, *TIMES) if column.left is None else column.left


def environment(package: str) -> Environment:
    """Return the environment of a package's templates, in which all texts are escaped and printable."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(cost=cost, duration=duration, moment=moment, percent=percent, size=size)
    made.finalize = lambda value: printable(value) if type(value) is str else value
    return made


class _Scale:
    """The time axis: turns times into positions in a drawing."""

    def __init__(self, report: Report) -> None:
        self._since_ms = report.since_ms
        self._length_ms = max(1, report.until_ms - report.since_ms)

    def x(self, ms: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (ms - self._since_ms) / self._length_ms, 2)

    def ticks(self) -> Iterator[Tick]:
        whole_days_ms = -(-self._length_ms // (DAY_MS * _MOST_TICKS)) * DAY_MS
        step_ms = next((step for step in _STEPS_MS if self._length_ms / step <= _MOST_TICKS), whole_days_ms)
        first_ms = -(-self._since_ms // step_ms) * step_ms
        for tick_ms in range(first_ms, self._since_ms + self._length_ms + 1, step_ms):
            date_and_time = moment(tick_ms)
            label = date_and_time[5:10] if step_ms % DAY_MS == 0 else date_and_time[11:]
            x = self.x(tick_ms)
            yield Tick(x, label, "middle" if x <= WIDTH - RIGHT - _HALF_A_TICK else "end")

    def narrow_ticks(self) -> Iterator[Tick]:
        """Yield those of a timeline that has its names above its bars; their labels must not touch."""
        ticks = list(self.ticks())
        for number, tick in enumerate(ticks):
            if (len(ticks) - 1 - number) % -(-len(ticks) // _MOST_NARROW_TICKS) == 0:
                x = round(_NARROW * (tick.x - LEFT) / (WIDTH - LEFT - RIGHT), 2)
                is_inside = _HALF_A_TICK <= x <= _NARROW - _HALF_A_TICK
                yield Tick(x, tick.label, "middle" if is_inside else "end" if x > _HALF_A_TICK else "start")


def _label(name: str) -> str:
    """Return as much of a name as fits beside a timeline; the middle goes: the query's name is at the end."""
    if len(name) <= _LONGEST_LABEL:
        return name
    end = min(max(len(name.rsplit(" / ", 1)[-1]), _LONGEST_LABEL // 2), _LONGEST_LABEL - 4)
    return f"{name[: _LONGEST_LABEL - 1 - end].rstrip()}…{name[-end:]}"


def _lanes(report: Report, scale: _Scale, link: Callable[[Row], str] | None) -> Iterator[Lane]:
    intervals: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in report.intervals:
        intervals[job_of(row)].append(row)
    for number, row in enumerate(report.tables.uptime[:MOST_SHOWN]):
        of_job = intervals[job_of(row)]
        bands = [band for interval in of_job for band in _bands(interval, scale)]
        # Outages are drawn last, on top of their neighbors.
        bands.sort(key=lambda band: band.state == DOWN)
        yield Lane(job_name(row), _label(job_name(row)), number * _ROW, bands, link(row) if link else "")


def _bands(interval: Row, scale: _Scale) -> Iterator[Band]:
    start_ms, end_ms = interval["start_ms"], interval["end_ms"]
    title = (
        f"{interval['status']} for {duration(end_ms - start_ms)}, {moment(start_ms)} to {moment(end_ms)} UTC"
    )
    # Even an interval shorter than a pixel stays visible.
    width = max(1.0, round(scale.x(end_ms) - scale.x(start_ms), 2))
    if interval["state"] == LAST_FAILED:  # of a batch application, that was when its run ended
        yield Band(scale.x(start_ms), width, STOPPED, title)
        yield Band(scale.x(start_ms), _MARK, DOWN, title)
    else:
        yield Band(scale.x(start_ms), width, interval["state"], title)


def _executor_lanes(report: Report, scale: _Scale) -> Iterator[Lane]:
    """Yield the lost ones and the fullest of the others, by application and start."""
    known = [row for row in report.tables.executors if row["start_ms"] is not None]
    shown = nlargest(MOST_SHOWN, known, key=lambda row: (not row["expected"], row["heap_highest"] or 0))
    shown.sort(key=lambda row: (row["app_name"], row["start_ms"], row["executor_id"]))
    for number, row in enumerate(shown):
        name = f"{row['app_name']} {row['executor_id']}"
        yield Lane(name, _label(name), number * _ROW, list(_executor_bands(row, scale)))


def _executor_bands(row: Row, scale: _Scale) -> Iterator[Band]:
    start_ms, end_ms = row["start_ms"], row["end_ms"]
    heap = f", heap {size(row['heap_highest'])}" if row["heap_highest"] is not None else ""
    limit = f" of {size(row['heap_limit'])}" if heap and row["heap_limit"] else ""
    title = f"{row['reason']} after {duration(end_ms - start_ms)}{heap}{limit}, {moment(end_ms)} UTC"
    begin, end = max(float(LEFT), scale.x(start_ms)), scale.x(end_ms)
    yield Band(begin, max(1.0, round(end - begin, 2)), "up", title)
    if not row["expected"]:
        yield Band(end - _MARK, _MARK, "down", title)


def _charts(report: Report, scale: _Scale) -> Iterator[Chart]:
    checkpoints: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in report.durations:
        checkpoints[row["app_name"], row["query_name"]].append(row)
    for row in report.tables.checkpoint_sla[:MOST_SHOWN]:
        if of_query := checkpoints.get((row["app_name"], row["query_name"])):
            yield _chart(job_name(row), row["sla_ms"], of_query, scale)


def _chart(name: str, sla_ms: int, checkpoints: list[Row], scale: _Scale) -> Chart:
    heights_ms = [max(1, row["duration_ms"], _late_gap_ms(row, sla_ms)) for row in checkpoints]
    bottom_ms, top_ms = _round_down(min(sla_ms, *heights_ms)), _round_up(max(sla_ms, *heights_ms))

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
        for row, ms in zip(checkpoints, heights_ms, strict=True)
    ]
    sla = f"SLA {duration(sla_ms)}"
    return Chart(name, points, y(sla_ms), sla, duration(top_ms), duration(bottom_ms))


def _round_down(ms: float) -> float:
    """Return the largest round time that is less, in ms: 10 s, 1 s, 100 ms; it leaves room for a mark."""
    return max((step for step in _ROUND_MS if step * _ROOM <= ms), default=_ROUND_MS[0] / 10)


def _round_up(ms: float) -> float:
    """Return the smallest round time that is more, in ms; it leaves room for a mark."""
    return min((step for step in _ROUND_MS if step >= ms * _ROOM), default=ms * 2)


def _late_gap_ms(row: Row, sla_ms: int) -> int:
    gap_ms: int = row["gap_ms"] or 0
    return gap_ms if gap_ms > sla_ms else 0


def _totals(report: Report) -> dict[str, Any]:
    completed = sum(row["completed"] for row in report.tables.checkpoint_sla)
    met = sum(row["met"] for row in report.tables.checkpoint_sla)
    owed = completed + sum(row["overdue"] + row["stopped_late"] for row in report.tables.checkpoint_sla)
    return {
        "applications": sum(row["kind"] == "application" for row in report.tables.uptime),
        "queries": sum(row["kind"] == "query" for row in report.tables.uptime),
        "outages": sum(row["outages"] or 0 for row in report.tables.uptime),
        "restarts": sum(row["restarts"] or 0 for row in report.tables.uptime if row["kind"] == "query"),
        "completed": completed,
        "met_percent": 100 * met / owed if owed else None,
        "failures": sum(row["count"] for row in report.tables.failures),
    }


def _days(report: Report) -> list[tuple[str, list[Row]]]:
    """Return the days with their rows of uptime and checkpoints joined, if there are several days.

    If there are too many rows, only the last days keep theirs.
    """
    uptime = report.tables.uptime_per_day
    if len({row["date"] for row in uptime}) < 2:
        return []
    if len(uptime) > MOST_DAY_ROWS:
        last_left_out = uptime[-MOST_DAY_ROWS - 1]["date"]
        whole_days = [row for row in uptime if row["date"] > last_left_out]
        uptime = whole_days or uptime[-MOST_DAY_ROWS:]
    sla = {
        (row["date"], row["app_name"], row["query_name"]): row for row in report.tables.checkpoint_sla_per_day
    }

    def with_sla(row: Row) -> Row:
        key = (row["date"], row["app_name"], row["query_name"])
        return {**row, "sla": sla.get(key) if row["query_name"] else None}

    return [
        (str(date), [with_sla(row) for row in rows])
        for date, rows in groupby(uptime, key=lambda row: row["date"])
    ]

"""The page: the graph as SVG, what its script needs as JSON, and the answer as a table."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import Any

import orjson
from markupsafe import Markup

from spark_events.api import printable
from spark_events.api.toolkit.formatting import moment
from spark_events.history.page.page import environment
from spark_events.lineage import drawing as marks
from spark_events.lineage.data_flow import DataKey
from spark_events.lineage.drawing import Arrow, Drawing
from spark_events.lineage_page.layout import HEIGHT, WIDTH, Edge, Layout, Spot, lay_out

MOST_ROWS = 2_000
"""Of the table; the JSON has all."""
_MARGIN = 16.0
_LONGEST_TITLE, _LONGEST_NOTE = 27, 34
_LEGEND = {
    marks.ADDED: "came",
    marks.REMOVED: "went",
    marks.CHANGED: "other columns",
    marks.BEHIND: "older than its source",
    marks.ORPHAN: "nothing reads it",
    marks.INCOMPLETE: "incomplete lineage",
}
_TIPS = (
    ("", "--link"),
    ("-lit", "--lit"),
    ("-added", "--added"),
    ("-bad", "--bad"),
    ("-changed", "--changed"),
)
"""The tips of arrows, and their colors."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """The table below the graph.

    Attributes:
        none: what is said if it has no rows.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    none: str


def lineage_page(
    title: str, drawing: Drawing, table: PageTable, problems: Sequence[str], places: Mapping[str, str]
) -> str:
    """Return a page without anything from elsewhere, with all its texts escaped.

    Args:
        title: what it is about.
        drawing: the graph.
        table: the answer.
        problems: the statements that cannot be analyzed.
        places: where the statements are that have not run.
    """
    numbers = {key: number for number, key in enumerate(drawing.nodes)}
    arrows: dict[Edge, list[Arrow]] = {}
    for arrow in drawing.arrows:
        arrows.setdefault((numbers[arrow.source], numbers[arrow.sink]), []).append(arrow)
    layout = lay_out(len(numbers), arrows)
    data = _data(drawing, layout, is_planned=bool(places))
    links = [_link(edge, jobs, layout, places) for edge, jobs in arrows.items()]
    script = files("spark_events.lineage_page").joinpath("templates/lineage.js").read_text("utf-8")
    used = {node.mark for node in drawing.nodes.values()} | {arrow.mark for arrow in drawing.arrows}
    template = environment("spark_events.lineage_page").get_template("lineage.html.j2")
    return template.render(
        title=title,
        data=data,
        links=links,
        legend=[(mark, words) for mark, words in _LEGEND.items() if mark in used],
        tips=_TIPS,
        width=round(layout.width + 2 * _MARGIN),
        height=round(layout.height + 2 * _MARGIN),
        node_width=WIDTH,
        node_height=HEIGHT,
        headings=table.headings,
        rows=table.rows[:MOST_ROWS],
        count=len(table.rows),
        none=table.none,
        problems=problems,
        json=_embedded(_values(data, links, drawing, numbers)),
        script=Markup(script),
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
    )


def _data(drawing: Drawing, layout: Layout, is_planned: bool) -> list[dict[str, Any]]:
    """Return how each piece of data is drawn; what is only planned is in a folder that is gone."""
    drawn = []
    for number, (key, node) in enumerate(drawing.nodes.items()):
        columns = list(drawing.columns.get(key, ()))
        count = f"{len(columns)} column{'' if len(columns) == 1 else 's'}" if columns else ""
        note = node.note or count
        place = layout.nodes[number]
        drawn.append(
            {
                "key": node.title if is_planned else f"{key.namespace} {key.name}",
                "title": node.title,
                "place": "" if is_planned else _place(key),
                "columns": columns,
                "note": note,
                "label": f"{node.title}, {note}" if note else node.title,
                "short": _end_of(node.title, _LONGEST_TITLE),
                "short_note": note if len(note) <= _LONGEST_NOTE else f"{note[: _LONGEST_NOTE - 1]}…",
                "css": "".join(f" {name}" for name in (node.mark, "" if node.is_near else "far") if name),
                "x": round(place.x + _MARGIN, 1),
                "y": round(place.y + _MARGIN, 1),
            }
        )
    return drawn


def _place(key: DataKey) -> str:
    return f"{key.namespace}:{key.name}" if key.name.startswith("/") else f"{key.namespace} {key.name}"


def _end_of(text: str, most: int) -> str:
    """Return a name, or its end, which tells more than the beginning."""
    return text if len(text) <= most else f"…{text[1 - most :]}"


def _link(edge: Edge, arrows: Sequence[Arrow], layout: Layout, places: Mapping[str, str]) -> dict[str, Any]:
    """Return how the jobs between two pieces of data are drawn: as one arrow."""
    words = [_words_about(arrow, places) for arrow in arrows]
    mark = next((arrow.mark for arrow in arrows if arrow.mark), "")
    classes = (
        mark,
        "" if any(arrow.is_near for arrow in arrows) else "far",
        "" if any(arrow.is_current for arrow in arrows) else "old",
    )
    return {
        "source": edge[0],
        "sink": edge[1],
        "path": _path(edge, layout),
        "title": "\n".join(words),
        "css": "".join(f" {name}" for name in classes if name),
        "jobs": [
            {
                "job": arrow.flow.job,
                "about": about,
                "columns": arrow.flow.columns,
                "influences": arrow.flow.influences,
                "incomplete": arrow.flow.incomplete,
                "old": not arrow.is_current or arrow.mark == marks.REMOVED,
            }
            for arrow, about in zip(arrows, words, strict=True)
        ],
    }


def _words_about(arrow: Arrow, places: Mapping[str, str]) -> str:
    flow = arrow.flow
    state = places.get(flow.job) or f"{flow.status} {moment(flow.time_ms)} UTC"
    rest = "".join(f"; {words}" for words in (arrow.mark, arrow.note, flow.incomplete) if words)
    return f"{flow.job} {state}{rest}"


def _path(edge: Edge, layout: Layout) -> str:
    source, sink = (layout.nodes[end] for end in edge)
    if edge[0] == edge[1]:
        right, top = source.x + WIDTH + _MARGIN, source.y + _MARGIN
        return f"M{right - 30:.1f} {top:.1f}c0 -22 44 -22 44 {HEIGHT / 2:.1f}s-8 0 -14 0"
    forward = source.x < sink.x
    start = Spot(source.x + (WIDTH if forward else 0), source.y + HEIGHT / 2)
    end = Spot(sink.x + (0 if forward else WIDTH), sink.y + HEIGHT / 2)
    points = [start, *layout.bends[edge][1:-1], end]
    shifted = [Spot(point.x + _MARGIN, point.y + _MARGIN) for point in points]
    path = f"M{shifted[0].x:.1f} {shifted[0].y:.1f}"
    for left, right_point in pairwise(shifted):
        half = (right_point.x - left.x) / 2
        path += (
            f"C{left.x + half:.1f} {left.y:.1f} {right_point.x - half:.1f} {right_point.y:.1f} "
            f"{right_point.x:.1f} {right_point.y:.1f}"
        )
    return path


def _values(
    data: Sequence[Mapping[str, Any]],
    links: Sequence[Mapping[str, Any]],
    drawing: Drawing,
    numbers: Mapping[DataKey, int],
) -> dict[str, Any]:
    """Return what the script needs."""
    asked, column = drawing.asked
    return {
        "data": [
            {name: each[name] for name in ("key", "title", "place", "columns", "note")} for each in data
        ],
        "links": [{name: each[name] for name in ("source", "sink", "jobs")} for each in links],
        "asked": None if asked is None else {"index": numbers[asked], "column": column},
    }


def _embedded(values: Any) -> Markup:
    """Return values as JSON that ends no script, whatever it has in it, and whose texts are printable."""
    text = orjson.dumps(_printable(values)).decode()
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(inner) for key, inner in value.items()}
    return [_printable(inner) for inner in value] if isinstance(value, list | tuple) else value

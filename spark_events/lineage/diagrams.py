"""Writes a drawing as text for other programs: Mermaid and Graphviz."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.api import printable
from spark_events.lineage import drawing as marks
from spark_events.lineage.data_flow import NO_LONGER, DataKey
from spark_events.lineage.drawing import Arrow, Drawing, DrawnData

_COLORS = {
    marks.ASKED: "#1668dc",
    marks.REACHED: "#d4380d",
    marks.BEHIND: "#d4380d",
    marks.ORPHAN: "#8c8c8c",
    marks.INCOMPLETE: "#8c8c8c",
    marks.ADDED: "#2f8f5b",
    marks.REMOVED: "#c9302c",
    marks.CHANGED: "#d99a1c",
}
_DASHED = (marks.REMOVED, marks.INCOMPLETE, marks.ORPHAN)
_SIGNS = {marks.ADDED: "+ ", marks.REMOVED: "\u2212 ", marks.CHANGED: "± "}
"""Before the job of an arrow that came, went, or has other columns: not all can see colors.

A hyphen would begin a list, which Mermaid does not draw.
"""

_ENTITIES = str.maketrans(
    {"#": "#35;", "&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "%": "#37;", "`": "#96;"}
)


def mermaid(drawing: Drawing) -> str:
    """Return a flowchart that most forges render in Markdown."""
    names = _names(drawing)
    lines = ["flowchart LR"]
    for key, node in drawing.nodes.items():
        suffix = f":::{node.mark}" if node.mark else ""
        lines.append(f'  {names[key]}["{"<br/>".join(map(_mermaid_label, _of_node(node)))}"]{suffix}')
    for arrow in drawing.arrows:
        line = "-.->" if arrow.mark in _DASHED or not arrow.is_current else "-->"
        label = _mermaid_label(_of_arrow(arrow))
        lines.append(f'  {names[arrow.source]} {line}|"{label}"| {names[arrow.sink]}')
    used = dict.fromkeys(node.mark for node in drawing.nodes.values() if node.mark)
    lines += [f"  classDef {mark} stroke:{_COLORS[mark]},stroke-width:3px" for mark in used]
    for mark in dict.fromkeys(arrow.mark for arrow in drawing.arrows if arrow.mark):
        places = ",".join(str(place) for place, arrow in enumerate(drawing.arrows) if arrow.mark == mark)
        lines.append(f"  linkStyle {places} stroke:{_COLORS[mark]},stroke-width:3px")
    return "\n".join(lines)


def graphviz(drawing: Drawing) -> str:
    """Return a graph in Graphviz's language, DOT."""
    names = _names(drawing)
    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    for key, node in drawing.nodes.items():
        label = "\\n".join(map(_graphviz_label, _of_node(node)))
        lines.append(f'  {names[key]} [label="{label}"{_graphviz_style(node.mark)}];')
    for arrow in drawing.arrows:
        label = _graphviz_label(_of_arrow(arrow))
        ends = f"{names[arrow.source]} -> {names[arrow.sink]}"
        dotted = "" if arrow.is_current or arrow.mark else ", style=dotted"
        lines.append(f'  {ends} [label="{label}"{_graphviz_style(arrow.mark)}{dotted}];')
    return "\n".join([*lines, "}"])


def _names(drawing: Drawing) -> Mapping[DataKey, str]:
    """Return a short name for each node, because titles cannot serve as identifiers."""
    return {key: f"d{number}" for number, key in enumerate(drawing.nodes)}


def _of_node(node: DrawnData) -> list[str]:
    return [node.title, node.note] if node.note else [node.title]


def _of_arrow(arrow: Arrow) -> str:
    note = f" ({arrow.note})" if arrow.note else ""
    no_longer = "" if arrow.is_current else f" {NO_LONGER}"
    return f"{_SIGNS.get(arrow.mark, '')}{arrow.flow.job}{note}{no_longer}"


def _mermaid_label(text: str) -> str:
    """Return a label for Mermaid, which takes labels as HTML, or as Markdown, and finds settings in them."""
    return printable(text).translate(_ENTITIES)


def _graphviz_label(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _graphviz_style(mark: str) -> str:
    if not mark:
        return ""
    dashed = ", style=dashed" if mark in _DASHED else ""
    return f', color="{_COLORS[mark]}", penwidth=3{dashed}'

"""Writes a graph of data as text for drawing programs: Mermaid and Graphviz."""

from __future__ import annotations

from spark_events.api import printable
from spark_events.lineage.data_flow import DataFlow, DataKey


def mermaid(flow: DataFlow) -> str:
    """Return a flowchart that most forges render in Markdown."""
    names = _names(flow)
    lines = ["flowchart LR"]
    lines += [f'  {names[key]}["{_mermaid_label(title)}"]' for key, title in flow.titles.items()]
    lines += [f'  {source} -->|"{_mermaid_label(job)}"| {sink}' for source, sink, job in _arrows(flow, names)]
    return "\n".join(lines)


def graphviz(flow: DataFlow) -> str:
    """Return a graph in Graphviz's language, DOT."""
    names = _names(flow)
    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f'  {names[key]} [label="{_graphviz_label(title)}"];' for key, title in flow.titles.items()]
    lines += [
        f'  {source} -> {sink} [label="{_graphviz_label(job)}"];'
        for source, sink, job in _arrows(flow, names)
    ]
    return "\n".join([*lines, "}"])


def _names(flow: DataFlow) -> dict[DataKey, str]:
    """Return a short name for each node, because titles cannot serve as identifiers."""
    return {key: f"d{number}" for number, key in enumerate(flow.titles)}


def _arrows(flow: DataFlow, names: dict[DataKey, str]) -> list[tuple[str, str, str]]:
    return [
        (names[source], names[sink], job)
        for (source, sink), jobs in flow.flows.items()
        for job in jobs
        if source is not None and sink is not None
    ]


def _mermaid_label(text: str) -> str:
    """Return a label for Mermaid, which takes labels as HTML."""
    for character, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, entity)
    return printable(text)


def _graphviz_label(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')

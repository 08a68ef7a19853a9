"""Draws what feeds what: as a table, as trees, for Mermaid, for Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timezone

from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from spark_events.lineage_logs.data_flow import DataFlow, Flow, Key

_COLOURS = {"FINISHED": "green", "RUNNING": "green", "FAILED": "bold red", "CANCELED": "yellow"}
_Around = Callable[[Key], "list[tuple[Key, list[Flow]]]"]


def table(flow: DataFlow) -> Table:
    """Return a row for each source, sink and job."""
    drawn = Table()
    for heading in ("source", "sink", "job", "status", "when (UTC)"):
        drawn.add_column(heading, overflow="fold")
    for (source, sink), jobs in flow.flows.items():
        for one in jobs.values():
            from_where = flow.titles[source] if source is not None else "-"
            drawn.add_row(
                escape(from_where), escape(flow.titles[sink]), escape(one.job), _status(one), _when(one)
            )
    return drawn


def trees(flow: DataFlow, data: Key, with_columns: bool) -> list[Tree]:
    """Return what feeds some data, and what it feeds, each to the end."""
    title = escape(flow.titles[data])
    up, down = Tree(f"[bold]{title}[/] is fed by"), Tree(f"[bold]{title}[/] feeds")
    _grow(up, flow, data, flow.sources_of, with_columns, (data,))
    _grow(down, flow, data, flow.sinks_of, with_columns, (data,))
    return [up, down]


def mermaid(flow: DataFlow) -> str:
    """Return a flowchart that Markdown pages of most forges draw."""
    names = {key: f"d{number}" for number, key in enumerate(flow.titles)}
    lines = ["flowchart LR"]
    lines += [f'  {names[key]}["{_quoted(title)}"]' for key, title in flow.titles.items()]
    lines += [f'  {names[source]} -->|"{_quoted(job)}"| {names[sink]}' for source, sink, job in _arrows(flow)]
    return "\n".join(lines)


def dot(flow: DataFlow) -> str:
    """Return a graph for Graphviz."""
    names = {key: f"d{number}" for number, key in enumerate(flow.titles)}
    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f'  {names[key]} [label="{_escaped(title)}"];' for key, title in flow.titles.items()]
    lines += [
        f'  {names[source]} -> {names[sink]} [label="{_escaped(job)}"];'
        for source, sink, job in _arrows(flow)
    ]
    return "\n".join([*lines, "}"])


def _arrows(flow: DataFlow) -> list[tuple[Key, Key, str]]:
    return [
        (source, sink, job)
        for (source, sink), jobs in flow.flows.items()
        for job in jobs
        if source is not None
    ]


def _grow(
    tree: Tree, flow: DataFlow, data: Key, around: _Around, with_columns: bool, path: tuple[Key, ...]
) -> None:
    found = around(data)
    if not found and len(path) == 1:
        tree.add("[dim]nothing that is known[/]")
    for other, jobs in found:
        by = ", ".join(f"{escape(one.job)} {_status(one)} {_when(one)}" for one in jobs)
        branch = tree.add(f"{escape(flow.titles[other])}  [dim]by[/] {by}")
        if with_columns:
            for line in _columns(jobs):
                branch.add(f"[dim]{escape(line)}[/]")
        if other in path:
            branch.add("[dim]… and so on: it goes in a circle[/]")
        else:
            _grow(branch, flow, other, around, with_columns, (*path, other))


def _columns(jobs: Iterable[Flow]) -> list[str]:
    lines = [
        f"{column} ← {', '.join(sources)}"
        for one in jobs
        for column, sources in one.columns.items()
        if sources
    ]
    return list(dict.fromkeys(lines))


def _status(one: Flow) -> str:
    colour = _COLOURS.get(one.status, "dim")
    return f"[{colour}]{one.status}[/]"


def _when(one: Flow) -> str:
    return datetime.fromtimestamp(one.time_ms / 1000, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')

"""Draws what feeds what: as a table, as trees, for Mermaid, for Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.table import Table
from rich.tree import Tree

from spark_events.api import printable
from spark_events.api.formatting import moment
from spark_events.cli.console import plain
from spark_events.lineage.data_flow import DataFlow, Flow, Key

_COLOURS = {"FINISHED": "green", "RUNNING": "green", "FAILED": "bold red", "CANCELED": "yellow"}
_DEEPEST = 50
_Around = Callable[[Key], "list[tuple[Key, list[Flow]]]"]


def table(flow: DataFlow) -> Table:
    """Return a row for each source, sink and job."""
    drawn = Table()
    for heading in ("source", "sink", "job", "status", "when (UTC)"):
        drawn.add_column(heading, overflow="fold")
    for (source, sink), jobs in flow.flows.items():
        for one in jobs.values():
            drawn.add_row(
                plain(flow.title(source)), plain(flow.title(sink)), plain(one.job), _status(one), _when(one)
            )
    return drawn


def trees(flow: DataFlow, data: Key, with_columns: bool) -> list[Tree]:
    """Return what feeds some data, and what it feeds, each to the end."""
    title = plain(flow.titles[data])
    up, down = Tree(f"[bold]{title}[/] is fed by"), Tree(f"[bold]{title}[/] feeds")
    _grow(up, flow, data, flow.sources_of, with_columns, (data,), set())
    _grow(down, flow, data, flow.sinks_of, with_columns, (data,), set())
    return [up, down]


def trees_of_job(flow: DataFlow, job: str, with_columns: bool) -> list[Tree]:
    """Return what a job reads, and what it writes."""
    found = flow.of_job(job)
    last = found[-1][2]
    tree = Tree(f"[bold]{plain(job)}[/] {_status(last)} {_when(last)}")
    for title, ends in (("reads", [each[0] for each in found]), ("writes", [each[1] for each in found])):
        branch = tree.add(f"[dim]{title}[/]")
        for data in dict.fromkeys(ends):
            branch.add(plain(flow.title(data)) if data is not None else "[dim]nothing that is known[/]")
    if with_columns:
        for line in _columns([each[2] for each in found]):
            tree.add(f"[dim]{plain(line)}[/]")
    return [tree]


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
        if source is not None and sink is not None
    ]


def _grow(
    tree: Tree,
    flow: DataFlow,
    data: Key,
    around: _Around,
    with_columns: bool,
    path: tuple[Key, ...],
    shown: set[Key],
) -> None:
    found = around(data)
    if not found and len(path) == 1:
        tree.add("[dim]nothing that is known[/]")
    shown.add(data)
    for other, jobs in found:
        by = ", ".join(f"{plain(one.job)} {_status(one)} {_when(one)}" for one in jobs)
        branch = tree.add(f"{plain(flow.titles[other])}  [dim]by[/] {by}")
        if with_columns:
            for line in _columns(jobs):
                branch.add(f"[dim]{plain(line)}[/]")
        if other in path:
            branch.add("[dim]… and so on: it goes in a circle[/]")
        elif other in shown and around(other):
            branch.add("[dim]… as above[/]")
        elif len(path) >= _DEEPEST:
            branch.add("[dim]… and so on: ask for it with --of[/]")
        else:
            _grow(branch, flow, other, around, with_columns, (*path, other), shown)


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
    return f"[{colour}]{plain(one.status)}[/]"


def _when(one: Flow) -> str:
    return moment(one.time_ms)


def _quoted(text: str) -> str:
    """Return a label for Mermaid, which takes labels as HTML."""
    for character, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, entity)
    return printable(text)


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')

"""Lineage as trees on a terminal: what feeds some data and what it feeds, or what a job reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rich.tree import Tree

from spark_events.api.toolkit.formatting import moment
from spark_events.cli.terminal.console import plain
from spark_events.lineage.data_flow import NO_LONGER, DataFlow, DataKey, Flow

Places = Mapping[str, str]
_COLORS = {"FINISHED": "green", "RUNNING": "green", "FAILED": "bold red", "CANCELED": "yellow"}
_DEEPEST = 50
_NOTHING_KNOWN = "[dim]nothing known[/]"


def trees_of_data(flow: DataFlow, data: DataKey, with_columns: bool, places: Places) -> list[Tree]:
    """Return what feeds some data, and what it feeds, each to the end."""
    title = plain(flow.titles[data])
    sources, sinks = Tree(f"[bold]{title}[/] is fed by"), Tree(f"[bold]{title}[/] feeds")
    _Branches(flow, flow.sources_of, with_columns, places).grow(sources, data, (data,))
    _Branches(flow, flow.sinks_of, with_columns, places).grow(sinks, data, (data,))
    return [sources, sinks]


def tree_of_job(flow: DataFlow, job: str, with_columns: bool, places: Places) -> Tree:
    """Return what a job reads, and what it writes."""
    pairs = flow.of_job(job)
    tree = Tree(_job(pairs[-1][2], "[bold]{}[/]", places))
    sources, sinks, jobs = zip(*pairs, strict=True)
    for title, ends in (("reads", sources), ("writes", sinks)):
        branch = tree.add(f"[dim]{title}[/]")
        current = {data for data, job in zip(ends, jobs, strict=True) if flow.is_current(job)}
        for data in dict.fromkeys(ends):
            mark = "" if data in current else f" [dim]{NO_LONGER}[/]"
            branch.add((plain(flow.title(data)) if data is not None else _NOTHING_KNOWN) + mark)
    if with_columns:
        _add_columns(tree, jobs)
    return tree


@dataclass(slots=True)
class _Branches:
    """The branches of one tree.

    Attributes:
        flow: the graph.
        neighbors: what is next to some data, in the tree's direction.
        with_columns: whether columns are shown, too.
        places: where the statements of jobs are that have not run.
        shown: what has its branches already.
    """

    flow: DataFlow
    neighbors: Callable[[DataKey], list[tuple[DataKey, list[Flow]]]]
    with_columns: bool
    places: Places
    shown: set[DataKey] = field(default_factory=set)

    def grow(self, tree: Tree, data: DataKey, path: tuple[DataKey, ...]) -> None:
        """Add a branch for each neighbor of some data, with all that is behind it.

        Args:
            tree: where they are added.
            data: whose neighbors they are.
            path: from the root to the data.
        """
        neighbors = self.neighbors(data)
        if not neighbors and len(path) == 1:
            tree.add(_NOTHING_KNOWN)
        self.shown.add(data)
        for neighbor, jobs in neighbors:
            by = ", ".join(
                _job(job, "{}", self.places) + ("" if self.flow.is_current(job) else f" {NO_LONGER}")
                for job in jobs
            )
            branch = tree.add(f"{plain(self.flow.titles[neighbor])}  [dim]by[/] {by}")
            if self.with_columns:
                _add_columns(branch, jobs)
            if neighbor in path:
                branch.add("[dim]… and so on: a cycle[/]")
            elif neighbor in self.shown and self.neighbors(neighbor):
                branch.add("[dim]… as above[/]")
            elif len(path) >= _DEEPEST:
                branch.add("[dim]… and so on: use --of to see more[/]")
            else:
                self.grow(branch, neighbor, (*path, neighbor))


def _add_columns(tree: Tree, jobs: Iterable[Flow]) -> None:
    lines = [
        f"{column} ← {', '.join(sources)}"
        for job in jobs
        for column, sources in job.columns.items()
        if sources
    ]
    for line in dict.fromkeys(lines):
        tree.add(f"[dim]{plain(line)}[/]")


def _job(job: Flow, name_markup: str, places: Places) -> str:
    """Return a job's name, in some markup, with its status and its time, or where its statement is."""
    name = name_markup.format(plain(job.job))
    place = places.get(job.job)
    return f"{name} {plain(place)}" if place else f"{name} {colored_status(job.status)} {moment(job.time_ms)}"


def colored_status(status: str) -> str:
    """Return a job's last status, in its color."""
    return f"[{_COLORS.get(status, 'dim')}]{plain(status)}[/]"

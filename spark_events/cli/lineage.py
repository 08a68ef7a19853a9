"""The command ``lineage``: draws on a terminal what feeds what, as a table or as trees."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.tree import Tree

from spark_events.api.errors import UsageError
from spark_events.api.toolkit.formatting import moment
from spark_events.cli import lineage_answers as answers
from spark_events.cli.console import AsWide, err, out, plain, say, show_table
from spark_events.cli.lineage_plan import plan
from spark_events.cli.options import duration_of
from spark_events.history.asked_time import time_of
from spark_events.lineage import diagrams
from spark_events.lineage.data_flow import DataFlow, DataKey, Flow
from spark_events.lineage.job_logs import read_job_logs

_COLORS = {"FINISHED": "green", "RUNNING": "green", "FAILED": "bold red", "CANCELED": "yellow"}
_DEEPEST = 50
_NOTHING_KNOWN = "[dim]nothing known[/]"


class DrawingForm(str, enum.Enum):
    """How lineage is drawn."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"
    MARKDOWN = "markdown"


def lineage(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Files that the lineage listener file_log wrote, or folders of them; "
            "or `plan` and SQL files.",
        ),
    ],
    of: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What feeds this table or path, and what it feeds; or what this job reads and writes. "
            "The end of the name is enough.",
        ),
    ] = None,
    columns: Annotated[bool, typer.Option("--columns", help="With --of: show columns.")] = False,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="As it was known at this time, such as 2026-11-21T21:34 (UTC)."),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="TIME TIME", help="Which edges came and went between two times (UTC)."),
    ] = None,
    impact: Annotated[
        str | None,
        typer.Option(metavar="NAME.COLUMN", help="All that this column contributes to, in all applications."),
    ] = None,
    stale: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="What is older than one of its sources by more than this."),
    ] = None,
    orphans: Annotated[bool, typer.Option("--orphans", help="What jobs write, and none reads.")] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="The jobs whose lineage is incomplete, and why.")
    ] = False,
    form: Annotated[DrawingForm, typer.Option("--format", help="Output format.")] = DrawingForm.TREE,
) -> None:
    """Show which data feeds which, through which job, and how that job ended.

    After `plan`, show what the statements of SQL files would read and write, without running them; --impact
    works there, too. Exits 1 if a statement cannot be analyzed.

    Exits 4 if there is nothing to read, or no such data.
    """
    asked = {
        "--of": of is not None,
        "--diff": diff is not None,
        "--impact": impact is not None,
        "--stale": stale is not None,
        "--orphans": orphans,
        "--missing": missing,
    }
    questions_asked = [name for name, is_asked in asked.items() if is_asked]
    if str(paths[0]) == "plan":
        _demand_impact_alone(questions_asked, as_of)
        plan(paths[1:], impact, form.value)
        return
    _demand_one_question(questions_asked, form)
    flow = read_job_logs(paths, None if as_of is None else time_of("--as-of", as_of))
    _warn_of(flow)
    as_json = form is DrawingForm.JSON
    if of is not None:
        _draw_trees(flow, of, columns)
    elif diff is not None:
        before, after = (read_job_logs(paths, time_of("--diff", time)) for time in diff)
        answers.differences(before, after).show(as_json)
    elif impact is not None:
        answers.impact(flow, impact).show(as_json)
    elif stale is not None:
        answers.stale(flow, duration_of("--stale", stale)).show(as_json)
    elif orphans:
        answers.orphans(flow).show(as_json)
    elif missing:
        answers.missing(flow).show(as_json)
    else:
        _show_all(flow, form)


def _demand_impact_alone(asked: list[str], as_of: str | None) -> None:
    others = [name for name in asked if name != "--impact"] + ["--as-of"] * (as_of is not None)
    if others:
        raise UsageError(f"lineage plan: {others[0]} is a question about jobs that have run")


def _demand_one_question(asked: list[str], form: DrawingForm) -> None:
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)}: give one of them")
    forms = {"--of": (DrawingForm.TREE,)}.get(asked[0], (DrawingForm.TREE, DrawingForm.JSON)) if asked else ()
    if form is DrawingForm.MARKDOWN:
        raise UsageError("--format markdown: only lineage plan writes it")
    if asked and form not in forms:
        allowed = " or ".join(allowed_form.value for allowed_form in forms)
        raise UsageError(f"--format {form.value}: {asked[0]} is shown as {allowed}")


def _warn_of(flow: DataFlow) -> None:
    for path, count in flow.skipped.items():
        _warn(f"{path}: skipped {count} lines that are not job events")
    for path, reason in flow.torn.items():
        _warn(f"{path}: cannot be read to its end: {reason}")


def _show_all(flow: DataFlow, form: DrawingForm) -> None:
    if form is DrawingForm.TREE:
        show_table(_flows_table(flow))
    elif form is DrawingForm.JSON:
        answers.all_flows(flow).show(as_json=True)
    else:
        text = diagrams.mermaid(flow) if form is DrawingForm.MERMAID else diagrams.graphviz(flow)
        out.print(text, markup=False, soft_wrap=True)


def _draw_trees(flow: DataFlow, name: str, with_columns: bool) -> None:
    """Draw what a name means: some data, or else a job."""
    meant = flow.find(name)
    if isinstance(meant, str):
        trees = [_tree_of_job(flow, meant, with_columns)]
    else:
        trees = _trees_of_data(flow, meant, with_columns)
    for tree in trees:
        # Wider than the terminal, or the ends of long chains would have no room.
        out.print(AsWide(tree), crop=False)


def _warn(sentence: str) -> None:
    say(f"[yellow]{plain(sentence)}[/]", err)


def _flows_table(flow: DataFlow) -> Table:
    """Return a row for each source, sink and job."""
    rows = Table()
    for heading in ("source", "sink", "job", "status", "when (UTC)"):
        rows.add_column(heading, overflow="fold")
    for (source, sink), jobs in flow.flows.items():
        for job in jobs.values():
            titles = plain(flow.title(source)), plain(flow.title(sink))
            rows.add_row(*titles, plain(job.job), _status(job), moment(job.time_ms))
    return rows


def _trees_of_data(flow: DataFlow, data: DataKey, with_columns: bool) -> list[Tree]:
    """Return what feeds some data, and what it feeds, each to the end."""
    title = plain(flow.titles[data])
    sources, sinks = Tree(f"[bold]{title}[/] is fed by"), Tree(f"[bold]{title}[/] feeds")
    _Branches(flow, flow.sources_of, with_columns).grow(sources, data, (data,))
    _Branches(flow, flow.sinks_of, with_columns).grow(sinks, data, (data,))
    return [sources, sinks]


def _tree_of_job(flow: DataFlow, job: str, with_columns: bool) -> Tree:
    """Return what a job reads, and what it writes."""
    pairs = flow.of_job(job)
    tree = Tree(_job(pairs[-1][2], "[bold]{}[/]"))
    for title, ends in (("reads", [pair[0] for pair in pairs]), ("writes", [pair[1] for pair in pairs])):
        branch = tree.add(f"[dim]{title}[/]")
        for data in dict.fromkeys(ends):
            branch.add(plain(flow.title(data)) if data is not None else _NOTHING_KNOWN)
    if with_columns:
        _add_columns(tree, [pair[2] for pair in pairs])
    return tree


@dataclass(slots=True)
class _Branches:
    """The branches of one tree.

    Attributes:
        flow: the graph.
        neighbors: what is next to some data, in the tree's direction.
        with_columns: whether columns are shown, too.
        shown: what has its branches already.
    """

    flow: DataFlow
    neighbors: Callable[[DataKey], list[tuple[DataKey, list[Flow]]]]
    with_columns: bool
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
            by = ", ".join(_job(job, "{}") for job in jobs)
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


def _job(job: Flow, name_markup: str) -> str:
    """Return a job's name, in some markup, with its status and its time."""
    return f"{name_markup.format(plain(job.job))} {_status(job)} {moment(job.time_ms)}"


def _status(job: Flow) -> str:
    return f"[{_COLORS.get(job.status, 'dim')}]{plain(job.status)}[/]"

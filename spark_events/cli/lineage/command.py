"""The command ``lineage``: what feeds what, of jobs that have run or of statements that have not."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from spark_events.api import ConfigError, needs_extra
from spark_events.api.errors import UsageError
from spark_events.api.toolkit.formatting import some_names
from spark_events.cli.lineage import answers
from spark_events.cli.lineage.answers import Answer
from spark_events.cli.lineage.plan import PLANNED, plan, plan_of_revision
from spark_events.cli.terminal.console import (
    FAILED,
    AsWide,
    err,
    out,
    plain,
    print_error,
    print_json,
    say,
    show_table,
)
from spark_events.cli.terminal.options import Html, duration_of
from spark_events.cli.terminal.outputs import STDOUT, check_files, write_file
from spark_events.history.asked_time import time_of
from spark_events.lineage import diagrams
from spark_events.lineage.data_flow import DataFlow
from spark_events.lineage.job_logs import read_job_logs
from spark_events.lineage.markdown import Section, lineage_markdown

_PLAN = "plan"
_OF_RUNS = ("--as-of", "--diff", "--stale", "--orphans")
"""Options about jobs that have run."""
_RULES = ("impact", "diff", "base", "stale", "orphans", "missing")
_ANSWERED_ALONE = ("orphans", "missing")
"""Rules whose question needs no argument, so that it need not be asked."""


class DrawingForm(str, enum.Enum):
    """How lineage is drawn."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"
    MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked; at most one of the options that are questions."""

    of: str | None
    columns: bool
    as_of: str | None
    diff: tuple[str, str] | None
    base: str | None
    impact: str | None
    stale: str | None
    orphans: bool
    missing: bool
    rules: Sequence[str]
    form: DrawingForm

    def check(self, is_plan: bool, has_template: bool) -> None:
        """Check that the options mean something together.

        Raises:
            UsageError: two contradict each other, or one has no meaning here.
        """
        given = {
            "--of": self.of is not None,
            "--diff": self.diff is not None,
            "--base": self.base is not None,
            "--impact": self.impact is not None,
            "--stale": self.stale is not None,
            "--orphans": self.orphans,
            "--missing": self.missing,
        }
        questions = [name for name, is_given in given.items() if is_given]
        if is_plan:
            for name in (*questions, *(["--as-of"] if self.as_of is not None else [])):
                if name in _OF_RUNS:
                    raise UsageError(
                        f"lineage plan: {name} is a question about jobs that have run: leave it out"
                    )
        elif self.base is not None:
            raise UsageError("--base: needs lineage plan; for jobs that have run, --diff compares two times")
        elif has_template:
            raise UsageError("--template-file: has defaults for manifests, which lineage plan reads")
        if len(questions) > 1:
            raise UsageError(f"{' and '.join(questions)}: give only one of them")
        if self.columns and self.of is None:
            raise UsageError("--columns: goes with --of; all other answers have columns where they matter")
        if self.columns and self.form is not DrawingForm.TREE:
            raise UsageError(f"--columns: needs --format tree, not {self.form.value}; json has all columns")
        if self.diff is not None and self.as_of is not None:
            raise UsageError("--as-of: leave it out; --diff has two times of its own")
        for rule in self.rules:
            if rule not in _RULES:
                raise UsageError(f"--fail-on {rule}: expected one of {', '.join(_RULES)}")
            if is_plan and f"--{rule}" in _OF_RUNS:
                raise UsageError(f"--fail-on {rule}: lineage plan knows nothing of jobs that have run")
            if rule not in _ANSWERED_ALONE and f"--{rule}" not in questions:
                raise UsageError(f"--fail-on {rule}: give --{rule}, too")


@dataclass(frozen=True, slots=True)
class _Known:
    """What answers are made of.

    Attributes:
        flow: the graph.
        before: an earlier one, for differences.
        places: where the statements are that have not run.
        problems: the statements that cannot be analyzed.
        none: what to say if there is nothing.
    """

    flow: DataFlow
    before: DataFlow | None = None
    places: Mapping[str, str] = field(default_factory=dict)
    problems: Sequence[str] = ()
    none: str = "no job is known"


def lineage(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Lineage files, written by the job status listener `file_log`, or folders of them; "
            "or `plan`, followed by SQL files, manifests of streaming queries, or folders of them.",
        ),
    ],
    of: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show what feeds this table or path, and what it feeds; or what this job reads and writes. "
            "The end of the name is enough.",
        ),
    ] = None,
    columns: Annotated[bool, typer.Option("--columns", help="With --of: show columns.")] = False,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Show what was known at this time, such as 2026-11-21T21:34 (UTC)."
        ),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="TIME TIME", help="Show which edges were added or removed between two times (UTC)."
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="REVISION",
            help="With plan: show which edges were added or removed since this revision in Git, such as "
            "origin/main.",
        ),
    ] = None,
    impact: Annotated[
        str | None,
        typer.Option(
            metavar="NAME.COLUMN", help="Show all that this column contributes to, in all applications."
        ),
    ] = None,
    stale: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Show data that is older than one of its sources by more than this."
        ),
    ] = None,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="Show data that a job writes and no job reads.")
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Show the jobs whose lineage is incomplete, and why.")
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Exit 1 if the answer to this question is not empty: orphans or missing; or impact, diff, "
            "base or stale, together with the option of that name. Repeatable, or with commas.",
        ),
    ] = None,
    template_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With plan: a YAML file with defaults for all manifests."),
    ] = None,
    html: Html = None,
    form: Annotated[
        DrawingForm,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="What the answer is printed as: tree, mermaid, dot, json or markdown.",
        ),
    ] = DrawingForm.TREE,
) -> None:
    """Show which data feeds which, through which job, and how that job ended.

    With `plan` first, show what SQL files and manifests would read and write, without running them; --of,
    --impact and --missing work with it, too. Exits 1 if a statement cannot be analyzed.

    --html draws the graph as a page to search and click through, with the answer highlighted. Exits 1 if a
    rule of --fail-on is broken, 4 if there is nothing to read, or no such table, column or job.
    """
    rules = [rule.strip() for text in fail_on or () for rule in text.split(",")]
    asked = _Asked(of, columns, as_of, diff, base, impact, stale, orphans, missing, rules, form)
    is_plan = str(paths[0]) == _PLAN
    asked.check(is_plan, template_file is not None)
    check_files({"--html": html})
    known = _planned(paths[1:], template_file, base) if is_plan else _logged(paths, asked)
    try:
        answer = _answer(known, asked)
    except ConfigError:
        _print_problems(known)  # for these, there may be no such data
        raise
    if html != STDOUT:
        _show(answer, known, form)
    if html is not None:
        _write_page(html, answer, known)
    _fail_if_broken(known, asked, answer)


def _planned(paths: list[Path], template: Path | None, base: str | None) -> _Known:
    before = None
    if base is not None:
        of_base = plan_of_revision(paths, template, base)
        before = of_base.flow
        if of_base.problems:
            _warn(
                f"--base {base}: {len(of_base.problems)} statements cannot be analyzed there, so their edges "
                "count as added"
            )
    planned = plan(paths, template)
    return _Known(planned.flow, before, planned.places, planned.problems, "no statement reads or writes data")


def _logged(paths: list[Path], asked: _Asked) -> _Known:
    for path in paths:
        if path.suffix.lower() in PLANNED and path.is_file():
            raise UsageError(
                f"{path}: not a file log of lineage; `spark-events lineage plan {path}` reads SQL files and "
                "manifests"
            )
    if asked.diff is not None:
        before, after = (read_job_logs(paths, time_of("--diff", time)) for time in asked.diff)
        _warn_of(after)
        return _Known(after, before)
    flow = read_job_logs(paths, None if asked.as_of is None else time_of("--as-of", asked.as_of))
    _warn_of(flow)
    return _Known(flow)


def _warn_of(flow: DataFlow) -> None:
    for note in flow.notes:
        _warn(note)


def _warn(sentence: str) -> None:
    say(f"[yellow]{plain(sentence)}[/]", err)


def _answer(known: _Known, asked: _Asked) -> Answer:
    flow, places = known.flow, known.places
    if asked.of is not None:
        return answers.of(flow, asked.of, asked.columns, places)
    if known.before is not None:
        return answers.differences(known.before, flow)
    if asked.impact is not None:
        return answers.impact(flow, asked.impact, places)
    if asked.stale is not None:
        return answers.stale(flow, duration_of("--stale", asked.stale))
    if asked.orphans:
        return answers.orphans(flow)
    if asked.missing:
        return answers.missing(flow, places)
    return answers.everything(flow, places, known.none)


def _show(answer: Answer, known: _Known, form: DrawingForm) -> None:
    if form is DrawingForm.JSON:
        print_json(list(answer.rows))
    elif form is DrawingForm.TREE:
        _show_on_terminal(answer)
    elif form is DrawingForm.MARKDOWN:
        text = lineage_markdown(_sections(answer, known), answer.drawing)
        out.print(text, markup=False, soft_wrap=True)
    else:
        draw = diagrams.mermaid if form is DrawingForm.MERMAID else diagrams.graphviz
        out.print(draw(answer.drawing.near()), markup=False, soft_wrap=True)


def _show_on_terminal(answer: Answer) -> None:
    for tree in answer.trees:
        # Wider than the terminal, or the ends of long chains would have no room.
        out.print(AsWide(tree), crop=False)
    if not answer.trees and answer.rows:
        show_table(answer.table())
    elif not answer.trees:
        say(plain(answer.none))


def _sections(answer: Answer, known: _Known) -> Iterable[Section]:
    """Return the sections of a comment: the answer, what is wrong, and all flows if it is about fewer."""
    everything = answers.everything(known.flow, known.places)
    is_everything = answer.title == everything.title
    yield Section(answer.title, answer.headings, answer.cells(), answer.none)
    yield Section("Cannot be analyzed", ("problem",), [(problem,) for problem in known.problems])
    if not is_everything:
        yield Section(everything.title, everything.headings, everything.cells(), is_folded=True)


def _write_page(file: Path, answer: Answer, known: _Known) -> None:
    with needs_extra("report", "jinja2", "--html"):
        from spark_events.lineage_page.page import PageTable, lineage_page

    table = PageTable(answer.headings, answer.cells(), answer.none)
    text = lineage_page(answer.title, answer.drawing, table, known.problems, known.places)
    write_file(file, text.encode())


def _print_problems(known: _Known) -> None:
    for problem in known.problems:
        print_error(problem)


def _fail_if_broken(known: _Known, asked: _Asked, answer: Answer) -> None:
    """Say what is wrong.

    Raises:
        Exit: with 1 if a statement cannot be analyzed, or a rule is broken.
    """
    _print_problems(known)
    is_broken = bool(known.problems)
    for rule in asked.rules:
        of_rule = answer
        if rule in _ANSWERED_ALONE:
            missing = answers.missing(known.flow, known.places)
            of_rule = missing if rule == "missing" else answers.orphans(known.flow)
        if of_rule.rows:
            is_broken = True
            print_error(f"--fail-on {rule}: {some_names(of_rule.names())}")
    if is_broken:
        raise typer.Exit(FAILED)

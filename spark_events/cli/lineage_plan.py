"""The command ``lineage plan``: the lineage of SQL files, before anything runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from spark_events.api.errors import UsageError
from spark_events.cli import lineage_answers as answers
from spark_events.cli.console import FAILED, err, out, print_error, show_table
from spark_events.jobs.planned import PlannedStatement, flow_of_plans, plan_files
from spark_events.lineage import diagrams, questions
from spark_events.lineage.data_flow import DataFlow
from spark_events.lineage.markdown import lineage_markdown
from spark_events.spark.session import LOOPBACK, QUIET, start_session


def plan(files: list[Path], impact: str | None, form: str) -> None:
    """Show what the statements of SQL files would read and write.

    Raises:
        UsageError: no file is given.
        Exit: with 1 if a statement cannot be analyzed.
    """
    if not files:
        raise UsageError("lineage plan: no SQL file is given")
    statements = _analyzed(files)
    flow = flow_of_plans(statements)
    problems = [
        f"{statement.file}:{statement.line}: {statement.problem}"
        for statement in statements
        if statement.problem
    ]
    _show(flow, impact, form, problems)
    for problem in problems:
        print_error(problem)
    if problems:
        raise typer.Exit(FAILED)


def _analyzed(files: list[Path]) -> list[PlannedStatement]:
    with tempfile.TemporaryDirectory() as folder:
        conf = {
            **QUIET,
            **LOOPBACK,
            "spark.master": "local[1]",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": folder,
        }
        with err.status("starting Spark"):
            session = start_session("lineage plan", conf)
        try:
            return plan_files(session, files)
        finally:
            session.stop()


def _show(flow: DataFlow, impact: str | None, form: str, problems: list[str]) -> None:
    if form == "markdown":
        reached = [] if impact is None else questions.impact(flow, impact)
        rows = [(row.data, row.column, row.how, row.job) for row in reached]
        text = lineage_markdown(flow, None if impact is None else (impact, rows), problems)
        out.print(text, markup=False, soft_wrap=True)
    elif impact is not None:
        answers.impact(flow, impact).show(form == "json")
    elif form == "json":
        answers.all_flows(flow).show(as_json=True)
    elif form == "tree":
        show_table(answers.planned_table(flow))
    else:
        text = diagrams.mermaid(flow) if form == "mermaid" else diagrams.graphviz(flow)
        out.print(text, markup=False, soft_wrap=True)

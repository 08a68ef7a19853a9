"""The command line of ``lineage``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from spark_events.cli import lineage_drawing as drawing
from spark_events.cli.console import AsWide, err, out, plain, say
from spark_events.lineage import diagrams
from spark_events.lineage.data_flow import DataFlow
from spark_events.lineage.job_logs import read_job_logs


class DrawingForm(str, enum.Enum):
    """How lineage is drawn."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"


def lineage(
    paths: Annotated[list[Path], typer.Argument(help="File logs of jobs, or folders that have some.")],
    of: Annotated[
        str | None,
        typer.Option(
            help="What feeds this table or path, and what it feeds; or what this job reads and writes. "
            "The end of a name is enough."
        ),
    ] = None,
    columns: Annotated[bool, typer.Option("--columns", help="With --of: which columns make which.")] = False,
    form: Annotated[DrawingForm, typer.Option("--as", help="How all of it is drawn.")] = DrawingForm.TREE,
) -> None:
    """Show which data feeds which, by which job, and how that ended, from the file log of a job listener.

    Exits 2 where there is nothing to read, or no such data.
    """
    flow = read_job_logs(paths)
    for path, count in flow.skipped.items():
        _warn(f"{path}: {count} line(s) were no events of jobs")
    for path, reason in flow.torn.items():
        _warn(f"{path}: cannot be read to its end: {reason}")
    if of is not None:
        _draw_trees(flow, of, columns)
    elif form is DrawingForm.TREE:
        out.print(drawing.table(flow))
    else:
        text = diagrams.mermaid(flow) if form is DrawingForm.MERMAID else diagrams.graphviz(flow)
        out.print(text, markup=False, soft_wrap=True)


def _draw_trees(flow: DataFlow, name: str, with_columns: bool) -> None:
    """Draw what a name means: some data, or else a job."""
    meant = flow.find(name)
    if isinstance(meant, str):
        trees = [drawing.tree_of_job(flow, meant, with_columns)]
    else:
        trees = drawing.trees_of_data(flow, meant, with_columns)
    for tree in trees:
        # Wider than the terminal, or the ends of long chains would have no room.
        out.print(AsWide(tree), crop=False)


def _warn(sentence: str) -> None:
    say(f"[yellow]{plain(sentence)}[/]", err)

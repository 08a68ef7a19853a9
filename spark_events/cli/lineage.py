"""The command line of ``lineage``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from spark_events.cli import lineage_drawing as drawing
from spark_events.cli.console import AsWide, err, out, plain, say
from spark_events.lineage.data_flow import read


class Form(str, enum.Enum):
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
    form: Annotated[Form, typer.Option("--as", help="How all of it is drawn.")] = Form.TREE,
) -> None:
    """Show which data feeds which, by which job, and how that ended, from the file log of a job listener.

    Exits 2 where there is nothing to read, or no such data.
    """
    flow = read(paths)
    for path, count in flow.skipped.items():
        _warn(f"{path}: {count} line(s) were no events of jobs")
    for path, reason in flow.torn.items():
        _warn(f"{path}: cannot be read to its end: {reason}")
    if of is not None:
        found = flow.find(of)
        draw = drawing.trees_of_job if isinstance(found, str) else drawing.trees
        for tree in draw(flow, found, columns):  # type: ignore[arg-type]
            # Wider than the terminal, or the ends of long chains would have no room.
            out.print(AsWide(tree), crop=False)
    elif form is Form.TREE:
        out.print(drawing.table(flow))
    else:
        out.print(
            drawing.mermaid(flow) if form is Form.MERMAID else drawing.dot(flow), markup=False, soft_wrap=True
        )


def _warn(sentence: str) -> None:
    say(f"[yellow]{plain(sentence)}[/]", err)

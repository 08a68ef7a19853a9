"""The command ``mcp``; what it needs is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_events.api.errors import UsageError
from spark_events.cli.terminal.options import SlaOption, parse_sla


def mcp(
    events: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Stored events: a file, a folder or a glob. Repeatable."),
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Spark event logs: a log, a folder or a glob. Repeatable."),
    ] = None,
    lineage: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Files of the lineage listener file_log, or folders. Repeatable."),
    ] = None,
    sla: SlaOption = None,
) -> None:
    """Serve AI agents over the Model Context Protocol (stdio).

    They can ask for the report, failures, why an application was slow, and lineage, of these files and no
    others. Nothing is written. Exits 2 if no files are given.
    """

    if not (events or logs or lineage):
        raise UsageError("mcp needs something to read: --events, --logs or --lineage")
    from spark_events.agents.server import Sources, make_server

    sources = Sources(tuple(events or ()), tuple(logs or ()), tuple(lineage or ()), parse_sla(sla or ()))
    make_server(sources).run("stdio")

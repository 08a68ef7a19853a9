"""The server: each tool reads the files that it was started with, and no others."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError
from spark_events.api.errors import needs_extra
from spark_events.api.option_types import DURATION
from spark_events.api.toolkit.formatting import cut, printable, text_without_url_secrets
from spark_events.history.options import Engine, ReportOptions, Sla
from spark_events.history.report import Report
from spark_events.history.run import make_report, open_database
from spark_events.history.selection import Selection
from spark_events.history.table import Row, Table, latest_first
from spark_events.history.tables.all_tables import TABLES
from spark_events.history.tables.failures import FAILURES
from spark_events.lineage.job_logs import read_job_logs
from spark_events.why.explanation import Explanation
from spark_events.why.reading.read_events import explain_events
from spark_events.why.reading.read_logs import explain_logs
from spark_events.why.written import as_values

with needs_extra("mcp", "mcp", "spark-events mcp"):
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
_INSTRUCTIONS = (
    "What Spark applications and streaming queries did: whether they were up, why they failed, whether each "
    "checkpoint completed in time, what made them slow, and which data they moved. Times are in ms since the "
    "epoch, durations in ms, sizes in bytes."
)
_LONGEST_MESSAGE, _LONGEST_NAME = 4_000, 200
MOST_ROWS = 200
"""Of each table in an answer; the first rows are the worst, or the latest."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What the tools read.

    Attributes:
        events: stored events.
        logs: Spark's event logs.
        lineage: files of the job listener file_log.
        sla: of checkpoints.
    """

    events: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    lineage: tuple[str, ...] = ()
    sla: Sla = field(default_factory=Sla)


def make_server(sources: Sources) -> MCPServer[Any]:
    """Return the server, with the tools that its sources suffice for."""
    tools = _Tools(sources)
    server = _StrictServer(
        "spark-events", instructions=_INSTRUCTIONS, version=version("spark-events"), log_level="WARNING"
    )
    wanted = (
        (tools.report, bool(sources.events)),
        (tools.failures, bool(sources.events)),
        (tools.why, bool(sources.events or sources.logs)),
        (tools.lineage, bool(sources.lineage)),
    )
    for tool, possible in wanted:
        if possible:
            server.add_tool(tool, annotations=_READ_ONLY, structured_output=False)
    return server


class _StrictServer(MCPServer[Any]):
    """A server that refuses arguments that a tool does not have, which the library ignores."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool.

        Raises:
            ToolError: there is no such argument, or the tool says why it has no answer.
        """
        of_tool = (tool.input_schema for tool in await self.list_tools() if tool.name == name)
        known = next(of_tool, {}).get("properties", arguments)
        if unknown := [cut(each, _LONGEST_NAME) for each in arguments if each not in known]:
            allowed = f"allowed are {', '.join(known)}"
            raise ToolError(
                f"{name}: has no argument {cut(', '.join(unknown), _LONGEST_MESSAGE)!r}; {allowed}"
            )
        return await super().call_tool(name, arguments, context)


class _Tools:
    """The tools; their docstrings are what an agent reads."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        # Each reads as much as there is, and an agent may ask for much at once.
        self._one_at_a_time = threading.Lock()

    def report(self, since: str = "", app: str = "") -> dict[str, Any]:
        """Uptime, checkpoints against the SLA, failures, lost executors, issues, slow runs, tasks' counters.

        Args:
            since: only this much time before the last event, such as 12h or 7d; all of it by default.
            app: only the applications of this name, or the one of this id.
        """
        report = self._report(since, app)
        tables = [(table, report.tables[table.name]) for table in TABLES if table.heading]
        return {
            "since_ms": report.since_ms,
            "until_ms": report.until_ms,
            **{table.name: _first(table, rows) for table, rows in tables},
            "rows": {table.name: len(rows) for table, rows in tables},
            "notes": report.notes,
        }

    def failures(self, since: str = "", app: str = "") -> dict[str, Any]:
        """Why applications, queries, jobs and executors failed: a row per day and error, the latest first.

        Args:
            since: only this much time before the last event, such as 12h or 7d; all of it by default.
            app: only the applications of this name, or the one of this id.
        """
        rows = self._report(since, app).tables.failures
        return {FAILURES.name: _first(FAILURES, rows), "rows": len(rows)}

    def why(self, app: str = "") -> dict[str, Any]:
        """Where the time of each application went, what made it slow, what that cost, and what to do.

        Args:
            app: only the application of this name or id.
        """
        explanations: list[Explanation] = []
        notes: list[str] = []
        try:
            with self._one_at_a_time:
                if self._sources.logs:
                    explanations, notes = explain_logs(self._sources.logs, {}, app or None)
                if self._sources.events:
                    known = {explanation.app_id for explanation in explanations}
                    stored, more_notes = explain_events(self._sources.events, app or None)
                    explanations += [each for each in stored if each.app_id not in known]
                    notes += more_notes
        except ConfigError as error:
            raise _tool_error(error) from error
        if app and not explanations:
            # A log that cannot be read may be of this application.
            lack = (
                f"app: no application has the name or id {cut(app, _LONGEST_NAME)!r}; without app, this tool "
                "lists all that there are"
            )
            raise ToolError(cut("; ".join([lack, *notes]), _LONGEST_MESSAGE))
        values = [as_values(explanation) for explanation in explanations]
        return {"applications": values[:MOST_ROWS], "rows": len(values), "notes": notes}

    def lineage(self, of: str = "") -> dict[str, Any]:
        """Which data feeds which, through which job, and how that job ended.

        A flow is not ``current`` if its job did not have it when its application last ran.

        Args:
            of: only what a table or path of this name feeds or is fed by, or what a job of this name moves;
                its last parts are enough.
        """
        try:
            with self._one_at_a_time:
                flow = read_job_logs([Path(path) for path in self._sources.lineage])
            about = flow.find(of, "of") if of else None
        except ConfigError as error:  # as of a name that is misspelt, or of several
            raise _tool_error(error) from error
        edges = [
            {
                "source": flow.title(source),
                "sink": flow.title(sink),
                "job": job,
                "status": last.status,
                "time_ms": last.time_ms,
                "current": flow.is_current(last),
            }
            for (source, sink), jobs in flow.flows.items()
            for job, last in jobs.items()
            if about is None or about in (source, sink, job)
        ]
        return {"flows": edges[:MOST_ROWS], "rows": len(edges), "notes": flow.notes}

    def _report(self, since: str, app: str) -> Report:
        try:
            span_ms = DURATION.read("since", since) if since else None
            options = ReportOptions(self._sources.events, self._sources.sla, Selection(app, span_ms=span_ms))
            with self._one_at_a_time, open_database(options, Engine.LOCAL) as database:
                return make_report(database, options)
        except ConfigError as error:
            raise _tool_error(error) from error


def _first(table: Table, rows: list[Row]) -> list[Row]:
    """Return the rows of an answer; a report has those of some tables by time, the latest last."""
    return (latest_first(rows) if table.on_page is latest_first else rows)[:MOST_ROWS]


def _tool_error(error: ConfigError) -> ToolError:
    said = str(error).removeprefix("--")  # options of commands are arguments of tools
    return ToolError(cut(printable(text_without_url_secrets(said), but="\n"), _LONGEST_MESSAGE))

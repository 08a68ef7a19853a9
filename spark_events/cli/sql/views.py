"""The output of the commands of ``spark-events sql``: tables for people, values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from spark_events.api.event import now_ms
from spark_events.api.toolkit.formatting import duration, moment
from spark_events.cli.terminal.console import plain, plain_lines, say, show_table
from spark_events.sql_runner.deploy.decision import WITHOUT_SAVEPOINT, WORDS, Action
from spark_events.sql_runner.deploy.deployer import DeployResult
from spark_events.sql_runner.deploy.planner import PlannedQuery
from spark_events.sql_runner.deploy.query_row import QueryRow
from spark_events.sql_runner.store.history import Deployment

_COLOR = {Action.FAIL: "red", Action.NOTHING: "dim"}
_STATE_COLOR = {
    "RUNNING": "green",
    "FINISHED": "green",
    "FAILED": "red",
    "RESTARTING": "red",
    "GONE": "red",
    "SILENT": "red",
    "UNKNOWN": "red",
}
_COLUMNS = (
    "query", "state", "for", "version", "batch", "ended ago", "rows/s", "behind", "restarts", "in",
)  # fmt: skip
_SHOWN_RESTARTS = 3


def plan_values(planned: Iterable[PlannedQuery]) -> list[dict[str, Any]]:
    """Return decisions as JSON has them."""
    return [
        {
            "name": query.name,
            "action": query.decision.action.value,
            "version": query.decision.version,
            "reason": query.decision.reason,
        }
        for query in planned
    ]


def show_plan(planned: Iterable[PlannedQuery], console: Console) -> None:
    """Print decisions, each with its reason below it."""
    for query in planned:
        decision = query.decision
        version = f", version {decision.version}" if decision.version else ""
        color = _COLOR.get(decision.action, "bold")
        say(
            f"[bold]{plain(query.name)}[/]{version}: [{color}]{WORDS[decision.action]}[/]",
            console,
        )
        say(f"  {plain(decision.reason)}", console)


def show_result(result: DeployResult, console: Console) -> None:
    """Print how one deployment went."""
    savepoint = f", {result.savepoint}" if result.savepoint else ""
    mark = "[red]failed[/]" if result.failed else "[green]ok[/]"
    text = "" if result.text == "done" else f": {result.text}"
    # What has failed may have made one before: it is called what it was to be. A stop says it of itself.
    is_unsure = result.failed and result.action is not Action.STOP
    words = WORDS if result.savepoint or is_unsure else WITHOUT_SAVEPOINT
    say(
        f"{mark} {plain(result.name)} version {result.version}: {words[result.action]}"
        f"{plain(savepoint)}{plain_lines(text)}",
        console,
    )


def show_status(rows: Sequence[QueryRow], console: Console, now: int | None = None) -> None:
    """Print the states of queries, and below them why some have failed.

    Args:
        rows: of the queries.
        console: prints.
        now: the store's time, in ms since the epoch; this machine's by default.
    """
    now = now_ms() if now is None else now
    optional = {
        "rows/s": any(row.input_rate is not None for row in rows),
        "behind": any(_behind(row) for row in rows),
        "restarts": any(row.restarts for row in rows),
        "in": len({row.application for row in rows}) > 1,
    }
    shown = [name for name in _COLUMNS if optional.get(name, True)]
    table = Table(box=None, pad_edge=False)
    for name in shown:
        table.add_column(name, no_wrap=name in ("query", "state"))
    for row in rows:
        color = _STATE_COLOR.get(row.state, "bold")
        cells = {
            "query": plain(row.name),
            "state": f"[{color}]{plain(row.state)}[/]",
            "for": _age(row.since_ms, now),
            "version": str(row.version),
            "batch": "" if row.batch is None else str(row.batch),
            "ended ago": _age(row.batch_ms, now),
            "rows/s": "" if row.input_rate is None else f"{row.input_rate:,.4g}",
            "behind": _behind(row),
            "restarts": str(row.restarts),
            "in": plain(row.application),
        }
        table.add_row(*(cells[name] for name in shown))
    show_table(table, console)
    for row in rows:
        if row.restarted_ms:
            times = ", ".join(moment(at_ms) for at_ms in row.restarted_ms[:_SHOWN_RESTARTS])
            more = ", …" if row.restarts > _SHOWN_RESTARTS else ""
            say(f"[dim]{plain(row.name)}: restarted at {times}{more} UTC[/]", console)
        if row.error:
            color = "dim" if row.recovered or row.state == "ENDED" else "red"
            say(f"[{color}]{plain(row.name)}[/]: {_when(row)}{plain_lines(row.error)}", console)


def show_history(entries: Iterable[Deployment], console: Console) -> None:
    """Print the history of a query, an entry a paragraph."""
    for entry in entries:
        action = f"[bold]{plain(entry.action)}[/], version {entry.version}, by {plain(entry.who)}"
        say(f"{moment(entry.at_ms)} UTC {action}", console)
        savepoint = f", {entry.savepoint}" if entry.savepoint else ""
        say(f"  why: {plain(entry.reason)}\n  result: {plain_lines(entry.result + savepoint)}", console)


def _behind(row: QueryRow) -> str:
    """Return what the sources have that was not read yet, or else how far the watermark is behind."""
    if row.behind is not None:
        return f"{row.behind:,}"
    return duration(row.watermark_lag_ms)


def _when(row: QueryRow) -> str:
    """Return when a query last failed, and whether it has recovered."""
    if row.error_ms is None:
        return ""
    recovered = "recovered; the last error, " if row.recovered else ""
    return f"{recovered}{moment(row.error_ms)} UTC: "


def _age(since_ms: int | None, now: int) -> str:
    return "" if since_ms is None else duration(max(0, now - since_ms))

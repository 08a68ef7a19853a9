"""What the commands of ``spark-events sql`` show: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from spark_events.api.event import now_ms
from spark_events.sql_runner.current import Current
from spark_events.sql_runner.decision import WORDS, Action
from spark_events.sql_runner.deployed import Deployment
from spark_events.sql_runner.deployer import Result
from spark_events.sql_runner.documents import RUN
from spark_events.sql_runner.planner import Planned
from spark_events.texts import duration, moment, plain, plain_lines

_COLOUR = {Action.FAIL: "red", Action.NOTHING: "dim"}
_STATE_COLOUR = {"RUNNING": "green", "FINISHED": "green", "FAILED": "red", "RESTARTING": "red", "GONE": "red"}


@dataclass(frozen=True)
class QueryRow:
    """What ``status`` says of one query.

    Attributes:
        name: the query's.
        state: as ``JobStatus``; where it should run and its application does not: ENDED if somebody asked
            that to end, GONE if not.
        wanted: whether it is to run.
        version: the version that is deployed.
        application: where it runs.
        since_ms: since when it is in that state, in ms since the epoch.
        batch: the last micro-batch that has ended.
        batch_ms: when it ended, in ms since the epoch.
        restarts: since it was deployed.
        error: why it failed last.
    """

    name: str
    state: str
    wanted: bool
    version: int
    application: str
    since_ms: int | None = None
    batch: int | None = None
    batch_ms: int | None = None
    restarts: int = 0
    error: str = ""

    @classmethod
    def of(cls, name: str, current: Current) -> QueryRow:
        """Return what there is to say of a query."""
        order, host, where = current.order, current.host, current.link.described
        wanted = order is not None and order.action == RUN
        version = current.deployed.meta.query_version if current.deployed else 0
        found, not_alive = host.status_of(name), "ENDED" if host.ended else "GONE"
        if found is None:
            state = ("CREATED" if host.is_alive else not_alive) if wanted else "CANCELED"
            error = host.why_gone() if state == not_alive else ""
            return cls(name, state, wanted, version, where, error=error)
        gone = wanted and found.state != "FINISHED" and not host.is_alive
        return cls(
            name,
            not_alive if gone else found.state,
            wanted,
            version,
            where,
            found.since_ms,
            found.batch,
            found.batch_ms,
            found.restarts,
            host.why_gone() if gone else found.error,
        )

    @property
    def is_well(self) -> bool:
        """Whether it does what it is to do."""
        return not self.wanted or self.state in ("RUNNING", "FINISHED", "CREATED", "ENDED")


def print_json(values: Any) -> None:
    """Print values as JSON."""
    print(orjson.dumps(values, option=orjson.OPT_INDENT_2).decode())  # noqa: T201 - the command's output


def plan_values(planned: Iterable[Planned]) -> list[dict[str, Any]]:
    """Return decisions as JSON has them."""
    return [
        {
            "name": each.name,
            "action": each.decision.action.value,
            "version": each.decision.version,
            "reason": each.decision.reason,
        }
        for each in planned
    ]


def show_plan(planned: Iterable[Planned], console: Console) -> None:
    """Print decisions, each with its reason below it."""
    for each in planned:
        action = each.decision.action
        version = f", version {each.decision.version}" if each.decision.version else ""
        console.print(
            f"[bold]{plain(each.name)}[/]{version}: [{_COLOUR.get(action, 'bold')}]{WORDS[action]}[/]",
            soft_wrap=True,
        )
        console.print(f"  {plain(each.decision.reason)}", soft_wrap=True)


def show_result(result: Result, console: Console) -> None:
    """Print how one deployment went."""
    savepoint = f", {result.savepoint}" if result.savepoint else ""
    mark = "[red]failed[/]" if result.failed else "[green]ok[/]"
    text = "" if result.text == "done" else f": {result.text}"
    console.print(
        f"{mark} {plain(result.name)} version {result.version}: {WORDS[result.action]}"
        f"{plain(savepoint)}{plain_lines(text)}",
        soft_wrap=True,
    )


def show_status(rows: Sequence[QueryRow], console: Console) -> None:
    """Print the states of queries, and below them why some have failed."""
    optional = {
        "restarts": any(row.restarts for row in rows),
        "in": len({row.application for row in rows}) > 1,
    }
    columns = ("query", "state", "for", "version", "batch", "ended before", "restarts", "in")
    shown = [name for name in columns if optional.get(name, True)]
    table = Table(*shown, box=None, pad_edge=False)
    for row in rows:
        colour = _STATE_COLOUR.get(row.state, "bold")
        cells = {
            "query": plain(row.name),
            "state": f"[{colour}]{plain(row.state)}[/]",
            "for": _age(row.since_ms),
            "version": str(row.version),
            "batch": "" if row.batch is None else str(row.batch),
            "ended before": _age(row.batch_ms),
            "restarts": str(row.restarts),
            "in": plain(row.application),
        }
        table.add_row(*(cells[name] for name in shown))
    console.print(table)
    for row in rows:
        if row.error:
            colour = "dim" if row.state == "ENDED" else "red"
            console.print(f"[{colour}]{plain(row.name)}[/]: {plain_lines(row.error)}", soft_wrap=True)


def show_history(entries: Iterable[Deployment], console: Console) -> None:
    """Print the history of a query, an entry a paragraph."""
    for entry in entries:
        what = f"[bold]{plain(entry.action)}[/], version {entry.version}, by {plain(entry.who)}"
        console.print(f"{moment(entry.at_ms)} UTC {what}", soft_wrap=True)
        savepoint = f", {entry.savepoint}" if entry.savepoint else ""
        console.print(
            f"  why: {plain(entry.reason)}\n  result: {plain_lines(entry.result + savepoint)}", soft_wrap=True
        )


def _age(since_ms: int | None) -> str:
    return "" if since_ms is None else duration(max(0, now_ms() - since_ms))

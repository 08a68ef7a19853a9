"""Reads the demo's file log back, and sums up what was up, down, restarted and checkpointed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from rich.table import Table

_UP = frozenset(("RUNNING",))
_ENDED = frozenset(("FINISHED", "CANCELED"))


@dataclass
class JobSummary:
    """What the events say of one application or query.

    Attributes:
        up_ms: time in RUNNING.
        down_ms: time in any other status, before its end.
        restarts: how often it was restarted.
        checkpoints: completed checkpoints.
        failed_checkpoints: micro-batches that did not commit.
        overdue: how often a checkpoint came too late.
        slowest_ms: the slowest completed checkpoint, in ms.
        failure: the last failure.
        status: the status at the end.
    """

    up_ms: int = 0
    down_ms: int = 0
    restarts: int = 0
    checkpoints: int = 0
    failed_checkpoints: int = 0
    overdue: int = 0
    slowest_ms: int = 0
    failure: str = ""
    status: str = ""

    def add(self, event: dict[str, Any]) -> None:
        """Take one event, in the order in which they were written."""
        name, attributes = event["eventName"], event["attributes"]
        if name == "JobStatusChangeEvent":
            self._add_status(attributes)
        elif name == "CheckpointEvent":
            completed = attributes["checkpointStatus"] == "COMPLETED"
            self.checkpoints += completed
            self.failed_checkpoints += not completed
            self.slowest_ms = max(self.slowest_ms, attributes["durationMs"] if completed else 0)
        elif name == "CheckpointOverdueEvent":
            self.overdue += 1
        elif name == "JobFailureEvent":
            thrown = attributes.get("exception.type") or attributes.get("errorClass") or "failure"
            self.failure = f"{thrown.rsplit('.', 1)[-1]}: {attributes['exception.message']}"

    def _add_status(self, attributes: dict[str, Any]) -> None:
        old, took_ms = attributes.get("oldJobStatus"), attributes.get("durationMs", 0)
        if old in _UP:
            self.up_ms += took_ms
        elif old not in _ENDED:
            self.down_ms += took_ms
        self.status = attributes["newJobStatus"]
        self.restarts += self.status == "RESTARTING"


def read_events(folder: Path) -> Iterable[dict[str, Any]]:
    """Yield the events of all files of a file log."""
    for path in sorted(folder.glob("*.events.*.jsonl")):
        for line in path.read_bytes().splitlines():
            yield orjson.loads(line)


def summarise(events: Iterable[dict[str, Any]]) -> dict[tuple[str, str], JobSummary]:
    """Return a summary for each application and query, by kind and name."""
    found: dict[tuple[str, str], JobSummary] = {}
    for event in events:
        attributes = event["attributes"]
        kind = attributes["job.kind"]
        if kind in ("application", "query"):
            name = attributes["query_name" if kind == "query" else "app_name"]
            found.setdefault((kind, name), JobSummary()).add(event)
    return found


def summary_table(summaries: dict[tuple[str, str], JobSummary]) -> Table:
    """Return the table that ends the demo, a column for each application and query."""
    table = Table(title="What happened, from the file log", title_justify="left", title_style="bold")
    table.add_column()
    for kind, name in summaries:
        table.add_column(f"{kind}\n{name}", overflow="fold")
    for title, cell in _ROWS.items():
        table.add_row(title, *(cell(kind, job) for (kind, _), job in summaries.items()))
    return table


def _of_query(cell: Callable[[JobSummary], object]) -> Callable[[str, JobSummary], str]:
    return lambda kind, job: str(cell(job)) if kind == "query" else ""


_ROWS: dict[str, Callable[[str, JobSummary], str]] = {
    "status at the end": lambda _, job: job.status,
    "up": lambda _, job: f"{job.up_ms / 1000:.1f} s",
    "down": lambda _, job: f"{job.down_ms / 1000:.1f} s",
    "restarts": _of_query(lambda job: job.restarts),
    "checkpoints completed": _of_query(lambda job: job.checkpoints),
    "checkpoints failed": _of_query(lambda job: job.failed_checkpoints),
    "checkpoints overdue": _of_query(lambda job: job.overdue),
    "slowest checkpoint": _of_query(lambda job: f"{job.slowest_ms} ms"),
    "last failure": lambda _, job: job.failure,
}

"""Made-up histories: lines as the file log writes them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

T0 = 1_795_132_800_000
"""2026-11-20 00:00:00 UTC, in ms since the epoch."""
MIN, HOUR, DAY = 60_000, 3_600_000, 86_400_000


class Story:
    """Events of one application's name, in the order in which they are told.

    Args:
        app_name: the application.
        app_id: its run, until ``driver`` begins another.
    """

    def __init__(self, app_name: str = "shop", app_id: str = "app-1") -> None:
        self.app_name, self.app_id = app_name, app_id
        self.events: list[dict[str, Any]] = []
        self._run, self._query = "run-1", "id"
        self._attempt: str | None = None

    def driver(self, app_id: str) -> Story:
        """Go on in another run of the application."""
        self.app_id = app_id
        self._run, self._query = f"{app_id}-run", "id"
        return self

    def run(self, run_id: str, query: str = "id") -> Story:
        """Go on in another run of the query, or in one of another query of the same name."""
        self._run, self._query = run_id, query
        return self

    def application(self, ms: int, *statuses: str) -> Story:
        """The application comes to some statuses."""
        for status in statuses:
            self._add(ms, "JobStatusChangeEvent", "application", newJobStatus=status)
        return self

    def query(self, ms: int, *statuses: str, name: str = "orders", **more: Any) -> Story:
        """A query comes to some statuses."""
        for status in statuses:
            self._add(ms, "JobStatusChangeEvent", "query", name, newJobStatus=status, **more)
        return self

    def job(self, ms: int, status: str = "FINISHED", job_id: int = 0) -> Story:
        """A Spark job comes to a status."""
        self._add(ms, "JobStatusChangeEvent", "job", newJobStatus=status, job_id=job_id)
        return self

    def checkpoint(
        self, ms: int, took: int, owed: int | None = None, name: str = "orders", **more: Any
    ) -> Story:
        """A query completes a checkpoint."""
        attributes = {"checkpointStatus": "COMPLETED", "durationMs": took, "owedMs": owed, **more}
        self._add(ms, "CheckpointEvent", "query", name, **attributes)
        return self

    def failure(self, ms: int, error: str, message: str = "boom", name: str = "orders", **more: Any) -> Story:
        """A query fails with an error."""
        attributes = {"errorClass": error, "exception.message": message, "failureLabel.type": "USER", **more}
        self._add(ms, "JobFailureEvent", "query", name, **attributes)
        return self

    def event(self, ms: int, name: str, query: str | None = None, **attributes: Any) -> Story:
        """Something else happens."""
        self._add(ms, name, "query" if query else "application", query, **attributes)
        return self

    def heartbeats(self, first_ms: int, last_ms: int, every_ms: int = MIN, **more: Any) -> Story:
        """The application says that it lives, from the one moment to the other."""
        for number, ms in enumerate(range(first_ms, last_ms + 1, every_ms)):
            self._add(ms, "HeartbeatEvent", "application", sequence=number, intervalMs=every_ms, **more)
        return self

    def attempt(self, attempt: str | None) -> Story:
        """Go on in another attempt of the application."""
        self._attempt = attempt
        return self

    def job_failure(self, ms: int, error: str, message: str = "boom", **more: Any) -> Story:
        """A Spark job fails with an error."""
        attributes = {"errorClass": error, "exception.message": message, **more}
        self._add(ms, "JobFailureEvent", "job", more.pop("query_name", None), **attributes)
        return self

    def lines(self) -> list[str]:
        """Return the lines of a file log."""
        return [json.dumps(event) for event in self.events]

    def _add(self, ms: int, name: str, kind: str, query: str | None = None, **attributes: Any) -> None:
        run = (
            {"query_name": query, "query_id": f"{self._query}-{query}", "run_id": self._run} if query else {}
        )
        whose = {"app_name": self.app_name, "app_id": self.app_id, "app_attempt_id": self._attempt}
        whole = {**whose, **run, "job_kind": kind, **attributes}
        whole = {key: value for key, value in whole.items() if value is not None}
        what = json.dumps([ms, name, whole], sort_keys=True)
        self.events.append(
            {
                "eventName": name,
                "eventId": hashlib.sha256(what.encode()).hexdigest()[:32],
                "timeUnixNano": str((T0 + ms) * 1_000_000),
                "severityText": "INFO",
                "scope": "tests",
                "body": "",
                "attributes": whole,
            }
        )


def write(folder: Path, *stories: Story, name: str = "shop__app-1.events.000001.jsonl") -> Path:
    """Write stories into one file of a file log, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line for story in stories for line in story.lines()]
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


def write_otlp(folder: Path, story: Story) -> Path:
    """Write a story as a collector's file exporter does, one request a line, with a line of metrics."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        {
            "timeUnixNano": event["timeUnixNano"],
            "eventName": event["eventName"],
            "severityText": event["severityText"],
            "body": {"stringValue": event["body"]},
            "attributes": [
                {
                    "key": key,
                    "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
                }
                for key, value in {**event["attributes"], "event.id": event["eventId"]}.items()
            ],
        }
        for event in story.events
    ]
    half = len(records) // 2
    with (folder / "logs.jsonl").open("w") as file:
        for part in (records[:half], records[half:]):
            scopes = [{"scope": {"name": "tests"}, "logRecords": part}]
            file.write(json.dumps({"resourceLogs": [{"resource": {}, "scopeLogs": scopes}]}) + "\n")
    (folder / "metrics.jsonl").write_text('{"resourceMetrics":[{"scopeMetrics":[]}]}\n')
    return folder


MARKUP = "<b>bold</b> <script>document.title='caught'</script>"


def fleet() -> tuple[Story, Story]:
    """Two days: a query that is down for six hours in all and is down at the end; a nightly batch job."""
    orders = Story("shop").application(0, "CREATED", "RUNNING").query(0, "CREATED").query(HOUR, "RUNNING")
    for hour in range(1, 20):
        orders.checkpoint(hour * HOUR, 1_000 * hour, 1_000 * hour)
    orders.failure(20 * HOUR, "OUT_OF_MEMORY", MARKUP).query(20 * HOUR, "FAILED")
    orders.run("run-2").query(24 * HOUR, "RESTARTING").checkpoint(25 * HOUR, 40_000, 6 * HOUR)
    orders.query(25 * HOUR, "RUNNING").failure(30 * HOUR, "KAFKA_GONE").query(30 * HOUR, "FAILED")
    nightly = Story("nightly").application(2 * HOUR, "CREATED", "RUNNING").application(3 * HOUR, "FINISHED")
    ended = {"job_kind": "executor", "executor_id": "7", "host": "node-1", "lifetimeMs": 30 * MIN}
    heap = {"heapUsed.highest": 512 << 20, "memoryLimit.heap": 1 << 30}
    nightly.event(2 * HOUR + 40 * MIN, "ExecutorLostEvent", reason="decommissioned", **ended, **heap)
    lost = {**ended, "executor_id": "8"}
    nightly.event(2 * HOUR + 30 * MIN, "ExecutorLostEvent", reason="out_of_memory", **lost, **heap)
    nightly.driver("app-2").application(26 * HOUR, "CREATED", "RUNNING").application(31 * HOUR, "FINISHED")
    return orders, nightly

"""What became of the applications, queries and jobs of event logs, counted by their events."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone

from spark_events.api import Event, JobStatus

_MOST_FAILURES = 10
_TERMINAL = {status.value for status in JobStatus if status.terminal}


class Outcomes:
    """The last status of each application, query and job, counted; and what failed first.

    Attributes:
        events: how many events there were.
        failures: what failed, a sentence each, of many the first ones.
        more_failures: how many there are beyond those.
    """

    def __init__(self) -> None:
        self.events = 0
        self.failures: list[str] = []
        self.more_failures = 0
        self._ended: Counter[tuple[str, str]] = Counter()
        self._running: dict[tuple[str, ...], str] = {}

    def take(self, event: Event) -> None:
        """Take one event."""
        self.events += 1
        if event.name == "JobFailureEvent":
            self._add_failures([_failure_sentence(event)])
        if event.name != "JobStatusChangeEvent":
            return
        kind, status = str(event.attributes["job.kind"]), str(event.attributes["newJobStatus"])
        ids = (event.variables.get(name, "") for name in ("app_id", "app_attempt_id", "run_id", "job_id"))
        key = (kind, *ids)
        if status in _TERMINAL:
            self._running.pop(key, None)
            self._ended[kind, status] += 1
        else:
            self._running[key] = status

    def add(self, other: Outcomes) -> None:
        """Add those of another application."""
        self.events += other.events
        self._ended += other.counts
        self._add_failures(other.failures)
        self.more_failures += other.more_failures

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """How many there are of each kind in each status."""
        return self._ended + Counter((key[0], status) for key, status in self._running.items())

    def _add_failures(self, sentences: list[str]) -> None:
        room = _MOST_FAILURES - len(self.failures)
        self.failures += sentences[:room]
        self.more_failures += len(sentences[room:])


def _failure_sentence(event: Event) -> str:
    """Return when and in which application something failed, and how."""
    app, body = event.variables.get("app_id", ""), event.body
    kind = event.attributes.get("exception.type")
    return f"{iso_time(event.observed_time_ms)} {app} {body}" + (f" ({kind})" if kind else "")


def iso_time(time_ms: int) -> str:
    """Return a time of ms since the epoch as a person reads it, in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

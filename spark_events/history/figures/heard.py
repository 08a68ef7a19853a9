"""When the runs of an application were last heard of, and how often they say that they live."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from spark_events.history.figures.day_sums import DaySums
from spark_events.history.reading.facts import HEARTBEAT, Fact

ApplicationRun = tuple[str, str]
"""The id of an application and of its attempt, both empty where the events said none."""


class Heard(NamedTuple):
    """When a run was last heard of.

    Attributes:
        time_ms: in ms since the epoch; 0 for never.
        heartbeat_ms: how often it says that it lives, in ms; None where it never did.
    """

    time_ms: int = 0
    heartbeat_ms: int | None = None

    def and_(self, other: Heard) -> Heard:
        """Return what is known of a run that both are about."""
        later, earlier = (self, other) if self.time_ms >= other.time_ms else (other, self)
        return Heard(later.time_ms, later.heartbeat_ms or earlier.heartbeat_ms)


class HeardOf:
    """When the applications of one name, and their queries, were last heard of.

    Args:
        facts: of the applications.
        days: the sums of their checkpoints.
    """

    def __init__(self, facts: Iterable[Fact], days: Iterable[DaySums]) -> None:
        self._of_runs: dict[ApplicationRun, Heard] = defaultdict(Heard)
        self._of_queries: dict[str, int] = defaultdict(int)
        for fact in facts:
            heartbeat_ms = (fact.duration_ms or None) if fact.fact == HEARTBEAT else None
            self._add(fact.app_id, fact.attempt, fact.query_name, Heard(fact.time_ms, heartbeat_ms))
        for sums in days:
            self._add(sums.app_id, sums.attempt, sums.query_name, Heard(sums.heard_ms))

    @property
    def last_ms(self) -> int:
        """When any of the applications was last heard of, in ms since the epoch."""
        return max(heard.time_ms for heard in self._of_runs.values())

    def run(self, application: ApplicationRun) -> Heard:
        """Return when a run of the application was last heard of.

        What does not say of which attempt it is may be of each.
        """
        app_id, attempt = application
        known = self._of_runs.get(application, Heard())
        return known.and_(self._of_runs.get((app_id, ""), Heard())) if attempt else known

    def query_ms(self, name: str) -> int:
        """Return when a query last said something itself, in ms since the epoch; 0 for never."""
        return self._of_queries.get(name, 0)

    def _add(self, app_id: str | None, attempt: str | None, query_name: str | None, heard: Heard) -> None:
        application = application_run(app_id, attempt)
        self._of_runs[application] = self._of_runs[application].and_(heard)
        if query_name:
            self._of_queries[query_name] = max(self._of_queries[query_name], heard.time_ms)


def application_run(app_id: str | None, attempt: str | None) -> ApplicationRun:
    """Return which run of an application it is."""
    return app_id or "", attempt or ""

"""The status of a query in one row: whether it runs, since when, and why it failed."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.sql_runner.deploy.snapshot import QuerySnapshot
from spark_events.sql_runner.store.host_files import RUN


@dataclass(frozen=True)
class QueryRow:
    """One row of ``spark-events sql status``.

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
    def of(cls, current: QuerySnapshot) -> QueryRow:
        """Return the row of a query."""
        name, order, host = current.name, current.order, current.host
        application = host.link.described
        wanted = order is not None and order.action == RUN
        status, not_alive = host.status_of(name), "ENDED" if host.ended else "GONE"
        if status is None:
            state = ("CREATED" if host.is_alive else not_alive) if wanted else "CANCELED"
            error = host.why_gone() if state == not_alive else ""
            return cls(name, state, wanted, current.version, application, error=error)
        gone = wanted and status.state != "FINISHED" and not host.is_alive
        return cls(
            name,
            not_alive if gone else status.state,
            wanted,
            current.version,
            application,
            status.since_ms,
            status.batch,
            status.batch_ms,
            status.restarts,
            host.why_gone() if gone else status.error,
        )

    @property
    def is_well(self) -> bool:
        """Whether it runs, or has ended as it was asked to."""
        return not self.wanted or self.state in ("RUNNING", "FINISHED", "CREATED", "ENDED")

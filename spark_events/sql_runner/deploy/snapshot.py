"""Queries and their applications at one moment: deployed, ordered, running; and their status rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_events.sql_runner.deploy.host_link import HostLink, HostSnapshot
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import DeployedQuery, deployed_names, read_deployed
from spark_events.sql_runner.store.host_files import RUN, Order
from spark_events.sql_runner.store.store import Store


@dataclass(frozen=True)
class QuerySnapshot:
    """A query as it was at one moment.

    Attributes:
        deployed: what is, or is being, deployed; None if the query is new.
        recorded: what the store records as deployed; None if nothing.
        host: the application that has, or is to get, the order for it.
    """

    name: str
    deployed: DeployedQuery | None
    recorded: DeployedQuery | None
    host: HostSnapshot

    @property
    def version(self) -> int:
        """The version that is, or is being, deployed; 0 if the query is new."""
        return self.deployed.meta.query_version if self.deployed else 0

    @property
    def order(self) -> Order | None:
        """The last order for it."""
        return self.host.orders.get(self.name)

    @property
    def running(self) -> bool:
        """Whether it is running, or about to."""
        return self.host.is_running(self.name)

    @property
    def pending(self) -> bool:
        """Whether a deployment was interrupted before it was recorded."""
        return self.deployed is not None and self.deployed is not self.recorded


class Snapshot:
    """All applications that ever existed, and the queries, as of now; everything raises ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hosts = {host: HostLink(store, host).snapshot() for host in store.names(layout.HOSTS)}

    def query(self, name: str, default_host: str) -> QuerySnapshot:
        """Return a query; one that is not deployed is assigned to the default application.

        Raises:
            ConfigError: the manifest in the store, or an order, cannot be understood.
        """
        recorded = read_deployed(self._store, name)
        # A deployment into any application may have been interrupted before it was recorded.
        for host in self._hosts.values():
            order = host.orders.get(name)
            if order and order.action == RUN and (not recorded or order.id != recorded.meta.deployment):
                deployed = DeployedQuery.parse(order.deployed, f"the order for {name}")
                return QuerySnapshot(name, deployed, recorded, host)
        host = self._host(recorded.meta.host if recorded else default_host)
        return QuerySnapshot(name, recorded, recorded, host)

    def queries(self, host_of: Callable[[str], str]) -> dict[str, QuerySnapshot]:
        """Return, by name, the queries that are, or are being, deployed.

        Args:
            host_of: given a query's name, returns the application of one without an order.

        Raises:
            ConfigError: a manifest in the store, or an order, cannot be understood.
        """
        ordered = {name: host for host in reversed(self._hosts) for name in self._hosts[host].orders}
        names = sorted({*deployed_names(self._store), *ordered})
        return {name: self.query(name, ordered.get(name) or host_of(name)) for name in names}

    def _host(self, name: str) -> HostSnapshot:
        return self._hosts.get(name) or HostSnapshot(HostLink(self._store, name), {}, False, None)


@dataclass(frozen=True)
class QueryRow:
    """One row of ``spark-events sql status``.

    Attributes:
        state: as in ``JobStatus``; if it should run but its application is not running: ENDED if somebody
            asked the application to end, else GONE.
        wanted: whether it is to run.
        application: where it runs, for people to read.
        since_ms: when it entered that state, in ms since the epoch.
        batch: the last finished micro-batch.
        batch_ms: when that ended, in ms since the epoch.
        restarts: since it was deployed.
        error: why it last failed.
        error_ms: when that was, in ms since the epoch; None if unknown.
        recovered: whether it has run well since then.
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
    error_ms: int | None = None
    recovered: bool = False

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
            None if gone else status.error_ms,
            status.recovered and not gone,
        )

    @property
    def is_well(self) -> bool:
        """Whether it is running, or has ended as requested."""
        return not self.wanted or self.state in ("RUNNING", "FINISHED", "CREATED", "ENDED")

"""Queries and their applications at one moment: deployed, ordered, running; and their status rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from spark_events.sql_runner.deploy.host_link import HostLink, HostSnapshot
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import DeployedQuery, deployed_names, read_deployed
from spark_events.sql_runner.store.host_files import RUN, Before, Order, QueryStatus
from spark_events.sql_runner.store.store import Store


@dataclass(frozen=True)
class QuerySnapshot:
    """A query as it was at one moment.

    Attributes:
        deployed: what is, or is being, deployed; None if the query is new.
        recorded: what the store records as deployed; None if nothing.
        host: the application that has, or is to get, the order for it.
        elsewhere: the other applications that still have an order for it.
    """

    name: str
    deployed: DeployedQuery | None
    recorded: DeployedQuery | None
    host: HostSnapshot
    elsewhere: tuple[HostSnapshot, ...] = ()

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

    @property
    def status(self) -> QueryStatus | None:
        """What has become of the last order; None if its application has not seen it."""
        return self.host.status_of(self.name)

    @property
    def ordered(self) -> bool:
        """Whether it is to run by its last order: now, or when its application comes back."""
        return self.order is not None and self.order.action == RUN

    @property
    def before(self) -> Before | None:
        """What ran before a deployment that was interrupted; None if nothing did, or none was."""
        orders = [host.orders.get(self.name) for host in (self.host, *self.elsewhere)]
        if self.ordered:
            return orders[0].before if self.pending and orders[0] else None
        return next((order.before for order in orders if order and order.before), None)

    @property
    def undoable(self) -> DeployedQuery | None:
        """What ran before an interrupted deployment that has not passed a micro-batch; None if none was.

        Raises:
            ConfigError: it cannot be understood.
        """
        if not self.pending or self.before is None or (self.status and self.status.started):
            return None
        return DeployedQuery.parse(self.before.deployed, f"what ran before {self.name}")

    @property
    def wanted(self) -> bool:
        """Whether it is to run; so is a query that an interrupted deployment has only stopped so far."""
        return self.ordered or self.before is not None

    @property
    def may_write(self) -> bool:
        """Whether it writes into its target, or may do so again without another deployment."""
        if self.wanted or self.order is None:
            return self.wanted
        # Of any order: until its application sees the one to stop, it runs by the one before. An application
        # that has just come back never starts it.
        last = self.host.status.queries.get(self.name) if self.host.status else None
        return self.host.is_alive and last is not None and not last.is_over


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
                return QuerySnapshot(name, deployed, recorded, host, self._elsewhere(name, host))
        ordered = next((each.link.host for each in self._hosts.values() if name in each.orders), default_host)
        host = self._host(recorded.meta.host if recorded else ordered)
        return QuerySnapshot(name, recorded, recorded, host, self._elsewhere(name, host))

    def queries(self, host_of: Callable[[str], str]) -> dict[str, QuerySnapshot]:
        """Return, by name, the queries that are, or are being, deployed.

        Args:
            host_of: given a query's name, returns the application of one without an order.

        Raises:
            ConfigError: a manifest in the store, or an order, cannot be understood.
        """
        return {name: self.query(name, host_of(name)) for name in self.names()}

    def names(self) -> list[str]:
        """Return the names of the queries that are, or are being, deployed."""
        ordered = [name for host in self._hosts.values() for name in host.orders]
        return sorted({*deployed_names(self._store), *ordered})

    def _elsewhere(self, name: str, host: HostSnapshot) -> tuple[HostSnapshot, ...]:
        return tuple(each for each in self._hosts.values() if each is not host and name in each.orders)

    def _host(self, name: str) -> HostSnapshot:
        return self._hosts.get(name) or HostSnapshot(HostLink(self._store, name), {}, False, None)


_SILENT = "SILENT"
_NOT_HEARD = ("ENDED", "GONE", _SILENT)
_INTERRUPTED = "its deployment was interrupted after it had stopped the query; deploy again"


@dataclass(frozen=True)
class QueryRow:
    """One row of ``spark-events sql status``.

    Attributes:
        state: as in ``JobStatus``; if it should run but its application is not running: ENDED if somebody
            asked the application to end, else GONE; SILENT if its application is overdue to be heard.
        wanted: whether it is to run.
        application: where it runs, for people to read.
        since_ms: when it entered that state, in ms since the epoch.
        batch: the last finished micro-batch.
        batch_ms: when that ended, in ms since the epoch.
        restarts: since it was deployed.
        error: why it last failed.
        error_ms: when that was, in ms since the epoch; None if unknown.
        recovered: whether it has run well since then.
        progress_ms: the trigger that Spark last reported, in ms since the epoch; also without data.
        input_rate: the rows a second that it read.
        behind: how many offsets its sources had ahead of it; None if they do not say.
        watermark_lag_ms: how far its watermark was behind it, in ms; None without one.
        restarted_ms: when it was last restarted, in ms since the epoch, the latest first.
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
    progress_ms: int | None = None
    input_rate: float | None = None
    behind: int | None = None
    watermark_lag_ms: int | None = None
    restarted_ms: tuple[int, ...] = ()

    @classmethod
    def of(cls, current: QuerySnapshot, deploying: bool = False) -> QueryRow:
        """Return the row of a query.

        Args:
            current: the query.
            deploying: whether a deployment is running, which may start it in a moment.
        """
        status, state = current.status, _state_of(current)
        error = status.error if status else ""
        if state in _NOT_HEARD:
            error = current.host.why_gone()
        elif current.wanted and not current.ordered:
            error = "is being deployed" if deploying else _INTERRUPTED
        row = cls(
            current.name,
            state,
            current.wanted and not (deploying and not current.ordered),
            current.version,
            current.host.link.described,
            error=error,
        )
        if status is None:
            return row
        heard = state not in _NOT_HEARD
        return replace(
            row,
            since_ms=status.since_ms,
            batch=status.batch,
            batch_ms=status.batch_ms,
            restarts=status.restarts,
            error_ms=status.error_ms if heard else None,
            recovered=status.recovered and heard,
            progress_ms=status.progress_ms,
            input_rate=status.input_rate,
            behind=status.behind,
            watermark_lag_ms=status.watermark_lag_ms,
            restarted_ms=status.restarted_ms,
        )

    @property
    def is_well(self) -> bool:
        """Whether it is running, or has ended as requested."""
        return not self.wanted or self.state in ("RUNNING", "FINISHED", "CREATED", "ENDED")


def _state_of(current: QuerySnapshot) -> str:
    status, host = current.status, current.host
    if current.ordered and (status is None or status.state != "FINISHED"):
        if host.is_starting:
            return "CREATED"
        if not host.is_alive:
            return "ENDED" if host.ended else "GONE"
        if host.silent_ms:
            return _SILENT
    if status is not None:
        return status.state
    if current.ordered:
        return "CREATED"
    return "CANCELLING" if host.is_alive and current.order is not None else "CANCELED"

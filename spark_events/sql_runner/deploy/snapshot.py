"""Queries and their applications at one moment: deployed, ordered, running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_events.api import ConfigError
from spark_events.sql_runner.deploy.host_link import HostLink, HostSnapshot
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import DeployedQuery, deployed_names, read_deployed
from spark_events.sql_runner.store.host_files import RUN, Before, Order, QueryStatus
from spark_events.sql_runner.store.store import DamagedFile, Store


@dataclass(frozen=True)
class QuerySnapshot:
    """A query as it was at one moment.

    Attributes:
        deployed: what is, or is being, deployed; None if the query is new.
        recorded: what the store records as deployed; None if nothing.
        host: the application that has, or is to get, the order for it.
        elsewhere: the other applications that still have an order for it.
        damage: what is wrong with its manifest in the store, its order, or its application's files; empty if
            nothing is. If only the manifest is damaged, what is deployed is known from the last order.
    """

    name: str
    deployed: DeployedQuery | None
    recorded: DeployedQuery | None
    host: HostSnapshot
    elsewhere: tuple[HostSnapshot, ...] = ()
    damage: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows what is to become of it, because files are damaged."""
        return bool(self.damage) and self.order is None

    @property
    def version(self) -> int:
        """The version that is, or is being, deployed; 0 if the query is new.

        One that was stopped before its first micro-batch is known by its last order alone.
        """
        if self.deployed is not None:
            return self.deployed.meta.query_version
        deployed, _ = _ordered(self.name, self.order) if self.order else (None, "")
        return deployed.meta.query_version if deployed else 0

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
    """All applications that ever existed, and the queries, as of now; everything raises ``StoreError``.

    Attributes:
        damaged: by application, what is wrong with its files; it is left out.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hosts: dict[str, HostSnapshot] = {}
        self.damaged: dict[str, str] = {}
        for host in store.names(layout.HOSTS):
            try:
                self._hosts[host] = HostLink(store, host).snapshot()
            except DamagedFile as error:
                self.damaged[host] = str(error)

    def demand_whole(self) -> None:
        """Raise if an application is left out, whose queries might be taken for stopped ones.

        Raises:
            DamagedFile: one is.
        """
        for problem in self.damaged.values():
            raise DamagedFile(problem)

    def query(self, name: str, default_host: str) -> QuerySnapshot:
        """Return a query; one that is not deployed is assigned to the default application."""
        recorded, damage = None, ""
        try:
            recorded = read_deployed(self._store, name)
        except ConfigError as error:
            damage = str(error)
        for host, order in self._orders(name):
            # A deployment into any application may have been interrupted before it was recorded. And if the
            # record is damaged, the last order has what it had.
            is_newer = order.action == RUN and (not recorded or order.id != recorded.meta.deployment)
            if is_newer or damage:
                deployed, damage_of_order = _ordered(name, order)
                return self._of(name, deployed, recorded, host, damage_of_order or damage)
        if recorded is None:
            ordered = next((host.link.host for host, _ in self._orders(name)), default_host)
            return self._of(name, None, None, self._host(ordered), damage)
        host_name = recorded.meta.host
        return self._of(name, recorded, recorded, self._host(host_name), self.damaged.get(host_name, ""))

    def _orders(self, name: str) -> list[tuple[HostSnapshot, Order]]:
        """Return the orders for a query, one to run first."""
        orders = [(host, host.orders[name]) for host in self._hosts.values() if name in host.orders]
        return sorted(orders, key=lambda each: each[1].action != RUN)

    def _of(
        self,
        name: str,
        deployed: DeployedQuery | None,
        recorded: DeployedQuery | None,
        host: HostSnapshot,
        damage: str,
    ) -> QuerySnapshot:
        elsewhere = (each for each in self._hosts.values() if each is not host and name in each.orders)
        return QuerySnapshot(name, deployed, recorded, host, tuple(elsewhere), damage)

    def queries(self, host_of: Callable[[str], str]) -> dict[str, QuerySnapshot]:
        """Return, by name, the queries that are, or are being, deployed.

        Args:
            host_of: given a query's name, returns the application of one without an order.
        """
        return {name: self.query(name, host_of(name)) for name in self.names()}

    def names(self) -> list[str]:
        """Return the names of the queries that are, or are being, deployed."""
        ordered = [name for host in self._hosts.values() for name in host.orders]
        return sorted({*deployed_names(self._store), *ordered})

    def _host(self, name: str) -> HostSnapshot:
        return self._hosts.get(name) or HostSnapshot(HostLink(self._store, name), {}, False, None)


def _ordered(name: str, order: Order) -> tuple[DeployedQuery | None, str]:
    """Return the query that an order is about, or what is wrong with the order."""
    try:
        return DeployedQuery.parse(order.deployed, f"the order for {name}"), ""
    except ConfigError as error:
        return None, str(error)

"""A deployer's link to an application that hosts queries: gives orders, and waits for their outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spark_events.api import SparkEventsError
from spark_events.api.toolkit.formatting import duration, moment
from spark_events.sql_runner.deploy.waiting import Waiting
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.host_files import (
    RUN,
    HostStatus,
    Order,
    QueryStatus,
    read_orders,
    read_status,
    write_orders,
)
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.starting import is_starting
from spark_events.sql_runner.store.store import Store

# It gives one in each third of the time that it may be silent: this is more than one that was missed.
_SILENT = 0.7
# A deployer may give orders in several threads; each order changes a file that has all of an application's.
_ORDERS = threading.Lock()


class DeploymentError(SparkEventsError):
    """A query could not be deployed or stopped, or an application could not be ended."""


class HostLink:
    """One application, by its name in the store.

    Args:
        store: holds orders and statuses.
        host: its name.
        guard: called before each order; raises if this deployer must not give orders any more.
        waiting: how it waits.
    """

    def __init__(
        self,
        store: Store,
        host: str,
        guard: Callable[[], None] = lambda: None,
        waiting: Waiting | None = None,
    ) -> None:
        self.host = host
        self._store = store
        self._guard = guard
        self._waiting = waiting or Waiting()
        self._lease = Lease(store, layout.host_lease(host), f"application {host}", 0)

    @property
    def is_single(self) -> bool:
        """Whether it is the application of one query."""
        return self.host.startswith(layout.APPLICATION)

    @property
    def is_alive(self) -> bool:
        """Whether it has recently given a sign of life."""
        return self._lease.holder() is not None

    @property
    def is_starting(self) -> bool:
        """Whether a process on this or another machine is starting it."""
        return is_starting(self._store, self.host)

    def snapshot(self) -> HostSnapshot:
        """Return its current orders and status."""
        orders = read_orders(self._store, self.host)
        holder = self._lease.holder()
        alive = holder is not None
        ended = not alive and self._store.read(layout.ended(self.host)) is not None
        silent_ms = self._store.clock.now_ms() - holder.beat_ms if holder is not None else 0
        return HostSnapshot(
            self,
            orders,
            alive,
            self._status(),
            ended,
            is_starting=not alive and self.is_starting,
            silent_ms=silent_ms if holder and silent_ms > holder.lease_ms * _SILENT else 0,
        )

    def _status(self) -> HostStatus | None:
        return read_status(self._store, self.host)

    def give(self, name: str, order: Order | None) -> None:
        """Give an order for a query; None removes the existing order."""
        with _ORDERS:
            self._guard()
            orders = read_orders(self._store, self.host)
            before = orders.pop(name, None)
            if order is not None:
                orders[name] = order
            if order is not None or before is not None:
                write_orders(self._store, self.host, orders)

    def request_end(self) -> None:
        """Ask it to stop its queries and end; returns at once."""
        self._store.write(layout.end_request(self.host), b"{}")

    def withdraw_end_request(self) -> None:
        """Withdraw the request to end."""
        self._store.delete(layout.end_request(self.host))

    def wait_started(self, name: str, order: Order, timeout_s: float) -> QueryStatus:
        """Wait until a query has passed its first micro-batch, has nothing to read, or has failed.

        Returns:
            Its status, even if the time is over and its first micro-batch still runs.

        Raises:
            DeploymentError: the application is gone, or has not started in time.
        """
        seen: list[QueryStatus] = []

        def look() -> QueryStatus | None:
            status = status_of(self._status(), name, order)
            if status is not None and (status.error or status.started or status.is_over):
                return status
            seen[:] = [status] if status is not None and status.run_id else []
            self._demand_alive()
            return None

        if status := self._waiting.wait_for(look, timeout_s):
            return status
        if seen:
            return seen[0]
        raise DeploymentError(
            f"{self.described} has not started the query within {timeout_s:.0f} s; its log says why"
        )

    def wait_stopped(self, name: str, order: Order, timeout_s: float) -> QueryStatus:
        """Wait until an order to stop is carried out.

        Raises:
            DeploymentError: the application is gone, or it takes too long.
        """

        def look() -> QueryStatus | None:
            status = status_of(self._status(), name, order)
            if status is not None and status.is_over:
                return status
            self._demand_alive()
            return None

        if status := self._waiting.wait_for(look, timeout_s):
            return status
        raise DeploymentError(
            f"the query has not stopped within {timeout_s:.0f} s: its micro-batch still runs; it "
            "will stop with its savepoint; deploy again then, or give a longer --timeout"
        )

    def wait_alive(self, timeout_s: float, why_not: Callable[[], str]) -> None:
        """Wait until the application is there.

        Args:
            timeout_s: how long, in seconds.
            why_not: returns why it will never be; empty while it may.

        Raises:
            DeploymentError: it is not.
        """

        def look() -> str | None:
            return "" if self.is_alive else why_not() or None

        problem = self._waiting.wait_for(look, timeout_s)
        if problem is None:
            problem = "did not start"
        if problem:
            raise DeploymentError(f"{self.described} {problem}")

    def wait_gone(self, timeout_s: float) -> None:
        """Wait until the application has ended.

        Raises:
            DeploymentError: it has not.
        """
        if self._waiting.wait_for(lambda: None if self._may_run else True, timeout_s) is None:
            raise DeploymentError(f"{self.described} has not ended within {timeout_s:.0f} s")

    @property
    def _may_run(self) -> bool:
        return self.is_alive or self.is_starting

    @property
    def described(self) -> str:
        """Its name in messages."""
        kind, _, name = self.host.partition("-")
        return f"{kind} {name!r}"

    def why_gone(self, status: HostStatus | None) -> str:
        """Return a sentence about an application that is not alive, with its last status."""
        if status is None:
            return f"{self.described} has never run with store {self._store.url}"
        return (
            f"{self.described} is not running: {status.application_id} on {status.master}, "
            f"started {moment(status.started_ms)} UTC, sends no more signs of life"
        )

    def _demand_alive(self) -> None:
        if not self.is_alive:
            raise DeploymentError(
                f"{self.why_gone(self._status())}; nothing is lost: the order and the state are kept"
            )


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """An application as it was at one moment.

    Attributes:
        orders: its orders, by the query's name.
        is_alive: whether it had recently given a sign of life.
        status: its last status; None if it had never written one.
        ended: whether it is gone because somebody asked it to end.
        is_starting: whether it is not alive yet, but is being started.
        silent_ms: for how long it has given no sign of life, if that is suspicious, in ms; else 0.
    """

    link: HostLink
    orders: Mapping[str, Order]
    is_alive: bool
    status: HostStatus | None
    ended: bool = False
    is_starting: bool = False
    silent_ms: int = 0

    def status_of(self, name: str) -> QueryStatus | None:
        """Return the status of its order for a query; None if it has no order, or has not seen it yet."""
        order = self.orders.get(name)
        return status_of(self.status, name, order) if order is not None else None

    def is_running(self, name: str) -> bool:
        """Return whether it runs a query, or is about to."""
        order = self.orders.get(name)
        if order is None or order.action != RUN:
            return False
        if not self.is_alive:
            return self.is_starting
        status = self.status_of(name)
        return status is None or not status.is_over

    def why_gone(self) -> str:
        """Return a sentence on an application that is not alive, or silent."""
        if self.silent_ms:
            return (
                f"{self.link.described} has given no sign of life for {duration(self.silent_ms)}: it may "
                "not reach the store, and what is shown may be out of date"
            )
        if self.is_starting:
            return f"{self.link.described} is starting"
        if self.ended:
            return f"{self.link.described} has ended; its queries start again when it does"
        return self.link.why_gone(self.status)


def status_of(status: HostStatus | None, name: str, order: Order) -> QueryStatus | None:
    """Return the status of an order; None if the application has not seen it yet."""
    query = status.queries.get(name) if status else None
    return query if query is not None and query.order == order.id else None

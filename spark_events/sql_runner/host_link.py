"""A deployer's side of an application that hosts queries: gives orders, and waits for what comes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from spark_events.api import SparkEventsError
from spark_events.sql_runner import layout
from spark_events.sql_runner.documents import (
    HostStatus,
    Order,
    QueryStatus,
    read_status,
    read_wanted,
    write_wanted,
)
from spark_events.sql_runner.lease import Lease
from spark_events.sql_runner.store import Store
from spark_events.texts import moment

SESSION, APPLICATION = "session-", "application-"
_LOOK_EVERY_S = 0.3


class DeploymentError(SparkEventsError):
    """What was to be done with one query could not be done."""


@dataclass(frozen=True, slots=True)
class Started:
    """How an order to run went.

    Attributes:
        error: why the query failed; empty where it did not.
        slow: whether its first micro-batch still runs.
    """

    error: str = ""
    slow: bool = False


class HostLink:
    """One application, by its name in the store.

    Args:
        store: where orders and statuses are.
        host: its name.
        guard: called before each order; raises where this deployer may give none any more.
    """

    def __init__(self, store: Store, host: str, guard: Callable[[], None] = lambda: None) -> None:
        self.host = host
        self._store = store
        self._guard = guard
        self._lease = Lease(store, layout.host_lease(host), f"application {host}", 0)

    @property
    def is_single(self) -> bool:
        """Whether it is the application of one query."""
        return self.host.startswith(APPLICATION)

    @property
    def is_alive(self) -> bool:
        """Whether it has been heard of lately."""
        return self._lease.holder() is not None

    def status(self) -> HostStatus | None:
        """Return what it has last said."""
        return read_status(self._store, self.host)

    def status_of(self, name: str, order: Order) -> QueryStatus | None:
        """Return what has become of an order; None where it has not been seen yet."""
        found = self.status()
        query = found.queries.get(name) if found else None
        return query if query is not None and query.order == order.id else None

    def is_running(self, name: str, order: Order | None) -> bool:
        """Tell whether it runs a query, or is about to."""
        if order is None or order.action != "run" or not self.is_alive:
            return False
        found = self.status_of(name, order)
        return found is None or not found.is_over

    def give(self, name: str, order: Order | None) -> None:
        """Give an order for a query; None takes the one away that it has."""
        self._guard()
        wanted = read_wanted(self._store, self.host)
        if order is not None or name in wanted.orders:
            write_wanted(self._store, self.host, wanted.with_order(name, order))

    def wait_started(self, name: str, order: Order, timeout_s: float) -> Started:
        """Wait until a query has passed its first micro-batch, or has nothing to read.

        Raises:
            DeploymentError: the application is gone, or has not begun in time.
        """
        until = time.monotonic() + timeout_s
        while True:
            found = self.status_of(name, order)
            if found is not None and found.error and not found.started:
                return Started(found.error)
            if found is not None and (found.started or found.is_over):
                return Started()
            if time.monotonic() > until:
                if found is not None and found.run_id:
                    return Started(slow=True)
                raise DeploymentError(
                    f"{self.described} has not started the query within {timeout_s:.0f} s; its log says why"
                )
            self._be_alive()
            time.sleep(_LOOK_EVERY_S)

    def wait_stopped(self, name: str, order: Order, timeout_s: float) -> QueryStatus:
        """Wait until an order to stop is carried out.

        Raises:
            DeploymentError: the application is gone, or it takes too long.
        """
        until = time.monotonic() + timeout_s
        while True:
            found = self.status_of(name, order)
            if found is not None and found.is_over:
                return found
            if time.monotonic() > until:
                raise DeploymentError(
                    f"the query has not stopped within {timeout_s:.0f} s: its micro-batch still runs. It "
                    "will stop with its savepoint; deploy again then, or give more --timeout"
                )
            self._be_alive()
            time.sleep(_LOOK_EVERY_S)

    def wait_gone(self, timeout_s: float) -> None:
        """Wait until the application has ended.

        Raises:
            DeploymentError: it has not.
        """
        until = time.monotonic() + timeout_s
        while self.is_alive:
            if time.monotonic() > until:
                raise DeploymentError(f"{self.described} has not ended within {timeout_s:.0f} s")
            time.sleep(_LOOK_EVERY_S)

    @property
    def described(self) -> str:
        """What a person calls it."""
        kind, _, name = self.host.partition("-")
        return f"{kind} {name!r}"

    def why_gone(self) -> str:
        """Return a sentence on an application that is not alive."""
        found = self.status()
        if found is None:
            return f"{self.described} has never run with store {self._store.url}"
        return (
            f"{self.described} does not run: {found.application_id} on {found.master}, "
            f"started {moment(found.started_ms)} UTC, is no longer heard of"
        )

    def _be_alive(self) -> None:
        if not self.is_alive:
            raise DeploymentError(
                f"{self.why_gone()}; nothing is lost: the order stands, and the state is kept"
            )

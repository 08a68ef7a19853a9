"""Hosts queries: keeps the running ones in line with the application's orders."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

from spark_events.api import ConfigError, JobStatus
from spark_events.runtime.log_once import logger
from spark_events.sql_runner.analysis.definitions import TableDefinitions
from spark_events.sql_runner.host.driver import DriverGone, demand_driver
from spark_events.sql_runner.host.hosted_query import HostedQuery
from spark_events.sql_runner.host.next_step import HeldOrder, Step, next_step
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.clock import Elapsed
from spark_events.sql_runner.store.host_files import (
    HostStatus,
    Order,
    QueryStatus,
    read_orders,
    read_status,
    write_status,
)
from spark_events.sql_runner.store.lease import Lease, LeaseLost
from spark_events.sql_runner.store.starting import clear_starting
from spark_events.sql_runner.store.store import Store, StoreError

_END_WAIT_S = 600
_NOTHING_TO_DO_MS = 60_000


class QueryHost:
    """Reads its orders, carries them out, and writes the outcome into its status.

    Args:
        spark: the application's session.
        store: holds orders and status.
        name: the application's name for deployers.
        single: whether to end with the one query.
        poll_s: how often it checks for orders, in seconds.
        lease_ms: how long it may be silent before it counts as gone, in ms.
    """

    def __init__(
        self, spark: Any, store: Store, name: str, *, single: bool, poll_s: float, lease_ms: int
    ) -> None:
        self._spark = spark
        self._store = store
        self._name = name
        self._single = single
        self._poll_s = poll_s
        self._lease_ms = lease_ms
        self._lease = Lease(store, layout.host_lease(name), f"application {name}", lease_ms)
        self._definitions = TableDefinitions()
        self._queries: dict[str, HostedQuery] = {}
        # The statuses of orders that it could not understand.
        self._refused: dict[str, QueryStatus] = {}
        context = spark.sparkContext
        self._status = HostStatus(context.applicationId, context.master, store.clock.now_ms(), spark.version)
        self._written_status: HostStatus | None = None
        # The statuses that the application left when it last ended, or when it could not reach the store.
        self._before: dict[str, QueryStatus] = {}
        self._store_error = ""
        self._begun, self._renewed = Elapsed(store.clock.own), Elapsed(store.clock.own)
        self._ending = threading.Event()

    def run(self) -> bool:
        """Host queries until it is asked to end; returns whether none of them failed for good.

        Raises:
            ConfigError: another application hosts the same queries.
            LeaseLost: another one has taken over, because this one was silent too long.
            DriverGone: Spark has ended.
            StoreError: the store cannot be reached at the start.
        """
        self._lease.take()
        self._status = replace(self._status, started_ms=self._store.clock.now_ms())
        self._store.delete(layout.ended(self._name))
        clear_starting(self._store, self._name)
        for folder in (layout.host(self._name), layout.host_lease(self._name)):
            self._store.sweep(folder)
        self._read_status_before()
        logger.info("application %s hosts queries of %s", self._name, self._store.url)
        try:
            self._take_turns()
            self._stop_all(at_once=False)
            self._write_status(always=False)
            if self._end_is_requested():
                self._store.write(layout.ended(self._name), b"{}")
            self._store.delete(layout.end_request(self._name))
        except LeaseLost:
            # The new lease holder runs the queries now: they must not run twice.
            self._stop_all(at_once=True)
            raise
        except DriverGone:
            self._lease.release()
            raise
        self._lease.release()
        return all(query.status.state != "FAILED" for query in self._queries.values())

    def _read_status_before(self) -> None:
        try:
            status = read_status(self._store, self._name)
        except StoreError as error:  # of another version, say
            logger.warning("%s", error)
            return
        if status is not None:
            # The errors of an application that has ended say nothing of how this one starts.
            self._before = {
                name: query if query.is_over else replace(query, started=False, error="", error_ms=None)
                for name, query in status.queries.items()
            }

    def end(self) -> None:
        """Ask it to stop all queries and end; returns at once."""
        self._ending.set()

    def _take_turns(self) -> None:
        while not self._ending.is_set():
            # Nothing can run any more, but the queries themselves have not failed.
            demand_driver(self._spark, self._name)
            try:
                self._take_turn()
                self._store_error = ""
            except StoreError as error:
                self._live_without_store(error)
            if self._is_done():
                return
            self._ending.wait(self._poll_s)

    def _take_turn(self) -> None:
        renew = self._renewed.ms > self._lease_ms / 3
        if renew:
            self._renew()
        if self._end_is_requested():
            self._ending.set()
            return
        orders = read_orders(self._store, self._name)
        for name in dict.fromkeys([*orders, *self._queries, *self._refused]):
            self._carry_out(name, orders.get(name))
        self._write_status(always=renew)

    def _live_without_store(self, error: StoreError) -> None:
        """Let the queries run on until others may consider the application gone."""
        if str(error) != self._store_error:
            logger.error("%s", error)
        self._store_error = str(error)
        if self._renewed.ms > self._lease_ms and self._queries:
            logger.error("the lease has expired, so others may run the queries now: stopping all of them")
            self._before |= {name: query.status for name, query in self._queries.items() if not query.is_over}
            self._stop_all(at_once=True)
            self._queries = {name: self._queries[name] for name in self._queries.keys() - self._before.keys()}

    def _end_is_requested(self) -> bool:
        return self._store.read(layout.end_request(self._name)) is not None

    def _renew(self) -> None:
        self._lease.renew()
        self._renewed.begin()

    def _carry_out(self, name: str, order: Order | None) -> None:
        step = next_step(order, self._held_order(name))
        if step is Step.BEGIN and order is not None:
            self._begin(name, order)
        elif step is Step.STOP:
            self._queries[name].stop(order)
        elif step is Step.MAKE_WAY:
            self._queries[name].stop()
        elif step is Step.FORGET:
            self._queries.pop(name, None)
            self._refused.pop(name, None)

    def _held_order(self, name: str) -> HeldOrder | None:
        if refused := self._refused.get(name):
            return HeldOrder(refused.order, is_over=True, is_refused=True)
        query = self._queries.get(name)
        return HeldOrder(query.order_id, query.is_over) if query else None

    def _begin(self, name: str, order: Order) -> None:
        logger.info("query %s: %s, order %s", name, order.action, order.id)
        try:
            before = self._before.pop(name, None)
            if before is not None and before.order != order.id:
                before = None
            self._queries[name] = HostedQuery(self._spark, self._store, self._definitions, order, before)
            self._refused.pop(name, None)
        except ConfigError as error:
            # An order that cannot be understood, say from another version, must not stop other queries.
            logger.error("query %s: %s", name, error)
            state = JobStatus.FAILED.value
            self._refused[name] = QueryStatus(order.id, state, self._store.clock.now_ms(), error=str(error))

    def _write_status(self, always: bool) -> None:
        """Write the status if it has changed, or, with ``always``, to show that the application is alive."""
        queries = {name: query.status for name, query in self._queries.items()}
        status = replace(self._status, queries={**queries, **self._refused})
        if always or status != self._written_status:
            write_status(self._store, self._name, status)
            self._written_status = status

    def _is_done(self) -> bool:
        if not self._single:
            return False
        if not self._queries:
            # The deployment that submitted it gave up, or was killed.
            return self._begun.ms > max(self._lease_ms, _NOTHING_TO_DO_MS)
        return all(query.is_over for query in self._queries.values())

    def _stop_all(self, at_once: bool) -> None:
        for query in self._queries.values():
            query.stop(at_once=at_once)
        until = time.monotonic() + _END_WAIT_S
        for query in self._queries.values():
            while not query.is_over and time.monotonic() < until:
                query.join(self._poll_s)
                try:
                    if not at_once:
                        self._renew()
                except StoreError as error:
                    logger.error("%s", error)

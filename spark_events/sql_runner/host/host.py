"""The application that hosts queries: keeps those that run equal to those that are wanted."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

from spark_events.api import ConfigError, JobStatus, SparkEventsError
from spark_events.api.event import now_ms
from spark_events.runtime.log_once import logger
from spark_events.sql_runner.analysis.definitions import Definitions
from spark_events.sql_runner.host.hosted_query import HostedQuery
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.documents import (
    RUN,
    STOP,
    HostStatus,
    Order,
    QueryStatus,
    read_wanted,
    write_status,
)
from spark_events.sql_runner.store.lease import Lease, LeaseLost
from spark_events.sql_runner.store.store import Store, StoreError

_END_WAIT_S = 600
_NOTHING_TO_DO_MS = 60_000


class DriverGone(SparkEventsError):  # noqa: N818 - says what happened, and no fault of the caller's
    """Spark has ended, and this process is left."""


class QueryHost:
    """Reads what is wanted, does it, and says what has become of it.

    Args:
        spark: the application's session.
        store: where both are written down.
        name: the application's, as deployers know it.
        single: end when the one query is over.
        poll_s: how often it looks, in seconds.
        lease_ms: how long it may be silent until it is taken as gone, in ms.
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
        self._definitions = Definitions()
        self._queries: dict[str, HostedQuery] = {}
        context = spark.sparkContext
        self._about = HostStatus(context.applicationId, context.master, now_ms(), spark.version)
        self._said: HostStatus | None = None
        self._refused: dict[str, QueryStatus] = {}
        self._trouble = ""
        self._renewed_ms = now_ms()
        self._ending = threading.Event()

    def run(self) -> bool:
        """Host queries until it is asked to end; returns whether none of them failed for good.

        Raises:
            ConfigError: another application hosts the same queries.
            LeaseLost: another one has begun to, for this one was silent too long.
            DriverGone: Spark has ended.
            StoreError: the store cannot be reached at the start.
        """
        self._lease.take()
        self._store.delete(layout.ended(self._name))
        logger.info("application %s hosts queries of %s", self._name, self._store.url)
        try:
            while not self._ending.is_set():
                self._turn()
                if self._is_done():
                    break
                self._ending.wait(self._poll_s)
            self._stop_all(at_once=False)
            self._say(renew=False)
            if self._store.read(layout.end_request(self._name)) is not None:
                self._store.write(layout.ended(self._name), b"{}")
            self._store.delete(layout.end_request(self._name))
        except LeaseLost:
            # Whoever has the lease now runs the queries: a second run of one must not go on.
            self._stop_all(at_once=True)
            raise
        except DriverGone:
            self._lease.release()
            raise
        self._lease.release()
        return all(query.status.state != "FAILED" for query in self._queries.values())

    def end(self) -> None:
        """Ask it to stop all queries and end; returns at once."""
        self._ending.set()

    def _turn(self) -> None:
        self._check_driver()
        try:
            renew = now_ms() - self._renewed_ms > self._lease_ms / 3
            if renew:
                self._renew()
            if self._store.read(layout.end_request(self._name)) is not None:
                self._ending.set()
                return
            self._follow(read_wanted(self._store, self._name).orders)
            self._say(renew)
            self._trouble = ""
        except StoreError as error:
            if str(error) != self._trouble:
                logger.error("%s", error)
            self._trouble = str(error)
            if now_ms() - self._renewed_ms > self._lease_ms and self._queries:
                logger.error("the lease is over, so others may run the queries now: all are stopped")
                self._stop_all(at_once=True)
                self._queries.clear()

    def _check_driver(self) -> None:
        """Raise where Spark has ended under us: nothing can run any more, and nobody has failed but it."""
        try:
            stopped = self._spark.sparkContext._jsc.sc().isStopped()
        except Exception as error:  # the JVM is gone, or the context has let go of it
            raise DriverGone(f"application {self._name}: Spark's driver is gone: {error}") from error
        if stopped:
            raise DriverGone(f"application {self._name}: Spark's context was stopped")

    def _renew(self) -> None:
        self._lease.renew()
        self._renewed_ms = now_ms()

    def _follow(self, orders: dict[str, Order]) -> None:
        for name, order in orders.items():
            running = self._queries.get(name)
            if running is None or (running.is_over and running.order_id != order.id):
                if running is None or order.action == RUN or order.savepoint:
                    self._begin(name, order)
                else:
                    running.stop(order)
            elif running.order_id != order.id:
                # Where it is to run anew, it stops first; a later turn starts it.
                running.stop(order if order.action == STOP else None)
        self._refused = {name: found for name, found in self._refused.items() if name in orders}
        for name in [name for name in self._queries if name not in orders]:
            self._queries[name].stop()
            if self._queries[name].is_over:
                del self._queries[name]

    def _begin(self, name: str, order: Order) -> None:
        if name in self._refused and self._refused[name].order == order.id:
            return
        logger.info("query %s: %s, order %s", name, order.action, order.id)
        try:
            self._queries[name] = HostedQuery(self._spark, self._store, self._definitions, order)
            self._refused.pop(name, None)
        except ConfigError as error:
            # One order that is not understood, say of another version of spark-events, stops no other query.
            logger.error("query %s: %s", name, error)
            state = JobStatus.FAILED.value
            self._refused[name] = QueryStatus(order.id, state, now_ms(), error=str(error))

    def _say(self, renew: bool) -> None:
        queries = {name: query.status for name, query in self._queries.items()}
        now = replace(self._about, queries={**queries, **self._refused})
        if renew or now != self._said:
            write_status(self._store, self._name, now)
            self._said = now

    def _is_done(self) -> bool:
        if not self._single:
            return False
        if not self._queries:
            # The deployment that has submitted it has given up, or was killed.
            return now_ms() - self._about.started_ms > max(self._lease_ms, _NOTHING_TO_DO_MS)
        return all(each.is_over for each in self._queries.values())

    def _stop_all(self, at_once: bool) -> None:
        for query in self._queries.values():
            query.stop(at_once=at_once)
        until = time.monotonic() + _END_WAIT_S
        for query in self._queries.values():
            while not query.is_over and time.monotonic() < until:
                query.join(self._poll_s)
                if not at_once:
                    self._renew_quietly()

    def _renew_quietly(self) -> None:
        try:
            self._renew()
        except StoreError as error:
            logger.error("%s", error)

"""One hosted query, which is started, watched, restarted and stopped in its own thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from spark_events.api import JobStatus, SparkEventsError
from spark_events.runtime.log_once import logger
from spark_events.spark.sql_errors import error_summary
from spark_events.sql_runner.analysis.definitions import TableDefinitions
from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.prepared import open_session
from spark_events.sql_runner.host.driver import DriverGone, demand_driver
from spark_events.sql_runner.host.next_step import state_after_failure
from spark_events.sql_runner.host.progress import SeenProgress
from spark_events.sql_runner.host.resuming import StateLost, demand_state
from spark_events.sql_runner.host.start import start_query
from spark_events.sql_runner.store.checkpoints import COMMITS, progress
from spark_events.sql_runner.store.deployed import DeployedQuery
from spark_events.sql_runner.store.host_files import STOP, Order, QueryStatus
from spark_events.sql_runner.store.savepoints import make_savepoint
from spark_events.sql_runner.store.store import Store

_LOOK_EVERY_S = 0.2
_STOP_LOOK_EVERY_S = 0.03
_IDLE_LOOKS = 2
_KEPT_RESTARTS = 10
_STOPPED_BY_OTHERS = (
    "the query ended although nobody has asked for it: code of the application has called its stop(), or "
    "another query with the same checkpoint has started"
)


class HostedQuery:
    """Carries out the orders for one query, one after the other.

    Errors of its code or its Spark query end here: they change its status, never the application's.

    Args:
        spark: any session of the application.
        store: has its checkpoint.
        definitions: the table definitions that the application has run.
        order: the first order.
        before: the last status of the same order, in an application that has ended, or before this one lost
            its store; None for another order.
    """

    def __init__(
        self,
        spark: Any,
        store: Store,
        definitions: TableDefinitions,
        order: Order,
        before: QueryStatus | None = None,
    ) -> None:
        self._spark = spark
        self._store = store
        self._definitions = definitions
        self._order = order
        self._deployed = DeployedQuery.parse(order.deployed, f"order {order.id}")
        self._session: Any = None
        self._seen = SeenProgress(store.clock)
        self._stopping = threading.Event()
        self._at_once = False
        self._lock = threading.Lock()
        self._status = QueryStatus(order.id, JobStatus.CREATED.value, self._store.clock.now_ms())
        if before is not None and before.is_over and order.action == STOP:
            self._status = before
        elif before is not None:
            kept = ["restarts", "restarted_ms"]
            if not before.is_over:
                kept += ["started", "error", "error_ms", "recovered"]
            self._status = replace(self._status, **{name: getattr(before, name) for name in kept})
        # Those before do not count as attempts.
        self._restarts_before = self._status.restarts
        if order.action == STOP:
            self._stopping.set()
        name = self._deployed.manifest.name
        # A query that will not stop must not keep the driver's process from ending.
        self._thread = threading.Thread(target=self._run, name=f"query {name}", daemon=True)
        self._thread.start()

    @property
    def order_id(self) -> str:
        """The id of the order that it carries out."""
        with self._lock:
            return self._order.id

    @property
    def status(self) -> QueryStatus:
        """The status of its order."""
        with self._lock:
            return self._status

    @property
    def is_over(self) -> bool:
        """Whether it has completely ended."""
        return not self._thread.is_alive()

    def stop(self, order: Order | None = None, at_once: bool = False) -> None:
        """Ask it to stop, and return at once.

        Args:
            order: the order to stop, which may ask for a savepoint; None if the application ends.
            at_once: interrupt the micro-batch.
        """
        with self._lock:
            if order is not None:
                self._order = order
                self._status = replace(self._status, order=order.id, started=False)
            self._at_once = self._at_once or at_once
            if not self._status.is_over:
                self._status = self._in_state(JobStatus.CANCELLING)
        self._stopping.set()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, or the time is over."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self._run_and_restart()
            if not self._stopping.is_set():
                # Again: one that has an end has not come to it if Spark has ended.
                demand_driver(self._spark, self._deployed.meta.host)
            self._finish_order()
        except DriverGone:
            return
        except BaseException as error:  # whatever it was, nobody else tells of it
            own = isinstance(error, SparkEventsError)
            logger.error("query %s: %s", self._deployed.manifest.name, error, exc_info=not own)
            self._update_status(JobStatus.FAILED, **self._failed(error_summary(error)))

    def _run_and_restart(self) -> None:
        settings = self._deployed.manifest.settings
        while not self._stopping.is_set():
            failure = self._run_once()
            if failure is None and (self._deployed.manifest.has_end or self._stopping.is_set()):
                return
            if failure is None:
                # When Spark ends, it ends its queries, too.
                demand_driver(self._spark, self._deployed.meta.host)
                failure = _STOPPED_BY_OTHERS
            logger.error("query %s: %s", self._deployed.manifest.name, failure)
            state = state_after_failure(
                stopping=self._stopping.is_set(),
                restarts=self.status.restarts - self._restarts_before,
                attempts=settings.most_restarts,
            )
            self._update_status(state, **self._failed(failure))
            if state is not JobStatus.RESTARTING:
                return
            if not self._stopping.wait(settings.restart_delay_ms / 1000):
                self._note_restart()

    def _note_restart(self) -> None:
        restarted_ms = (self._store.clock.now_ms(), *self.status.restarted_ms)[:_KEPT_RESTARTS]
        self._update_status(None, restarts=self.status.restarts + 1, restarted_ms=restarted_ms)

    def _run_once(self) -> str | None:
        """Run it until it ends; return why it failed, or None if it did not."""
        try:
            demand_state(self._store, self._deployed)  # before the long part
            if self._session is None:
                self._session, _ = open_session(
                    self._spark, self._deployed.manifest, self._definitions, self._order.definitions
                )
            self._know_batch()
            with self._definitions.in_force(self._session, self._order.definitions):
                query = start_query(self._session, self._deployed, self._store)
        except StateLost:  # it would be lost at each restart, too
            raise
        except Exception as error:
            return error_summary(error)
        self._update_status(JobStatus.RUNNING, run_id=str(query.runId))
        try:
            return self._watch(query)
        except Exception as error:  # the JVM may be gone; if not, the query must not run on unobserved
            with suppress(Exception):
                query.stop()
            return error_summary(error)

    def _watch(self, query: Any) -> str | None:
        while query.isActive and not self._stopping.is_set():
            self._update_progress(query)
            self._stopping.wait(_LOOK_EVERY_S)
        if query.isActive:
            self._stop_query(query)
        self._update_progress(query)
        failure = query.exception()
        return error_summary(failure) if failure is not None else None

    def _update_progress(self, query: Any) -> None:
        progress = query.lastProgress
        if progress is not None and (now := self._seen.new(progress)):
            self._update_status(None, **now)
        if progress is not None and "addBatch" in progress["durationMs"]:
            batch = progress["batchId"]
            if batch != self.status.batch:
                self._update_status(None, batch=batch, batch_ms=self._store.clock.now_ms(), **self._well())
        elif not self.status.started or (self.status.error and not self.status.recovered):
            spark_status = query.status
            if not spark_status["isTriggerActive"] and spark_status["message"].startswith("Waiting"):
                self._update_status(None, **self._well())

    def _well(self) -> dict[str, bool]:
        """Return what the status says of a query that has passed a micro-batch, or has nothing to read."""
        return {"started": True, "recovered": bool(self.status.error)}

    def _know_batch(self) -> None:
        """Tell the last micro-batch of the checkpoint until there is a newer one."""
        if self.status.batch is not None:
            return
        checkpoint = self._deployed.meta.checkpoint
        batch = progress(self._store, checkpoint).committed
        if batch >= 0:
            ended_ms = self._store.modified_ms(f"{checkpoint}/{COMMITS}/{batch}")
            self._update_status(None, batch=batch, batch_ms=ended_ms)

    def _stop_query(self, query: Any) -> None:
        """Let the query's current micro-batch end, within the time allowed, and then stop it."""
        trigger = self._deployed.manifest.trigger
        until = time.monotonic() + self._deployed.manifest.settings.stop_timeout_ms / 1000
        graceful = trigger is None or trigger.continuous is None
        # Told to stop, Spark 4.3 interrupts a batch that has begun but does not run a job yet.
        if graceful and self._holds(lambda: _is_idle(query) or _runs_job(query, self._spark), 1, until):
            entry_of(self._spark).stopAfterBatch(query._jsq)
            # Twice, because the first look may miss a trigger that was about to begin.
            self._holds(lambda: _is_idle(query), _IDLE_LOOKS, until)
        query.stop()

    def _holds(self, condition: Callable[[], bool], looks: int, until: float) -> bool:
        """Wait until a condition holds ``looks`` times in a row; return False if the time is over first."""
        held = 0
        while held < looks:
            if self._at_once or time.monotonic() > until:
                return False
            held = held + 1 if condition() else 0
            time.sleep(_STOP_LOOK_EVERY_S)
        return True

    def _finish_order(self) -> None:
        """Make the requested savepoint, and set the status to how the query ended."""
        if not self._stopping.is_set():
            if not self.status.is_over:
                self._update_status(JobStatus.FINISHED, started=True)
            return
        with self._lock:
            order = self._order
        savepoint = self.status.savepoint
        if order.savepoint and not savepoint:
            name, meta = self._deployed.manifest.name, self._deployed.meta
            savepoint = make_savepoint(self._store, name, meta, order.savepoint).path
        self._update_status(JobStatus.CANCELED, savepoint=savepoint)

    def _update_status(self, state: JobStatus | None, **changes: Any) -> None:
        """Change the status; None keeps the state, and so does RUNNING if the query is to stop."""
        with self._lock:
            if state is JobStatus.RUNNING and self._stopping.is_set():
                state = None
            self._status = replace(self._in_state(state) if state else self._status, **changes)

    def _failed(self, why: str) -> dict[str, Any]:
        """Return what a failure changes in a status."""
        return {"error": why, "error_ms": self._store.clock.now_ms(), "recovered": False}

    def _in_state(self, state: JobStatus) -> QueryStatus:
        if state.value == self._status.state:
            return self._status
        return replace(self._status, state=state.value, since_ms=self._store.clock.now_ms())


def _is_idle(query: Any) -> bool:
    return not query.status["isTriggerActive"]


def _runs_job(query: Any, spark: Any) -> bool:
    """Return whether a Spark job of a micro-batch runs; the jobs' group is the query's run id."""
    tracker = spark.sparkContext.statusTracker()
    return not set(tracker.getActiveJobsIds()).isdisjoint(tracker.getJobIdsForGroup(str(query.runId)))

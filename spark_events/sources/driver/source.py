"""The live source: a thread that takes records from the driver bridge to the listeners."""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from itertools import chain
from typing import Any

from spark_events.api.event import now_ms
from spark_events.jobs.plan_records import LINEAGE_ENDED
from spark_events.lineage.plans import PlanReader
from spark_events.listeners.spark_records import (
    APPLICATION_END,
    END_CAUSE,
    EXECUTOR_REMOVED,
    JOB_START,
    QUERY_STARTED,
)
from spark_events.runtime.kinds import JOB_LISTENERS, METRICS
from spark_events.runtime.log_once import logger
from spark_events.sources.assembly import Assembly
from spark_events.sources.driver.application_end import ApplicationEnd
from spark_events.sources.driver.bridge import DriverBridge
from spark_events.sources.driver.bridge_metrics import BridgeMetrics
from spark_events.sources.driver.call_places import with_python_call
from spark_events.sources.driver.executor_sources import ExecutorSources, open_executor_sources
from spark_events.sources.driver.measured_udfs import MeasuredUdfs
from spark_events.sources.driver.process_exit import PROCESS_EXIT, ExitMarks
from spark_events.sources.driver.replaced_method import Method, ReplacedMethod
from spark_events.sources.driver.spark_status import SparkStatus, open_spark_status
from spark_events.sources.driver.state import DriverState, Record, environment_of
from spark_events.sources.driver.task_reports import TaskReports
from spark_events.sources.driver.testament import Testament
from spark_events.sources.driver.witness import open_witness
from spark_events.sources.ending import ExitMark
from spark_events.sources.failed_starts import FailedStarts
from spark_events.sources.heartbeats import Heartbeats

_BATCH = 1_000
_WAIT_MS = 500
_BUS_WAIT_MS = 2_000
_LINEAGE_WAIT_S = 2.0
_JOURNAL_WAIT_MS = 1_000
"""How long attaching may take for a journal to be ready, and to have the first events, in ms each."""
_MOST_FAILED_STARTS = 1_000


class DriverSource:
    """Feeds the listeners from a live driver until its application or its process ends.

    Args:
        spark_context: PySpark's SparkContext.
        assembly: takes the records; its reporters are closed at the end.
    """

    def __init__(self, spark_context: Any, assembly: Assembly) -> None:
        self._context = spark_context
        self._registry = registry = assembly.registry
        self._listeners = assembly.listeners
        self._settings = settings = assembly.settings
        self._conf = assembly.conf
        self._driver = DriverState(spark_context)
        self._bridge = DriverBridge(
            spark_context,
            settings.bridge_queue_bytes,
            settings.bridge_drop_oldest,
            settings.close_timeout_ms,
            (settings.thresholds.running_ratio, settings.thresholds.min_time_ms),
        )
        self._lineage: PlanReader | None = None
        if registry.has_reporters(JOB_LISTENERS):
            self._lineage = PlanReader(spark_context, self._bridge.java, settings.lineage_budget_ms)
        self._sources: ExecutorSources | None = None
        if settings.sink_ports is not None:
            self._sources = open_executor_sources(
                assembly.conf,
                str(spark_context.applicationId),
                str(spark_context.appName),
                registry,
            )
        self._status: SparkStatus | None = None
        if settings.receiver_names and registry.has_reporters(METRICS):
            self._status = open_spark_status(spark_context, registry.log)
        self._tasks: TaskReports | None = None
        if settings.task_reports:
            link = self._listeners.task_link(self._driver.application_start())
            self._tasks = TaskReports(spark_context, registry, settings, link, assembly.conf)
        self._udfs = MeasuredUdfs()
        if settings.udf_metrics:
            self._udfs.begin()
        self._failed: deque[Record] = deque(maxlen=_MOST_FAILED_STARTS)
        self._failed_starts = FailedStarts(self._failed.append)
        self._failed_starts.begin_classic()
        # An ApplicationEnd that waits, for a limited time, for the plans of the last statements.
        self._held_end: Record | None = None
        self._release_at_s = 0.0
        self._metrics = BridgeMetrics(self._bridge, registry, str(spark_context.appName))
        self._stopping = threading.Event()
        self._marks = ExitMarks(spark_context)
        self._exit_mark = ExitMark()
        self._heartbeats = Heartbeats(settings.heartbeat_interval_ms)
        witness = open_witness(spark_context, self._bridge)
        self._end = ApplicationEnd(self._driver, self._bridge, witness, self._stopping)
        self._witness, self._testament = witness, None
        if witness is not None:
            self._testament = Testament(witness, assembly.conf, settings.close_timeout_ms)
        self._thread = threading.Thread(target=self._run, name="spark-events-driver", daemon=True)

    def start(self) -> None:
        """Subscribe, pick up what already runs, and continue in a thread of its own."""
        self._bridge.subscribe()
        if self._lineage is not None:
            self._lineage.subscribe()
        now = now_ms()
        self._registry.await_journals(_JOURNAL_WAIT_MS)
        driver = self._driver
        for record in chain(
            (driver.application_start(), environment_of(self._conf)),
            driver.resource_profiles(),
            driver.executors(),
            driver.running_queries(now),
            driver.running_jobs(),
        ):
            self._take(record, now)
        self._beat(now)
        if self._testament is not None:
            self._testament.tell()
        _STOP.begin(type(self._context), self)
        self._registry.await_journaled(_JOURNAL_WAIT_MS)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the application is still being followed."""
        return self._thread.is_alive()

    def about_to_stop(self, context: Any) -> None:
        """Called when the program stops a SparkContext: whether it raises just then is not seen later."""
        if context is self._context and context._jsc is not None:
            PROCESS_EXIT.raising_at_stop = self._marks.leave_at_stop()

    def stop(self, *, at_exit: bool = False) -> None:
        """End for good; return when everything is delivered or the time is over.

        Args:
            at_exit: whether that is because the process ends.
        """
        if self._thread.is_alive():
            if at_exit:
                self._marks.leave(PROCESS_EXIT.ending)
            self._stopping.set()
            try:
                self._bridge.wake()
            except Exception as error:  # the JVM may be gone already
                logger.debug("could not wake the bridge: %r", error)
        self.join()

    def join(self) -> None:
        """Wait until everything is delivered or the time is over."""
        limit_ms = self._settings.close_timeout_ms + _BUS_WAIT_MS + _WAIT_MS
        self._thread.join(limit_ms / 1000 + 1)

    # -- in the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        from py4j.protocol import Py4JError  # comes with PySpark, which a machine that only checks may lack

        try:
            self._follow()
        except (Py4JError, OSError) as error:  # what py4j raises when the JVM disappears
            if self._listeners.ended or self._stopping.is_set():
                logger.debug("the driver's JVM is gone: %r", error)
            else:
                logger.error("the driver's JVM is gone, so the application counts as failed: %r", error)
            self._end_without_jvm()
        except Exception:
            logger.exception("spark-events can no longer follow the application, which continues without it")
        finally:
            if self._sources is not None:
                self._sources.close()
            self._udfs.end()
            self._failed_starts.end()
            if self._tasks is not None:
                self._tasks.close()
            _STOP.end(self)
            self._registry.close(self._settings.close_timeout_ms)
            self._listeners.close()
            if self._witness is not None and self._listeners.ended:
                self._witness.ended()
            self._tell_jvm_of_end()

    def _follow(self) -> None:
        while not self._listeners.ended:
            last = self._stopping.is_set()
            if last:
                self._await_bus()
            records = self._bridge.drain(_BATCH, 0 if last else _WAIT_MS)
            # What a task reports comes before its end, and so before the end of its stage.
            for report in self._tasks.records() if self._tasks else ():
                self._listeners.on_record(report, now_ms())
            while self._failed:
                self._listeners.on_record(self._failed.popleft())
            self._hand_over(records)
            if self._held_end is not None and time.monotonic() > self._release_at_s:
                logger.warning(
                    "the plans of the last statements were not read in time; their lineage is missing"
                )
                self._release_end()
            if self._sources is not None and (received := self._sources.record()) is not None:
                self._listeners.on_record(received, now_ms())
            if self._status is not None and (status := self._status.record()) is not None:
                self._listeners.on_record(status, now_ms())
            self._beat(now_ms())
            self._listeners.tick(now_ms())
            if self._testament is not None:
                self._testament.tell()
            self._metrics.count()
            self._registry.tick()
            if last and not self._listeners.ended:
                while records := self._bridge.drain(_BATCH, 0):
                    self._hand_over(records)
                self._listeners.on_record(self._end.of_process(now_ms()))
        self._metrics.count(at_the_end=True)

    def _beat(self, time_ms: int) -> None:
        if (heartbeat := self._heartbeats.record(time_ms)) is not None:
            self._listeners.on_record(heartbeat)

    def _hand_over(self, records: list[tuple[int, Record]]) -> None:
        for received_ms, record in records:
            name = record.get("Event")
            if self._exit_mark.withholds(record):
                continue
            if name == QUERY_STARTED:
                record = self._driver.complete_query(record)
            elif name == JOB_START:
                record = with_python_call(record)
            elif name == APPLICATION_END:
                record = self._end.complete(record)
                if self._lineage is not None and not record.get(END_CAUSE, {}).get("signal"):
                    self._held_end, self._release_at_s = record, time.monotonic() + _LINEAGE_WAIT_S
                    continue
            elif name == LINEAGE_ENDED:
                self._release_end()
            elif name == EXECUTOR_REMOVED and self._sources is not None:
                self._sources.forget(str(record.get("Executor ID")))
            self._take(record, received_ms)
        self._metrics.update_lag(records[-1][0] if records else None)

    def _take(self, record: Record, received_ms: int) -> None:
        self._listeners.on_record(record, received_ms)
        self._end.take(record)
        if self._testament is not None:
            self._testament.take(record)

    def _release_end(self) -> None:
        if self._held_end is not None:
            held, self._held_end = self._held_end, None
            self._listeners.on_record(held)

    def _end_without_jvm(self) -> None:
        self._release_end()
        if not self._listeners.ended:
            self._listeners.on_record(self._end.of_lost_jvm(now_ms()))

    def _await_bus(self) -> None:
        try:
            self._bridge.await_bus(_BUS_WAIT_MS)
            if self._lineage is not None:
                self._lineage.await_read(_BUS_WAIT_MS)
        except Exception as error:  # java.util.concurrent.TimeoutException, by way of py4j
            logger.warning(
                "Spark's listener bus did not drain in time; the last events may be missing: %r", error
            )

    def _tell_jvm_of_end(self) -> None:
        try:
            self._bridge.finish()
        except Exception as error:  # the JVM may be gone already
            logger.debug("could not tell the bridge about the end: %r", error)


def _telling_stop(original: Method) -> Method:
    """Return ``SparkContext.stop`` that first tells the source that follows the context."""

    @functools.wraps(original)
    def stop(context: Any, *arguments: Any, **named: Any) -> Any:
        source = _STOP.last_owner
        if source is not None:
            source.about_to_stop(context)
        return original(context, *arguments, **named)

    return stop


_STOP: ReplacedMethod[DriverSource] = ReplacedMethod("stop", _telling_stop)

"""The live source: a thread that takes records from the driver bridge to the listeners."""

from __future__ import annotations

import errno
import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import chain
from typing import Any

from spark_events.api.event import now_ms
from spark_events.jobs.plan_records import LINEAGE_ENDED
from spark_events.lineage.plans import PlanReader
from spark_events.listeners.spark_records import (
    APPLICATION_END,
    END_CAUSE,
    JOB_START,
    QUERY_PROGRESS,
    QUERY_STARTED,
    QUERY_TERMINATED,
)
from spark_events.runtime.log_once import logger
from spark_events.runtime.plugins import JOB_LISTENERS
from spark_events.sources.assembly import Assembly
from spark_events.sources.driver.bridge import BridgeMetrics, DriverBridge
from spark_events.sources.driver.call_places import with_python_call
from spark_events.sources.driver.ending.application_end import ApplicationEnd
from spark_events.sources.driver.ending.container_kill import outliving_sigterm
from spark_events.sources.driver.ending.end_inquiry import EndInquiry
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT, ExitMarks
from spark_events.sources.driver.ending.testament import Testament
from spark_events.sources.driver.ending.witness import open_witness
from spark_events.sources.driver.parts import Parts, Poll
from spark_events.sources.driver.replaced_method import Method, ReplacedMethod
from spark_events.sources.driver.state import DriverState, Record, environment_of
from spark_events.sources.driver.stopped_queries import StoppedQueries
from spark_events.sources.ending import ExitMark

_BATCH = 1_000
_WAIT_MS = 500
_BUS_WAIT_MS = 2_000
_LINEAGE_WAIT_S = 2.0
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SHORTAGE_S = 1.0
_JOURNAL_WAIT_MS = 1_000
"""How long attaching may take for a journal to be ready, and to have the first events, in ms each."""


class DriverSource:
    """Feeds the listeners from a live driver until its application or its process ends.

    Args:
        spark_context: PySpark's SparkContext.
        assembly: takes the records; its reporters are closed at the end.
        attachment: 2 for the second attachment to its application, and so on.
    """

    def __init__(self, spark_context: Any, assembly: Assembly, attachment: int = 1) -> None:
        self._context = spark_context
        self._registry = assembly.registry
        self._listeners = assembly.listeners
        self._settings = assembly.settings
        self._conf = assembly.conf
        self._lineage: PlanReader | None = None
        self._stopping = threading.Event()
        self._has_begun = threading.Event()
        self._follows = False
        self._at_exit = False
        self._raised: BaseException | None = None
        self._was_short = False
        self._driver = DriverState(spark_context, attachment)
        self._end = ApplicationEnd(_LINEAGE_WAIT_S if self._wants_plans else None)
        self._exit_mark = ExitMark()
        self._thread = threading.Thread(target=self._run, name="spark-events-driver", daemon=True)
        with ExitStack() as opened:
            self._open(assembly, opened)
            self._opened = opened.pop_all()

    def _open(self, assembly: Assembly, opened: ExitStack) -> None:
        """Open all that has to be closed again, also if the rest cannot be opened."""
        context, settings = self._context, self._settings
        self._bridge = DriverBridge(
            context,
            settings.bridge_queue_bytes,
            settings.close_timeout_ms,
            (settings.thresholds.running_factor, settings.thresholds.min_time_ms),
        )
        opened.callback(self._tell_jvm_of_end)
        if self._wants_plans:
            java, budget_ms = self._bridge.java, settings.lineage_timeout_ms
            self._lineage = PlanReader(context, java, budget_ms, settings.lineage_interval_ms)
        self._parts = Parts(context, assembly, self._driver.application_start)
        opened.callback(self._parts.close)
        self._metrics = BridgeMetrics(self._bridge, self._registry, str(context.appName))
        self._marks = ExitMarks(context)
        self._witness = open_witness(context, self._bridge)
        if self._witness is not None:
            opened.callback(self._witness.ended)
        self._inquiry = EndInquiry(self._driver, self._bridge, self._witness, self._stopping)
        self._hearers = [*self._parts.hearers, self._inquiry.take]
        self._testament: Testament | None = None
        if self._witness is not None:
            self._testament = Testament(self._witness, assembly.conf, settings.close_timeout_ms)
            self._hearers.append(self._testament.take)
        self._stopped_queries = StoppedQueries()
        self._completions: dict[str, Callable[[Record], Record]] = {
            QUERY_STARTED: self._driver.complete_query,
            QUERY_TERMINATED: self._stopped_queries.complete,
            JOB_START: with_python_call,
            APPLICATION_END: self._inquiry.complete,
        }

    @property
    def _wants_plans(self) -> bool:
        return self._registry.has_reporters(JOB_LISTENERS)

    def start(self) -> None:
        """Subscribe, pick up what already runs, and continue in a thread of its own.

        The thread is there before anything is told: where none can be started, nobody hears of an application
        whose end they would never hear of.
        """
        try:
            with self._opened:
                self._thread.start()
                self._begin()
                self._opened.pop_all()  # the thread closes it
                self._follows = True
        finally:
            self._has_begun.set()

    def _begin(self) -> None:
        self._bridge.subscribe()
        if self._lineage is not None:
            self._lineage.subscribe()
        self._registry.await_journals(_JOURNAL_WAIT_MS)
        self._take_what_is_there(now_ms())
        self._opened.callback(self._stopped_queries.end)
        self._stopped_queries.begin()
        self._opened.callback(_STOP.end, self)
        _STOP.begin(type(self._context), self)
        self._registry.await_journaled(_JOURNAL_WAIT_MS)

    def _take_what_is_there(self, now: int) -> None:
        driver = self._driver
        for record in chain(
            (driver.application_start(), environment_of(self._conf)),
            driver.resource_profiles(),
            driver.executors(),
            driver.running_queries(now),
            driver.running_jobs(),
        ):
            self._take(record, now)
        self._poll([self._parts.beat])
        if self._testament is not None:
            self._testament.tell()

    @property
    def running(self) -> bool:
        """Whether the application is still being followed."""
        return self._thread.is_alive()

    @property
    def spark_stopped(self) -> bool:
        """Whether the program has stopped Spark."""
        return self._driver.stopped

    def about_to_stop(self, context: Any) -> None:
        """Called when the program stops a SparkContext: whether it raises just then is not seen later."""
        if context is self._context and context._jsc is not None:
            PROCESS_EXIT.raising_at_stop = self._marks.leave_at_stop()

    def stop(self, *, at_exit: bool = False, raised: BaseException | None = None) -> None:
        """End for good; return when everything is delivered or the time is over.

        Args:
            at_exit: whether that is because the process ends.
            raised: what the program raises meanwhile.
        """
        if self._thread.is_alive():
            self._at_exit, self._raised = at_exit, raised
            if at_exit:
                PROCESS_EXIT.note_unseen()
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
        self._has_begun.wait()
        if not self._follows:
            return
        with ExitStack() as until_delivered:
            self._follow_to_the_end(until_delivered)

    def _follow_to_the_end(self, until_delivered: ExitStack) -> None:
        from py4j.protocol import Py4JError  # comes with PySpark, which a machine that only checks may lack

        try:
            while not self._follows_or_is_short():
                time.sleep(_SHORTAGE_S)
        except (Py4JError, OSError) as error:  # what py4j raises when the JVM disappears
            until_delivered.enter_context(outliving_sigterm())
            if self._listeners.ended or self._stopping.is_set():
                logger.debug("the driver's JVM is gone: %r", error)
            else:
                logger.error("the driver's JVM is gone, so the application counts as failed: %r", error)
            self._end_without_jvm()
        except Exception:
            logger.exception("spark-events can no longer follow the application, which continues without it")
        finally:
            self._parts.close()
            _STOP.end(self)
            self._registry.close(self._settings.close_timeout_ms)
            self._listeners.close()
            if self._witness is not None and self._listeners.ended:
                self._witness.ended()
            self._tell_jvm_of_end()

    def _follows_or_is_short(self) -> bool:
        """Follow to the end, and return True; False if files or memory are short, here or in the JVM."""
        from py4j.protocol import Py4JJavaError

        try:
            self._follow()
        except OSError as error:
            if error.errno not in _SHORTAGES:
                raise
            self._note_shortage(error, "reach", str(error.strerror))
            return False
        except Py4JJavaError as error:  # it answers, so it is there; its heap may be full
            self._note_shortage(error, "be told by", _said_by_java(error))
            return False
        return True

    def _note_shortage(self, error: Exception, what: str, why: str) -> None:
        """Say it once; raise it where there is no time for another try."""
        if self._was_short and self._stopping.is_set():
            raise error
        if not self._was_short:
            logger.warning("cannot %s Spark's JVM, and try again each second: %s", what, why)
        self._was_short = True

    def _follow(self) -> None:
        while not self._listeners.ended:
            last = self._stopping.is_set()
            if last:
                self._await_bus()
            records = self._bridge.drain(_BATCH, 0 if last else _WAIT_MS)
            self._marks.leave_if_kernel_ends(self._bridge)
            self._poll(self._parts.before)
            self._hand_over(records)
            if self._end.is_late(time.monotonic()):
                logger.warning(
                    "the plans of the last statements were not read in time; their lineage is missing"
                )
                self._hear(self._end.release())
            self._poll(self._parts.after)
            self._listeners.tick(now_ms())
            if self._testament is not None:
                self._testament.tell()
            self._metrics.count()
            self._registry.tick()
            if last and not self._listeners.ended:
                while records := self._bridge.drain(_BATCH, 0):
                    self._hand_over(records)
                self._hear(self._end.by_process(lambda: self._inquiry.of_process(now_ms(), self._raised)))
        self._metrics.count(at_the_end=True)

    def _poll(self, polls: Iterable[Poll]) -> None:
        for poll in polls:
            for record in poll():
                self._listeners.on_record(record, now_ms())

    def _hand_over(self, records: list[tuple[int, Record]]) -> None:
        left = deque(records)
        while left:
            received_ms, record = left.popleft()
            name = str(record.get("Event"))
            if self._exit_mark.withholds(record):
                continue
            completed = self._completions.get(name, _as_it_is)(record)
            if name == APPLICATION_END:
                left = self._take_progress_of(left)
                by_signal = bool(completed.get(END_CAUSE, {}).get("signal"))
                if self._end.by_spark(completed, by_signal, time.monotonic()) is None:
                    continue
            elif name == LINEAGE_ENDED:
                self._hear(self._end.release())
            self._take(completed, received_ms)
        self._metrics.update_lag(records[-1][0] if records else None)

    def _take_progress_of(self, left: deque[tuple[int, Record]]) -> deque[tuple[int, Record]]:
        """Take the committed micro-batches that Spark tells of right after its end; return the rest."""
        try:
            left.extend(self._bridge.drain(_BATCH, 0))
        except Exception as error:  # the JVM may be gone already
            logger.debug("what came after Spark's end is not known: %r", error)
        for received_ms, record in left:
            if record.get("Event") == QUERY_PROGRESS:
                self._take(record, received_ms)
        return deque(each for each in left if each[1].get("Event") != QUERY_PROGRESS)

    def _take(self, record: Record, received_ms: int) -> None:
        self._listeners.on_record(record, received_ms)
        for take in self._hearers:
            take(record)

    def _hear(self, end: Record | None) -> None:
        if end is not None:
            self._listeners.on_record(end)

    def _end_without_jvm(self) -> None:
        if not self._listeners.ended:
            self._hear(self._end.by_lost_jvm(lambda: self._inquiry.of_lost_jvm(now_ms())))

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
            if not self._at_exit:
                # Spark may go on for days; each attachment would cost it as much as the one that is in use.
                self._bridge.unsubscribe()
                if self._lineage is not None:
                    self._lineage.unsubscribe()
        except Exception as error:  # the JVM may be gone already
            logger.debug("could not tell the bridge about the end: %r", error)


def _said_by_java(error: Exception) -> str:
    """Return the kind and message of what the JVM raised, for which py4j asks it again."""
    try:
        return str(error).splitlines()[1].removeprefix(": ")
    except Exception:  # it has no time for that, either
        return repr(error)


def _as_it_is(record: Record) -> Record:
    return record


def _telling_stop(original: Method) -> Method:
    """Return ``SparkContext.stop`` that first tells the source that follows the context."""

    @functools.wraps(original)
    def stop(context: Any, *arguments: Any, **named: Any) -> Any:
        source = _STOP.last_owner
        if source is not None:
            try:
                source.about_to_stop(context)
            except Exception:  # Spark is stopped whatever happens
                logger.exception("it is not known whether the program was raising when it stopped Spark")
        return original(context, *arguments, **named)

    return stop


_STOP: ReplacedMethod[DriverSource] = ReplacedMethod("stop", _telling_stop)

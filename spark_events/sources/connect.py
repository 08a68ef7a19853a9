"""The source for Spark Connect, where the JVM is out of reach: a client-side StreamingQueryListener."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import orjson

from spark_events.api import ApplicationInfo
from spark_events.api.errors import NothingToAttachToError
from spark_events.api.event import now_ms
from spark_events.listeners import spark_records
from spark_events.listeners.long_texts import cut_texts
from spark_events.listeners.record_fields import APP_ID, APP_NAME, RUN_ID, TIMESTAMP
from spark_events.runtime.log_once import logger
from spark_events.sources.assembly import Assembly
from spark_events.sources.attaching.attached_again import again_of
from spark_events.sources.failed_starts import FailedStarts
from spark_events.sources.heartbeats import Heartbeats
from spark_events.sources.interactive import is_interactive

Record = dict[str, Any]
_WAIT_S = 0.5
_CHECK_EVERY_ROUNDS = 10
_SUBSCRIBE_WAIT_S = 10.0
_MOST_WAITING = 100_000


def is_connect(spark: Any) -> bool:
    """Return whether it is a Spark Connect session, judging by the class name, to avoid importing Connect."""
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(spark).__mro__)
    return "pyspark.sql.connect.session.SparkSession" in names


def configuration_of(session: Any) -> dict[str, str]:
    """Return the configuration of a Connect session: its server's and its own.

    Raises:
        NothingToAttachToError: PySpark is older than 4.0, whose Connect runs listeners on the server.
    """
    if not hasattr(type(session.conf), "getAll"):
        raise NothingToAttachToError(
            "Spark Connect before 4.0 has no client-side listener: let the server write an event log, and "
            "run spark-events follow"
        )
    return dict(session.conf.getAll)


class ConnectSource:
    """Feeds the listeners with the streaming queries of one Connect session.

    The server's application does not belong to this process, so neither it nor its jobs and stages are
    reported.

    Args:
        application: of the server.
        assembly: takes the records; its reporters are closed at the end.
    """

    def __init__(self, session: Any, application: ApplicationInfo, assembly: Assembly) -> None:
        self._session = session
        self._application = application
        self._registry = registry = assembly.registry
        self._listeners = assembly.listeners
        self._close_timeout_ms = assembly.settings.close_timeout_ms
        self._heartbeats = Heartbeats(assembly.settings.heartbeat_interval_ms)
        self._records: queue.Queue[tuple[int, Record]] = queue.Queue(_MOST_WAITING)
        self._dropped = 0
        self._listener = _listener(self._enqueue)
        self._failed_starts = FailedStarts(
            lambda record: self._enqueue(record["Event"], record), lambda writer: writer._session is session
        )
        causes = {"queue_full": "records of streaming queries arrived faster than they were processed"}
        registry.losses.watch(
            "Spark Connect source", registry.driver, lambda: {"queue_full": self._dropped}, causes
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-events-connect", daemon=True)
        self._subscribed = threading.Event()

    def start(self) -> None:
        """Subscribe, pick up the queries that already run, and continue in a thread of its own."""
        start = {
            "Event": spark_records.APPLICATION_START,
            APP_NAME: self._application.name,
            APP_ID: self._application.id,
            spark_records.QUERIES_ONLY: True,
            spark_records.INTERACTIVE: is_interactive(),
            **again_of(self._application.attachment),
        }
        self._listeners.on_record(start)
        self._failed_starts.begin_connect()
        self._thread.start()
        self._subscribed.wait(_SUBSCRIBE_WAIT_S)

    @property
    def running(self) -> bool:
        """Whether the session is still being followed."""
        return self._thread.is_alive()

    @property
    def spark_stopped(self) -> bool:
        """Whether the session has been stopped."""
        return bool(self._session.is_stopped)

    def stop(self, *, at_exit: bool = False, raised: BaseException | None = None) -> None:
        """End for good; return when everything is delivered or the time is over.

        Args:
            at_exit, raised: not used: the server's application does not end with this process.
        """
        self._stopping.set()
        self.join()

    def join(self) -> None:
        """Wait until everything is delivered or the time is over."""
        self._thread.join(self._close_timeout_ms / 1000 + 2 * _WAIT_S + 1)

    def _enqueue(self, event: str, fields: Record) -> None:
        """Queue a record for our own thread, so that PySpark's thread does nothing else."""
        try:
            self._records.put_nowait((now_ms(), cut_texts({"Event": event, **fields})))
        except queue.Full:
            self._dropped += 1

    # -- in the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            # Here and not in the caller's thread: PySpark starts a thread for the events, which is a daemon
            # only if the current thread is. A non-daemon thread would keep the process from ending.
            self._session.streams.addListener(self._listener)
            self._add_running_queries()
            self._subscribed.set()
            self._follow()
        except Exception:
            logger.exception("spark-events can no longer follow the session, which continues without it")
        finally:
            self._subscribed.set()
            self._failed_starts.end()
            self._registry.close(self._close_timeout_ms)
            self._listeners.close()

    def _follow(self) -> None:
        rounds = 0
        while not self._session.is_stopped and not self._stopping.is_set():
            self._hand_over_next(_WAIT_S)
            if self._is_connected and (heartbeat := self._heartbeats.record(now_ms())) is not None:
                self._listeners.on_record(heartbeat)
            self._listeners.tick(now_ms())
            self._registry.tick()
            rounds += 1
            if rounds % _CHECK_EVERY_ROUNDS == 0:
                self._subscribe_again_if_lost()
        while self._hand_over_next(0):
            pass
        if self._session.is_stopped:  # the server stops a session's queries along with the session
            self._listeners.on_record({"Event": spark_records.APPLICATION_END, TIMESTAMP: now_ms()})

    def _hand_over_next(self, wait_s: float) -> bool:
        """Give the next record to the listeners; return whether one came in time."""
        try:
            received_ms, record = self._records.get(timeout=wait_s) if wait_s else self._records.get_nowait()
        except queue.Empty:
            return False
        self._listeners.on_record(record, received_ms)
        return True

    def _add_running_queries(self) -> None:
        for query in self._session.streams.active:
            fields = {**_ids(query), "name": query.name, "time": now_ms(), spark_records.FOUND_RUNNING: True}
            self._listeners.on_record({"Event": spark_records.QUERY_STARTED, **fields})

    @property
    def _is_connected(self) -> bool:
        """Whether PySpark still has the event stream, by its own account."""
        bus = getattr(self._session.streams, "_sqlb", None)
        return bus is None or self._listener in getattr(bus, "_listener_bus", (self._listener,))

    def _subscribe_again_if_lost(self) -> None:
        """Subscribe again if PySpark has given up on the event stream, as after a lost connection."""
        if self._is_connected:
            return
        logger.warning("the connection was lost; events of streaming queries from that time may be missing")
        try:
            self._session.streams.addListener(self._listener)
            self._add_running_queries()
        except Exception as error:  # gRPC's, PySpark's: the next round tries again
            logger.warning("could not add the listener again: %r", error)


def _listener(put: Callable[[str, Record], None]) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):  # type: ignore[misc]
        """Turns PySpark's events into records as the JVM would write them."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - PySpark's names
            fields = {**_ids(event), "name": event.name, "timestamp": event.timestamp}
            put(spark_records.QUERY_STARTED, fields)

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            put(spark_records.QUERY_PROGRESS, {"progress": orjson.loads(event.progress.json)})

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            put(spark_records.QUERY_IDLE, {**_ids(event), "timestamp": event.timestamp})

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            error = {"exception": event.exception, "errorClassOnException": event.errorClassOnException}
            put(spark_records.QUERY_TERMINATED, {**_ids(event), **error})

    return Listener()


def _ids(event: Any) -> Record:
    return {"id": str(event.id), RUN_ID: str(event.runId)}

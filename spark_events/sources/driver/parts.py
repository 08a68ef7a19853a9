"""What a live source hears besides the listener bus: each part is polled, and closed at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from spark_events.api.event import now_ms
from spark_events.diagnosis.thresholds import SLOW_LISTENERS
from spark_events.listeners.record_types import ApplicationStartRecord
from spark_events.runtime.plugins import METRICS
from spark_events.sources.assembly import Assembly
from spark_events.sources.driver.executor_sources import open_executor_sources
from spark_events.sources.driver.spark_status import listener_queues, spark_status
from spark_events.sources.driver.tasks.task_reports import TaskReports
from spark_events.sources.driver.tasks.udfs import MeasuredUdfs
from spark_events.sources.failed_starts import FailedStarts
from spark_events.sources.heartbeats import Heartbeats

Record = dict[str, Any]
Poll = Callable[[], Iterable[Record]]
"""Returns what has come since the last call, as records."""
_MOST_FAILED_STARTS = 1_000


class Parts:
    """The parts that the settings ask for.

    Args:
        spark_context: PySpark's SparkContext.
        assembly: says what is wanted.
        application_start: of the application, which tasks have to know.

    Attributes:
        before: polled before Spark's records are handed over.
        after: polled after that.
        hearers: called with each of Spark's records, once the listeners have heard it.
    """

    def __init__(
        self, spark_context: Any, assembly: Assembly, application_start: Callable[[], Record]
    ) -> None:
        self.before: list[Poll] = []
        self.after: list[Poll] = []
        self.hearers: list[Callable[[Record], None]] = []
        self._closing: list[Callable[[], None]] = []
        self._heartbeats = Heartbeats(assembly.settings.heartbeat_interval_ms)
        try:
            self._open_metrics(spark_context, assembly)
            self.after.append(self.beat)
            self._open_reports(spark_context, assembly, application_start)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all of them."""
        for close in self._closing:
            close()

    def beat(self) -> Iterable[Record]:
        """Return a heartbeat, if one is due."""
        heartbeat = self._heartbeats.record(now_ms())
        return () if heartbeat is None else (heartbeat,)

    def _open_metrics(self, context: Any, assembly: Assembly) -> None:
        """Open what Spark measures outside its events."""
        registry, settings = assembly.registry, assembly.settings
        if settings.sink_ports is not None:
            application = str(context.applicationId), str(context.appName)
            sources = open_executor_sources(assembly.conf, *application, registry)
            if sources is not None:
                self.after.append(sources.records)
                self.hearers.append(sources.take)
                self._closing.append(sources.close)
        if settings.receiver_names and registry.has_reporters(METRICS):
            self.after.append(spark_status(context, registry.log).records)
        if SLOW_LISTENERS in settings.thresholds.kinds:
            self.after.append(listener_queues(context, registry.log).records)

    def _open_reports(
        self, context: Any, assembly: Assembly, application_start: Callable[[], Record]
    ) -> None:
        """Open what the user's own code reports, or cannot."""
        settings = assembly.settings
        if settings.task_reports:
            link = assembly.listeners.task_link(cast(ApplicationStartRecord, application_start()))
            tasks = TaskReports(context, assembly.registry, settings, link, assembly.conf)
            # What a task reports comes before its end, and so before the end of its stage.
            self.before.append(tasks.records)
            self._closing.append(tasks.close)
        udfs = MeasuredUdfs()
        if settings.udf_metrics:
            udfs.begin()
        failed: deque[Record] = deque(maxlen=_MOST_FAILED_STARTS)
        failed_starts = FailedStarts(failed.append)
        failed_starts.begin_classic()
        self.before.append(lambda: _emptied(failed))
        self._closing += [udfs.end, failed_starts.end]


def _emptied(records: deque[Record]) -> Iterator[Record]:
    """Yield records, and remove them; others may come meanwhile."""
    while records:
        yield records.popleft()

"""One application read from its event log, with listeners made once the log names the application."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spark_events.api import ApplicationInfo
from spark_events.listeners import spark_records
from spark_events.listeners.application.application import application_info
from spark_events.listeners.record_fields import APP_ID, APP_NAME
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.sources.configuration import expectations_of
from spark_events.sources.ending import ExitMark
from spark_events.sources.event_log.reading.files import EventLog, LogFiles
from spark_events.sources.event_log.reading.tail import LinePosition, LogTail
from spark_events.sources.event_log.records import STUMBLED

MakeListeners = Callable[[ApplicationInfo, Mapping[str, str]], SparkListeners]
"""Takes what the application's own configuration says of what is expected of it, too."""
_TICK_MS = 1_000
_MOST_BEFORE_START = 1_000
_EARLY = frozenset(
    (spark_records.ENVIRONMENT_UPDATE, spark_records.RESOURCE_PROFILE_ADDED, spark_records.EXECUTOR_ADDED)
)
"""What Spark may log before the application's start."""
_PROGRESS = frozenset((spark_records.QUERY_PROGRESS,))
_CANCELLED = frozenset(
    (
        spark_records.STAGE_TASKS,
        spark_records.LATE_TASKS,
        spark_records.STAGE_COMPLETED,
        spark_records.SQL_EXECUTION_END,
    )
)
"""How Spark logs the end of work that the application's end has cancelled; jobs, it calls failed."""
BEFORE_START = "before the application's start record"
OTHER_APPLICATION = "of another application, which has begun in the same file"


class LoggedApplication:
    """Feeds the records of one log to the listeners of its application.

    Args:
        make_listeners: makes the listeners of an application.
        resume: how far an earlier process has read; None if there was none.
        on_resumed: called when that position has been reached.
        with_cancelled: whether the listeners get what Spark logs after the application's end of the work that
            the end has cancelled; it is no failure of that work.

    Attributes:
        application: the log's application; None before its start record.
        spark_version: the version that the log names.
        tail: reads the log.
        listeners: take the records; None before the start record.
    """

    def __init__(
        self,
        files: LogFiles,
        log: EventLog,
        make_listeners: MakeListeners,
        resume: LinePosition | None = None,
        on_resumed: Callable[[], None] = lambda: None,
        with_cancelled: bool = False,
    ) -> None:
        self._log_name = log.name
        self._make_listeners = make_listeners
        self._after_end = _PROGRESS | _CANCELLED if with_cancelled else _PROGRESS
        self.application: ApplicationInfo | None = None
        self.spark_version = log.spark_version
        self.tail = LogTail(files, self._on_record, resume, on_resumed)
        self.listeners: SparkListeners | None = None
        self._exit_mark = ExitMark()
        self._end: dict[str, Any] | None = None
        # What Spark logs before the application's start: its environment, and a local executor.
        self._before_start: list[dict[str, Any]] = []
        self._ticked_ms = 0
        self._app_id: object = None
        self._has_another = False

    @property
    def ended(self) -> bool:
        """Whether the application's end has been read."""
        return self.listeners is not None and self.listeners.ended

    @property
    def clock_ms(self) -> int:
        """The latest time in any record so far, in ms since the epoch."""
        return self.listeners.clock_ms if self.listeners else 0

    def read(self, log: EventLog, final: bool) -> Iterator[int]:
        """Read what is new in the log.

        The application's end is told last: Spark may log a micro-batch that has committed right after it.

        Args:
            log: as it is listed.
            final: whether it is whole.

        Yields:
            The number of bytes read, block by block.
        """
        try:
            yield from self.tail.read(log, final)
        finally:
            self._tell_end()
        if final and self.listeners is not None:  # what waits for another record waits no longer
            self.listeners.tick(self.listeners.clock_ms + _TICK_MS + 1)

    def take_unfinished_line(self) -> None:
        """Take a last line that lacks nothing but its line feed: nothing has come after it for long."""
        self.tail.take_unfinished_line()
        self._tell_end()

    def _tell_end(self) -> None:
        if self._end is not None and self.listeners is not None:
            self.listeners.on_record(self._end)
            self._end = None

    def tell_so_far(self) -> None:
        """Have what is told of an application without an end be as it is now."""
        self.tail.reader.report_unfinished_stages()
        if self.listeners is not None and not self.ended:
            self.listeners.on_record({"Event": spark_records.LOG_READ})

    def close(self) -> None:
        """Close the listeners: no more records will come."""
        if self.listeners is not None:
            self.listeners.close()
            if self.listeners.stumbled:
                self.tail.reader.counts.skipped[STUMBLED] += self.listeners.stumbled

    def _on_record(self, record: dict[str, Any]) -> None:
        if self.listeners is None:
            self._await_start(record)
        else:
            self._feed(self.listeners, record)

    def _await_start(self, record: dict[str, Any]) -> None:
        name = record["Event"]
        if name == spark_records.LOG_START:
            self.spark_version = str(record.get("Spark Version") or "")
        elif name == spark_records.APPLICATION_START:
            # Before Spark 1.1, the record did not have the application's id.
            self._begin({**record, APP_ID: record.get(APP_ID) or self._log_name})
        elif name in _EARLY and len(self._before_start) < _MOST_BEFORE_START:
            self._before_start.append(record)
        else:
            self.tail.reader.counts.skipped[BEFORE_START] += 1

    def _begin(self, start: dict[str, Any]) -> None:
        self._app_id = start[APP_ID]
        self.application = application_info(start.get(APP_NAME), self._app_id, start.get("App Attempt ID"))
        own = expectations_of(self._before_start)
        self.listeners = listeners = self._make_listeners(self.application, own)
        self.tail.reader.sum_metrics(listeners.wants_sums, listeners.statistics_from_ms)
        listeners.on_record({"Event": spark_records.LOG_START, "Spark Version": self.spark_version})
        self._feed(listeners, start)
        for record in self._before_start:
            self._feed(listeners, record)
        self._before_start.clear()

    def _is_of_another(self, start: dict[str, Any]) -> bool:
        return start.get(APP_ID) not in (None, self._app_id)

    def _feed(self, listeners: SparkListeners, record: dict[str, Any]) -> None:
        name = record["Event"]
        if name == spark_records.APPLICATION_START and self._is_of_another(record):
            self._has_another = True
        if self._has_another:
            self.tail.reader.counts.skipped[OTHER_APPLICATION] += 1
            return
        if self._exit_mark.withholds(record):
            return
        if name == spark_records.APPLICATION_END:
            if not listeners.ended and self._end is None:
                self._end = self._exit_mark.complete(record)
            return
        if self._end is not None and name not in self._after_end:
            return
        listeners.on_record(record)
        if listeners.clock_ms >= self._ticked_ms + _TICK_MS:
            self._ticked_ms = listeners.clock_ms
            listeners.tick(self._ticked_ms)

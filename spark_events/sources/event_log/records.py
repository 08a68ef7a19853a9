"""From the lines of an event log to the records that the driver bridge would give the listeners."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from spark_events.listeners import long_texts, spark_records
from spark_events.listeners.record_fields import EXECUTOR_ID
from spark_events.sources.event_log.execution_plans import ExecutionPlans
from spark_events.sources.event_log.executor_states import ExecutorStates
from spark_events.sources.event_log.reading.lines import LONGEST_LINE
from spark_events.sources.event_log.tasks.all_stage_tasks import AllStageTasks
from spark_events.sources.event_log.tasks.task_loop import TaskLoop
from spark_events.sources.record_json import NoRecordError, load

Record = dict[str, Any]
_TASK_STARTED, _TASK_ENDED = "SparkListenerTaskStart", "SparkListenerTaskEnd"
_STAGE_METRICS = "SparkListenerStageExecutorMetrics"
_WANTED = frozenset(
    (
        *spark_records.CORE_EVENTS,
        *spark_records.OTHER_EVENTS,
        _TASK_STARTED,
        _TASK_ENDED,
        _STAGE_METRICS,
    )
)
# Spark's own records, of which no event is made unless they are wanted; those with a package in their name
# are recognized by that.
_UNUSED = re.compile(
    r"org\.apache\.spark\.|SparkListener(?:TaskGettingResult|SpeculativeTaskSubmitted|"
    r"BlockManager(?:Added|Removed)|BlockUpdated|ExecutorMetricsUpdate|"
    r"(?:Executor|Node)(?:Blacklisted|Unblacklisted|Excluded|Unexcluded)(?:ForStage)?|"
    r"UnschedulableTaskSet(?:Added|Removed)|MiscellaneousProcessAdded)$"
)
_AFTER_MEASURED = frozenset(
    (spark_records.STAGE_COMPLETED, spark_records.EXECUTOR_REMOVED, spark_records.APPLICATION_END)
)
"""Before these, what executors have measured is handed on."""
_WITHIN_EXECUTION = frozenset((spark_records.SQL_EXECUTION_REPLANNED, spark_records.SQL_DRIVER_METRICS))
"""What these say, the record of the execution's end has."""
_NAME = re.compile(rb'\{"Event":"([^"\\]*)"')
_MOST_NAMES = 20
_UNREADABLE = (ValueError, LookupError, ArithmeticError, TypeError, AttributeError)
NOT_JSON = "not JSON in UTF-8"
NO_RECORD = "JSON, but not a Spark record"
TOO_LONG = f"longer than {LONGEST_LINE >> 20} MiB, even with its texts cut"
MALFORMED = "a record that lacks required fields"
STUMBLED = "a record that a listener could not process"
CUT = "cut off at the end of a file"


def is_whole_record(line: bytes) -> bool:
    """Return whether a line is a record that lacks nothing but, maybe, its line feed."""
    if not line.endswith(b"}"):
        return False
    try:
        return "Event" in orjson.loads(line.removeprefix(BOM_UTF8))
    except ValueError:
        return False


@dataclass(slots=True)
class RecordCounts:
    """What became of the lines of one or more logs.

    Attributes:
        read: lines that were not empty.
        tasks: lines about a task.
        unused: Spark's records that no event is made of.
        skipped: lines that could not be used, by reason.
        unknown: records of types that are not Spark's, by name.
    """

    read: int = 0
    tasks: int = 0
    unused: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def add(self, other: RecordCounts) -> None:
        """Add the counts of another log."""
        self.read += other.read
        self.tasks += other.tasks
        self.unused += other.unused
        self.skipped += other.skipped
        self.unknown += other.unknown

    def lost(self) -> Counter[str]:
        """Return how many lines were skipped, by reason, unknown types included."""
        return self.skipped + Counter({f"of the unknown type {name}": n for name, n in self.unknown.items()})


class RecordReader:
    """Makes records of lines. Task records, most of a log, are recognized and read by their first bytes.

    Attributes:
        counts: what became of the lines.
        lines: how many lines have been read, including empty and skipped ones.
    """

    def __init__(self, take: Callable[[Record], None]) -> None:
        self._take = take
        self._executors = ExecutorStates()
        self._plans = ExecutionPlans()
        self._tasks = AllStageTasks(self._executors)
        self._loop = TaskLoop(
            self._tasks, self._executors, take, self._take_other, self._count_unreadable, _UNREADABLE
        )
        self.counts = RecordCounts()
        self.lines = 0

    def take_lines(self, lines: list[bytes]) -> None:
        """Called with whole lines, each with its line feed."""
        self.lines += len(lines)
        tasks = self._loop.take_lines(lines)
        if self._tasks.unread:
            self.counts.skipped[MALFORMED] += self._tasks.unread
            self._tasks.unread = 0
        self.counts.tasks += tasks
        self.counts.read += tasks

    def take_last(self, line: bytes) -> None:
        """Called with the rest at the end of a log: a whole record, or one that was cut off."""
        line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return
        try:
            load(line)
        except ValueError:
            self.skip_line(CUT)
        else:
            self.take_lines([line + b"\n"])

    def sum_metrics(self, wanted: bool, statistics_from_ms: int) -> None:
        """Set whether sums of the tasks' metrics are wanted, and the statistics of which stages."""
        self._tasks.sum_metrics = wanted
        self._tasks.statistics_from_ms = statistics_from_ms

    def report_changed_tasks(self, now_ms: int) -> None:
        """Report the state of tasks that have begun or ended since the last call, in a growing log."""
        self._take_measured()
        for stage_tasks in self._tasks.changed(now_ms):
            self._take(stage_tasks)

    def report_unfinished_stages(self) -> None:
        """Report what tasks have measured of stages that a log has no end of."""
        for stage_tasks in self._tasks.unfinished():
            self._take(stage_tasks)

    def skip_line(self, reason: str) -> None:
        """Count a line that cannot be read."""
        self.lines += 1
        self.counts.read += 1
        self.counts.skipped[reason] += 1

    # ----------------------------------------------------------------------------------------------------

    def _take_other(self, line: bytes) -> None:
        line = line.removeprefix(BOM_UTF8)  # an editor may have put one before the first line
        if not line or line.isspace():
            return
        self.counts.read += 1
        match = _NAME.match(line)
        name = match.group(1).decode(errors="replace") if match else None
        if name is not None and name not in _WANTED:
            self._count_unwanted(name)
            return
        record = load(line)
        if len(line) > long_texts.LONGEST:
            record = long_texts.cut_texts(record)
        if name is None:
            name = record.get("Event")
            if not isinstance(name, str):
                raise NoRecordError("an object without the field Event")
            if name not in _WANTED:
                self._count_unwanted(name)
                return
        self._take_wanted(name, record)

    def _take_wanted(self, name: str, record: Record) -> None:
        stage_tasks, is_task = None, name in (_TASK_STARTED, _TASK_ENDED)
        if name in _AFTER_MEASURED:
            self._take_measured()
        if is_task:  # not in the form in which Spark writes them
            self.counts.tasks += 1
            stage_tasks = (self._tasks.on_start if name == _TASK_STARTED else self._tasks.on_end)(record)
        elif name == spark_records.STAGE_SUBMITTED:
            self._tasks.submitted(record)
        elif name == spark_records.STAGE_COMPLETED:
            stage_tasks = self._tasks.completed(record)
        elif name in self._plans.handlers:
            self._plans.handlers[name](record)
            if name in _WITHIN_EXECUTION:
                return
        elif name == spark_records.EXECUTOR_REMOVED:
            self._take(self._executors.removed(record))
        elif name == _STAGE_METRICS:
            self._executors.measured_by(str(record[EXECUTOR_ID]), record.get("Executor Metrics") or {})
            return
        if stage_tasks is not None:
            self._take(stage_tasks)
        if not is_task:
            self._take(record)

    def _take_measured(self) -> None:
        measured = self._executors.measured()
        if measured is not None:
            self._take(measured)

    def _count_unwanted(self, name: str) -> None:
        if _UNUSED.match(name):
            self.counts.unused += 1
            return
        counted = name in self.counts.unknown or len(self.counts.unknown) < _MOST_NAMES
        self.counts.unknown[name if counted else "…"] += 1

    def _count_unreadable(self, error: Exception) -> None:
        reason = NO_RECORD if isinstance(error, NoRecordError) else MALFORMED
        self.counts.skipped[NOT_JSON if isinstance(error, orjson.JSONDecodeError) else reason] += 1

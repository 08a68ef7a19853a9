"""What the tasks of a stage attempt measured, from a log's lines; live, the driver bridge does it.

Most of a log's lines are ends of tasks, and few stages last so long that anybody asks why. So the lines are
kept as they are, and read only if they are needed, many at a time and by columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import add, sub
from typing import Any, NamedTuple

from spark_events.listeners.work import SUMS
from spark_events.sources.event_log.distribution import Distribution
from spark_events.sources.event_log.task_lines import METRICS_KEY, TASK_ID, match_details
from spark_events.sources.event_log.task_metrics import metrics_of, metrics_of_many, wanted_metrics

Record = dict[str, Any]
QUANTITIES = (
    "Duration",
    "Executor Run Time",
    "JVM GC Time",
    "Executor Deserialize Time",
    "Scheduler Delay",
    "Fetch Wait Time",
    "Bytes Read",
    "Records Read",
    "Bytes Written",
    "Disk Bytes Spilled",
)
"""What is measured of each task: times in ms, sizes in bytes. The order is that of ``_Tasks.quantities``."""
_MOST_HOSTS = 100
_AT_ONCE = 512
"""How many lines are read at once: their numbers fit a core's own cache."""
_DIGITS_FEWER = 128
"""By how much the metrics of two lines differ in length: in the number of digits."""
_LONGEST_KEPT = 4_096
_DETAILS_END = 1_024
"""Of longer lines, what they begin with is kept, the details of their task, and their metrics."""
_SUCCESS, _RESUBMITTED, _KILLED, _FETCH_FAILED = "Success", "Resubmitted", "TaskKilled", "FetchFailed"


class UnexpectedForm(ValueError):  # noqa: N818 - it is no error: such a line is parsed as a whole
    """A line does not have the form in which Spark writes it."""


class _Tasks(NamedTuple):
    """Tasks that have ended, by columns: their details, and their ``task_metrics.WANTED``."""

    number: Sequence[int]
    launched: Sequence[int]
    executor: Sequence[bytes]
    host: Sequence[bytes]
    speculative: Sequence[bytes]
    getting_result: Sequence[int]
    finished: Sequence[int]
    deserialize: Sequence[int]
    run: Sequence[int]
    cpu: Sequence[int]
    gc: Sequence[int]
    serialize: Sequence[int]
    spilled: Sequence[int]
    disk_spilled: Sequence[int]
    fetch_wait: Sequence[int]
    remote_bytes: Sequence[int]
    local_bytes: Sequence[int]
    shuffle_records: Sequence[int]
    shuffle_written: Sequence[int]
    input_bytes: Sequence[int]
    input_records: Sequence[int]
    output_bytes: Sequence[int]

    @staticmethod
    def of(rows: Iterable[tuple[Any, ...]]) -> _Tasks:
        """Return tasks that are given by rows."""
        return _Tasks(*zip(*rows, strict=True))

    @staticmethod
    def of_lines(lines: Sequence[bytes]) -> _Tasks | None:
        """Return the tasks of lines that all have one form that is known; else None."""
        matches = [match_details(line, line.find(TASK_ID)) for line in lines]
        if None in matches:
            return None
        metrics = metrics_of_many(_metrics_in(lines))
        if metrics is None:
            return None
        details = zip(*(match.groups() for match in matches if match), strict=True)
        index, launched, executor, host, copy, getting, finished = details
        return _Tasks(
            [*map(int, index)],
            [*map(int, launched)],
            executor,
            host,
            copy,
            [*map(int, getting)],
            [*map(int, finished)],
            *metrics,
        )

    def sums(self) -> tuple[int, ...]:
        """Return the sums of their metrics, in the order of ``work.SUMS``."""
        return (
            sum(self.run),
            sum(self.cpu),
            sum(self.gc),
            sum(self.input_bytes),
            sum(self.output_bytes),
            sum(self.remote_bytes) + sum(self.local_bytes),
            sum(self.shuffle_written),
            sum(self.spilled),
            sum(self.disk_spilled),
        )

    def read(self) -> list[int]:
        """Return how much each has read, from sources and from shuffles, in bytes."""
        return list(map(add, map(add, self.input_bytes, self.remote_bytes), self.local_bytes))

    def quantities(self) -> Iterable[Sequence[int]]:
        """Return the values of each of the ``QUANTITIES``."""
        durations = [max(0, took) for took in map(sub, self.finished, self.launched)]
        busy = list(map(add, map(add, self.run, self.deserialize), self.serialize))
        if any(self.getting_result):
            fetched = (
                max(0, end - begin) if begin else 0
                for begin, end in zip(self.getting_result, self.finished, strict=True)
            )
            busy = list(map(add, busy, fetched))
        return (
            durations,
            self.run,
            self.gc,
            self.deserialize,
            [max(0, delay) for delay in map(sub, durations, busy)],
            self.fetch_wait,
            self.read(),
            list(map(add, self.input_records, self.shuffle_records)),
            list(map(add, self.output_bytes, self.shuffle_written)),
            self.disk_spilled,
        )


class TaskStatistics:
    """What the tasks of one stage attempt measured.

    Only first attempts that succeeded count in the distributions; speculative copies and failed attempts do
    not tell how long a task takes.

    Attributes:
        sums: the sums of the metrics of all attempts that have ended, in the order of ``work.SUMS``.
    """

    __slots__ = (
        "_distributions", "_failed", "_fetch_failures", "_first_ms", "_hosts", "_killed", "_last_ms",
        "_lines", "_longest", "_longest_ms", "sums",
    )  # fmt: skip

    def __init__(self) -> None:
        self.sums = [0] * len(SUMS)
        self._distributions = [Distribution() for _ in QUANTITIES]
        self._hosts: dict[str, list[int]] = {}
        self._first_ms: int | None = None
        self._last_ms = 0
        self._longest_ms, self._longest = -1, Record()
        self._failed, self._killed, self._fetch_failures = [0, 0], [0, 0], 0
        self._lines: list[bytes] = []

    def keep(self, line: bytes, metrics: int) -> None:
        """Keep the line of a task that succeeded, to be read later.

        Args:
            line: the line of its TaskEnd.
            metrics: where its metrics begin.

        Raises:
            UnexpectedForm: of the first line; those after it look the same.
        """
        lines = self._lines
        if not lines and _row_of(line) is None:
            raise UnexpectedForm
        lines.append(line if len(line) <= _LONGEST_KEPT else line[:_DETAILS_END] + line[metrics:])

    def forget(self) -> int:
        """Forget the lines that wait, for nobody needs them, and return how many they are."""
        forgotten = len(self._lines)
        self._lines.clear()
        return forgotten

    def read(self) -> tuple[int, int]:
        """Read the lines that wait, and return how many of them can be read, and how many cannot."""
        lines, self._lines, read = self._lines, [], 0
        for begin in range(0, len(lines), _AT_ONCE):
            some = lines[begin : begin + _AT_ONCE]
            tasks = _Tasks.of_lines(some)
            if tasks is None:
                rows = [row for row in map(_row_of, some) if row]
                tasks = _Tasks.of(rows) if rows else None
            if tasks is not None:
                self._add(tasks)
                read += len(tasks.number)
        return read, len(lines) - read

    def ended(self, record: Record, reason: str | None) -> None:
        """Called with a TaskEnd, and the reason that it gives."""
        row = _row(record) if record.get("Task Metrics") else None
        if row and reason == _SUCCESS:
            self._add(_Tasks.of([row]))
        elif row:
            self._add_to_sums(_Tasks.of([row]))
        if reason not in (_SUCCESS, _RESUBMITTED):
            info = record["Task Info"]
            launched, finished = int(info.get("Launch Time") or 0), int(info.get("Finish Time") or 0)
            self._ran(launched, finished)
            took_ms = max(0, finished - launched)
            ended = self._killed if reason == _KILLED else self._failed
            ended[0] += 1
            ended[1] += took_ms
            self._fetch_failures += reason == _FETCH_FAILED

    def record(self, most_running: int) -> Record:
        """Return all of it as a part of a record.

        Args:
            most_running: how many tasks ran at once at most.
        """
        statistics: Record = {
            "Tasks": self._distributions[0].count,
            "Most Running": most_running,
            "First Launch": self._first_ms or 0,
            "Last Finish": self._last_ms,
            "Failed": self._failed[0],
            "Failed Time": self._failed[1],
            "Fetch Failures": self._fetch_failures,
            "Killed": self._killed[0],
            "Killed Time": self._killed[1],
        }
        for quantity, distribution in zip(QUANTITIES, self._distributions, strict=True):
            statistics[quantity] = distribution.summary()
        if self._longest:
            statistics["Longest Task"] = self._longest
        return {**statistics, "Hosts": dict(sorted(self._hosts.items()))}

    def _add(self, tasks: _Tasks) -> None:
        self._ran(min(tasks.launched), max(tasks.finished))
        self._add_to_sums(tasks)
        if b"true" in tasks.speculative:
            rows = [row for row in zip(*tasks, strict=True) if row[4] != b"true"]
            if not rows:
                return
            tasks = _Tasks.of(rows)
        for distribution, values in zip(self._distributions, tasks.quantities(), strict=True):
            distribution.add(values)
        read = tasks.read()
        longest_ms = max(tasks.run)
        if longest_ms > self._longest_ms:  # the first of those that are equally long
            at = tasks.run.index(longest_ms)
            self._longest_ms = longest_ms
            self._longest = {
                "Index": tasks.number[at],
                "Executor ID": tasks.executor[at].decode(errors="replace"),
                "Host": tasks.host[at].decode(errors="replace"),
                "Executor Run Time": longest_ms,
                "Bytes Read": read[at],
            }
        self._add_to_hosts(tasks, read)

    def _add_to_hosts(self, tasks: _Tasks, read: Sequence[int]) -> None:
        if len(set(tasks.host)) == 1:
            columns: Iterable[tuple[bytes, int, int, int]] = (
                (tasks.host[0], len(read), sum(tasks.run), sum(read)),
            )
        else:
            columns = zip(tasks.host, [1] * len(read), tasks.run, read, strict=True)
        for name, count, run_ms, read_bytes in columns:
            host = name.decode(errors="replace")
            of_host = self._hosts.get(host)
            if of_host is None:
                if len(self._hosts) >= _MOST_HOSTS:
                    continue
                of_host = self._hosts[host] = [0, 0, 0]
            of_host[0] += count
            of_host[1] += run_ms
            of_host[2] += read_bytes

    def _ran(self, launched_ms: int, finished_ms: int) -> None:
        self._first_ms = launched_ms if self._first_ms is None else min(self._first_ms, launched_ms)
        self._last_ms = max(self._last_ms, finished_ms)

    def _add_to_sums(self, tasks: _Tasks) -> None:
        self.sums = list(map(sum, zip(self.sums, tasks.sums(), strict=True)))


def _row(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a task as a row of ``_Tasks``."""
    info = record["Task Info"]
    return (
        int(info["Index"]),
        int(info.get("Launch Time") or 0),
        str(info.get("Executor ID") or "").encode(),
        str(info.get("Host") or "").encode(),
        b"true" if info.get("Speculative") else b"false",
        int(info.get("Getting Result Time") or 0),
        int(info.get("Finish Time") or 0),
        *wanted_metrics(record["Task Metrics"]),
    )


def _row_of(line: bytes) -> tuple[Any, ...] | None:
    """Return the task of a line as a row of ``_Tasks``; None if it does not have the form of Spark."""
    match, metrics = match_details(line, line.find(TASK_ID)), metrics_of(line[line.rfind(METRICS_KEY) :])
    if match is None or metrics is None:
        return None
    index, launched, executor, host, copy, getting, finished = match.groups()
    return (int(index), int(launched), executor, host, copy, int(getting), int(finished), *metrics)


def _metrics_in(lines: Sequence[bytes]) -> list[bytes]:
    """Return the ends of lines, from their metrics on; the metrics of all have about the same length."""
    about = len(lines[0]) - lines[0].rfind(METRICS_KEY) - _DIGITS_FEWER
    return [line[line.rfind(METRICS_KEY, 0, len(line) - about) :] for line in lines]

"""Tasks by columns, read from the lines of their ends, many at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import add, sub
from typing import Any, NamedTuple

import orjson

from spark_events.listeners.record_fields import EXECUTOR_ID
from spark_events.sources.event_log.tasks.task_lines import METRICS_KEY, match_details
from spark_events.sources.event_log.tasks.task_metrics import metrics_of, metrics_of_many, wanted_metrics
from spark_events.sources.record_json import load

Info = re.Match[bytes]
"""A match of ``match_details`` or ``match_info`` in the line of a TaskEnd."""
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
"""What is measured of each task: times in ms, sizes in bytes; in the order of ``TaskColumns.quantities``."""
_AT_ONCE = 128
"""How many lines are read at once: their numbers fit a core's own cache."""
_LONGEST = 2**63 - 1
"""The largest number that Java has, and Spark can have measured."""
_DETAILS = 7
"""How many groups ``match_details`` has."""
_DIGITS_FEWER = 128
"""By how much the metrics of two lines differ in length: in the number of digits."""


class TaskColumns(NamedTuple):
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
    def of_rows(rows: Iterable[tuple[Any, ...]]) -> TaskColumns:
        """Return tasks that are given by rows, of which there is at least one."""
        return TaskColumns(*zip(*rows, strict=True))

    @staticmethod
    def of_record(record: Mapping[str, Any]) -> TaskColumns:
        """Return the task of a TaskEnd that has metrics."""
        return TaskColumns.of_rows([_row(record)])

    @staticmethod
    def joined(several: Sequence[TaskColumns]) -> TaskColumns:
        """Return all tasks of several, of which there is at least one."""
        if len(several) == 1:
            return several[0]
        columns = zip(*several, strict=True)
        return TaskColumns(*(list(chain.from_iterable(column)) for column in columns))

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

    def rows(self) -> list[int]:
        """Return how many rows each has read, from sources and from shuffles."""
        return list(map(add, self.input_records, self.shuffle_records))

    def quantities(self) -> Iterable[Sequence[int]]:
        """Return the values of each of the ``QUANTITIES``."""
        durations = _not_negative(list(map(sub, self.finished, self.launched)))
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
            _not_negative(list(map(sub, durations, busy))),
            self.fetch_wait,
            self.read(),
            self.rows(),
            list(map(add, self.output_bytes, self.shuffle_written)),
            self.disk_spilled,
        )


def read_tasks(tasks_ended: Sequence[Info]) -> Iterator[TaskColumns]:
    """Yield the tasks of lines, without those that cannot be read."""
    for begin in range(0, len(tasks_ended), _AT_ONCE):
        some = tasks_ended[begin : begin + _AT_ONCE]
        tasks = _of_one_form(some)
        if tasks is not None:
            yield tasks
        elif rows := [row for row in map(_row_of, some) if row]:
            yield TaskColumns.of_rows(rows)


def _not_negative(values: list[int]) -> list[int]:
    return values if min(values) >= 0 else [max(0, value) for value in values]


def is_readable(info: Info) -> bool:
    """Return whether a line can be read; if so, lines like it can, too."""
    return _row_of(info) is not None


def _of_one_form(tasks_ended: Sequence[Info]) -> TaskColumns | None:
    """Return the tasks of lines that all have one form that is known; else None."""
    metrics = metrics_of_many(_metrics_in([info.string for info in tasks_ended]))
    details = [_details_of(info) for info in tasks_ended]
    if metrics is None or None in details:
        return None
    columns = zip(*(match.groups() for match in details if match), strict=True)
    index, launched, executor, host, copy, getting, finished = columns
    try:
        numbers = orjson.loads(b"[%b]" % b",".join(chain(index, launched, getting, finished)))
    except ValueError:  # leading zeros
        return None
    count = len(tasks_ended)
    index, launched, getting, finished = (
        numbers[begin : begin + count] for begin in range(0, 4 * count, count)
    )
    return TaskColumns(index, launched, executor, host, copy, getting, finished, *metrics)


def _details_of(info: Info) -> Info | None:
    return info if info.lastindex == _DETAILS else match_details(info.string, info.start())


def _row(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a task as a row of ``TaskColumns``."""
    info = record["Task Info"]
    row = (
        int(info["Index"]),
        int(info.get("Launch Time") or 0),
        str(info.get(EXECUTOR_ID) or "").encode(),
        str(info.get("Host") or "").encode(),
        b"true" if info.get("Speculative") else b"false",
        int(info.get("Getting Result Time") or 0),
        int(info.get("Finish Time") or 0),
        *wanted_metrics(record["Task Metrics"]),
    )
    if any(isinstance(value, int) and value > _LONGEST for value in row):
        raise ValueError("a figure is beyond 64 bits")
    return row


def _row_of(info: Info) -> tuple[Any, ...] | None:
    """Return the task of a line as a row of ``TaskColumns``; None if it cannot be read."""
    line, details = info.string, _details_of(info)
    if details is None:
        return _row_of_whole(line)
    metrics = metrics_of(line[line.rfind(METRICS_KEY) : -1])
    if metrics is None:
        return None
    index, launched, executor, host, copy, getting, finished = details.groups()
    return (int(index), int(launched), executor, host, copy, int(getting), int(finished), *metrics)


def _row_of_whole(line: bytes) -> tuple[Any, ...] | None:
    """Return the same of a line whose task does not have the form in which Spark writes it."""
    try:
        return _row(load(line))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _metrics_in(lines: Sequence[bytes]) -> list[bytes]:
    """Return the ends of lines, from their metrics on; the metrics of all have about the same length."""
    about = len(lines[0]) - lines[0].rfind(METRICS_KEY) - _DIGITS_FEWER
    return [line[line.rfind(METRICS_KEY, 0, len(line) - about) : -1] for line in lines]

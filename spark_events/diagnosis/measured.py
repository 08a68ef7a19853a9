"""What the tasks of a stage measured, as the sources' records tell it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

_BYTES_READ = "Bytes Read"
_FILE_SCAN = "FileScanRDD"
_SCANS = (_FILE_SCAN, "DataSourceRDD")
_COUNTED = re.compile(r"scan (orc|csv|json|text|xml|avro|binaryfile)\b", re.IGNORECASE)
_COLUMNAR = re.compile(r"parquet", re.IGNORECASE)
_PYTHON_RUN = "time to run Python workers"
"""Spark's SQL metric of the time in Python functions, in ms, since Spark 4."""


class Spread(NamedTuple):
    """How a quantity is distributed over a stage's tasks."""

    median: int
    p95: int
    highest: int
    total: int


class HostWork(NamedTuple):
    """What the tasks on one host have done."""

    tasks: int
    run_ms: int
    read_bytes: int


class LongestTask(NamedTuple):
    """The task that ran longest."""

    number: int
    executor: str
    host: str
    run_ms: int
    read_bytes: int


@dataclass(frozen=True, slots=True)
class TasksMeasured:
    """What the tasks of one stage attempt measured.

    Attributes:
        tasks: how many first attempts succeeded; the spreads are theirs.
        most_running: how many tasks ran at once at most.
        first_ms, last_ms: when the first of them began, and the last ended, in ms since the epoch; 0 if none.
        failed: how many attempts failed.
        failed_ms: how long those ran.
        fetch_failures: how many of them because shuffle output was gone.
        spreads: by name: the record's, times in ms and sizes in bytes.
    """

    tasks: int
    most_running: int
    first_ms: int
    last_ms: int
    failed: int
    failed_ms: int
    fetch_failures: int
    spreads: Mapping[str, Spread]
    longest: LongestTask | None
    hosts: Mapping[str, HostWork]

    @property
    def run(self) -> Spread:
        """How long tasks ran, in ms."""
        return self.spreads["Executor Run Time"]

    @property
    def read(self) -> Spread:
        """How much tasks read, from sources and from shuffles, in bytes."""
        return self.spreads[_BYTES_READ]


def misses_reads(stage_info: Mapping[str, Any]) -> bool:
    """Return whether Spark measures next to nothing of what a stage reads from files.

    Its count of bytes misses vectored reads, by which Parquet is read: 160 KiB of 400 MiB, say.
    """
    for rdd in stage_info.get("RDD Info") or ():
        name, scope = str(rdd.get("Name") or ""), str(rdd.get("Scope") or "")
        if name in _SCANS and not _COUNTED.search(scope) and (name == _FILE_SCAN or _COLUMNAR.search(scope)):
            return True
    return False


def without_reads(measured: TasksMeasured) -> TasksMeasured:
    """Return what tasks measured without the bytes that they read: a measurement of zero is none."""
    longest = measured.longest
    return replace(
        measured,
        spreads={**measured.spreads, _BYTES_READ: Spread(0, 0, 0, 0)},
        longest=None if longest is None else longest._replace(read_bytes=0),
        hosts={host: work._replace(read_bytes=0) for host, work in measured.hosts.items()},
    )


def read_tasks_measured(statistics: Mapping[str, Any]) -> TasksMeasured:
    """Return what a record's ``Task Statistics`` say."""
    longest = statistics.get("Longest Task")
    return TasksMeasured(
        tasks=int(statistics["Tasks"]),
        most_running=max(1, int(statistics["Most Running"])),
        first_ms=int(statistics["First Launch"]),
        last_ms=int(statistics["Last Finish"]),
        failed=int(statistics["Failed"]),
        failed_ms=int(statistics["Failed Time"]),
        fetch_failures=int(statistics["Fetch Failures"]),
        spreads={
            name: Spread(*values)
            for name, values in statistics.items()
            if isinstance(values, list) and len(values) == len(Spread._fields)
        },
        longest=LongestTask(
            int(longest["Index"]),
            str(longest["Executor ID"]),
            str(longest["Host"]),
            int(longest["Executor Run Time"]),
            int(longest["Bytes Read"]),
        )
        if longest
        else None,
        hosts={host: HostWork(*work) for host, work in statistics["Hosts"].items()},
    )


def python_ms(accumulables: Iterable[Mapping[str, Any]]) -> int:
    """Return how long a stage's tasks waited for Python functions, by its SQL metrics, in ms."""
    total = 0
    for accumulable in accumulables:
        if accumulable.get("Name") == _PYTHON_RUN:
            try:
                total += int(accumulable.get("Value") or 0)
            except (TypeError, ValueError):
                continue
    return total

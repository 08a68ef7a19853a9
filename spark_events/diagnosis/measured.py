"""What the tasks of a stage measured, as the sources' records tell it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

_BYTES_READ = "Bytes Read"
_FILE_SCAN = "FileScanRDD"
_SCANS = (_FILE_SCAN, "DataSourceRDD")
_COUNTED = re.compile(r"scan (orc|csv|json|text|xml|avro|binaryfile)\b", re.IGNORECASE)
_COLUMNAR = re.compile(r"parquet", re.IGNORECASE)


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


class ExecutorWork(NamedTuple):
    """What the tasks have done on one of several executors of a host."""

    host: str
    work: HostWork


class WithoutInput(NamedTuple):
    """How many tasks have read nothing from a source, nor from a cache, and how long they ran, in ms."""

    tasks: int = 0
    run_ms: int = 0


NO_TASKS = WithoutInput()


class TaskRun(NamedTuple):
    """When a task was launched, in ms since the epoch, how long it ran, in ms, what it read, and where.

    Attributes:
        read_rows: how many rows it read; Spark counts those of all sources.
    """

    number: int
    launched_ms: int
    run_ms: int
    read_bytes: int
    executor: str
    host: str
    read_rows: int = 0


class PythonTimes(NamedTuple):
    """How long a stage's tasks waited for Python, in ms.

    Attributes:
        run_ms: for the user's functions.
        start_ms: for workers to start.
        in_rdd: whether those are an RDD's, of which Spark measures nothing: it is all that tasks did.
    """

    run_ms: int = 0
    start_ms: int = 0
    in_rdd: bool = False


NO_PYTHON = PythonTimes()


@dataclass(frozen=True, slots=True)
class TasksMeasured:
    """What the tasks of one stage attempt measured.

    Attributes:
        tasks: how many first attempts succeeded; the spreads are theirs.
        most_running: how many tasks ran at once at most.
        first_ms, last_ms: when the first of them began, and the last ended, in ms since the epoch; 0 if none.
        failed: how many attempts failed.
        failed_ms: how long those ran.
        killed_ms: how long attempts ran that were killed, of speculation, say.
        fetch_failures: how many of them because shuffle output was gone.
        last_failure: what the last of them failed of, as Spark says it; empty if unknown.
        spreads: by name: the record's, times in ms and sizes in bytes.
        longest_runs: the eight longest, the longest first.
        executors: by their ids; only those that share a host with others.
        without_input: tasks that have read nothing from a source or a cache.
        cpu_ms: for how long tasks had a CPU, failed attempts included; 0 if nobody has measured it.
    """

    tasks: int
    most_running: int
    first_ms: int
    last_ms: int
    failed: int
    failed_ms: int
    killed_ms: int
    fetch_failures: int
    spreads: Mapping[str, Spread]
    hosts: Mapping[str, HostWork]
    longest_runs: tuple[TaskRun, ...] = ()
    last_failure: str = ""
    executors: Mapping[str, ExecutorWork] = field(default_factory=dict)
    without_input: WithoutInput = NO_TASKS
    cpu_ms: int = 0

    @property
    def run(self) -> Spread:
        """How long tasks ran, in ms."""
        return self.spreads["Executor Run Time"]

    @property
    def read(self) -> Spread:
        """How much tasks read, from sources and from shuffles, in bytes."""
        return self.spreads[_BYTES_READ]

    @property
    def rows(self) -> Spread:
        """How many rows tasks read, from sources and from shuffles."""
        return self.spreads["Records Read"]


def misses_reads(stage_info: Mapping[str, Any]) -> bool:
    """Return whether Spark measures next to nothing of what a stage reads from files.

    Its count of bytes misses vectored reads, by which Parquet is read: 160 KiB of 400 MiB, say.
    """
    for rdd in stage_info.get("RDD Info") or ():
        name, scope = str(rdd.get("Name") or ""), str(rdd.get("Scope") or "")
        if name in _SCANS and not _COUNTED.search(scope) and (name == _FILE_SCAN or _COLUMNAR.search(scope)):
            return True
    return False


def last_rdd(stage_info: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the RDD that a stage makes, the last of its ``RDD Info``; None if that has none."""
    rdds: list[Mapping[str, Any]] = stage_info.get("RDD Info") or []
    return max(rdds, key=lambda rdd: int(rdd.get("RDD ID", -1)), default=None)


def kept_rdds(stage_info: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the RDDs of a stage that are kept in memory or on disk, as its ``RDD Info`` has them."""
    kept = []
    for rdd in stage_info.get("RDD Info") or ():
        level = rdd.get("Storage Level") or {}
        if level.get("Use Memory") or level.get("Use Disk"):
            kept.append(rdd)
    return kept


def without_reads(measured: TasksMeasured) -> TasksMeasured:
    """Return what tasks measured without the bytes that they read: a measurement of zero is none."""
    return replace(
        measured,
        spreads={**measured.spreads, _BYTES_READ: Spread(0, 0, 0, 0)},
        hosts={host: work._replace(read_bytes=0) for host, work in measured.hosts.items()},
        executors={
            name: each._replace(work=each.work._replace(read_bytes=0))
            for name, each in measured.executors.items()
        },
        longest_runs=tuple(run._replace(read_bytes=0) for run in measured.longest_runs),
    )


def read_tasks_measured(statistics: Mapping[str, Any]) -> TasksMeasured:
    """Return what a record's ``Task Statistics`` say."""
    return TasksMeasured(
        tasks=int(statistics["Tasks"]),
        most_running=max(1, int(statistics["Most Running"])),
        first_ms=int(statistics["First Launch"]),
        last_ms=int(statistics["Last Finish"]),
        failed=int(statistics["Failed"]),
        failed_ms=int(statistics["Failed Time"]),
        killed_ms=int(statistics.get("Killed Time") or 0),
        fetch_failures=int(statistics["Fetch Failures"]),
        spreads={
            name: Spread(*values)
            for name, values in statistics.items()
            if isinstance(values, list) and len(values) == len(Spread._fields)
        },
        hosts={host: HostWork(*work) for host, work in statistics["Hosts"].items()},
        longest_runs=tuple(
            TaskRun(
                int(number), int(launched), int(run), int(read), str(executor), str(host), *map(int, rows)
            )
            for number, launched, run, read, executor, host, *rows in statistics.get("Longest Runs") or ()
        ),
        last_failure=str(statistics.get("Last Failure") or ""),
        executors={
            name: ExecutorWork(str(host), HostWork(int(tasks), int(run), int(read)))
            for name, (host, tasks, run, read) in (statistics.get("Executors") or {}).items()
        },
        without_input=WithoutInput(*statistics.get("Without Input") or ()),
    )

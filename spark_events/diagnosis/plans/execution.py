"""An SQL execution that has ended: its plans, and the stages that its tasks ran in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.diagnosis.measured import kept_rdds
from spark_events.diagnosis.plans.node import IN_MEMORY, WRITES_TABLE, MetricValue, Node, named_tables
from spark_events.diagnosis.times.covered import covered_ms

_INTERNAL = "internal.metrics."
_MEASURED_BYTES = 8 << 10
_RUN, _RESULT = _INTERNAL + "executorRunTime", _INTERNAL + "resultSize"
_READ = _INTERNAL + "input.bytesRead"
_WRITTEN = _INTERNAL + "output.bytesWritten"
_CPU_NS = _INTERNAL + "executorCpuTime"
_WAITS = (_INTERNAL + "jvmGCTime", _INTERNAL + "shuffle.read.fetchWaitTime")
_LINES, _PARTS = '"name":"Scan text', '"name":"mapPartitions"'
_OF_READERS = {"FileScanRDD", "MapPartitionsRDD", "SQLExecutionRDD"}
_SHUFFLE_WRITE_NS = _INTERNAL + "shuffle.write.writeTime"


@dataclass(frozen=True, slots=True)
class ExecutedStage:
    """A stage attempt that has ended; times in ms, sizes in bytes.

    Attributes:
        tasks: how many it had.
        begun_ms, ended_ms: since the epoch.
        run_ms: how long its tasks ran, in all.
        shuffle_write_ms: how much of that they wrote for shuffles.
        result_bytes: what they sent to the driver; 0 if they wrote files, for then they say which.
        read_bytes: what they read from sources.
        kept: the RDDs in it that are kept in memory or on disk, by their ids.
        longest_ms: how long the longest task ran; 0 if unknown.
        cpu_ms: for how long of their time they had a CPU; 0 if nobody has measured it.
        waited_ms: for how long of it they waited for garbage collection and for shuffled data.
        of_schema: whether it only looks in files of text for their columns.
    """

    id: int
    tasks: int
    begun_ms: int
    ended_ms: int
    run_ms: int
    shuffle_write_ms: int
    result_bytes: int
    read_bytes: int = 0
    kept: frozenset[int] = frozenset()
    longest_ms: int = 0
    cpu_ms: int = 0
    waited_ms: int = 0
    of_schema: bool = False

    @property
    def wall_ms(self) -> int:
        """How long it took."""
        return max(0, self.ended_ms - self.begun_ms)

    @property
    def collected_bytes(self) -> int:
        """How much of their rows its tasks sent to the driver; each also sends what it has measured."""
        return max(0, self.result_bytes - self.tasks * _MEASURED_BYTES)


@dataclass(frozen=True, slots=True)
class EndedExecution:
    """An SQL execution that has ended.

    Attributes:
        begun_ms, ended_ms: in ms since the epoch.
        cores: of all executors at its end; 0 if unknown.
        plans: the roots of its plans, that of the whole first.
        stages: by id.
    """

    begun_ms: int
    ended_ms: int
    cores: int
    plans: tuple[Node, ...]
    stages: Mapping[int, ExecutedStage]

    @property
    def lasted_ms(self) -> int:
        """How long it took."""
        return max(0, self.ended_ms - self.begun_ms)

    def tables(self) -> list[str]:
        """Return what it reads and writes, each once: names of tables, or paths."""
        return named_tables(self.nodes())

    def written(self) -> list[str]:
        """Return what it writes, each once."""
        writes = (node for node in self.nodes() if node.name.startswith(WRITES_TABLE))
        return list(dict.fromkeys(name for node in writes if (name := node.table())))

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes of all plans, but for those of a cache that another execution has filled."""
        for plan in self.plans:
            yield from _executed(plan)

    def nodes_by_stage(self) -> dict[int, list[Node]]:
        """Return the nodes of each stage, each before its children."""
        by_stage: dict[int, list[Node]] = {}
        for node in self.nodes():
            for stage in node.stages:
                by_stage.setdefault(stage, []).append(node)
        return by_stage

    def wall_ms(self, stages: Iterable[int]) -> int:
        """Return for how long at least one of some stages ran."""
        known = (self.stages[stage] for stage in set(stages) if stage in self.stages)
        return covered_ms((stage.begun_ms, stage.ended_ms) for stage in known)

    def alone_ms(self) -> dict[int, int]:
        """Return for how long each stage ran while no other did; without those that never did."""
        changes = sorted(
            change
            for number, stage in self.stages.items()
            if stage.wall_ms
            for change in ((stage.begun_ms, number, True), (stage.ended_ms, number, False))
        )
        alone: dict[int, int] = {}
        running: set[int] = set()
        before_ms = 0
        for time_ms, number, begins in changes:
            if len(running) == 1:
                (only,) = running
                alone[only] = alone.get(only, 0) + time_ms - before_ms
            before_ms = time_ms
            (running.add if begins else running.remove)(number)
        return alone


def _executed(plan: Node) -> Iterator[Node]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        if node.name != IN_MEMORY or fills_cache(node):
            waiting += reversed(node.children)


def fills_cache(scan: Node) -> bool:
    """Return whether what is below the scan of a cache was computed by this execution."""
    return any(node.measured_in for child in scan.children for node in child.walk())


def read_stage(info: Mapping[str, Any], time_ms: int) -> ExecutedStage:
    """Return a stage attempt by the ``Stage Info`` of its StageCompleted.

    Args:
        info: as Spark writes it.
        time_ms: the record's, in ms since the epoch.
    """
    sums = {
        str(each.get("Name")): _number(each.get("Value"))
        for each in info.get("Accumulables") or ()
        if str(each.get("Name")).startswith(_INTERNAL)
    }
    ended_ms = int(info.get("Completion Time") or time_ms)
    return ExecutedStage(
        int(info["Stage ID"]),
        int(info.get("Number of Tasks") or 0),
        int(info.get("Submission Time") or ended_ms),
        ended_ms,
        sums.get(_RUN, 0),
        sums.get(_SHUFFLE_WRITE_NS, 0) // 1_000_000,
        0 if sums.get(_WRITTEN) else sums.get(_RESULT, 0),
        sums.get(_READ, 0),
        frozenset(int(rdd["RDD ID"]) for rdd in kept_rdds(info)),
        cpu_ms=sums.get(_CPU_NS, 0) // 1_000_000,
        waited_ms=sum(sums.get(name, 0) for name in _WAITS),
        of_schema=_looks_for_schema(info),
    )


def _looks_for_schema(info: Mapping[str, Any]) -> bool:
    """Return whether readers of JSON, CSV or XML made a stage; functions of users have other RDDs."""
    rdds = info.get("RDD Info") or ()
    if not rdds or not all(rdd.get("Name") in _OF_READERS for rdd in rdds):
        return False
    scopes = [str(rdd.get("Scope") or "") for rdd in rdds]
    return any(_LINES in scope for scope in scopes) and any(_PARTS in scope for scope in scopes)


def writes_files(info: Mapping[str, Any]) -> bool:
    """Return whether the tasks of a stage, by its ``Stage Info``, have written anything but shuffled data."""
    sums = info.get("Accumulables") or ()
    return any(each.get("Name") == _WRITTEN and _number(each.get("Value")) for each in sums)


def add_measured(measured: dict[int, MetricValue], info: Mapping[str, Any]) -> None:
    """Add what the tasks of a stage have measured for the nodes of plans.

    Args:
        measured: by the ids of accumulators; a stage's record has the sum of all stages so far.
        info: the ``Stage Info`` of its StageCompleted.
    """
    stage = int(info["Stage ID"])
    for each in info.get("Accumulables") or ():
        if each.get("Metadata") != "sql":
            continue
        number = int(each["ID"])
        stages = measured[number].stages if number in measured else frozenset()
        measured[number] = MetricValue(_number(each.get("Value")), stages | {stage})


def _number(value: object) -> int:
    """Return an accumulator's value; Spark writes -1 where nothing was measured."""
    try:
        return max(0, int(str(value)))
    except (TypeError, ValueError):
        return 0

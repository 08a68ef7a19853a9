"""The rule about hosts and executors: on one, tasks take much longer than elsewhere for the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import HostWork, TasksMeasured
from spark_events.diagnosis.thresholds import SLOW_NODE, Thresholds

_SMALLER_PART = 1 / 3
_MOST_HOSTS, _LEAST_TASKS = 1_000, 2


@dataclass(slots=True)
class _Slow:
    """A host, or an executor that shares its host with others; that is empty for a host."""

    host: str
    executor: str
    stages: int = 0
    tasks: int = 0
    lost_ms: int = 0
    ratios: list[float] = field(default_factory=list)


class SlowHosts:
    """Remembers in which stages a host, or one executor of it, was slow; a single one may be chance."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._slow: dict[tuple[str, str], _Slow] = {}

    def take(self, measured: TasksMeasured, slots: int, of_cache: bool = False) -> Iterator[Issue]:
        """Called with each stage that has ended; yields what was slow in enough of them by now.

        Args:
            measured: what its tasks measured.
            slots: how many tasks ran at once.
            of_cache: whether its tasks read what is cached: each of its partitions stays on one executor, so
                where those with more to do are, all stages take longer.
        """
        if of_cache:
            return
        slow_hosts = set()
        for host, ratio in _slower(measured.hosts):
            if ratio >= self._thresholds.slow_node_factor:
                slow_hosts.add(host)
                yield from self._take(host, "", measured.hosts[host], ratio, slots)
        for executor, ratio in _slower_executors(measured):
            host, work = measured.executors[executor]
            if ratio >= self._thresholds.slow_node_factor and host not in slow_hosts:
                yield from self._take(host, executor, work, ratio, slots)

    def _take(self, host: str, executor: str, work: HostWork, ratio: float, slots: int) -> Iterator[Issue]:
        if (host, executor) not in self._slow and len(self._slow) >= _MOST_HOSTS:
            return
        slow = self._slow.setdefault((host, executor), _Slow(host, executor))
        slow.stages += 1
        slow.tasks += work.tasks
        slow.lost_ms += int(work.run_ms * (1 - 1 / ratio)) // slots
        slow.ratios.append(ratio)
        if slow.stages >= self._thresholds.slow_node_stages:
            yield _of_executor(slow) if executor else _of_host(slow)


def _of_host(slow: _Slow) -> Issue:
    ratio, host = _median(slow), slow.host
    return Issue(
        SLOW_NODE,
        f"{SLOW_NODE} {host}",
        slow.lost_ms,
        None,
        f"on {host}, tasks of {slow.stages} stages take {ratio:.1f} times as long as elsewhere for the "
        "same data",
        f"Look at the machine {host} (its disks, its neighbors, its clock speed), or have the cluster "
        "manager keep Spark away from it.",
        evidence={"host": host, "stages": slow.stages, "tasks": slow.tasks, "ratio": round(ratio, 2)},
    )


def _of_executor(slow: _Slow) -> Issue:
    ratio, host, executor = _median(slow), slow.host, slow.executor
    return Issue(
        SLOW_NODE,
        f"{SLOW_NODE} {host} {executor}",
        slow.lost_ms,
        None,
        f"on executor {executor}, tasks of {slow.stages} stages take {ratio:.1f} times as long as on the "
        f"others of its host {host} for the same data",
        f"The others are not slow, so it is not the machine: look at what executor {executor} does besides "
        "(its threads and its garbage collection are in Spark's UI), and at its container's limits.",
        evidence={
            "host": host,
            "executorId": executor,
            "stages": slow.stages,
            "tasks": slow.tasks,
            "ratio": round(ratio, 2),
        },
    )


def _median(slow: _Slow) -> float:
    return sorted(slow.ratios)[len(slow.ratios) // 2]


def _slower_executors(measured: TasksMeasured) -> Iterator[tuple[str, float]]:
    """Yield the same of executors, each compared with the others of its host, without its longest task.

    On an executor with few tasks, one that is longer for a reason of its own would make all of it look slow.
    """
    longest = {run.executor: run for run in reversed(measured.longest_runs)}
    for host in sorted({each.host for each in measured.executors.values()}):
        works = {name: each.work for name, each in measured.executors.items() if each.host == host}
        most = sum(work.tasks for work in works.values()) * _SMALLER_PART
        for name in works:
            if (run := longest.get(name)) is None or not _LEAST_TASKS <= works[name].tasks <= most:
                continue
            tasks, run_ms, read = works[name]
            rest = HostWork(tasks - 1, run_ms - run.run_ms, read - run.read_bytes)
            yield from (slow for slow in _slower({**works, name: rest}) if slow[0] == name)


def _slower(hosts: Mapping[str, HostWork]) -> Iterator[tuple[str, float]]:
    """Yield each host with a smaller part of the tasks, and how many times as long as elsewhere they took."""
    tasks = sum(work.tasks for work in hosts.values())
    run_ms = sum(work.run_ms for work in hosts.values())
    read = sum(work.read_bytes for work in hosts.values())
    for host, work in hosts.items():
        others, others_ms, others_read = tasks - work.tasks, run_ms - work.run_ms, read - work.read_bytes
        if not others or not others_ms or not work.tasks or work.tasks > tasks * _SMALLER_PART:
            continue
        if work.read_bytes and others_read:
            yield host, (work.run_ms / work.read_bytes) / (others_ms / others_read)
        else:
            yield host, (work.run_ms / work.tasks) / (others_ms / others)

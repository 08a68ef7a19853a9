"""The rule about hosts: on one of them, tasks take much longer than elsewhere for the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import HostWork, TasksMeasured
from spark_events.diagnosis.thresholds import SLOW_NODE, Thresholds

_SMALLER_PART = 1 / 3
_MOST_HOSTS = 1_000


@dataclass(slots=True)
class _SlowHost:
    stages: int = 0
    tasks: int = 0
    lost_ms: int = 0
    ratios: list[float] = field(default_factory=list)


class SlowHosts:
    """Remembers in which stages a host was slow; a single slow stage may be chance."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._hosts: dict[str, _SlowHost] = {}

    def take(self, measured: TasksMeasured, slots: int) -> Iterator[Issue]:
        """Called with each stage that has ended; yields a host that was slow in enough of them by now.

        Args:
            measured: what its tasks measured.
            slots: how many tasks ran at once.
        """
        for host, ratio in _slower(measured.hosts):
            if ratio < self._thresholds.slow_node_factor:
                continue
            if host not in self._hosts and len(self._hosts) >= _MOST_HOSTS:
                continue
            slow, work = self._hosts.setdefault(host, _SlowHost()), measured.hosts[host]
            slow.stages += 1
            slow.tasks += work.tasks
            slow.lost_ms += int(work.run_ms * (1 - 1 / ratio)) // slots
            slow.ratios.append(ratio)
            if slow.stages >= self._thresholds.slow_node_stages:
                yield self._issue(host, slow)

    def _issue(self, host: str, slow: _SlowHost) -> Issue:
        ratio = sorted(slow.ratios)[len(slow.ratios) // 2]
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

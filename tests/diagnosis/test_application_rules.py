"""The rules about an application: slow hosts, idle cores, memory that nobody uses."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.idle_cores import IdleCores
from spark_events.diagnosis.slow_hosts import SlowHosts
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.unused_memory import unused_memory
from tests.support.measured_tasks import measured

MIB, GIB, S, MIN = 1 << 20, 1 << 30, 1_000, 60_000
QUICK = (8, 80 * S, 800 * MIB)


def slow_hosts(slow: tuple[int, int, int], stages: int) -> list[tuple[str, int | None]]:
    hosts = SlowHosts(Thresholds())
    tasks = measured([10 * S] * 10, hosts={"quick": QUICK, "slow": slow})
    return [
        (str(issue.evidence["host"]), issue.lost_ms) for _ in range(stages) for issue in hosts.take(tasks, 4)
    ]


def test_a_slow_host_in_three_stages() -> None:
    """Two tasks with as much data as elsewhere take three times as long: 40 s more, with four at once."""
    slow = (2, 60 * S, 200 * MIB)
    assert slow_hosts(slow, 2) == []
    assert slow_hosts(slow, 3) == [("slow", 30 * S)]


@pytest.mark.parametrize(
    "host",
    [(2, 60 * S, 600 * MIB), (2, 38 * S, 200 * MIB), (5, 150 * S, 500 * MIB)],
    ids=["it reads more", "not twice as long", "half of the tasks are there"],
)
def test_no_slow_host(host: tuple[int, int, int]) -> None:
    assert slow_hosts(host, 5) == []


def test_without_bytes_tasks_are_compared() -> None:
    hosts = SlowHosts(Thresholds())
    tasks = measured([S], hosts={"quick": (8, 80 * S, 0), "slow": (2, 60 * S, 0)})
    assert len([issue for _ in range(3) for issue in hosts.take(tasks, 1)]) == 1


def idle(**thresholds: int) -> IdleCores:
    cores = IdleCores(Thresholds(**thresholds))  # type: ignore[arg-type]
    cores.executor_added("1", 4, 0)
    cores.executor_added("2", 4, 0)
    return cores


def test_the_driver_alone() -> None:
    """Eight cores have nothing to do for 15 minutes of 20."""
    cores = idle()
    cores.stage_submitted((0, 0), 100, 0)
    cores.stage_completed((0, 0), 5 * MIN)
    assert cores.issue(14 * MIN) is None  # less than ten minutes

    issue = cores.issue(20 * MIN)
    assert issue is not None
    assert issue.lost_ms == 15 * MIN
    assert issue.evidence["driverAloneCoreTimeMs"] == 8 * 15 * MIN


def test_too_few_tasks() -> None:
    cores = idle()
    cores.stage_submitted((0, 0), 2, 0)
    issue = cores.issue(20 * MIN)

    assert issue is not None
    assert issue.lost_ms == 15 * MIN  # six of eight cores
    assert issue.evidence["tooFewTasksCoreTimeMs"] == 6 * 20 * MIN


def test_a_streaming_query_waits_for_data() -> None:
    cores = idle()
    cores.query_started("run", 0)
    assert cores.issue(60 * MIN) is None
    cores.query_ended("run", 60 * MIN)
    assert cores.issue(75 * MIN) is not None


def test_without_executors_nothing_is_idle() -> None:
    cores = idle()
    for executor in "12":
        cores.executor_removed(executor, 0)
    assert cores.issue(60 * MIN) is None


def test_unused_memory() -> None:
    """Two executors with 8 GiB, of which 2 would do, and 2.5 with a reserve."""
    issue = unused_memory({"1": 1 * GIB, "2": 2 * GIB}, 8 * GIB, Thresholds())

    assert issue is not None
    assert issue.lost_bytes == 2 * (8 * GIB - 5 * GIB // 2)
    assert "spark.executor.memory=2560m" in issue.advice
    assert unused_memory({"1": 4 * GIB}, 8 * GIB, Thresholds()) is None
    assert unused_memory({}, 8 * GIB, Thresholds()) is None

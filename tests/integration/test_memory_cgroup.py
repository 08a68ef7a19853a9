"""Executors whose memory a cgroup limits, as that of a container is: the kernel kills what uses more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.executors import (
    REMOVED,
    losses,
    losses_without_memory,
    lost_before_the_end,
    observed,
    removed,
    replay,
    value,
)
from tests.support.file_log import file_events, of_name
from tests.support.memory_cgroup import MemoryCgroup, memory_cgroup
from tests.support.paths import APPS
from tests.support.spark_cluster import SparkCluster, running_spark_cluster
from tests.support.waiting import http_get

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
LIMIT = 500 << 20
HEAP = 1 << 30
"""More than the cgroup has, in which what it holds already does not count: a mistake that a container makes easy."""
FILLED = 1 << 30
"""What the application's Python worker fills, unless the kernel kills it before."""
PROCESSES = ("process_jvm", "process_python")


class Limited:
    """The application that has used too much memory, in a Python worker and in the JVM of its executor."""

    def __init__(self, folder: Path, cluster: SparkCluster, cgroup: MemoryCgroup) -> None:
        conf, url = observed(folder)
        conf = {
            **conf,
            "spark.executor.memory": f"{HEAP >> 20}m",
            "spark.cores.max": "1",
            "spark.executor.processTreeMetrics.enabled": "true",
            "spark.task.maxFailures": "1",
        }
        app = App(
            cli("run", "--master", cluster.master, str(APPS / "memory_limit.py"), str(folder)), conf, folder
        )
        for name in PROCESSES:
            series = f"spark_application_executor_{name}_used_sum_bytes"
            app.wait_for(lambda series=series: value(http_get(url), series) > 0, f"{name} was measured")  # type: ignore[misc]
        # As in a container, without the worker, which the kernel might kill instead.
        (executor,) = cluster.executors().values()
        cgroup.take(cluster.with_children(executor))
        (folder / "measured").touch()
        app.wait_for_line("both done")
        app.wait_for(lambda: value(http_get(url), REMOVED) == 1, "the executor is gone")
        self.metrics = http_get(url)
        self.kills = cgroup.kills
        (folder / "go").touch()
        self.run: AppRun = app.end()
        self.live = file_events(folder / "live")
        self.replayed = replay(folder / "logs", folder / "replayed")


@pytest.fixture(scope="module")
def limited(java: str, tmp_path_factory: pytest.TempPathFactory) -> Limited:
    with memory_cgroup(LIMIT) as cgroup, running_spark_cluster(cores=1) as cluster:
        return Limited(tmp_path_factory.mktemp("limited"), cluster, cgroup)


def test_the_kernel_has_killed_twice(limited: Limited) -> None:
    """And the application goes on."""
    assert limited.kills == 2
    assert limited.run.code == 0, limited.run.err[-3000:]
    assert re.fullmatch(r"(failed: \w+\n){2}both done\n", limited.run.out)


def test_of_a_python_worker_the_executor_survives(limited: Limited) -> None:
    """Its task tells of a crash; the executor goes on to the next job, in which it is killed itself."""
    of_python, of_executor = (
        event["attributes"] for event in of_name(limited.live, "JobFailureEvent", job_kind="job")
    )
    said = of_python["exception.message"]
    assert said.startswith("Python worker exited unexpectedly (crashed). Most likely it was killed (SIGKILL)")
    assert (of_python["failureLabel.type"], of_python["memoryLimit.heap"]) == ("SYSTEM", HEAP)
    assert "executorLost.id" not in of_python
    named = {name: of_executor[f"executorLost.{name}"] for name in ("id", "reason", "exitCode")}
    assert named == {"id": "0", "reason": "killed", "exitCode": 137}
    assert len(lost_before_the_end(limited.live)) == 1


def test_the_event_of_the_executor(limited: Limited) -> None:
    """It says how much memory the processes used, against what limits are known; nobody says who has killed it."""
    assert removed(limited.metrics) == {"killed": 1}
    lost = losses(limited.live)["0"]
    assert (lost["reason"], lost["exitCode"], lost["runningTasks"]) == ("killed", 137, 1)
    assert lost["exitMeaning"].startswith("killed (SIGKILL): above a memory limit, ")
    assert 0 < lost["heapUsed.last"] <= lost["heapUsed.highest"] <= HEAP == lost["memoryLimit.heap"]
    # More than the limit, if measured just before a kill: what a process had before it was moved into the
    # cgroup is not of its limit, nor are pages that it shares with another. Less than what each asked for.
    assert 0 < lost["processJvmUsed.highest"] < HEAP
    assert 0 < lost["processPythonUsed.highest"] < FILLED
    assert "memoryLimit.container" not in lost, "Spark knows nothing of the cgroup"


def test_a_replay_gives_the_same(limited: Limited) -> None:
    live = losses_without_memory(limited.live)
    assert losses_without_memory(limited.replayed) == live
    assert next(iter(live.values()))["reason"] == "killed"

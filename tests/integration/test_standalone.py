"""Executors that are lost in a real standalone cluster: by signals, by their own exit, by memory, with a worker."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.executors import (
    losses,
    losses_without_memory,
    lost_before_the_end,
    observed,
    removed,
    replay,
    value,
)
from tests.support.file_log import events_and_spans, file_events, of_name
from tests.support.paths import APPS
from tests.support.spark_cluster import SparkCluster, running_spark_cluster
from tests.support.waiting import http_get

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
HOSTS = ("127.0.0.1", "127.0.0.2")
EXECUTORS, CORES = 2, 2
HEAP = 512 << 20
OF_FAULTS = 3
"""How many executors the application loses by its own faults; one more is terminated, others go with a worker."""
HEAP_USED = "spark_executor_status_jvm_memory_heap_used_bytes"


class Faults:
    """The application that has lost executors in all these ways.

    Attributes:
        hosts: of the executors whose worker was seen.
        terminated: the executor that was asked to end while it ran nothing.
        of_lost_worker: the executors whose worker was killed.
        metrics: at the end.
        logged: what Spark itself has written of executors that came and went.
        live, replayed: both accounts of the events.
    """

    def __init__(self, folder: Path, cluster: SparkCluster) -> None:
        self._cluster = cluster
        conf, self._url = observed(folder)
        logs = folder / "logs"
        conf = {
            **conf,
            "spark.eventLog.compress": "false",
            "spark.executor.cores": str(CORES),
            "spark.cores.max": str(CORES * EXECUTORS),
            "spark.task.maxFailures": "1",
            "spark.locality.wait": "0",
        }
        of_app = [str(APPS / "executor_faults.py"), str(folder), str(EXECUTORS)]
        self._app = App(cli("run", "--master", cluster.master, *of_app), conf, folder)
        self._app.wait_for(lambda: len([*folder.glob("runs-*")]) == CORES * EXECUTORS, "all tasks run")
        measured = f'{HEAP_USED}{{app_name="faults",executor_id="0"'
        self._app.wait_for(lambda: measured in http_get(self._url), "the memory of executor 0 was measured")
        self.hosts: dict[str, str] = {}
        os.kill(self._processes()["0"], signal.SIGKILL)
        self._wait_removed(1)
        (folder / "killed").touch()
        # One whose heap is full ends some time after its task has failed.
        self._wait_removed(OF_FAULTS)
        (folder / "faults-seen").touch()
        self._app.wait_for_line("all there")
        processes = self._processes()
        self.of_lost_worker = {executor for executor in processes if self.hosts[executor] == HOSTS[1]}
        cluster.kill_worker(1)
        self._wait_removed(OF_FAULTS + len(self.of_lost_worker))
        self.terminated = min(processes.keys() - self.of_lost_worker, key=int)
        os.kill(processes[self.terminated], signal.SIGTERM)
        self._wait_removed(OF_FAULTS + len(self.of_lost_worker) + 1)
        self.metrics = http_get(self._url)
        (folder / "go").touch()
        self.run: AppRun = self._app.end()
        self.logged = [
            json.loads(line)
            for path in logs.rglob("*app-*")
            if path.is_file()
            for line in path.read_text().splitlines()
            if '"SparkListenerExecutor' in line[:50]
        ]
        self.live, self.replayed = file_events(folder / "live"), replay(logs, folder / "replayed")

    def lost_with(self, exit_code: int) -> dict[str, Any]:
        """Return the attributes of the ExecutorLostEvent with an exit code, of which there is no other."""
        (attributes,) = [lost for lost in losses(self.live).values() if lost.get("exitCode") == exit_code]
        return attributes

    def _processes(self) -> dict[str, int]:
        """Return the process of each executor, whose host is known from now on."""
        processes = {}
        for number, host in enumerate(HOSTS):
            of_worker = self._cluster.executors(number)
            self.hosts |= dict.fromkeys(of_worker, host)
            processes |= of_worker
        return processes

    def _wait_removed(self, number: int) -> None:
        self._app.wait_for(
            lambda: sum(removed(http_get(self._url)).values()) == number, f"{number} executors are gone"
        )


@pytest.fixture(scope="module")
def faults(java: str, tmp_path_factory: pytest.TempPathFactory) -> Faults:
    with running_spark_cluster(HOSTS, cores=CORES * EXECUTORS) as cluster:
        return Faults(tmp_path_factory.mktemp("faults"), cluster)


def test_the_application_goes_on(faults: Faults) -> None:
    """Three of its jobs failed, one for each fault."""
    assert faults.run.code == 0, faults.run.err[-3000:]
    assert re.fullmatch(r"(failed: \w+\n){3}all there\n", faults.run.out)


def test_each_loss_is_counted(faults: Faults) -> None:
    """By reason; the ones that took their places, as added."""
    assert removed(faults.metrics) == {
        "killed": 1,
        "out_of_memory": 1,
        "exited": 2,
        "worker_lost": len(faults.of_lost_worker),
    }
    lost = OF_FAULTS + len(faults.of_lost_worker) + 1
    live = value(faults.metrics, "spark_application_executors{")
    assert value(faults.metrics, "spark_application_executors_added_total") == lost + live
    assert value(faults.metrics, "spark_application_executor_cores{") == live * CORES


def test_a_kill_in_the_middle_of_tasks(faults: Faults) -> None:
    """What it was doing, what its tasks had written, and how full its memory was."""
    lost = faults.lost_with(137)
    assert (lost["executor_id"], lost["reason"]) == ("0", "killed")
    assert lost["reasonMessage"] == "Command exited with code 137"
    assert lost["exitMeaning"].startswith("killed (SIGKILL)")
    assert (lost["runningTasks"], lost["runningStages"]) == (CORES, "1")
    assert lost["shuffleBytesWritten"] > 0
    assert 10 << 20 < lost["heapUsed.last"] <= lost["heapUsed.highest"] < HEAP == lost["memoryLimit.heap"]
    assert "memoryLimit.container" not in lost, "a standalone cluster limits no container"


def test_an_exit_by_itself(faults: Faults) -> None:
    lost = faults.lost_with(3)
    assert (lost["reason"], lost["reasonMessage"]) == ("exited", "Command exited with code 3")
    assert (lost["runningTasks"], lost["runningStages"]) == (1, "2")
    assert "exitMeaning" not in lost, "what 3 means, only the application knows"


def test_a_full_heap(faults: Faults) -> None:
    lost = faults.lost_with(52)
    assert (lost["reason"], lost["exitMeaning"]) == (
        "out_of_memory",
        "Java's OutOfMemoryError: its heap was full",
    )


def test_a_request_to_end(faults: Faults) -> None:
    """Of an executor that ran nothing."""
    lost = faults.lost_with(143)
    assert (lost["executor_id"], lost["reason"]) == (faults.terminated, "exited")
    assert (lost["exitMeaning"], lost["runningTasks"]) == ("asked to end (SIGTERM)", 0)


def test_a_lost_worker_takes_its_executors_along(faults: Faults) -> None:
    """Nobody knows how they end."""
    with_worker = {
        executor: lost for executor, lost in losses(faults.live).items() if lost["reason"] == "worker_lost"
    }
    assert with_worker.keys() == faults.of_lost_worker != set()
    assert not any("exitCode" in lost for lost in with_worker.values())


def test_hosts_and_lifetimes(faults: Faults) -> None:
    """As Spark has logged them, and on the worker on which each process ran; none was wanted gone."""
    added = {record["Executor ID"]: record for record in faults.logged if "Executor Info" in record}
    gone = {record["Executor ID"]: record for record in faults.logged if "Removed Reason" in record}
    lost = losses(faults.live)
    assert lost.keys() == gone.keys()
    for executor, attributes in lost.items():
        assert attributes["host"] == added[executor]["Executor Info"]["Host"]
        assert attributes["host"] == faults.hosts.get(executor, attributes["host"])
        lifetime_ms = gone[executor]["Timestamp"] - added[executor]["Timestamp"]
        assert attributes["lifetimeMs"] == lifetime_ms > 0
    assert {attributes["host"] for attributes in lost.values()} == {*HOSTS}
    severities = {event["severityText"] for event in lost_before_the_end(faults.live)}
    assert severities == {"WARN"}


def test_failures_of_jobs_name_the_executor(faults: Faults) -> None:
    """But for a full heap: of that, the task itself could tell."""
    failures = [event["attributes"] for event in of_name(faults.live, "JobFailureEvent", job_kind="job")]
    caused = [
        tuple(failure.get(f"executorLost.{name}") for name in ("id", "reason", "exitCode"))
        for failure in failures
    ]
    of_exit = faults.lost_with(3)["executor_id"]
    assert caused == [("0", "killed", 137), (of_exit, "exited", 3), (None, None, None)]
    assert failures[2]["exception.type"] == "java.lang.OutOfMemoryError"


def test_a_replay_gives_the_same(faults: Faults) -> None:
    """But for memory, which a log knows by the ends of tasks alone."""
    live = losses_without_memory(faults.live)
    assert losses_without_memory(faults.replayed) == live
    assert len(live) == OF_FAULTS + len(faults.of_lost_worker) + 1


def test_series_have_the_hosts_of_their_executors(faults: Faults) -> None:
    """Those of the dead as well, for a while."""
    of_series = dict(re.findall(rf'^{HEAP_USED}{{.*executor_id="(\d+)",host="([^"]+)"', faults.metrics, re.M))
    assert "0" in of_series
    assert {executor: faults.hosts.get(executor, host) for executor, host in of_series.items()} == of_series


@pytest.mark.parametrize(
    ("app", "seen"), [("long_job.py", "'ALL_RUNNING_OR_FINISHED'"), ("idle.py", "'newJobStatus': 'FINISHED'")]
)
def test_an_application_that_its_master_gives_up(java: str, tmp_path: Path, app: str, seen: str) -> None:
    """Its executors fail again and again, so Spark stops it by itself: it has FAILED, and says why.

    Of one that is idle, no job fails that could name the reason: only Spark's log has it.
    """
    events_in = tmp_path / "events"
    with running_spark_cluster() as cluster:
        running = App(
            cli("run", "--master", cluster.master, str(APPS / app)), events_and_spans(events_in), tmp_path
        )
        running.wait_for(lambda: seen in str(file_events(events_in)), "its tasks are seen")
        (executor,) = cluster.executors().values()
        cluster.break_worker(0)
        os.kill(executor, signal.SIGKILL)
        running.end()
    events = file_events(events_in)
    last = of_name(events, "JobStatusChangeEvent", job_kind="application")[-1]["attributes"]
    (failure,) = of_name(events, "JobFailureEvent", job_kind="application")

    assert (last["newJobStatus"], last.get("outcome")) == ("FAILED", None)
    assert "Master removed our application: FAILED" in failure["attributes"]["exception.message"]
    died = of_name(events, "ExecutorLostEvent")
    assert len([event for event in died if "before it registered" in event["body"]]) > 1

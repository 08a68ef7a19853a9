"""Executors that are lost, in a cluster of two of them on this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.executors import (
    REMOVED,
    losses_without_memory,
    lost_before_the_end,
    observed,
    removed,
    replay,
    value,
)
from tests.support.file_log import Event, file_events, of_name
from tests.support.paths import APPS
from tests.support.receiver_table import METRICS, prometheus_name
from tests.support.waiting import free_port, http_get

# Half a minute; CI runs them with PySpark 3.5 each time.
pytestmark = [pytest.mark.spark, pytest.mark.extended]
HEAP = 512 << 20
HEAP_MAX = "status_jvm_memory_heap_max_bytes"
SENT_BY_SPARK = (
    HEAP_MAX,
    "status_jvm_memory_heap_committed_bytes",
    "status_jvm_memory_heap_used_bytes",
    "status_jvm_memory_metaspace_used_bytes",
    "status_jvm_memory_direct_number",
    "status_jvm_cpu_time_seconds",
    "executor_threadpool_active_tasks",
    "executor_filesystem_file_read_bytes",
)


def sent_by_spark(metrics: str, executor: str) -> set[str]:
    """Return those of the metrics of Spark's own metrics system that an executor has."""
    labels = f'{{app_name="executors",executor_id="{executor}",'
    return {name for name in SENT_BY_SPARK if f"spark_executor_{name}{labels}" in metrics}


class Lost:
    """The application that has lost two executors: its metrics at the end, and both accounts of its events."""

    def __init__(self, folder: Path) -> None:
        conf, url = observed(folder)
        conf = {
            **conf,
            "spark.task.maxFailures": "1",
            "spark.metrics.executors.sink.port": str(free_port()),
            "spark.metrics.apachesparkreceiver.enabled": "true",
            "spark.metrics.job.min-duration": "0",
        }
        command = cli("run", "--master", "local-cluster[2,2,512]", str(APPS / "executors.py"), str(folder))
        app = App(command, conf, folder)
        app.wait_for(lambda: value(http_get(url), REMOVED) == 2, "the loss of two executors is seen")
        app.wait_for(lambda: value(http_get(url), "spark_application_executors{") == 2, "others have come")
        everything = {"3": set(SENT_BY_SPARK), "driver": {HEAP_MAX}}
        for executor, names in everything.items():
            app.wait_for(
                lambda executor=executor, names=names: names <= sent_by_spark(http_get(url), executor),  # type: ignore[misc]
                f"Spark has sent the metrics of {executor}, which runs nothing",
            )
        self.metrics = http_get(url)
        (folder / "go").touch()
        running = r'spark_stage_task_active\{.*spark_stage_id="\d+"\} 2.0'
        app.wait_for(lambda: re.search(running, http_get(url)), "a stage with two tasks is seen")
        self.while_a_stage_runs = http_get(url)
        (folder / "seen").touch()
        self.run: AppRun = app.end()
        self.live = file_events(folder / "live")
        self.replayed = replay(folder / "logs", folder / "replayed")


@pytest.fixture(scope="module")
def lost(java: str, tmp_path_factory: pytest.TempPathFactory) -> Lost:
    with pytest.MonkeyPatch.context() as patch:
        # Where a cluster on this machine finds the scripts to start executors with.
        patch.setenv("SPARK_HOME", os.path.dirname(pyspark.__file__))
        return Lost(tmp_path_factory.mktemp("executors"))


def attributes(event: Event) -> dict[str, Any]:
    return dict(event["attributes"])


def test_the_application_goes_on(lost: Lost) -> None:
    assert lost.run.code == 0, lost.run.err[-3000:]
    assert lost.run.out.startswith("count: 8\nfailed: ")


def test_each_loss_is_counted(lost: Lost) -> None:
    """By reason; the ones that took their places, as added."""
    assert removed(lost.metrics) == {"killed": 1, "out_of_memory": 1}
    assert value(lost.metrics, "spark_application_executors_added_total") == 4
    assert value(lost.metrics, "spark_application_executor_cores{") == 4


def test_an_event_tells_how_each_ended(lost: Lost) -> None:
    killed, full = lost_before_the_end(lost.live)
    assert [attributes(event)["exitCode"] for event in (killed, full)] == [137, 52]
    assert attributes(full)["exitMeaning"] == "Java's OutOfMemoryError: its heap was full"
    of_killed = attributes(killed)
    assert (of_killed["reason"], of_killed["runningTasks"], of_killed["runningStages"]) == (
        "killed",
        1,
        "1",
    )
    assert (of_killed["host"], of_killed["memoryLimit.heap"]) == ("127.0.0.1", HEAP)
    assert 10 << 20 < of_killed["heapUsed.last"] <= of_killed["heapUsed.highest"] < HEAP
    assert of_killed["lifetimeMs"] > 2_500
    assert "exit code 137, killed (SIGKILL)" in killed["body"]
    assert "it ran 1 task; its heap reached" in killed["body"]


def test_the_failure_of_the_job_names_the_executor(lost: Lost) -> None:
    (killed, _) = lost_before_the_end(lost.live)
    failures = [attributes(event) for event in of_name(lost.live, "JobFailureEvent", job_kind="job")]
    (caused,) = [failure for failure in failures if "executorLost.id" in failure]
    assert caused["executorLost.id"] == attributes(killed)["executor_id"]
    assert (caused["executorLost.reason"], caused["executorLost.exitCode"]) == ("killed", 137)


def test_a_replay_tells_the_same(lost: Lost) -> None:
    """But for memory, which a log knows by the ends of tasks alone."""
    live = losses_without_memory(lost.live)
    assert losses_without_memory(lost.replayed) == live
    reasons = [of_one["reason"] for of_one in live.values()]
    assert reasons == ["killed", "out_of_memory", "application_ended", "application_ended"]


def test_sparks_own_metrics(lost: Lost) -> None:
    """Of executors that run nothing as well, and of the driver; what is Flink's has Flink's names."""
    assert sent_by_spark(lost.metrics, "3") == set(SENT_BY_SPARK)
    assert HEAP_MAX in sent_by_spark(lost.metrics, "driver")
    assert value(lost.metrics, "spark_executor_sink_dropped_total") == 0
    # Spark sends once more while it stops. (Before anybody has attached, on a slow machine, it may send in vain.)
    assert "ConnectException" not in lost.run.err.split("SparkContext is stopping")[1]


def test_executors_have_metrics(lost: Lost) -> None:
    """Those that are gone as well, for a while; the driver; and all executors together."""
    heaps = re.findall(
        r'^spark_executor_status_jvm_memory_heap_used_bytes\{app_name="executors",executor_id="(\w+)",'
        r'host="[\w.]+"\} (\S+)$',
        lost.metrics,
        re.MULTILINE,
    )
    assert {"driver", "0", "1"} <= {executor for executor, _ in heaps}
    assert all(float(used) > 0 for _, used in heaps)
    of_all = "spark_application_executor_heap_used"
    total, highest, median = (
        value(lost.metrics, f"{of_all}_{name}_bytes") for name in ("sum", "max", "median")
    )
    assert 0 < median <= highest <= total <= 2 * highest
    assert highest <= value(lost.metrics, f"{of_all}_peak_bytes") < HEAP
    assert value(lost.metrics, "spark_application_executor_heap_limit_bytes") == HEAP
    assert value(lost.metrics, "spark_application_executor_gc_count_total") > 0


def test_the_names_of_the_collectors_receiver(lost: Lost) -> None:
    """All of them, with the receiver's attributes, and what Spark's status store says."""
    of_receiver = [line for line in lost.while_a_stage_runs.splitlines() if "spark_application_id=" in line]
    served = {line.split("{")[0] for line in of_receiver}
    # This driver compiles no code, and a mean of nothing is not a measurement.
    without = {name for name in METRICS if "code_generator" in name and ".average_" in name}
    assert served == {prometheus_name(name) for name in METRICS.keys() - without}
    assert all('spark_application_name="executors"' in line for line in of_receiver)
    assert not any("app_name" in line for line in of_receiver)
    limits = re.findall(
        r'^spark_executor_task_limit\{.*spark_executor_id="(\d)"\} 2.0$',
        lost.while_a_stage_runs,
        re.MULTILINE,
    )
    assert "3" in limits
    (stage,) = re.findall(r'spark_stage_task_active\{.*spark_stage_id="(\d+)"\} 2.0', lost.while_a_stage_runs)
    status = (
        r'^spark_stage_status\{active="true",complete="false",failed="false",pending="false",.*_stage_id="'
    )
    assert re.findall(status + r'(\d+)"\} 1.0$', lost.while_a_stage_runs, re.MULTILINE) == [stage]
    assert value(lost.while_a_stage_runs, "spark_job_stage_active") == 1
    assert value(lost.while_a_stage_runs, "spark_driver_dag_scheduler_stage_count.*running") == 1
    assert value(lost.while_a_stage_runs, "spark_driver_jvm_cpu_time_nanoseconds_total") > 1e9
    assert value(lost.while_a_stage_runs, "spark_executor_storage_memory_usage_bytes.*on_heap.*free") > 1e8
    assert "could not read Spark's status store" not in lost.run.err

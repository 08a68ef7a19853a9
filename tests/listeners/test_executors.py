"""Executors: how many there are, what they measure, and how each ends."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from spark_events.api import Severity
from spark_events.listeners.executors.executor_ends import (
    exit_code,
    exit_meaning,
    lost_executor,
    reason_class,
)
from spark_events.listeners.executors.executor_sources import SourceName, source_name
from spark_events.listeners.executors.memory_limits import MemoryLimits, memory_limits
from tests.support import spark_records as r
from tests.support.spark_records import Feed

MIB, GIB = 1 << 20, 1 << 30
HEAP = "Status.JVM.Memory.Heap.Used"
GC = "Status.JVM.GarbageCollector.All"


def of(feed: Feed, prefix: str, *names: str) -> dict[str, Any]:
    return {name: feed.gauge(prefix + name) for name in names}


def measured(ms: int, heaps: dict[str, int], by: str = "Heartbeats", **more: int) -> dict[str, Any]:
    """Return a record of measurements, with the heap of each executor."""
    values = {executor: {"JVMHeapMemory": heap, **more} for executor, heap in heaps.items()}
    return {"Event": "SparkEventsExecutorMetrics", "Time": r.T0 + ms, by: values}


def lost(ms: int, number: str, reason: str) -> dict[str, Any]:
    return r.executor("Removed", ms, number, **{"Removed Reason": reason})


def test_executors() -> None:
    """How many live, with how many cores; those that go are counted by reason."""
    feed = Feed()(r.application_start(), *(r.executor("Added", n, str(n)) for n in range(3)))
    feed(r.executor("Added", 5, "2"))  # which was found at attach already
    feed(
        r.executor("Removed", 6, "0", **{"Removed Reason": "Executor heartbeat timed out after 126315 ms"}),
        r.executor("Removed", 7, "0", **{"Removed Reason": "again"}),
    )

    assert of(feed, "app.", "executors", "executorCores", "executorsAdded") == {
        "executors": 2,
        "executorCores": 8,
        "executorsAdded": 3,
    }
    assert feed.gauge("app.removed.heartbeat_timeout.executorsRemoved") == 1
    feed.end()


def test_those_that_die_before_they_register() -> None:
    """Each is told once, however often Spark says it, and whether or not others live."""
    feed = Feed()(r.application_start(), r.executor("Added", 1, "7"))
    died = [lost(10 * n, str(n), "Command exited with code 1") for n in range(5)]
    feed(*died, *died, lost(60, "driver", "shutdown"), r.executor("Added", 70, "8"))
    # Only one that had registered can time out: its loss was told before somebody listened.
    feed(lost(75, "9", "Executor heartbeat timed out after 126315 ms"))
    feed(lost(80, "8", "Command exited with code 1"))

    assert feed.gauge("app.removed.exited.executorsRemoved") == 6
    assert of(feed, "app.", "executors", "executorsAdded") == {"executors": 1, "executorsAdded": 2}
    events = [event for event in feed.end() if event.name == "ExecutorLostEvent"]
    bodies = [str(event.body) for event in events]
    assert len(events) == 6
    assert bodies[0] == (
        "Executor 0 is gone: exit code 1, ended by an error; its log has it; "
        "it died before it registered with the driver"
    )
    assert "it lived for 10 ms" in bodies[-1]
    assert "lifetimeMs" not in events[0].attributes


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Executor heartbeat timed out after 126315 ms", "heartbeat_timeout"),
        ("Container killed by YARN for exceeding memory limits. 5.5 GB of 5 GB used.", "out_of_memory"),
        ("Command exited with code 137", "killed"),
        ("Container from a bad node: c. Exit status: 137. Killed by external signal", "killed"),
        ("The executor with id 2 exited with exit code 137(SIGKILL, possible container OOM).", "killed"),
        (
            "\nThe executor with id 2 exited with exit code 137(SIGKILL, possible container OOM).\n"
            "container name: e; container state: terminated; exit code: 137; termination reason: OOMKilled",
            "out_of_memory",
        ),
        ("Container marked as failed: c on host: h. Exit status: -104. Diagnostics: ", "out_of_memory"),
        ("java.lang.OutOfMemoryError: Java heap space", "out_of_memory"),
        ("The executor with id 1 exited with exit code 52(JVM OOM).", "out_of_memory"),
        ("The executor with id 3 was deleted by a user or the framework.", "deleted"),
        (
            "The executor with ID 2 (registered at 1795631462307 ms) was not found in the cluster at the polling "
            "time (1795631465343 ms) which is after the accepted detect delta time (2000 ms) configured by "
            "`spark.kubernetes.executor.missingPodDetectDelta`. The executor may have been deleted but the driver "
            "missed the deletion event. Marking this executor as failed.",
            "deleted",
        ),
        ("Executor Process Lost", "process_lost"),
        ("Pod was evicted: the node had condition: [MemoryPressure]", "evicted"),
        ("The node is drained", "drained"),
        ("Container c on host h was preempted.", "preempted"),
        ("Container marked as failed: c on host: h. Exit status: -102. Diagnostics: ", "preempted"),
        ("Command exited with code 1", "exited"),
        ("Executor killed by driver.", "killed_by_driver"),
        ("Executor decommission: spark scale down", "decommissioned"),
        ("Container preempted by scheduler", "preempted"),
        ("worker lost: Not receiving heartbeat for 60 seconds", "worker_lost"),
        ("worker lost: 127.0.0.2:38261 got disassociated", "worker_lost"),
        ("Worker shutting down", "worker_lost"),
        ("Remote RPC client disassociated. Likely due to containers exceeding thresholds", "connection_lost"),
        ("", "other"),
        ("no idea 4711", "other"),
        (
            "Container from a bad node: c_1 on host: gke-preemptible-7. Exit status: 137. Diagnostics: …",
            "killed",
        ),
        ("Container from a bad node: c_1 on host: idle-pool-7. Exit status: 1. Diagnostics: …", "exited"),
        ("exited with exit code 1(unexpected).\n\t container image: r.io/idle:1\n\t exit code: 1", "exited"),
        (
            "on host: w-drain-1.x. Exit status: 1. java.lang.OutOfMemoryError: Java heap space",
            "out_of_memory",
        ),
        ("Container c_1 on host: w-7 was preempted.", "preempted"),
    ],
)
def test_reasons(reason: str, expected: str) -> None:
    """Sentences become a few words: as labels, sentences with ids in them would be endless."""
    assert reason_class(reason) == expected


@pytest.mark.parametrize(
    ("after_ms", "then", "reason"),
    [
        (17, "Executor heartbeat timed out after 13697 ms", "heartbeat_timeout"),
        (17, "The executor was deleted by a user or the framework", "killed_by_driver"),
        (6_000, "Executor heartbeat timed out after 13697 ms", "killed_by_driver"),
        (None, "", "killed_by_driver"),
    ],
)
def test_an_executor_whose_heartbeats_cease_was_not_meant_to_go(
    after_ms: int | None, then: str, reason: str
) -> None:
    """Spark has it killed first, and may say of that before it says why."""
    feed = Feed()(r.application_start(), r.executor("Added", 0, "1"))
    feed(lost(5_000, "1", "Executor killed by driver."))
    if after_ms is not None:
        feed.tick(5_000 + after_ms)
        feed(lost(5_000 + after_ms, "1", then))
    feed.tick(20_000)
    (event,) = [each for each in feed.end() if each.name == "ExecutorLostEvent"]
    assert (event.attributes["reason"], event.time_ms) == (reason, r.T0 + 5_000)
    assert event.severity.name == ("WARN" if reason == "heartbeat_timeout" else "INFO")


def test_each_has_metrics_and_all_have_them_together() -> None:
    """Gauges show the last heartbeat; counters grow; those of all stay when one has gone."""
    feed = Feed(extra={"spark.metrics.ended.retention": "60s"})
    feed(r.application_start(), *(r.executor("Added", 0, str(n)) for n in range(3)))
    feed(measured(1_000, {"0": 10, "1": 30, "2": 20, "driver": 99}, MinorGCCount=2, TotalGCTime=7))
    feed(measured(2_000, {"0": 5}, MinorGCCount=5, TotalGCTime=9))
    assert feed.gauge(f"app.executor.0.{HEAP}") == 5
    assert feed.gauge(f"app.executor.driver.{HEAP}") == 99
    assert of(feed, "app.executor.0.", f"{GC}.Count", f"{GC}.Time") == {f"{GC}.Count": 5, f"{GC}.Time": 9}
    names = [f"executorHeapUsed{name}" for name in ("Sum", "Max", "Median", "Peak")]
    assert list(of(feed, "app.", *names).values()) == [55, 30, 20, 30]
    assert of(feed, "app.", "executorGcCount", "executorGcTime") == {
        "executorGcCount": 9,
        "executorGcTime": 23,
    }
    feed(lost(3_000, "1", "Executor killed by driver."))
    assert list(of(feed, "app.", *names).values()) == [25, 20, 12.5, 30]
    assert f"app.executor.1.{HEAP}" in feed.tick(62_000).names()
    assert f"app.executor.1.{HEAP}" not in feed.tick(63_001).names()
    feed(measured(64_000, {"1": 30}))
    assert f"app.executor.1.{HEAP}" not in feed.names(), "a late word of one that has gone"
    feed.end()


def test_processes_that_nobody_measures_have_no_metrics() -> None:
    """Spark writes zeros for them; zeros of memory that is measured are zeros."""
    feed = Feed()(r.application_start(), r.executor("Added", 0, "0"))
    feed(
        measured(1_000, {"0": 1}, ProcessTreePythonRSSMemory=0, ProcessTreeJVMRSSMemory=0, DirectPoolMemory=0)
    )
    assert not [name for name in feed.names() if "Status.Process" in name]
    assert feed.gauge("app.executor.0.Status.JVM.Memory.Direct.MemoryUsed") == 0
    feed(measured(2_000, {"0": 1}, ProcessTreePythonRSSMemory=0, ProcessTreeJVMRSSMemory=5))
    assert feed.gauge("app.executor.0.Status.Process.Memory.JVM.Used") == 5
    assert feed.gauge("app.executor.0.Status.Process.Memory.Python.Used") == 0
    feed.end()


def test_of_very_many_only_some_have_metrics_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    """It is said once; when one goes, there is room again; all are in the sums."""
    feed = Feed(extra={"spark.metrics.max-executors": "2"})
    feed(r.application_start(), *(r.executor("Added", 0, str(n)) for n in range(4)))
    with caplog.at_level(logging.WARNING, "spark_events"):
        feed(measured(1_000, dict.fromkeys("0123", 1)), measured(2_000, dict.fromkeys("0123", 1)))
    assert len([name for name in feed.names() if name.endswith(HEAP)]) == 2
    assert feed.gauge("app.executorHeapUsedSum") == 4
    assert [
        record.message for record in caplog.records if "spark.metrics.max-executors" in record.message
    ] == [
        "more than 2 executors at once: further ones get no metrics of their own "
        "(spark.metrics.max-executors); the metrics of all executors together include them"
    ]
    feed(lost(3_000, "0", "Command exited with code 1"), measured(4_000, {"3": 1}))
    assert f"app.executor.3.{HEAP}" in feed.names()
    feed.end()


def test_the_event_of_one_that_is_gone() -> None:
    """With what it was doing, and with the highest of what heartbeats and tasks have measured."""
    feed = Feed()(r.application_start(), r.executor("Added", 0, "1"))
    feed({"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.executor.memory": "1g"}})
    feed(measured(1_000, {"1": 700 * MIB}), measured(1_500, {"1": 900 * MIB}, "Task Peaks"))
    feed(measured(2_000, {"1": 600 * MIB}))
    tasks = {"Running Tasks": 3, "Stage IDs": [4, 7], "Shuffle Bytes Written": 12}
    feed({"Event": "SparkEventsExecutorTasks", "Executor ID": "1", **tasks})
    feed(lost(65_000, "1", "Command exited with code 137"))
    (event,) = [event for event in feed.end() if event.name == "ExecutorLostEvent"]
    said = {
        name: event.attributes.get(name) for name in ("runningTasks", "runningStages", "shuffleBytesWritten")
    }
    assert said == {"runningTasks": 3, "runningStages": "4,7", "shuffleBytesWritten": 12}
    assert event.severity is Severity.WARN
    assert (event.attributes["heapUsed.last"], event.attributes["heapUsed.highest"]) == (600 * MIB, 900 * MIB)
    assert event.body == (
        "Executor 1 is gone: exit code 137, killed (SIGKILL): above a memory limit, by the cluster or "
        "the machine, or by hand; it lived for 1 min 5 s; it ran 3 tasks; its heap reached 900 MiB of 1 GiB"
    )


def test_one_that_somebody_wanted_gone_is_no_warning() -> None:
    feed = Feed()(r.application_start(), r.executor("Added", 0, "1"))
    feed(lost(5, "1", "Executor decommission: spark scale down"))
    (event,) = [event for event in feed.end() if event.name == "ExecutorLostEvent"]
    assert (event.severity, event.body) == (
        Severity.INFO,
        "Executor 1 is gone: decommissioned; it lived for 5 ms",
    )
    assert "heapUsed.last" not in event.attributes


def test_a_cause_that_the_cluster_names_comes_before_the_exit_code() -> None:
    """Which says only how it was ended; what else may have been the cause is not a guess of ours then."""
    feed = Feed()(r.application_start(), r.executor("Added", 0, "1"))
    sentence = (
        "\nThe executor with id 1 exited with exit code 137(SIGKILL, possible container OOM).\nThe API gave the "
        "following brief reason: Evicted\nThe API gave the following message: The node was low on resource: memory."
    )
    feed(lost(5, "1", sentence))
    (event,) = [event for event in feed.end() if event.name == "ExecutorLostEvent"]
    assert event.body == "Executor 1 is gone: evicted, exit code 137, killed (SIGKILL); it lived for 5 ms"
    assert event.attributes["exitMeaning"] == "killed (SIGKILL)"


def test_those_that_live_until_the_end_are_told_of() -> None:
    """With how full they were; the driver is none of them, nor is one that went before."""
    feed = Feed()(
        r.application_start(), *(r.executor("Added", 0, name) for name in ("0", "1", "2", "driver"))
    )
    feed(measured(1_000, {"0": 10, "1": 30, "2": 20, "driver": 99}), lost(2_000, "2", "Executor idle"))
    feed(r.application_end(5_000))
    events = [event for event in feed.end() if event.name == "ExecutorLostEvent"][1:]
    assert [event.attributes["heapUsed.highest"] for event in events] == [10, 30]
    assert {(event.attributes["reason"], event.severity) for event in events} == {
        ("application_ended", Severity.INFO)
    }
    assert (
        events[1].body
        == "Executor 1 is gone: application ended; it lived for 5.0 s; its heap reached 30 bytes"
    )


def test_the_memory_of_a_resource_profile() -> None:
    """What it says takes the place of the settings; what follows from them follows from it."""
    feed = Feed()(r.application_start())
    conf = {"spark.master": "yarn", "spark.executor.memory": "1g", "spark.executor.pyspark.memory": "1g"}
    feed({"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": conf})
    requests = {"memory": {"Amount": 10240}, "offHeap": {"Amount": 512}, "gpu": {"Amount": 2}}
    profile = {"Resource Profile Id": 3, "Executor Resource Requests": requests}
    feed({"Event": "SparkListenerResourceProfileAdded", **profile})
    of_profile = r.executor("Added", 0, "2")
    of_profile["Executor Info"]["Resource Profile Id"] = 3
    feed(r.executor("Added", 0, "1"), of_profile)
    feed(lost(5, "1", "Command exited with code 137"), lost(6, "2", "Command exited with code 137"))
    first, second = (
        {
            name.removeprefix("memoryLimit."): value
            for name, value in event.attributes.items()
            if name.startswith("memoryLimit.")
        }
        for event in feed.end()
        if event.name == "ExecutorLostEvent"
    )
    assert first == {"heap": GIB, "overhead": 384 * MIB, "python": GIB, "container": 2432 * MIB}
    assert second == {"heap": 10 * GIB, "overhead": GIB, "python": GIB, "container": 12 * GIB + 512 * MIB}


@pytest.mark.parametrize(
    ("reason", "code", "meaning"),
    [
        ("Command exited with code 137", 137, "killed (SIGKILL)"),
        ("The executor with id 1 exited with exit code 52(JVM OOM).", 52, "OutOfMemoryError"),
        ("Container marked as failed: container_1. Exit status: -104.", -104, "physical memory"),
        ("Container from a bad node: c on host: h. Exit status: 143. Diagnostics: ", 143, "SIGTERM"),
        ("Command exited with code 135", 135, "signal 7"),
        ("Command exited with code 99", 99, ""),
        ("Executor heartbeat timed out after 126315 ms", None, ""),
    ],
)
def test_exit_codes(reason: str, code: int | None, meaning: str) -> None:
    assert exit_code(reason) == code
    assert meaning in ((exit_meaning(code) if code is not None else None) or "")


def test_a_kill_whose_reason_somebody_says() -> None:
    assert exit_meaning(137, "out_of_memory") == "killed (SIGKILL): above the memory limit of its container"
    assert "by hand" in str(exit_meaning(137, "killed"))


def test_the_executor_that_failed_a_job() -> None:
    message = (
        "Task 3 in stage 0.0 failed 4 times, most recent failure: Lost task 3.3 in stage 0.0 (TID 6) (10.0.0.7 "
        "executor 4): ExecutorLostFailure (executor 4 exited caused by one of the running tasks) Reason: Command "
        "exited with code 137\nDriver stacktrace:"
    )
    assert lost_executor(message) == ("4", "Command exited with code 137")
    assert lost_executor("java.lang.OutOfMemoryError: Java heap space") is None


def test_what_kubernetes_says_of_it_begins_with_a_blank_line() -> None:
    message = (
        "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: \nThe executor with id "
        "2 exited with exit code 137(SIGKILL, possible container OOM).\n\ntermination reason: OOMKilled\n"
        "Driver stacktrace:\n\tat a.B.c(B.scala:1)"
    )
    named = lost_executor(message)
    assert named is not None
    assert (named[0], reason_class(named[1]), exit_code(named[1])) == ("2", "out_of_memory", 137)
    assert named[1].endswith("OOMKilled")
    assert lost_executor("ExecutorLostFailure (executor 2 exited) Reason:" + " " * 65_000) == ("2", "")


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"heaps": {"0": 950 * MIB}}, "its heap was near its limit (950 MiB of 1 GiB)"),
        (
            {
                "heaps": {"0": 1},
                "ProcessTreeJVMRSSMemory": 1000 * MIB,
                "ProcessTreePythonRSSMemory": 350 * MIB,
            },
            "its processes were near the limit of its container (1.3 GiB of 1.4 GiB)",
        ),
        ({"heaps": {"0": 800 * MIB}, "ProcessTreeJVMRSSMemory": 900 * MIB}, None),
    ],
)
def test_memory_that_was_nearly_used_up(memory: dict[str, Any], said: str | None) -> None:
    """Nobody says what it was killed for, so the event says what can have been the reason."""
    conf = {"spark.master": "k8s://x", "spark.executor.memory": "1g"}
    environment = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": conf}
    feed = Feed()(r.application_start(), environment, r.executor("Added", 0, "0"))
    feed(measured(1_000, **memory), lost(2_000, "0", "Command exited with code 137"))
    (event,) = r.seen(feed.end(), "ExecutorLostEvent")
    assert (event.attributes["reason"], event.severity) == ("killed", Severity.WARN)
    assert ("when last measured" in event.body) == (said is not None)
    assert said is None or said in event.body


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({"spark.master": "local[2]", "spark.driver.memory": "3g"}, (3 * GIB, None, None, None)),
        ({"spark.master": "spark://m:7077"}, (GIB, None, None, None)),
        ({"spark.master": "spark://m:7077", "spark.executor.memory": f"{GIB}b"}, (GIB, None, None, None)),
        ({"spark.master": "spark://m:7077", "spark.executor.memory": "2gb"}, (2 * GIB, None, None, None)),
        ({"spark.master": "yarn", "spark.executor.memory": "2048"}, (2 * GIB, 384 * MIB, None, 2432 * MIB)),
        (
            {"spark.master": "yarn", "spark.executor.memory": "10g", "spark.executor.pyspark.memory": "1g"},
            (10 * GIB, GIB, GIB, 12 * GIB),
        ),
        (
            {
                "spark.master": "k8s://x",
                "spark.executor.memory": "10g",
                "spark.memory.offHeap.enabled": "true",
                "spark.memory.offHeap.size": str(GIB),
            },
            (10 * GIB, 4 * GIB, None, 15 * GIB),
        ),
        (
            {"spark.master": "k8s://x", "spark.executor.memoryOverhead": "512m"},
            (GIB, 512 * MIB, None, 1536 * MIB),
        ),
    ],
)
def test_what_an_executor_is_given(conf: dict[str, str], expected: tuple[int | None, ...]) -> None:
    assert memory_limits(conf) == MemoryLimits(*expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "place", "unit"),
    [
        ("jvm.heap.committed", "Status.JVM.Memory.Heap.Committed", "By"),
        ("jvm.non-heap.max", "Status.JVM.Memory.NonHeap.Max", "By"),
        ("jvm.pools.Metaspace.used", "Status.JVM.Memory.Metaspace.Used", "By"),
        ("jvm.pools.G1-Old-Gen.used-after-gc", "Status.JVM.Memory.Pools.G1-Old-Gen.UsedAfterGc", "By"),
        ("jvm.pools.G1-Old-Gen.usage", "Status.JVM.Memory.Pools.G1-Old-Gen.Usage", "1"),
        ("jvm.direct.capacity", "Status.JVM.Memory.Direct.TotalCapacity", "By"),
        ("jvm.G1-Young-Generation.time", "Status.JVM.GarbageCollector.G1-Young-Generation.Time", "ms"),
        ("JVMCPU.jvmCpuTime", "Status.JVM.CPU.Time", "ns"),
        ("executor.bytesRead.count", "executor.bytesRead", ""),
        ("executor.shuffleMergedFetchFallbackCount.count", "executor.shuffleMergedFetchFallbackNumber", ""),
        ("BlockManager.memory.memUsed_MB", "BlockManager.memory.memUsed", "MiBy"),
        ("MySource.queue.depth", "MySource.queue.depth", ""),
        ("ExecutorMetrics.JVMHeapMemory", None, ""),
        ("jvm.heap.used", None, ""),
        ("..", None, ""),
    ],
)
def test_names_of_sparks_metrics_system(name: str, place: str | None, unit: str) -> None:
    """Flink's where Flink has one; heartbeats have said the others."""
    expected = SourceName(tuple(place.split(".")), unit) if place else None
    assert source_name(name) == expected


def test_an_executor_without_tasks_is_seen() -> None:
    """It sends no heartbeats with measurements; once it does, these count."""
    feed = Feed()(r.application_start(), r.executor("Added", 0, "0"))
    sent = {"jvm.heap.used": 7.0, "jvm.heap.max": 100.0, "jvm.total.used": 9.0}
    feed({"Event": "SparkEventsExecutorSources", "Executors": {"0": sent, "9": sent}})
    memory = "app.executor.0.Status.JVM.Memory."
    assert (feed.gauge(f"{memory}Heap.Used"), feed.gauge(f"{memory}Heap.Max")) == (7, 100)
    assert feed.gauge("app.executorHeapUsedMax") == 7
    feed(measured(1_000, {"0": 50}))
    feed({"Event": "SparkEventsExecutorSources", "Executors": {"0": {**sent, "jvm.heap.max": 90.0}}})
    assert (feed.gauge(f"{memory}Heap.Used"), feed.gauge(f"{memory}Heap.Max")) == (50, 90)
    assert not [name for name in feed.names() if ".executor.9." in name]
    feed.end()

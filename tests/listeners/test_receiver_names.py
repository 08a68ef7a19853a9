"""The metrics under the names of the collector's apachesparkreceiver: which, from what, and for how long."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any

import pytest

from spark_events.api import (
    Counter,
    Metric,
)
from spark_events.listeners.passing_series import PassingSeries
from spark_events.listeners.spark_receiver import series as receiver_series
from spark_events.listeners.spark_receiver.names import (
    OF_EXECUTORS,
    OF_JOBS,
    OF_STAGES,
    OF_THE_DRIVER,
    STAGE_STATUS,
    ReceiverMetric,
    api_figures,
    driver_metrics,
)
from tests.support import spark_records as r
from tests.support.paths import REPO
from tests.support.receiver_table import METRICS
from tests.support.spark_records import Feed

MIB = 1 << 20
ON = {"spark.metrics.apachesparkreceiver.enabled": "true"}
AT_ONCE = {**ON, "spark.metrics.job.min-duration": "0", "spark.metrics.ended.retention": "60s"}
GIVEN = {"driver": OF_THE_DRIVER, "executor": OF_EXECUTORS, "stage": OF_STAGES, "job": OF_JOBS}
OF_THE_APPLICATION = {"spark.application.id": "app-1", "spark.application.name": "app"}


def status(ms: int, **parts: Any) -> dict[str, Any]:
    return {"Event": "SparkEventsStatus", "Time": r.T0 + ms, **parts}


def running_stage(number: int = 0, state: str = "ACTIVE", **figures: int) -> dict[str, Any]:
    return {"stageId": number, "attemptId": 1, "status": state, "submissionTime": r.T0, **figures}


def series(feed: Feed, kind: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], Metric]:
    """Return the metrics of the driver, the executor "driver", stage 0 or job 0, by name and attributes."""
    feed.names()
    assert feed.metrics is not None
    prefix = {"driver": "app.driver.", "executor": "app.executor.driver."}.get(kind, f"app.{kind}.0.")
    shown = {}
    for identifier, (metric, variables) in feed.metrics.metrics.items():
        if "spark.application.id" in variables and identifier.startswith(prefix):
            attributes = {key: value for key, value in variables.items() if not key.startswith("spark.")}
            *groups, name = identifier.removeprefix(prefix).split(".")
            values = {"active", "complete"} if name == STAGE_STATUS else {*attributes.values()}
            full_name = ".".join([*(part for part in groups if part not in values), name])
            shown[full_name, tuple(sorted(attributes.items()))] = metric
    return shown


def full(metrics: Iterable[ReceiverMetric]) -> dict[str, int]:
    return {metric.source: position + 1 for position, metric in enumerate(metrics)}


def everything() -> dict[str, Any]:
    """Return a reading in which each figure has a value of its own, in MiB where the driver's are sums."""
    executor = {**full(OF_EXECUTORS), "totalOnHeapStorageMemory": 100 * MIB, "totalOffHeapStorageMemory": 50}
    executor["usedOnHeapStorageMemory"] = 30 * MIB
    driver = {metric.source: 1_000 + position for position, metric in enumerate(OF_THE_DRIVER)}
    return status(
        1_000,
        Executors={"driver": {**executor, "hostPort": "h:1"}},
        Stages=[running_stage(0, **full(OF_STAGES))],
        Jobs=[{"jobId": 0, "status": "RUNNING", "submissionTime": r.T0, **full(OF_JOBS)}],
        Driver=driver,
    )


@pytest.mark.parametrize("kind", sorted(GIVEN))
def test_the_names_are_the_receivers(kind: str) -> None:
    """Each of its metrics, with its unit, its kind and the values of its attributes; and no other."""
    mine: dict[str, tuple[str, bool, set[tuple[tuple[str, str], ...]]]] = {}
    for metric in GIVEN[kind]:
        name = f"spark.{kind}.{metric.name}"
        unit, grows, attributes = mine.setdefault(name, (metric.unit, metric.grows, set()))
        assert (unit, grows) == (metric.unit, metric.grows)
        attributes.add(tuple(sorted(metric.attributes.items())))
    theirs = {name: row for name, row in METRICS.items() if name.startswith(f"spark.{kind}.")}
    theirs.pop(f"spark.stage.{STAGE_STATUS}", None)

    assert mine == theirs


def test_each_figure_is_shown_under_its_name() -> None:
    """With nothing but the receiver's attributes, and the value that was read."""
    feed = Feed(extra=AT_ONCE)(r.application_start(), everything())
    feed.end()
    shown = {kind: series(feed, kind) for kind in GIVEN}

    for kind in ("stage", "job"):
        values = {key: value(metric) for key, metric in shown[kind].items()}
        values.pop((STAGE_STATUS, status_attributes("active")), None)
        assert values == {
            (metric.name, tuple(sorted(metric.attributes.items()))): position + 1
            for position, metric in enumerate(GIVEN[kind])
        }
    memory = {
        (attributes["location"], attributes["state"]): value(metric)
        for (name, pairs), metric in shown["executor"].items()
        if name == "storage_memory.usage" and (attributes := dict(pairs))
    }
    used_off_heap = full(OF_EXECUTORS)["usedOffHeapStorageMemory"]
    assert memory == {
        ("on_heap", "used"): 30 * MIB,
        ("on_heap", "free"): 70 * MIB,
        ("off_heap", "used"): used_off_heap,
        ("off_heap", "free"): 50 - used_off_heap,
    }
    on_heap = (("location", "on_heap"), ("state", "free"))
    assert value(shown["driver"]["block_manager.memory.usage", on_heap]) == 70, "in MiB"
    assert len(shown["driver"]) == len(OF_THE_DRIVER)


def value(metric: Metric) -> Any:
    return metric.count if isinstance(metric, Counter) else metric.value  # type: ignore[attr-defined]


def status_attributes(state: str) -> tuple[tuple[str, str], ...]:
    names = ("active", "complete", "failed", "pending")
    return tuple((name, "true" if name == state else "false") for name in names)


def test_the_identity_of_each() -> None:
    """The receiver's resource attributes."""
    feed = Feed(extra=AT_ONCE)(r.application_start(), everything())
    feed.end()
    assert feed.metrics is not None
    identities = {
        identifier: {key: text for key, text in variables.items() if key.startswith("spark.")}
        for identifier, (_, variables) in feed.metrics.metrics.items()
    }
    assert identities["app.driver.jvm_cpu_time"] == OF_THE_APPLICATION
    assert identities["app.executor.driver.time"] == {**OF_THE_APPLICATION, "spark.executor.id": "driver"}
    assert identities["app.job.0.task.active"] == {**OF_THE_APPLICATION, "spark.job.id": "0"}
    assert identities["app.stage.0.jvm_gc_time"] == {
        **OF_THE_APPLICATION,
        "spark.stage.id": "0",
        "spark.stage.attempt.id": "1",
    }


def test_off_unless_it_is_configured() -> None:
    feed = Feed()(r.application_start())
    before = feed.names()
    assert feed(everything()).names() == before
    feed.end()


def test_what_is_not_measured_is_not_shown() -> None:
    """A heap of 0 is none; a figure that this Spark does not have is left out, and one that goes has no value."""
    feed = Feed(extra=AT_ONCE)(r.application_start())
    empty = {"ExecutorMetrics.JVMHeapMemory": 0, "ExecutorMetrics.DirectPoolMemory": 0}
    feed(status(0, Driver=empty, Executors={"1": {"memoryUsed": 5, "hostPort": "h:1"}}))
    assert series(feed, "driver") == {}
    assert {name for name in feed.names() if name.startswith("app.executor.1")} == {
        "app.executor.1.memory.usage"
    }
    queue = "LiveListenerBus.queue.appStatus.size"
    feed(status(1_000, Driver={queue: 3}), status(2_000, Driver={}))
    assert feed.gauge("app.driver.live_listener_bus.queue_size") is None
    feed.end()


def test_counts_only_grow() -> None:
    """Spark's number of failed stages falls when they run again; a monotonic sum must not."""
    feed = Feed(extra=AT_ONCE)(r.application_start())
    for number in (2, 0, 1):
        feed(status(0, Driver={"DAGScheduler.stage.failedStages": number}))
    assert feed.gauge("app.driver.dag_scheduler.stage.failed") == 3
    feed.end()


def test_stages_come_and_go() -> None:
    """After ``job.min-duration``, with what was counted until then; the last figures stay for ``ended.retention``."""
    feed = Feed(extra={**ON, "spark.metrics.job.min-duration": "10s", "spark.metrics.ended.retention": "60s"})
    feed(r.application_start(), status(1_000, Stages=[running_stage(numCompleteTasks=3, numActiveTasks=2)]))
    assert series(feed.tick(9_000), "stage") == {}
    feed.tick(10_000)
    done = (("result", "completed"),)
    assert value(series(feed, "stage")["task.result", done]) == 3
    assert (STAGE_STATUS, status_attributes("active")) in series(feed, "stage")
    late = running_stage(state="COMPLETE", numCompleteTasks=4, numActiveTasks=1)
    feed(status(12_000, Stages=[late]), status(13_000, Stages=[{**late, "numActiveTasks": 0}]))
    feed(status(14_000, Stages=[]))
    shown = series(feed, "stage")
    assert value(shown["task.result", done]) == 4
    assert value(shown["task.active", ()]) == 0, "the last task of one that had ended"
    states = [attributes for name, attributes in shown if name == STAGE_STATUS]
    assert states == [status_attributes("complete")]
    assert series(feed.tick(71_999), "stage") != {}
    assert series(feed.tick(72_001), "stage") == {}
    feed.end()


def test_what_spark_forgot_goes_too() -> None:
    """An executor, a job or a stage that is in no reading any more."""
    feed = Feed(extra={**AT_ONCE, "spark.metrics.ended.retention": "0"})(r.application_start(), everything())
    assert all(series(feed, kind) for kind in ("executor", "stage", "job"))
    feed(status(2_000)).tick(2_001)
    assert not any(series(feed, kind) for kind in ("executor", "stage", "job"))
    feed.end()


def test_of_very_many_only_some_are_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that ended count until they are gone; the others get their series then."""
    monkeypatch.setattr(receiver_series, "MOST_STAGES", 3)
    feed = Feed(extra=AT_ONCE)(r.application_start())

    def shown() -> set[str]:
        return {
            match for name in feed.names() for match in re.findall(r"^app\.stage\.(\d+)\.task\.active", name)
        }

    all_stages = [running_stage(number, numActiveTasks=1) for number in range(5)]
    with caplog.at_level(logging.WARNING, "spark_events"):
        feed(status(0, Stages=all_stages)).tick(1).tick(2)
    assert shown() == {"0", "1", "2"}
    assert len([one for one in caplog.records if "more stages at once" in one.message]) == 1
    feed(status(1_000, Stages=all_stages[1:])).tick(2_000)
    assert shown() == {"0", "1", "2"}
    assert len(feed.tick(61_000).names() & {f"app.stage.{n}.task.active" for n in range(5)}) == 3
    assert shown() == {"1", "2", "3"}
    feed.end()


def test_series_that_wait_for_room() -> None:
    """However many there are; what ends meanwhile never gets any."""
    feed = Feed()(r.application_start())
    passing = PassingSeries(0, 10, most=1)
    made: list[str] = []
    for key in "abc":
        passing.begun(key, 0, lambda key=key: made.append(key) or feed.registry.root.add_group(key))  # type: ignore[func-returns-value, misc]
    passing.ended("b", 5)
    passing.ended("a", 5)
    passing.tick(14)
    assert (made, passing.waiting) == (["a"], 1)
    passing.tick(15)
    assert (made, passing.waiting) == (["a", "c"], 0)
    feed.end()


def test_the_page_has_each_name() -> None:
    """docs/apachesparkreceiver.md says which there are, and from what."""
    page = (REPO / "docs" / "apachesparkreceiver.md").read_text()
    named = set(re.findall(r"^\| `([\w.]+)`", page, re.MULTILINE))

    assert named == set(METRICS)


def test_what_the_driver_is_asked_for() -> None:
    """Names of methods and of metrics alone; what is computed from them is not asked for."""
    assert {"numActiveTasks", "totalOnHeapStorageMemory", "diskUsed"} <= set(api_figures())
    assert not [name for name in api_figures() if "." in name or name.startswith("free")]
    assert "CodeGenerator.compilationTime" in driver_metrics()
    assert not [name for name in driver_metrics() if name.endswith((".count", ".mean"))]

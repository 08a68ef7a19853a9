"""Metrics of what Spark does: tasks, stages, jobs, and the series that come and go with them."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.listeners.passing_series import PassingSeries
from spark_events.listeners.scopes import ScopeFormats
from spark_events.listeners.settings import read_settings
from spark_events.runtime.registry import Registry
from tests.support import spark_records as r
from tests.support.spark_records import Feed

TASKS = {"Running": 1, "Finished": 2, "Failed": 1}
SHOWN = {"spark.metrics.job.min-duration": "0"}
ALL, NOT_ALL = "ALL_RUNNING_OR_FINISHED", "NOT_ALL_RUNNING_OR_FINISHED"


def of(feed: Feed, prefix: str, *names: str) -> dict[str, Any]:
    return {name: feed.gauge(prefix + name) for name in names}


def test_work_of_the_application() -> None:
    """Sums grow with each record of a stage's tasks; the end of a stage leaves nothing active."""
    feed = Feed()(r.application_start(), r.job_start(1), r.stage("Submitted", 2))
    names = ("activeTasks", "finishedTasks", "failedTasks", "activeStages", "finishedStages", "failedStages")
    feed(r.stage_tasks(3, None, 0, **TASKS, JVM_GC_Time=5, Disk_Bytes_Spilled=100))
    assert of(feed, "app.", *names) == dict(zip(names, (1, 2, 1, 1, 0, 0), strict=True))
    feed(r.stage_tasks(4, None, 0, Running=0, Finished=4, Failed=1, JVM_GC_Time=9, Disk_Bytes_Spilled=100))
    feed(r.stage("Completed", 5), r.job_end(6))
    sums = of(feed, "app.", "jvmGcTime", "diskSpilledBytes", "finishedJobs", "failedJobs", "canceledJobs")

    assert of(feed, "app.", *names) == dict(zip(names, (0, 4, 1, 0, 1, 0), strict=True))
    assert sums == {
        "jvmGcTime": 9,
        "diskSpilledBytes": 100,
        "finishedJobs": 1,
        "failedJobs": 0,
        "canceledJobs": 0,
    }
    feed.end()


def test_a_cancelled_stage_has_not_failed() -> None:
    """Nor has it finished: neither with its job, nor with its application."""
    names = ("finishedStages", "failedStages", "canceledStages")
    feed = Feed(extra=SHOWN)(r.application_start(), r.job_start(0, 7), r.stage("Submitted", 1))
    cancelled = "Job 7 cancelled part of cancelled job group nightly"
    feed(r.stage("Completed", 2, reason=cancelled))
    assert list(of(feed, "app.job.7.", *names[:2]).values()) == [0, 0]
    feed(r.job_end(3, 7, message=cancelled))
    assert list(of(feed, "app.", *names).values()) == [0, 0, 1]
    feed(r.job_start(4, 8, (1,)), r.stage("Submitted", 5, 1), r.application_end(6))
    assert list(of(feed, "app.", *names).values()) == [0, 0, 2]
    feed.end()


def test_jobs_and_stages_that_take_time_have_series_of_their_own() -> None:
    """They come after ``job.min-duration``, and leave ``ended.retention`` after the end."""
    feed = Feed(extra={"spark.metrics.job.min-duration": "10s", "spark.metrics.ended.retention": "60s"})
    feed(r.application_start(), r.job_start(0, 7, (0, 1)), r.stage("Submitted", 100))
    assert "app.job.7.numTasks" not in feed.tick(9_000).names()
    feed.tick(10_100)
    feed(r.stage_tasks(10_200, None, 0, **TASKS))
    job = of(feed, "app.job.7.", "numTasks", "activeTasks", "finishedTasks", "activeStages", "numStages")
    assert list(job.values()) == [8, 1, 2, 1, 2]
    assert feed.gauge("app.stage.0.finishedTasks") == 2
    feed(r.stage("Completed", 11_000, reason="boom"), r.job_end(12_000, 7, message="boom"))
    assert of(feed, "app.job.7.", "activeTasks", "failedStages", "uptime") == {
        "activeTasks": 0,
        "failedStages": 1,
        "uptime": 0,
    }
    names = feed.tick(71_500).names()
    assert "app.stage.0.numTasks" not in names
    assert "app.job.7.numTasks" in names
    assert not any(name.startswith("app.job.7") for name in feed.tick(72_000).names())
    feed.end()


def test_short_jobs_have_none() -> None:
    """However many there are: nobody could read them."""
    feed = Feed(extra={"spark.metrics.job.min-duration": "10s"})(r.application_start())
    before = feed.names()
    for job in range(500):
        feed(r.job_start(job * 10, job), r.job_end(job * 10 + 5, job)).tick(job * 10 + 9)

    names = feed.names() - before
    assert all(name.endswith(".events") for name in names)
    feed.end()


def test_series_that_pass_leave_nothing_behind() -> None:
    """A thousand of them, shown and not: the maps are empty at the end."""
    registry = Registry(())
    series = PassingSeries(10, 20)
    for number in range(1_000):
        group = registry.root.detached("job", (str(number),), {}, {})
        series.begun(number, number, lambda group=group: group)  # type: ignore[misc]
        series.tick(number)
        if number >= 5:
            series.ended(number - 5, number)
        if number >= 50:
            series.ended(number - 50, number)
    for number in range(1_000):
        series.ended(number, 1_000)
    series.tick(2_000)

    assert (series._waiting, series._shown, len(series._leaving)) == ({}, {}, 0)


def test_all_subtasks_running_or_finished() -> None:
    """True while all tasks of all active stages run or have finished, of the application and of a query."""
    names = ("allSubTasksRunningOrFinishedState", "allSubTasksRunningOrFinishedTimeTotal")
    feed = Feed(extra={"spark.metrics.job.status.enable": "STATE,TOTAL_TIME"})
    feed(r.application_start(), r.query_started(0), r.job_start(1, group="run-1"), r.stage("Submitted", 10))
    seen = []
    for record in (
        r.stage_tasks(20, ALL, 1),
        r.stage_tasks(50, NOT_ALL, 2),
        r.stage_tasks(100, ALL, 3),
        r.stage("Completed", 160),
    ):
        feed(record)
        seen.append([feed.gauge(prefix + names[0]) for prefix in ("app.", "app.query.orders.")])
    total = feed.gauge("app.query.orders." + names[1])
    feed.end()

    assert seen == [[1, 1], [0, 0], [1, 1], [0, 0]]
    assert total == 30 + 60


def test_sla_met_and_missed() -> None:
    """A checkpoint in time is met; one that is late is missed once, and not met as well."""
    feed = Feed(checkpoint__sla="1s")(r.application_start(), r.query_started(0), r.batch_begins(10, 0))
    feed(r.progress(10, 0), r.batch_begins(200, 1), r.progress(200, 1))
    feed(r.batch_begins(400, 2)).tick(5_000).tick(9_000)
    feed(r.progress(400, 2, took=9_000), r.batch_begins(9_500, 3), r.progress(9_500, 3, took=2_000))
    found = of(feed, "app.query.orders.", "checkpointSlaMet", "checkpointSlaMissed", "checkpointSla")
    feed.end()

    assert found == {"checkpointSlaMet": 2, "checkpointSlaMissed": 2, "checkpointSla": 1_000}


def test_no_sla_no_counters() -> None:
    """Without an SLA there is nothing to meet."""
    names = Feed()(r.application_start(), r.query_started(0)).names()

    assert not any("Sla" in name for name in names)


def test_batches_against_their_interval() -> None:
    """How long the last took, how long there was, and how many took longer."""
    feed = Feed()(r.application_start(), r.query_started(0, triggerIntervalMs=1_000))
    feed(r.progress(0, 0, took=999), r.progress(1_000, 1, took=1_000), r.progress(2_000, 2, took=1_001))
    found = of(feed, "app.query.orders.", "batchDuration", "triggerInterval", "batchesOverInterval")
    feed.end()

    assert found == {"batchDuration": 1_001, "triggerInterval": 1_000, "batchesOverInterval": 1}


def test_rocksdb_and_rows() -> None:
    """RocksDB's figures that there are, by their own names; rows of state and sink."""
    custom = {
        "rocksdbSstFileSize": 900,
        "rocksdbCommitFileSyncLatencyMs": 11,
        "rocksdbGetCount": 6,
        "SnapshotLastUploaded.partition_1_default": 4,
        "loadedMapCacheHitCount": 3,
    }
    state = {"customMetrics": custom, "numRowsUpdated": 3, "numRowsRemoved": 1, "commitTimeMs": 4}
    feed = Feed()(r.application_start(), r.query_started(0))
    for batch in range(2):
        feed(r.progress(batch, batch, stateOperators=[state, state], sink={"numOutputRows": 5 - 6 * batch}))
    found = of(
        feed,
        "app.query.orders.",
        "rocksdbSstFileSize",
        "rocksdbCommitFileSyncLatency",
        "rocksdbGetNumber",
        "stateRowsUpdated",
        "stateRowsRemoved",
        "stateCommitTime",
        "outputRows",
    )
    names = feed.names()
    feed.end()

    assert list(found.values()) == [1_800, 22, 12, 12, 4, 8, 5]
    assert not any("partition" in name or "loadedMap" in name for name in names)


def test_a_query_that_ended_on_purpose_leaves() -> None:
    """After the grace; one that failed stays, for it is down; a restart within the grace goes on."""
    feed = Feed(extra={"spark.metrics.ended.retention": "60s"})(r.application_start(), r.query_started(0))
    feed(r.progress(10, 0), r.terminated()).tick(30_000)
    feed(r.query_started(40_000, run="run-2")).tick(90_000)
    assert feed.gauge("app.query.orders.inputRows") == 7
    assert feed.gauge("app.query.orders.numRestarts") == 1
    feed(r.terminated("run-2", exception="boom")).tick(10_000_000)
    assert feed.gauge("app.query.orders.FAILED.status") == 1
    feed(r.query_started(20_000_000, run="run-3"), r.progress(20_000_100, 1, run="run-3"))
    assert feed.gauge("app.query.orders.info.info") == 1
    feed(r.terminated("run-3")).tick(20_100_000)
    assert not any("orders" in name for name in feed.names())
    feed(r.query_started(30_000_000, run="run-4"))
    assert feed.gauge("app.query.orders.inputRows") == 0
    feed.end()


def test_the_late_end_of_a_run_does_not_end_the_one_after_it() -> None:
    """The metrics stay, and the metric ``info`` tells of the run that goes on."""
    feed = Feed(extra={"spark.metrics.ended.retention": "1s"})(r.application_start(), r.query_started(0))
    feed(r.query_started(10, run="run-2"), r.terminated("run-1")).tick(10_000)
    assert "app.query.orders.uptime" in feed.names()
    assert feed.metrics is not None
    infos = [
        variables
        for name, (_, variables) in feed.metrics.metrics.items()
        if name.endswith("orders.info.info")
    ]
    assert [variables["run_id"] for variables in infos] == ["run-2"]
    feed.end()


def test_of_failed_queries_the_last_hundred_stay() -> None:
    """An application that starts a new query each minute, all of which fail, has an end as well."""
    feed = Feed()(r.application_start())
    for n in range(130):
        feed(r.query_started(n * 10, run=f"run-{n}", query=f"id-{n}", name=None))
        feed(r.terminated(f"run-{n}", exception="boom")).tick(n * 10 + 5)
    names = feed.names()
    feed.end()

    assert "app.query.id-129.uptime" in names
    assert (
        len({name.split(".")[2] for name in names if name.endswith(".uptime") and ".query." in name}) == 100
    )
    assert not any("id-3." in name or name == ".id-3" for name in names)


def test_scope_formats() -> None:
    """Dotted names begin as configured; variables that are empty leave their place out."""
    feed = Feed(
        extra={
            "spark.metrics.scope.application": "spark.<app_id>",
            "spark.metrics.scope.query": "q.<query_name>",
            "spark.metrics.scope.job": "<query_name>.<job_id>",
            "spark.metrics.scope.stage": "stages.<stage_id>-<stage_attempt>",
            **SHOWN,
        }
    )
    feed(r.application_start(), r.query_started(0), r.job_start(1, 5, group="run-1"), r.job_start(1, 6, (9,)))
    names = feed(r.stage("Submitted", 2)).names()
    feed.end()

    expected = {"spark.app-1.uptime", "q.orders.uptime", "orders.5.uptime", "6.uptime", "stages.0-0.numTasks"}
    assert expected <= names


def test_scope_formats_of_the_driver_know_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is that of the driver."""
    monkeypatch.setattr("socket.gethostname", lambda: "node-7")
    settings, errors = read_settings({"spark.metrics.scope.query": "<host>.<query_name>"})
    feed = Feed(extra={"spark.metrics.scope.query": "<host>.<query_name>"})(r.application_start())
    names = feed(r.query_started(0)).names()
    feed.end()

    assert "node-7.orders.uptime" in names
    assert not errors
    assert settings.scopes.query.render({"host": "h", "query_name": "q"}) == ("h", "q")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<host>.<job_id>", "<job_id> is not one of them"),
        ("a..b", "a part before, between or after dots is empty"),
        ("", "a part before, between or after dots is empty"),
    ],
)
def test_wrong_scope_formats(text: str, wrong: str) -> None:
    """The error names the key, the value, what is allowed and what is wrong."""
    settings, (error,) = read_settings({"spark.metrics.scope.query": text})

    assert str(error).startswith(f"spark.metrics.scope.query: {text!r} is not valid; expected text and")
    assert wrong in str(error)
    assert settings.scopes.query == ScopeFormats().query


def test_the_delimiter_of_all_metric_reporters() -> None:
    """Flink's ``metrics.scope.delimiter``; a reporter's own wins."""
    feed = Feed(extra={"spark.metrics.scope.delimiter": "/"})(r.application_start())
    assert "app/uptime" in feed.names()
    feed.end()
    own = {"spark.metrics.scope.delimiter": "/", "spark.metrics.reporter.x.scope.delimiter": "-"}
    feed = Feed(extra=own)(r.application_start())
    assert "app-uptime" in feed.names()
    feed.end()


def python_stage(ms: int, stage_id: int, **values: str) -> dict[str, Any]:
    """Return the end of a stage that tells these sums of Python workers, by the ids of their metrics."""
    record = r.stage("Completed", ms, stage_id)
    names = {
        "7": "time to start Python workers",
        "8": "data sent to Python workers",
        "9": "internal.metrics.x",
    }
    record["Stage Info"]["Accumulables"] = [
        {"ID": int(number), "Name": names[number], "Value": value}
        for number, value in ((key.removeprefix("of_"), value) for key, value in values.items())
    ]
    return record


def test_what_python_workers_cost() -> None:
    """A sum that several stages tell counts once; a query has its own."""
    feed = Feed()(r.application_start(), r.query_started(0))
    assert feed.gauge("app.pythonBootTime") == 0
    feed(r.job_start(1, 0, (0, 1)), python_stage(2, 0, of_7="300", of_9="5"), python_stage(3, 1, of_7="500"))
    feed(r.job_end(4), r.job_start(5, 1, (2,), group="run-1"), r.stage("Submitted", 6, 2))
    feed(python_stage(7, 2, of_8="1000"), python_stage(8, 2, of_8="1000"))
    assert feed.gauge("app.pythonBootTime") == 500
    assert feed.gauge("app.pythonDataSent") == 1_000
    assert feed.gauge("app.query.orders.pythonDataSent") == 1_000
    assert feed.gauge("app.query.orders.pythonBootTime") == 0


def test_size_of_scanned_files() -> None:
    """By the plans of SQL executions, for Spark's count of what tasks read misses Parquet."""
    end = {**r.execution("End", 200), "Files": {"Read": 30, "Read Bytes": 420_947_809}}
    feed = Feed()(r.application_start(), r.execution("Start", 100), end)
    size = feed.gauge("app.scannedFilesBytes")
    feed.end()

    assert size == 420_947_809

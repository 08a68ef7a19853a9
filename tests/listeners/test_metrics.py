"""Metrics of queries and applications: statuses and their times, checkpoints, rows, backlog, state."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.api import ApplicationInfo, JobStatus, Metric
from spark_events.listeners.application.job_status import JobStatusTracker, StatusMetrics
from spark_events.listeners.emitter import Emitter, Entity
from spark_events.listeners.queries.query_metrics import backlog
from spark_events.listeners.record_fields import TIMESTAMP
from spark_events.listeners.settings import CURRENT_TIME, STATE, TOTAL_TIME, read_settings
from spark_events.listeners.spark_records import APPLICATION_DEAD, INTERACTIVE
from spark_events.runtime.registry import Registry
from spark_events.runtime.scope import ScopeGroup
from tests.support.spark_records import (
    T0,
    Feed,
    application_end,
    application_start,
    batch_begins,
    idle,
    progress,
    query_started,
    terminated,
)

ORDERS = "app.query.orders."


class Kept:
    """A scope tree that keeps its metrics, and a job whose status changes."""

    def __init__(self, now: list[int]) -> None:
        self.metrics: dict[str, Metric] = {}
        group = ScopeGroup(self, (), (), {}, {})  # type: ignore[arg-type]
        self.status = StatusMetrics(group, "query", (STATE, CURRENT_TIME, TOTAL_TIME), lambda: now[0])
        self.run = self.new_run()

    def new_run(self) -> JobStatusTracker:
        entity = Entity("query", "run", "query")
        self.run = JobStatusTracker(Emitter(Registry(()).root, ApplicationInfo()), entity, Registry(()).root)
        self.status.watch(self.run)
        return self.run

    def add_metric(self, group: ScopeGroup, name: str, metric: Metric) -> None:
        self.metrics[name] = metric

    def __getitem__(self, name: str) -> float | None:
        return self.metrics[name].value  # type: ignore[attr-defined, no-any-return]


def test_times_of_statuses() -> None:
    """The time of a stay, the sum of all of them, uptime and downtime."""
    now = [0]
    kept = Kept(now)
    seen = []
    steps = [
        (0, JobStatus.CREATED),
        (10, JobStatus.RUNNING),
        (110, JobStatus.FAILED),
        (150, JobStatus.RESTARTING),
    ]
    for at, status in (*steps, (160, JobStatus.RUNNING), (200, JobStatus.CANCELED)):
        kept.run.change(status, at)
        now[0] = at + 5
        names = ("runningState", "runningTime", "uptime", "runningTimeTotal", "downtime")
        seen.append(tuple(kept[name] for name in names))

    assert seen == [
        (0, 0, 0, 0, 0),  # it never ran, so it is not down
        (1, 5, 5, 5, 0),
        (0, 0, 0, 100, 5),
        (0, 0, 0, 100, 45),
        (1, 5, 5, 105, 0),
        (0, 0, 0, 140, None),
    ]
    assert (kept["failedTimeTotal"], kept["statusAge"]) == (40, 5)


def downtimes(*changes: tuple[int, JobStatus]) -> list[int | None]:
    """Return how long a query is down 5 ms after each change of status, each of a run of its own."""
    now = [0]
    kept = Kept(now)
    after = []
    for at, status in changes:
        kept.new_run()
        kept.run.change(status, at)
        now[0] = at + 5
        after.append(kept["downtime"])
    return after


def test_a_start_after_a_stop_is_no_downtime() -> None:
    """However long its first batch takes; a start after a failure is."""
    assert downtimes(
        (0, JobStatus.RUNNING),
        (10, JobStatus.CANCELED),
        (20, JobStatus.RESTARTING),
        (50, JobStatus.RUNNING),
        (60, JobStatus.FAILED),
        (70, JobStatus.RESTARTING),
    ) == [0, None, 0, 0, 5, 15]


def test_what_fails_before_it_ever_runs_is_down_since_then() -> None:
    """As in the report; however often it is started again, and whatever it was stopped for before."""
    assert downtimes(
        (0, JobStatus.CREATED),
        (10, JobStatus.FAILED),
        (20, JobStatus.RESTARTING),
        (30, JobStatus.FAILED),
        (40, JobStatus.RESTARTING),
        (50, JobStatus.RUNNING),
        (60, JobStatus.CANCELED),
        (70, JobStatus.RESTARTING),
        (80, JobStatus.FAILED),
    ) == [0, 5, 15, 25, 35, 0, None, 0, 5]


def test_a_clock_that_was_set_back() -> None:
    """No time is negative."""
    kept = Kept([0])
    kept.run.change(JobStatus.RUNNING, 1_000)
    kept.run.change(JobStatus.FAILED, 500)

    assert [kept[name] for name in ("runningTimeTotal", "failedTime", "downtime", "statusAge")] == [0] * 4


def test_of_two_runs_the_newest_counts() -> None:
    """The late end of a run says nothing of the one that has taken its place."""
    kept = Kept([100])
    old = kept.run
    old.change(JobStatus.RUNNING, 10)
    kept.new_run().change(JobStatus.RUNNING, 50)
    old.change(JobStatus.FAILED, 60)

    assert kept["runningState"] == 1
    assert not kept.status.watches(old)


@pytest.mark.parametrize(
    ("enabled", "endings"),
    [
        (None, {"Time"}),
        ("STATE", {"State"}),
        ("STATE,CURRENT_TIME,TOTAL_TIME", {"State", "Time", "TimeTotal"}),
        ("", set()),
    ],
)
def test_which_status_metrics_there_are(enabled: str | None, endings: set[str]) -> None:
    """As Flink's ``metrics.job.status.enable`` chooses; for each status of application and query."""
    key = "spark.metrics.job.status.enable"
    feed = Feed(extra={} if enabled is None else {key: enabled})
    names = feed(application_start(), query_started(0)).names()
    found = {name for name in names if ".restarting" in f".{name.rsplit('.', 1)[1]}"}

    assert found == {prefix + "restarting" + ending for prefix in (ORDERS, "app.") for ending in endings}
    assert {ORDERS + "uptime", ORDERS + "downtime", "app.uptime"} <= names
    feed.end()


def test_a_wrong_choice_is_an_error() -> None:
    """It names the key, the value and what is allowed."""
    _, (error,) = read_settings({"spark.metrics.job.status.enable": "STATE,TIMES"})

    assert str(error) == (
        "spark.metrics.job.status.enable: 'STATE,TIMES' is not valid; expected a list of some of STATE, "
        "CURRENT_TIME, TOTAL_TIME ('TIMES' is not one of them)"
    )


def test_checkpoints() -> None:
    """Flink's checkpoint metrics, over a failure and a restart."""
    state = [{"memoryUsedBytes": 700, "customMetrics": {"rocksdbBytesCopied": 50, "rocksdbSstFileSize": 900}}]
    feed = Feed()(application_start(), query_started(0))
    assert feed.gauge(ORDERS + "lastCheckpointDuration") is None
    feed(batch_begins(100, 0))
    assert feed.gauge(ORDERS + "numberOfInProgressCheckpoints") == 1
    assert feed.gauge(ORDERS + "totalNumberOfCheckpoints") == 1
    feed(progress(100, 0, took=200, stateOperators=state), batch_begins(400, 1), terminated(exception="Boom"))
    feed(query_started(900, run="run-2"), batch_begins(1_000, 1, run="run-2"), idle(1_500, run="run-2"))
    found = {
        name: feed.gauge(ORDERS + name)
        for name in (
            "totalNumberOfCheckpoints",
            "numberOfCompletedCheckpoints",
            "numberOfFailedCheckpoints",
            "numberOfInProgressCheckpoints",
            "lastCompletedCheckpointId",
            "lastCheckpointDuration",
            "lastCheckpointFullSize",
            "lastCheckpointSize",
        )
    }
    age = feed.gauge(ORDERS + "lastCheckpointAge")
    feed.end()

    assert found == {
        "totalNumberOfCheckpoints": 2,
        "numberOfCompletedCheckpoints": 1,
        "numberOfFailedCheckpoints": 1,
        "numberOfInProgressCheckpoints": 0,
        "lastCompletedCheckpointId": 0,
        "lastCheckpointDuration": 200,
        "lastCheckpointFullSize": 900,
        "lastCheckpointSize": 50,
    }
    assert age is not None
    assert age > 0


@pytest.mark.parametrize(
    "end", [application_end(900), {"Event": APPLICATION_DEAD, TIMESTAMP: T0 + 900, "Reason": "silent"}]
)
def test_a_query_that_ends_with_its_application_does_nothing_any_longer(end: dict[str, Any]) -> None:
    feed = Feed()(application_start(), query_started(0), batch_begins(100, 0))
    feed(progress(100, 0, sources=[{"inputRowsPerSecond": 20.0}]), batch_begins(400, 1))
    before = [feed.gauge(ORDERS + name) for name in ("numberOfInProgressCheckpoints", "inputRate")]

    feed(end)

    after = [feed.gauge(ORDERS + name) for name in ("numberOfInProgressCheckpoints", "inputRate")]
    assert (before, after) == ([1, 20.0], [0, None])


def test_rows_rates_watermark_and_state() -> None:
    """What a progress says; ``NaN``, which Spark writes as text, is not a value."""
    first = {"numInputRows": 5, "inputRowsPerSecond": "NaN", "processedRowsPerSecond": 10.0}
    second = {"numInputRows": 2, "inputRowsPerSecond": 4.0, "processedRowsPerSecond": 20.0}
    state = {"numRowsTotal": 7, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 3}
    fields: dict[str, Any] = {
        "sources": [first, second],
        "stateOperators": [state, state],
        "eventTime": {"watermark": "2023-11-14T22:13:10.000Z"},
    }
    feed = Feed()(
        application_start(), query_started(0), progress(0, 0, **fields), progress(1_000, 1, **fields)
    )
    found = {
        name: feed.gauge(ORDERS + name)
        for name in (
            "inputRows",
            "droppedLateRows",
            "inputRate",
            "processingRate",
            "stateRows",
            "stateMemory",
            "watermarkLag",
            "watermarkTimestamp",
            "addBatch.phaseDuration",
            "getBatch.phaseDuration",
            "source.0.sourceBacklog",
        )
    }
    feed.end()

    assert found == {
        "inputRows": 14,
        "droppedLateRows": 12,
        "inputRate": 4.0,
        "processingRate": 30.0,
        "stateRows": 14,
        "stateMemory": 200,
        "watermarkLag": 11_000,
        "watermarkTimestamp": 1_699_999_990_000,
        "addBatch.phaseDuration": 90,
        "getBatch.phaseDuration": None,
        "source.0.sourceBacklog": None,
    }


def test_a_watermark_in_the_future() -> None:
    """A clock that is wrong by an hour: the lag is negative, for Spark drops all rows of the present."""
    fields = {"eventTime": {"watermark": "2023-11-14T23:13:20.000Z"}}
    feed = Feed()(application_start(), query_started(0), progress(0, 0, **fields))
    lag_ms = feed.gauge(ORDERS + "watermarkLag")
    feed.end()

    assert lag_ms is not None
    assert lag_ms < -3_590_000


def test_figures_of_a_query_that_has_stopped() -> None:
    """What was so at the last progress is so no longer; what has been counted, and when it was, stays."""
    fields: dict[str, Any] = {
        "sources": [{"numInputRows": 5, "inputRowsPerSecond": 1.0, "endOffset": 1, "latestOffset": 9}],
        "stateOperators": [{"numRowsTotal": 7, "memoryUsedBytes": 100}],
        "eventTime": {"watermark": "2023-11-14T22:13:10.000Z"},
    }
    passing = (
        "batchDuration",
        "addBatch.phaseDuration",
        "inputRate",
        "stateRows",
        "stateMemory",
        "watermarkLag",
        "watermarkTimestamp",
        "source.0.sourceBacklog",
    )
    feed = Feed()(application_start(), query_started(0), progress(0, 0, **fields))
    before = [feed.gauge(ORDERS + name) for name in passing]
    feed(terminated())
    after = [feed.gauge(ORDERS + name) for name in passing]
    kept = [feed.gauge(ORDERS + name) for name in ("inputRows", "lastInputTimestamp")]
    feed.end()

    assert None not in before
    assert after == [None] * len(passing)
    assert None not in kept


@pytest.mark.parametrize(
    ("end", "latest", "expected"),
    [
        ('{"t": {"0": 5, "1": 7}}', '{"t": {"0": 8, "1": 7}}', 3),
        ({"t": {"0": 5}}, {"t": {"0": 8}}, 3),
        ("12", "20", 8),
        (12, 20, 8),
        (20, 12, 0),
        (None, None, None),
        ("2026-11-21T00:00:00Z", "2026-11-21T00:00:01Z", None),
        ('{"t": {"0": 5}}', '{"t": {"0": 8, "1": 2}}', None),
        (True, True, None),
    ],
)
def test_backlog(end: object, latest: object, expected: float | None) -> None:
    """The sum over partitions where offsets are numbers, Kafka's as well; else it is not known."""
    assert backlog({"endOffset": end, "latestOffset": latest}) == expected


def test_failures() -> None:
    """They are counted by error and type, and leave with their query; of very many errors the first."""
    feed = Feed(extra={"spark.metrics.ended.retention": "1s"})(application_start())
    for number in range(60):
        run = f"run-{number}"
        feed(query_started(number, run=run), terminated(run=run, exception=f"org.x.Boom{number}: bad"))
    feed(query_started(100, run="again"), terminated(run="again", exception="org.x.Boom0: bad"))
    counts = [
        n for n in feed.names() if n.startswith("app.failures.query.orders") and n.endswith(".failures")
    ]

    assert len(counts) == 51
    assert feed.gauge("app.failures.query.orders.Boom0.UNKNOWN.failures") == 2
    assert feed.gauge("app.failures.query.orders.other.UNKNOWN.failures") == 10
    assert feed.gauge("app.failures.query.orders.lastFailureTimestamp") == T0 + 100
    feed(query_started(200, run="last"), terminated(run="last")).tick(60_000)
    assert not [name for name in feed.names() if name.startswith("app.failures")]


@pytest.mark.parametrize(("typed", "value"), [(True, 1), (False, 0), (None, None)])
def test_whether_it_is_typed(typed: bool | None, value: int | None) -> None:
    """A live driver says so; an event log does not know, and has no such metric."""
    feed = Feed()(application_start(**({} if typed is None else {INTERACTIVE: typed})))
    assert (feed.gauge("app.interactive") if "app.interactive" in feed.names() else None) == value
    feed.end()


def test_how_long_a_checkpoint_is_owed() -> None:
    """From the begin of the work to its commit; a query that is idle or was stopped owes nothing."""
    owed = ORDERS + "checkpointOwed"
    feed = Feed(checkpoint__sla="1s")(application_start(), query_started(0))
    starting = feed.gauge(owed)
    assert starting is not None
    feed(progress(100, 0), idle(200))
    assert feed.gauge(owed) == 0
    feed(batch_begins(100_000, 1))
    working = feed.gauge(owed)
    assert working is not None
    assert starting > working  # from the begin of its batch, 100 s later
    feed(terminated())
    assert feed.gauge(owed) == 0
    feed.end()
    assert owed not in Feed()(application_start(), query_started(0)).names()

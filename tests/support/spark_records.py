"""Spark's records in short, and a place to feed them to."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from spark_events.api import Counter, Event, FailureEnricher, Gauge, Metric, Span
from spark_events.listeners.failures.failure_type import FailureTypeEnricher
from spark_events.listeners.settings import read_settings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from tests.support.plugins import Collecting, CollectingMetricsFactory, CollectingSpansFactory
from tests.support.waiting import wait_until

STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"
T0 = 1_700_000_000_000


class Feed:
    """Listeners with a reporter that keeps what comes out."""

    def __init__(
        self,
        enrichers: list[FailureEnricher] | None = None,
        extra: dict[str, str] | None = None,
        **conf: str,
    ) -> None:
        keys = {
            f"spark.events.{key.replace('__', '.').replace('_', '-')}": value for key, value in conf.items()
        }
        keys |= extra or {}
        keys["spark.events.reporter.x.factory.class"] = "tests.support.plugins:CollectingFactory"
        keys["spark.metrics.reporter.x.factory.class"] = "tests.support.plugins:CollectingMetricsFactory"
        keys["spark.traces.reporter.x.factory.class"] = "tests.support.plugins:CollectingSpansFactory"
        setups, errors = read_all_setups(keys)
        settings, wrong = read_settings(keys)
        assert not errors + wrong
        self.registry = Registry(setups)
        self.registry.start()
        self.registry.wait_opened(5_000)
        self._reporter = Collecting.instances[-1]
        self.metrics = CollectingMetricsFactory.last
        self._spans = CollectingSpansFactory.last
        self.listeners = SparkListeners(
            self.registry, settings, enrichers or [FailureTypeEnricher()], "4.3.0"
        )

    def __call__(self, *records: dict[str, Any]) -> Feed:
        """Feed records."""
        for record in records:
            self.listeners.on_record(record)
        return self

    def end(self) -> list[Event]:
        """Return all events."""
        self.registry.close(5_000)
        return self._reporter.events

    def spans(self) -> list[Span]:
        """Return all spans."""
        self.registry.close(5_000)
        assert self._spans is not None
        return self._spans.spans

    def tick(self, ms: int) -> Feed:
        """Let time pass, until so many ms after the beginning."""
        self.listeners.tick(T0 + ms)
        return self

    def reported(self) -> int:
        """Return how many events were reported so far."""
        worker = self.registry.workers[0]
        wait_until(lambda: worker.depth == 0, "all are reported")
        return len(self._reporter.events)

    def gauge(self, name: str) -> float | int | None:
        """Return a gauge's value, or a counter's, by its full dotted name."""
        self.names()  # which waits until all are announced
        assert self.metrics is not None
        metric, _ = self.metrics.metrics[name]
        return _value(metric)

    def names(self) -> set[str]:
        """Return the full dotted names of all metrics."""
        wait_until(lambda: all(worker.depth == 0 for worker in self.registry.workers), "all are announced")
        assert self.metrics is not None
        return set(self.metrics.metrics)


def _value(metric: Metric) -> float | int | None:
    if isinstance(metric, Counter):
        return metric.count
    assert isinstance(metric, Gauge)
    return metric.value


def seen(events: list[Event], name: str, kind: str | None = None) -> list[Event]:
    """Return the events of a name, and of a kind of job where one is given."""
    return [e for e in events if e.name == name and kind in (None, e.attributes["job_kind"])]


def new_statuses(events: list[Event], kind: str) -> list[Any]:
    """Return the new statuses of all jobs of a kind."""
    return [event.attributes["newJobStatus"] for event in seen(events, "JobStatusChangeEvent", kind)]


def application_start(ms: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "Event": "SparkListenerApplicationStart",
        "App Name": "app",
        "App ID": "app-1",
        "Timestamp": T0 + ms,
        **fields,
    }


def application_end(ms: int, **fields: Any) -> dict[str, Any]:
    return {"Event": "SparkListenerApplicationEnd", "Timestamp": T0 + ms, **fields}


def query_started(ms: int, run: str = "run-1", query: str = "query-1", **fields: Any) -> dict[str, Any]:
    return {
        "Event": STREAMING + "QueryStartedEvent",
        "id": query,
        "runId": run,
        "name": "orders",
        "timestamp": iso(ms),
        **fields,
    }


def progress(ms: int, batch: int, took: int = 100, run: str = "run-1", **fields: Any) -> dict[str, Any]:
    """A micro-batch that was triggered at ``ms``."""
    return {
        "Event": STREAMING + "QueryProgressEvent",
        "progress": {
            "id": "query-1",
            "runId": run,
            "name": "orders",
            "timestamp": iso(ms),
            "batchId": batch,
            "durationMs": {
                "addBatch": took - 10,
                "walCommit": 7,
                "commitOffsets": 3,
                "triggerExecution": took,
            },
            "stateOperators": [],
            "sources": [{"numInputRows": 5}, {"numInputRows": 2}],
            **fields,
        },
    }


def idle(ms: int, run: str = "run-1") -> dict[str, Any]:
    return {"Event": STREAMING + "QueryIdleEvent", "id": "query-1", "runId": run, "timestamp": iso(ms)}


def batch_begins(ms: int, batch: int, run: str = "run-1") -> dict[str, Any]:
    return {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        "executionId": batch,
        "description": f"orders\nid = query-1\nrunId = {run}\nbatch = {batch}",
        "time": T0 + ms,
    }


def terminated(run: str = "run-1", exception: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "Event": STREAMING + "QueryTerminatedEvent",
        "id": "query-1",
        "runId": run,
        "exception": exception,
        **fields,
    }


def job_start(
    ms: int, job: int = 0, stages: tuple[int, ...] = (0,), group: str | None = None, **properties: str
) -> dict[str, Any]:
    of_group = {"spark.jobGroup.id": group} if group else {}
    return {
        "Event": "SparkListenerJobStart",
        "Job ID": job,
        "Submission Time": T0 + ms,
        "Stage IDs": list(stages),
        "Stage Infos": [{"Stage ID": stage_id, "Number of Tasks": 4} for stage_id in stages],
        "Properties": {**of_group, **{key.replace("__", "."): text for key, text in properties.items()}},
    }


def job_end(ms: int, job: int = 0, message: str | None = None) -> dict[str, Any]:
    result: dict[str, Any] = {"Result": "JobSucceeded"}
    if message is not None:
        result = {"Result": "JobFailed", "Exception": {"Message": message, "Stack Trace": []}}
    return {"Event": "SparkListenerJobEnd", "Job ID": job, "Completion Time": T0 + ms, "Job Result": result}


def stage(
    event: str, ms: int, stage_id: int = 0, attempt: int = 0, reason: str | None = None
) -> dict[str, Any]:
    info = {
        "Stage ID": stage_id,
        "Stage Attempt ID": attempt,
        "Number of Tasks": 4,
        "Submission Time": T0 + ms,
        "Completion Time": T0 + ms if event == "Completed" else None,
    }
    if reason:
        info["Failure Reason"] = reason
    return {"Event": f"SparkListenerStage{event}", "Stage Info": info}


def execution(event: str, ms: int, number: int = 0, **fields: Any) -> dict[str, Any]:
    name = f"org.apache.spark.sql.execution.ui.SparkListenerSQLExecution{event}"
    return {"Event": name, "executionId": number, "time": T0 + ms, **fields}


def executor(event: str, ms: int, number: str = "1", **fields: Any) -> dict[str, Any]:
    info = {"Executor Info": {"Total Cores": 4}} if event == "Added" else {}
    name = f"SparkListenerExecutor{event}"
    return {"Event": name, "Timestamp": T0 + ms, "Executor ID": number, **info, **fields}


def stage_tasks(ms: int, status: str | None, change: int, **counts: int) -> dict[str, Any]:
    return {
        "Event": "SparkEventsStageTasks",
        "Stage ID": 0,
        "Stage Attempt ID": 0,
        "Number of Tasks": 4,
        **{key.replace("_", " "): count for key, count in counts.items()},
        "Status": status,
        "Change": change,
        "Timestamp": T0 + ms,
    }


def iso(ms: int) -> str:
    moment = datetime.fromtimestamp((T0 + ms) / 1000, tz=timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

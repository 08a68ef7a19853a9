"""The fields of records have the types that are declared, in every stored log."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from spark_events.listeners import record_types, spark_records
from spark_events.listeners.spark_listeners import SparkListeners
from tests.support.event_log_reading import report_whole
from tests.support.sample_logs import NAMES
from tests.support.stored_logs import recorded_logs

TYPES: dict[str, Any] = {
    spark_records.APPLICATION_START: record_types.ApplicationStartRecord,
    spark_records.APPLICATION_END: record_types.ApplicationEndRecord,
    spark_records.APPLICATION_DEAD: record_types.ApplicationDeadRecord,
    spark_records.ENVIRONMENT_UPDATE: record_types.EnvironmentUpdateRecord,
    spark_records.EXECUTOR_ADDED: record_types.ExecutorAddedRecord,
    spark_records.EXECUTOR_REMOVED: record_types.ExecutorRemovedRecord,
    spark_records.EXECUTOR_METRICS: record_types.ExecutorMetricsRecord,
    spark_records.EXECUTOR_TASKS: record_types.ExecutorTasksRecord,
    spark_records.RESOURCE_PROFILE_ADDED: record_types.ResourceProfileAddedRecord,
    spark_records.JOB_START: record_types.JobStartRecord,
    spark_records.JOB_END: record_types.JobEndRecord,
    spark_records.STAGE_SUBMITTED: record_types.StageSubmittedRecord,
    spark_records.STAGE_COMPLETED: record_types.StageCompletedRecord,
    spark_records.STAGE_TASKS: record_types.StageTasksRecord,
    spark_records.UNPERSIST_RDD: record_types.UnpersistRDDRecord,
    spark_records.SQL_EXECUTION_START: record_types.SQLExecutionStartRecord,
    spark_records.SQL_EXECUTION_END: record_types.SQLExecutionEndRecord,
    spark_records.QUERY_STARTED: record_types.QueryStartedRecord,
    spark_records.QUERY_PROGRESS: record_types.QueryProgressRecord,
    spark_records.QUERY_IDLE: record_types.QueryIdleRecord,
    spark_records.QUERY_TERMINATED: record_types.QueryTerminatedRecord,
}
OF_CLUSTERS = {"ExecutorRemovedRecord", "ExecutorTasksRecord"}
IN_NO_LOG = {"ApplicationDeadRecord", "ResourceProfileAddedRecord", "QueryIdleRecord", "UnpersistRDDRecord"}


OF_LIVE_SOURCES = {
    "ExecutorSourcesRecord",
    "QueryNotStartedRecord",
    "SparkStatusRecord",
    "TableTransitionRecord",
}
"""No stored log has them: the types of what live sources make, and of table transactions."""


def wrong(value: Any, of_type: Any, path: str) -> list[str]:
    """Return where a value is not of a type."""
    if of_type is Any:
        return []
    if is_typeddict(of_type):
        hints = get_type_hints(of_type)
        if not isinstance(value, dict):
            return [f"{path}: {value!r:.60}"]
        return [
            text
            for key, part in value.items()
            if key in hints
            for text in wrong(part, hints[key], f"{path}.{key}")
        ]
    origin, parts = get_origin(of_type), get_args(of_type)
    if origin in (Union, types.UnionType):
        return [] if any(not wrong(value, part, path) for part in parts) else [f"{path}: {value!r:.60}"]
    if origin is None or not isinstance(value, origin):
        return [] if isinstance(value, of_type if origin is None else origin) else [f"{path}: {value!r:.60}"]
    if origin is dict:
        return [text for part in value.values() for text in wrong(part, parts[1], f"{path}.*")]
    return [text for part in value for text in wrong(part, parts[0], f"{path}[]")]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """By the name of a type, what was wrong in records that the listeners were given."""
    seen: dict[str, list[str]] = {}
    on_record = SparkListeners.on_record

    def look(listeners: SparkListeners, record: Any, *arguments: Any) -> Any:
        of_type = TYPES.get(record.get("Event"))
        if of_type is not None:
            found = seen.setdefault(of_type.__name__, [])
            found += wrong(record, of_type, of_type.__name__)
        return on_record(listeners, record, *arguments)

    monkeypatch.setattr(SparkListeners, "on_record", look)
    return seen


def test_each_type_is_held_against_logs() -> None:
    """A type that is not listed here would be held against nothing."""
    declared = {
        name for name, value in vars(record_types).items() if is_typeddict(value) and name.endswith("Record")
    }
    listed = {of_type.__name__ for of_type in TYPES.values()}

    assert declared - listed == OF_LIVE_SOURCES, "add it to TYPES in this file, with the name of its record"


def test_recorded_logs(tmp_path: Path, seen: dict[str, list[str]]) -> None:
    """The logs of this project's own applications, in local mode."""
    for log in recorded_logs(tmp_path).values():
        report_whole(log, {}, 60_000)
    assert not {name: sorted(set(texts)) for name, texts in seen.items() if texts}
    assert {of_type.__name__ for of_type in TYPES.values()} - set(seen) <= OF_CLUSTERS | IN_NO_LOG


def test_sample_logs(event_logs: Path, seen: dict[str, list[str]]) -> None:
    """Spark's own samples, of versions from 1.3 on."""
    for name in NAMES:
        report_whole(event_logs / name, {}, 60_000)
    assert not {name: sorted(set(texts)) for name, texts in seen.items() if texts}
    assert set(seen) >= OF_CLUSTERS


def test_what_is_wrong_is_found() -> None:
    """The check itself can fail."""
    record = {
        "Job ID": "1",
        "Stage IDs": [1, "2"],
        "Properties": {"a": 1},
        "Stage Infos": [{"Stage ID": None}],
    }
    assert wrong(record, record_types.JobStartRecord, "JobStart") == [
        "JobStart.Job ID: '1'",
        "JobStart.Stage IDs[]: '2'",
        "JobStart.Properties.*: 1",
        "JobStart.Stage Infos[].Stage ID: None",
    ]

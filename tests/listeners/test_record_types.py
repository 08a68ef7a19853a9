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

DECLARED = {
    name.lower(): value
    for name, value in vars(record_types).items()
    if is_typeddict(value) and name.endswith("Record")
}
TYPES: dict[str, Any] = {
    record: DECLARED[of_type]
    for name, record in vars(spark_records).items()
    if name.isupper() and (of_type := f"{name.replace('_', '').lower()}record") in DECLARED
}
"""By the name of a record: a type is called as the record's constant is, JobStartRecord of JOB_START."""
OF_CLUSTERS = {"ExecutorRemovedRecord", "ExecutorTasksRecord"}
"""No recorded log has them, but some of Spark's samples do."""
IN_NO_LOG = {
    "ApplicationDeadRecord",
    "ExecutorSourcesRecord",
    "LateTasksRecord",
    "ListenerQueuesRecord",
    "LogReadRecord",
    "QueryIdleRecord",
    "QueryNotStartedRecord",
    "ResourceProfileAddedRecord",
    "SparkStatusRecord",
    "TableTransitionRecord",
    "UnpersistRDDRecord",
}
"""No stored log has them."""


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
    """A type that has another name than its record would be held against nothing."""
    without = {of_type.__name__ for of_type in DECLARED.values()}
    without -= {of_type.__name__ for of_type in TYPES.values()}

    assert without == set(), "call it as its record in spark_records.py: JobStartRecord of JOB_START"


def test_recorded_logs(tmp_path: Path, seen: dict[str, list[str]]) -> None:
    """The logs of this project's own applications, in local mode."""
    for log in recorded_logs(tmp_path).values():
        report_whole(log, {}, 60_000)
    assert not {name: sorted(set(texts)) for name, texts in seen.items() if texts}
    unseen = {of_type.__name__ for of_type in TYPES.values()} - set(seen)
    assert unseen - OF_CLUSTERS - IN_NO_LOG == set(), (
        "no recorded log has them: add each to OF_CLUSTERS if Spark's samples have it, otherwise to IN_NO_LOG"
    )


def test_sample_logs(event_logs: Path, seen: dict[str, list[str]]) -> None:
    """Spark's own samples, of versions from 1.3 on."""
    for name in NAMES:
        report_whole(event_logs / name, {}, 60_000)
    assert not {name: sorted(set(texts)) for name, texts in seen.items() if texts}
    assert OF_CLUSTERS - set(seen) == set(), "Spark's samples lack them, too: move each to IN_NO_LOG"


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

"""Real logs of Spark 1.2 to 3.3, read as files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spark_events.listeners.spark_records import NESTED_EXECUTION
from spark_events.sources.event_log.records import RecordReader
from spark_events.sources.event_log.tasks.all_stage_tasks import AllStageTasks
from tests.support.event_log_reading import read
from tests.support.event_log_sample import small_log


def records_of(data: bytes) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    RecordReader(records.append).take_lines(data.splitlines(keepends=True))
    return records


def test_how_many_records_take_the_short_way(event_logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Spark 2 and later all but those of tasks that failed: else a replay would not be fast."""
    parsed: Counter[str] = Counter()
    for way in ("on_start", "on_end"):
        old = getattr(AllStageTasks, way)

        def counted(self: AllStageTasks, record: Any, old: Any = old) -> Any:
            parsed["all"] += 1
            return old(self, record)

        monkeypatch.setattr(AllStageTasks, way, counted)
    for name in ("app-20200706201101-0003", "local-1596020211915", "local-1642039451826"):
        records_of((event_logs / name).read_bytes())
    assert parsed["all"] == 0
    records_of(small_log())
    assert parsed["all"] == 1  # the task that failed


def test_an_execution_within_another_is_a_part_of_it() -> None:
    """The outer one is told of, as the driver bridge does; what is within has a name of its own."""
    name = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    lines = [
        json.dumps({"Event": name, "executionId": number, "rootExecutionId": root, "time": 1}).encode()
        for number, root in ((1, 1), (2, 1), (3, None))
    ]
    assert [(record["Event"], record["executionId"]) for record in records_of(b"\n".join(lines))] == [
        (name, 1),
        (NESTED_EXECUTION, 2),
        (name, 3),
    ]


def test_streaming_query(event_logs: Path) -> None:
    """One run with eight progress records and its application's end."""
    events = read(event_logs / "local-1596020211915").events
    statuses = [
        e.attributes["newJobStatus"]
        for e in events
        if e.attributes.get("job_kind") == "query" and e.name == "JobStatusChangeEvent"
    ]
    assert statuses == ["CREATED", "RUNNING", "CANCELED"]
    assert sum(event.name == "CheckpointEvent" for event in events) == 8


@pytest.mark.parametrize("attempt", ["1", "2"])
def test_attempts_are_applications_of_their_own(event_logs: Path, attempt: str) -> None:
    found = read(event_logs / f"local-1430917381535_{attempt}")
    assert found.log.application is not None
    assert found.log.application.attempt_id == attempt
    assert {event.variables["app_attempt_id"] for event in found.events} == {attempt}

"""Real event logs of Spark 1.2 to 3.3, record by record."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from spark_events.api import Event
from tests.support.sample_logs import NAMES
from tests.support.spark_records import Feed, new_statuses, seen


def replay(path: Path) -> list[Event]:
    return Feed()(*(json.loads(line) for line in path.read_text().splitlines())).end()


@pytest.mark.parametrize("name", NAMES)
def test_every_log_is_understood(event_logs: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """No record is stumbled over, all jobs end, and a second replay gives the same events."""
    events = replay(event_logs / name)

    assert [r for r in caplog.records if "skipped" in r.getMessage()] == []
    ended = Counter(new_statuses(events, "job"))
    # Some of these logs were cut while a job ran.
    assert ended["RUNNING"] - ended["FINISHED"] - ended["FAILED"] - ended["CANCELED"] in (0, 1)
    assert new_statuses(events, "application")[:2] == ["CREATED", "RUNNING"]
    assert events == replay(event_logs / name)


def test_streaming_query_of_spark_3(event_logs: Path) -> None:
    """One start and eight progress records, without an end: still running, with its checkpoints."""
    events = replay(event_logs / "local-1596020211915")

    assert new_statuses(events, "query")[:2] == ["CREATED", "RUNNING"]
    assert seen(events, "CheckpointEvent")

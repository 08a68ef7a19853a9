"""Micro-batches that committed while Spark stopped, of which it tells after its own end."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import orjson
import pytest

from spark_events.sources.driver.source import DriverSource
from tests.support import spark_records as r
from tests.support.event_log_reading import read_bytes

BEFORE = [r.application_start(), r.query_started(0), r.progress(100, 0), r.batch_begins(300, 1)]
END = r.application_end(500)
AFTER = [r.batch_begins(600, 2), r.progress(300, 1)]


def test_in_an_event_log(tmp_path: Path) -> None:
    """It is reported before the end, which is told once; what else comes after that is not."""
    records = [*BEFORE, END, *AFTER, END]
    events = read_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records), tmp_path).events

    checkpoints = [event.attributes for event in events if event.name == "CheckpointEvent"]
    assert [(each["checkpointId"], each["checkpointStatus"]) for each in checkpoints] == [
        (0, "COMPLETED"),
        (1, "COMPLETED"),
    ]
    ends = [event.body for event in events[-2:]]
    assert ends == ["query 'orders' RUNNING -> CANCELED", "application 'app' RUNNING -> FINISHED"]


def test_another_application_in_the_same_file(tmp_path: Path) -> None:
    """As where two logs were put together: it is left out, counted and said; the first is told as ever."""
    again, other = r.application_start(), r.application_start() | {"App ID": "app-9", "App Name": "other"}
    records = [again, again, r.job_start(10), r.job_end(20), END, other, r.job_start(30), r.job_end(40), END]
    read = read_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records), tmp_path)

    assert {event.all_attributes["app_name"] for event in read.events} == {"app"}
    assert [event.body for event in read.events if "job" in event.body] == [
        "job 0 RUNNING",
        "job 0 RUNNING -> FINISHED",
    ]
    assert read.log.counts.skipped == {"of another application, which has begun in the same file": 4}


class _Source(DriverSource):
    """Has a bridge with records that have not been drained yet; keeps what it takes."""

    def __init__(self, drained: list[tuple[int, dict[str, Any]]] | Exception) -> None:
        self._drained = drained
        self._bridge: Any = self
        self.taken: list[dict[str, Any]] = []

    def drain(self, at_most: int, wait_ms: int) -> list[tuple[int, dict[str, Any]]]:
        if isinstance(self._drained, Exception):
            raise self._drained
        return self._drained

    def _take(self, record: dict[str, Any], received_ms: int) -> None:
        self.taken.append(record)


def test_in_a_driver() -> None:
    """Whether it came together with the end, or not yet; the rest stays, in its order."""
    rest, with_it, later = r.batch_begins(600, 2), r.progress(300, 1), r.progress(400, 2)
    source = _Source([(3, later)])
    left = source._take_progress_of(deque([(1, rest), (2, with_it)]))

    assert source.taken == [with_it, later]
    assert [record for _, record in left] == [rest]


@pytest.mark.parametrize("error", [OSError("the JVM is gone"), RuntimeError()])
def test_of_a_driver_whose_jvm_is_gone(error: Exception) -> None:
    source = _Source(error)
    assert not source._take_progress_of(deque([(2, r.progress(300, 1))]))
    assert len(source.taken) == 1

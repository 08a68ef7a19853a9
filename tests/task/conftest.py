"""What tests of tasks share."""

from __future__ import annotations

import pytest

from tests.support.task_worker import Worker


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setattr("spark_events.task.instruments._made", {})
    return Worker(monkeypatch)

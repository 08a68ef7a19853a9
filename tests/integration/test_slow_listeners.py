"""A listener of the program's that does not keep up with Spark's events, in a real driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import file_events, of_name
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]
_CAPACITY = "spark.scheduler.listenerbus.eventqueue.shared.capacity"


@pytest.mark.parametrize(("rest_ms", "is_told"), [(150, True), (0, False)], ids=["it rests", "it does not"])
def test_a_listener_that_rests_at_each_task(rest_ms: int, is_told: bool, tmp_path: Path, java: str) -> None:
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "live"),
        "spark.events.issue.min-duration": "3s",
        _CAPACITY: "40",
    }
    app = str(APPS / "slow_listener.py")
    run = App(cli("run", "--master", "local[2]", app, "24", str(rest_ms)), conf, tmp_path).end()
    assert run.code == 0, run.err[-3000:]
    issues = [
        event["attributes"] for event in of_name(file_events(tmp_path / "live"), "PerformanceIssueEvent")
    ]
    slow = [issue for issue in issues if issue["issue"] == "slow-listeners"]
    assert bool(slow) is is_told
    if is_told:
        assert slow[-1]["listener.queue"] == "shared"
        assert slow[-1]["listener.droppedEvents"] > 0
        assert slow[-1]["listener.busyMs"] > 5_000
        assert "a listener of the program, in Python, takes" in slow[-1]["summary"]

"""What an application leaves behind in its process when it has ended."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.file_log import events_and_spans
from tests.support.paths import APPS
from tests.support.waiting import free_port

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


@pytest.mark.thorough
def test_ten_applications_leave_what_one_does(tmp_path: Path) -> None:
    """Threads, files, sockets and objects in the JVM, with a reporter of each kind."""
    conf = {
        **events_and_spans(tmp_path / "events"),
        "spark.events.reporter.otel.factory.class": "otlp",
        "spark.events.reporter.otel.exporter.endpoint": f"http://127.0.0.1:{free_port()}",
        "spark.events.reporter.otel.journal.dir": str(tmp_path / "journal"),
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": "0",
        "spark.job-status-changed.listener.log.factory.class": "file_log",
        "spark.job-status-changed.listener.log.path": str(tmp_path / "lineage"),
        "spark.events.close.timeout": "1s",
    }
    run = App([sys.executable, str(APPS / "leaks.py")], conf, tmp_path).end()
    assert run.code == 0, run.err[-3000:]
    after = [json.loads(line) for line in run.out.splitlines()]

    for what in ("threads", "java threads", "files", "sockets"):
        assert after[-1][what] == after[0][what], what
    # Spark and py4j themselves hold on to the last few contexts, and so to what listened to them.
    middle, last = after[len(after) // 2]["objects"], after[-1]["objects"]
    assert [name for name, count in last.items() if count > middle.get(name, 0)] == []
    assert last["io.sparkevents.DriverBridge"] < 5

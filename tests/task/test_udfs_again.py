"""UDFs that are used before their application is attached, and by the next application of the process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.file_log import events_and_spans, file_events, of_name
from tests.support.paths import APPS


@pytest.mark.extended
@pytest.mark.spark
def test_each_application_counts_what_its_tasks_report(tmp_path: Path) -> None:
    conf = {**events_and_spans(tmp_path / "live"), "spark.events.task.measure-udfs": "true"}
    app = App([sys.executable, str(APPS / "udfs_again.py")], conf, tmp_path).end()
    assert app.code == 0, app.err[-3000:]

    events = of_name(file_events(tmp_path / "live"), "TaskCounterEvent")

    counted = {
        (each["attributes"]["app_name"], each["attributes"]["counter"]): each["attributes"]["count"]
        for each in events
    }
    assert counted == {
        (name, counter): value
        for name in ("first", "second")
        for counter, value in (("rows", 10), ("made", 2), ("udf_calls", 10))
    }

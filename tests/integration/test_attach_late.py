"""Attaching to a driver in which things run already."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.file_log import file_events, of_name, statuses
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


@pytest.mark.extended
def test_what_runs_already_is_taken_up(tmp_path: Path) -> None:
    """The query and the job that ran before are followed to their ends, and no count goes below zero."""
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "events"),
    }
    run = App([sys.executable, str(APPS / "late.py"), str(tmp_path / "checkpoint")], conf, tmp_path).end()
    events = file_events(tmp_path / "events")
    changes = of_name(events, "JobStatusChangeEvent", job_kind="query", query_name="early")

    assert run.code == 0, run.err[-3000:]
    assert [e["attributes"]["newJobStatus"] for e in changes][-2:] == ["RUNNING", "CANCELED"]
    jobs = statuses(events, "job")
    assert jobs.count("RUNNING") == jobs.count("FINISHED") + jobs.count("CANCELED") + jobs.count("FAILED")
    slow = [
        e
        for e in of_name(events, "JobStatusChangeEvent", newJobStatus="FINISHED")
        if e["attributes"]["oldJobStatusMs"] > 3_500
    ]
    assert len([e for e in slow if e["attributes"]["job_kind"] == "job"]) == 1
    assert of_name(events, "CheckpointEvent", query_name="early", checkpointStatus="COMPLETED")
    assert "skipped" not in run.err

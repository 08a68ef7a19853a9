"""An RDD that the program takes out of the cache and caches again is computed again on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.executors import replay
from tests.support.file_log import file_events, of_name
from tests.support.paths import APPS

pytestmark = pytest.mark.spark
THRESHOLDS = {"spark.events.issue.min-duration": "1ms", "spark.events.issue.min-ratio": "0.01"}


@pytest.mark.extended
def test_it_is_not_said_to_be_lost(tmp_path: Path) -> None:
    """Live, and from its event log."""
    (tmp_path / "logs").mkdir()
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "live"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "logs").as_uri(),
        **THRESHOLDS,
    }
    run = App(cli("run", "--master", "local[2]", str(APPS / "unpersisted.py")), conf, tmp_path).end()
    assert run.code == 0, run.err[-3000:]

    for events in (file_events(tmp_path / "live"), replay(tmp_path / "logs", tmp_path / "again", THRESHOLDS)):
        assert len(of_name(events, "JobStatusChangeEvent", job_kind="job", newJobStatus="FINISHED")) == 2
        assert not of_name(events, "PerformanceIssueEvent", issue="recomputation")

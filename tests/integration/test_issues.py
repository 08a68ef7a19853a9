"""Jobs that are slow for one reason each, on a real Spark: the reason is told, and only where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.executors import replay
from tests.support.file_log import Event, file_events, of_name
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]
_BUSY_MS = 1_500
SINCE_4 = pytest.mark.skipif(
    pyspark.__version__.startswith("3."), reason="Spark 3 does not measure the time in Python functions"
)
THRESHOLDS = {
    "spark.events.issue.min-duration": "800ms",
    "spark.events.issue.min-bytes": "1m",
    "spark.events.issue.task-count.max-tasks": "300",
    "spark.events.issue.task-count.min-task-duration": "200ms",
    "spark.events.issue.task-count.max-task-duration": "2s",
    "spark.events.issue.idle-cores.min-duration": "2s",
    "spark.events.issue.idle-cores.min-ratio": "0.01",
}


class Slow:
    """The application, and both accounts of it."""

    def __init__(self, folder: Path) -> None:
        (folder / "logs").mkdir()
        conf = {
            "spark.events.reporter.file.factory.class": "file_log",
            "spark.events.reporter.file.path": str(folder / "live"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "logs").as_uri(),
            # So that a small sort has to spill.
            "spark.shuffle.spill.numElementsForceSpillThreshold": "100000",
            "spark.sql.windowExec.buffer.spill.threshold": "100000",
            **THRESHOLDS,
        }
        command = cli("run", "--master", "local[4,2]", str(APPS / "slow.py"), str(folder))
        self.run: AppRun = App(command, conf, folder).end()
        self.folder = folder
        self.live = file_events(folder / "live")
        self.replayed = replay(folder / "logs", folder / "replayed", THRESHOLDS)

    def jobs(self, case: str) -> tuple[set[int], int]:
        """Return the ids of the jobs of a case, and how many ms were injected."""
        (line,) = (line for line in self.run.out.splitlines() if line.startswith(f"case {case} "))
        _, _, jobs, injected = line.split()
        return set(map(int, jobs.split(","))), int(injected)

    def issues(self, case: str) -> list[dict[str, Any]]:
        """Return the attributes of the issues of a case."""
        jobs, _ = self.jobs(case)
        issues = (event["attributes"] for event in of_name(self.live, "PerformanceIssueEvent"))
        return [issue for issue in issues if int(issue.get("job_id", -1)) in jobs and "live" not in issue]


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, java: str) -> Slow:
    slow = Slow(tmp_path_factory.mktemp("slow"))
    assert slow.run.code == 0, slow.run.err[-3000:]
    return slow


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("straggler", "straggler"),
        ("skew", "skew"),
        ("one-task", "task-count"),
        ("retries", "retries"),
    ],
)
def test_what_it_cost(slow: Slow, case: str, kind: str) -> None:
    """What was injected is found, and its cost is within a fifth; on a busy machine, all takes longer."""
    (issue,) = (issue for issue in slow.issues(case) if issue["issue"] == kind)
    _, injected_ms = slow.jobs(case)
    assert 0.8 * injected_ms <= issue["lostMs"] <= 1.2 * injected_ms + _BUSY_MS
    assert "slow.py:" in issue["stageName"]


@pytest.mark.parametrize("case", ["task-count", pytest.param("python", marks=SINCE_4), "spill"])
def test_what_is_found(slow: Slow, case: str) -> None:
    assert case in {issue["issue"] for issue in slow.issues(case)}


@pytest.mark.parametrize("case", ["straggler", "skew", "task-count", "retries", "python", "spill"])
def test_the_twin_is_silent(slow: Slow, case: str) -> None:
    """The same shape without the cause; what a busy machine adds by chance is of another kind."""
    assert case not in {issue["issue"] for issue in slow.issues(f"no-{case}")}


def test_small_files(slow: Slow) -> None:
    """500 that are read and 101 that are written, each as dear to open as 4 MiB to read; and not 100."""
    told = of_name(slow.live, "PerformanceIssueEvent", issue="small-files")
    costs = {event["attributes"]["summary"].split()[0]: event["attributes"]["lostBytes"] for event in told}
    assert costs == {"reads": 499 * (4 << 20), "writes": 100 * (4 << 20)}
    assert len(told) == 2
    assert {event["attributes"]["job_kind"] for event in told} == {"sql_execution"}


def test_idle_cores(slow: Slow) -> None:
    told = [event["attributes"] for event in of_name(slow.live, "PerformanceIssueEvent", issue="idle-cores")]
    assert len({issue["issueId"] for issue in told}) == 1
    (issue,) = (issue for issue in told if issue["issueState"] == "CLOSED")
    assert issue["job_kind"] == "application"
    assert issue["lostMs"] >= 2_000


def test_a_replay_says_the_same(slow: Slow) -> None:
    """Each issue with the same id and the same figures: both sources have one arithmetic."""

    def by_id(events: list[Event]) -> dict[str, Any]:
        return {
            event["eventId"]: (
                event["timeUnixNano"],
                event["severityText"],
                event["body"],
                # The place in the code is seen by the live driver alone.
                {key: value for key, value in event["attributes"].items() if not key.startswith("code.")},
            )
            for event in of_name(events, "PerformanceIssueEvent")
            if "live" not in event["attributes"]
        }

    assert len(by_id(slow.live)) >= 6
    assert by_id(slow.live) == by_id(slow.replayed)

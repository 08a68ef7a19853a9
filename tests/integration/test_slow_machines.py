"""What slows tasks from outside: a heap that is too full, and a host that is slow; live, from the log, and silent twins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.executors import replay
from tests.support.file_log import Event, file_events, of_name
from tests.support.paths import APPS
from tests.support.spark_cluster import running_spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


def issues(
    folder: Path, master: str, thresholds: dict[str, str], *application: str
) -> tuple[AppRun, list[Event]]:
    """Run an application, and return its issues, after a replay has given the same."""
    (folder / "logs").mkdir(parents=True)
    thresholds = {"spark.events.issue.min-duration": "100ms", **thresholds}
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(folder / "live"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "logs").as_uri(),
        "spark.sql.shuffle.partitions": "2",
        **thresholds,
    }
    run = App(
        cli("run", "--master", master, str(APPS / application[0]), *application[1:]), conf, folder
    ).end()
    assert run.code == 0, run.err[-3000:]
    live = of_name(file_events(folder / "live"), "PerformanceIssueEvent")
    replayed = of_name(replay(folder / "logs", folder / "replayed", thresholds), "PerformanceIssueEvent")
    assert figures(live) == figures(replayed)
    return run, live


def figures(events: list[Event]) -> dict[str, Any]:
    return {event["eventId"]: event["attributes"] for event in events}


@pytest.mark.parametrize(("rows", "found"), [(3_500_000, True), (100_000, False)])
def test_garbage_collection(java: str, tmp_path: Path, rows: int, found: bool) -> None:
    """A heap that is nearly full of what lives is collected again and again; one that has room is not."""
    only = {"spark.events.issue.kinds": "gc", "spark.driver.memory": "500m"}
    _, told = issues(tmp_path, "local[2]", only, "garbage.py", str(rows))
    assert bool(told) == found
    assert all(event["attributes"]["gcShare"] >= 0.1 for event in told)


def test_a_slow_host(java: str, tmp_path: Path) -> None:
    """On one of three hosts, tasks take four times as long: it is named, with what that cost within a fifth."""
    only = {
        "spark.events.issue.kinds": "slow-node",
        "spark.executor.memory": "512m",
        "spark.locality.wait": "0",
    }
    with running_spark_cluster(HOSTS, cores=1) as cluster:
        run, told = issues(tmp_path / "slow", cluster.master, only, "slow_host.py", HOSTS[2], "3")
        _, of_twin = issues(tmp_path / "twin", cluster.master, only, "slow_host.py", "none", "3")
    assert of_twin == []
    (event,) = told
    # Told of after three of the four stages.
    injected_ms = int(run.out.split()[-1]) * 3 // 4
    assert event["attributes"]["host"] == HOSTS[2]
    assert 0.8 * injected_ms <= event["attributes"]["lostMs"] <= 1.2 * injected_ms + 500

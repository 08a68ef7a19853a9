"""A streaming query in a standalone cluster's cluster mode, under ``--supervise``: its driver is killed.

Spark submits no Python application there, so it is started as docs/deploy/standalone.md says, by the class that runs Python.
Its event logs are those that an application in Scala or Java would write as well.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from spark_events.sources.event_log.follow import Follower
from spark_events.sources.event_log.reading.log_positions import LogPositions
from spark_events.spark.conf import spark_home, spark_submit_program
from tests.support.applications import App, AppRun, cli, reported
from tests.support.endings import ended
from tests.support.executors import replay
from tests.support.file_log import Event, events_and_spans, file_events, of_name, statuses
from tests.support.paths import APPS
from tests.support.plugins import Collecting
from tests.support.spark_cluster import SparkCluster, running_spark_cluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(600)]


# The jar only has to be one.
OF_PYTHON = (
    "--class",
    "org.apache.spark.deploy.PythonRunner",
    *map(str, (spark_home() or Path()).glob("jars/spark-tags_*.jar")),
)


def conf_for(folder: Path) -> dict[str, str]:
    return {
        **events_and_spans(folder / "events"),
        "spark.pyspark.driver.python": f"{cli()[0]}-python",
        "spark.events.heartbeat.interval": "1s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder),
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
    }


class Story:
    """The application from its submission to its end; its driver was killed in between.

    Attributes:
        run: how spark-submit ended, which does not wait for the application.
        first, second: the events of each driver.
    """

    def __init__(self, folder: Path, cluster: SparkCluster) -> None:
        self.folder, self._events = folder, folder / "events"
        go = folder / "go"
        app = [str(APPS / "watched_orders.py"), "", str(folder / "state"), str(go)]
        submit = in_cluster_mode(cluster.master, "--supervise", *OF_PYTHON, *app)
        self.run: AppRun = App(submit, conf_for(folder), folder).end()
        wait_until(lambda: self._checkpoints(1), "the query runs")
        (driver,) = cluster.drivers()
        os.kill(driver, signal.SIGKILL)
        wait_until(lambda: self._checkpoints(2), "it runs again")
        go.touch()
        wait_until(lambda: not cluster.drivers(), "the application ends")
        self.first, self.second = self._of_drivers()

    def report(self) -> dict[str, Any]:
        return reported(self._events, self.folder / "report.json")

    def _of_drivers(self) -> list[list[Event]]:
        of: dict[str, list[Event]] = {}
        for event in file_events(self._events):
            of.setdefault(event["attributes"]["app_id"], []).append(event)
        return list(of.values())

    def _checkpoints(self, driver: int) -> bool:
        of = self._of_drivers()
        return len(of) == driver and len(of_name(of[-1], "CheckpointEvent")) > 1


def in_cluster_mode(master: str, *words: str) -> list[str]:
    """Return the command line that docs/deploy/standalone.md has."""
    return [spark_submit_program(), "--master", master, "--deploy-mode", "cluster", *words]


@pytest.fixture(scope="module")
def story(java: str, tmp_path_factory: pytest.TempPathFactory) -> Story:
    # A driver takes a core as well, and the executors of the first may end only after the second has begun.
    with running_spark_cluster(cores=6) as cluster:
        return Story(tmp_path_factory.mktemp("supervised"), cluster)


def test_a_driver_that_is_killed(story: Story) -> None:
    """It is FAILED with the true reason, told by its Python, which outlives the JVM."""
    assert story.run.code == 0, story.run.err[-3000:]
    assert statuses(story.first, "application") == ["CREATED", "RUNNING", "FAILED"]
    assert statuses(story.first, "query") == ["CREATED", "RUNNING", "FAILED"]
    (failure,) = of_name(story.first, "JobFailureEvent", job_kind="application")
    assert failure["attributes"]["exception.message"] == "the driver's JVM is gone"


def test_the_driver_that_the_cluster_starts_again(story: Story) -> None:
    """An application of its own for Spark; its query goes on from its checkpoint, and so is RESTARTING."""
    assert statuses(story.second, "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert statuses(story.second, "query") == ["RESTARTING", "RUNNING", "CANCELED"]


def test_its_report(story: Story) -> None:
    """Down from the kill until the second driver; one failure and one restart of each."""
    for of in story.report()["uptime"]:
        assert (of["failures"], of["outages"], of["restarts"]) == (1, 1, 1), of
        assert of["down_ms"] > 0


def test_its_event_logs_are_followed(story: Story, tmp_path: Path) -> None:
    """As those of an application in Scala or Java: the first never gets its end, and counts as dead after a while."""
    conf = {
        "spark.events.reporter.x.factory.class": "tests.support.plugins:CollectingFactory",
        "spark.events.event-log.idle-timeout": "1s",
    }
    before = len(Collecting.instances)
    follower = Follower(str(story.folder), conf, LogPositions(tmp_path / "state"), complete_too=True)

    def told(kind: str) -> list[list[str]]:
        follower.poll()
        of: dict[str, list[str]] = {}
        for event in (event for reporter in Collecting.instances[before:] for event in reporter.events):
            if event.name == "JobStatusChangeEvent" and event.attributes.get("job_kind") == kind:
                of.setdefault(str(event.variables["app_id"]), []).append(
                    str(event.attributes["newJobStatus"])
                )
        return [of[application] for application in sorted(of)]

    live = [statuses(events, "application") for events in (story.first, story.second)]
    wait_until(lambda: told("application") == live, "both have ended")
    assert [of[-1] for of in told("query")] == ["FAILED", "CANCELED"]
    follower.stop()
    follower.run()


def test_a_driver_whose_worker_dies(java: str, tmp_path: Path) -> None:
    """Spark ends the JVM, not the program: it is FAILED, and its query with it, live and in its event log."""
    events = tmp_path / "events"
    app = [str(APPS / "watched_orders.py"), "", str(tmp_path / "state"), str(tmp_path / "go")]
    with running_spark_cluster(cores=6) as cluster:
        App(in_cluster_mode(cluster.master, *OF_PYTHON, *app), conf_for(tmp_path), tmp_path).end()
        wait_until(lambda: of_name(file_events(events), "CheckpointEvent"), "the query runs")
        cluster.kill_worker(0)
        wait_until(lambda: ended(file_events(events)), "the end is told")
        wait_until(lambda: not list(tmp_path.glob("*.inprogress")), "the log has its end")
    (log,) = tmp_path.glob("*app-*")
    for told in (file_events(events), replay(log, tmp_path / "replayed")):
        assert statuses(told, "application")[-1] == statuses(told, "query")[-1] == "FAILED"
        (failure,) = of_name(told, "JobFailureEvent", job_kind="application")
        assert "Lost connection to worker rpc endpoint" in failure["attributes"]["exception.message"]
        assert failure["attributes"]["failureLabel.type"] == "SYSTEM"

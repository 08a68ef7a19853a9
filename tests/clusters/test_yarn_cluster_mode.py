"""A streaming query in YARN's cluster mode, under ``spark-events run``: its driver is killed, then an executor."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from spark_events.sources.event_log.follow import Follower
from spark_events.sources.event_log.reading.log_positions import LogPositions
from tests.support.applications import App, AppRun, cli, reported
from tests.support.file_log import Event, events_and_spans, file_events, of_name
from tests.support.paths import APPS
from tests.support.plugins import Collecting
from tests.support.prometheus import PrometheusServer
from tests.support.requirements import need
from tests.support.waiting import free_port, http_get, wait_until
from tests.support.yarn_cluster import YarnCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.prometheus,
    pytest.mark.thorough,
    pytest.mark.timeout(600),
]
FIRST, SECOND = "1", "2"
STATUS, CHECKPOINTS = "JobStatusChangeEvent", "CheckpointEvent"
QUERY = {"job_kind": "query"}
UP, DOWN = 1.0, 0.0


class Story:
    """The application from its submission to its end, with what happened to it in between.

    Attributes:
        application: its id.
        metrics: of the second attempt, after its query has begun.
        seen: what Prometheus, with our rules, said of the query: whether it is up.
        lost: the executor that was killed.
        run: how spark-submit ended.
        attempts: how many YARN has made.
    """

    def __init__(self, folder: Path, yarn: YarnCluster) -> None:
        self.folder, self._yarn = folder, yarn
        # The first attempt's page stays for a while, until its last values are scraped.
        self._ports = range(port := free_port(), port + 6)
        self._prometheus = PrometheusServer(folder / "prometheus", self._ports)
        self._prometheus.start()
        self.seen: list[float] = []
        try:
            self._live()
        finally:
            self._prometheus.stop()

    def _live(self) -> None:
        folder, yarn = self.folder, self._yarn
        self._events, go = folder / "events", folder / "go"
        conf = {
            **yarn.conf(),
            **events_and_spans(self._events),
            "spark.metrics.reporter.page.factory.class": "prometheus",
            "spark.metrics.reporter.page.port": f"{self._ports[0]}-{self._ports[-1]}",
            "spark.events.heartbeat.interval": "1s",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(folder),
            "spark.yarn.maxAppAttempts": "2",
        }
        (folder / "mine.txt").write_text("a file of the user's")
        words = ["--deploy-mode", "cluster", "--files", "mine.txt", str(APPS / "watched_orders.py")]
        checkpoint = f"{yarn.hdfs.url}/checkpoints/orders"
        more = {"HADOOP_CONF_DIR": str(yarn.conf_dir)}
        self._app = App(cli("run", *words, checkpoint, str(go)), conf, folder, more=more)
        self._wait(lambda: self.of(FIRST, CHECKPOINTS), "the query runs")
        self._see(UP)
        self.application = self.events[0]["attributes"]["app_id"]
        os.kill(yarn.driver(self.application), signal.SIGKILL)
        self._see(DOWN)
        self._wait(lambda: self.of(SECOND, CHECKPOINTS), "it runs again")
        self._see(UP)
        self._wait(lambda: yarn.executors(self.application), "it has executors")
        pages = (http_get(f"http://127.0.0.1:{port}/metrics") for port in self._ports)
        self.metrics = next(page for page in pages if 'app_attempt_id="2"' in page)
        self.lost, pid = min(yarn.executors(self.application).items())
        os.kill(pid, signal.SIGKILL)
        self._wait(lambda: self.of(SECOND, "ExecutorLostEvent"), "the executor is lost")
        checkpoints = len(self.of(SECOND, CHECKPOINTS))
        self._wait(lambda: len(self.of(SECOND, CHECKPOINTS)) > checkpoints + 1, "the query goes on")
        go.touch()
        self.run: AppRun = self._app.end()
        self.attempts = len(yarn.ask(f"apps/{self.application}/appattempts")["appAttempts"]["appAttempt"])

    @property
    def events(self) -> list[Event]:
        return file_events(self._events)

    def of(self, attempt: str, name: str, **attributes: Any) -> list[Event]:
        return of_name(self.events, name, app_attempt_id=attempt, **attributes)

    def report(self) -> dict[str, Any]:
        return reported(self._events, self.folder / "report.json")

    def _see(self, value: float) -> None:
        """Wait until Prometheus says that the query is up, or that it is down."""
        says = 'app_query:spark_query_up:max{query_name="orders"}'
        self._wait(lambda: self._prometheus.value(says) == value, f"Prometheus says {value:.0f}")
        self.seen.append(value)

    def _wait(self, condition: Any, what: str) -> None:
        try:
            self._app.wait_for(condition, what)
        except AssertionError as error:
            application = next(iter(self.events), {}).get("attributes", {}).get("app_id", "application_*")
            raise AssertionError(f"{error}\n{self._yarn.logs(application)}") from None


@pytest.fixture(scope="module")
def story(yarn: YarnCluster, tmp_path_factory: pytest.TempPathFactory) -> Story:
    need("prometheus", "prometheus")
    return Story(tmp_path_factory.mktemp("story"), yarn)


def states(events: list[Event]) -> list[str]:
    return [event["attributes"]["newJobStatus"] for event in events]


def test_an_application_without_a_change_is_reported_on(story: Story) -> None:
    """By configuration alone; its name, its exit code and its files are what they would be."""
    assert story.run.code == 0, story.run.err[-3000:]
    assert {event["attributes"]["app_name"] for event in story.events} == {"watched-orders"}
    assert "import spark_events" not in (APPS / "watched_orders.py").read_text()
    assert story.attempts == 2


def test_a_driver_that_is_killed(story: Story) -> None:
    """Its attempt is FAILED with the true reason, and YARN begins another one."""
    assert states(story.of(FIRST, STATUS, job_kind="application")) == ["CREATED", "RUNNING", "FAILED"]
    assert states(story.of(FIRST, STATUS, **QUERY)) == ["CREATED", "RUNNING", "FAILED"]
    (failure,) = story.of(FIRST, "JobFailureEvent", job_kind="application")
    assert failure["attributes"]["exception.message"] == "the driver's JVM is gone"
    assert failure["attributes"]["failureLabel.type"] == "SYSTEM"
    assert failure["attributes"]["canRestart"] == "true"


def test_the_second_attempt(story: Story) -> None:
    """The query goes on from its checkpoint: RESTARTING until its first micro-batch is committed."""
    assert states(story.of(SECOND, STATUS, job_kind="application")) == ["CREATED", "RUNNING", "FINISHED"]
    assert states(story.of(SECOND, STATUS, **QUERY)) == ["RESTARTING", "RUNNING", "CANCELED"]
    batches = [
        [event["attributes"]["checkpointId"] for event in story.of(attempt, CHECKPOINTS)]
        for attempt in (FIRST, SECOND)
    ]
    assert batches[1][0] in (batches[0][-1], batches[0][-1] + 1)


def test_an_executor_that_is_killed(story: Story) -> None:
    """By a signal, in YARN's own words: nobody says that it was for memory."""
    lost = story.of(SECOND, "ExecutorLostEvent", executor_id=story.lost)[0]["attributes"]
    assert (lost["reason"], lost["exitCode"]) == ("killed", 137)
    assert "Killed by external signal" in lost["reasonMessage"]
    assert story.of(SECOND, "JobFailureEvent") == []


def test_its_metrics(story: Story) -> None:
    """Up, down from the kill on, up again; the second attempt's page says that it has been restarted."""
    assert story.seen == [UP, DOWN, UP]
    labels = 'app_name="watched-orders",query_name="orders"'
    assert f"spark_query_num_restarts{{{labels}}} 1.0" in story.metrics
    assert f'spark_query_status{{{labels},status="RUNNING"}} 1.0' in story.metrics


def test_its_event_logs_are_followed(story: Story, tmp_path: Path) -> None:
    """The log of the first attempt has no end; that of the second proves at once that it is over."""
    conf = {"spark.events.reporter.x.factory.class": "tests.support.plugins:CollectingFactory"}
    before = len(Collecting.instances)
    follower = Follower(str(story.folder), conf, LogPositions(tmp_path / "state"), complete_too=True)

    def last_states() -> dict[str, str]:
        follower.poll()
        events = [event for reporter in Collecting.instances[before:] for event in reporter.events]
        changes = [event for event in events if event.attributes.get("job_kind") == "application"]
        return {
            str(event.variables["app_attempt_id"]): str(event.attributes["newJobStatus"])
            for event in changes
            if event.name == STATUS
        }

    wait_until(lambda: last_states() == {FIRST: "FAILED", SECOND: "FINISHED"}, "both have ended")
    follower.stop()
    follower.run()


def test_its_report(story: Story) -> None:
    """Down from the kill until the second attempt; one failure and one restart of each."""
    report = story.report()
    for of in report["uptime"]:
        assert (of["failures"], of["outages"], of["restarts"]) == (1, 1, 1), of
        assert of["down_ms"] > 0
    errors = {(row["kind"], row["error"]): row["message"] for row in report["failures"]}
    assert errors["application", ""] == "the driver's JVM is gone"
    assert ("executor", "killed") in errors

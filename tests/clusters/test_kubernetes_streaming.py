"""A streaming query on Kubernetes, set up as docs/deploy/kubernetes.md says: its executor is deleted, its drivers end by signals.

Its settings and all that watches it are those of conf/kubernetes, and nothing in the application is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.spark.conf import read_properties
from tests.support.applications import App, AppRun, reported
from tests.support.file_log import Submissions, events_and_spans
from tests.support.kubernetes.api import objects
from tests.support.kubernetes.cluster import MANIFESTS, KubernetesCluster
from tests.support.kubernetes.monitoring import Monitoring, monitoring
from tests.support.kubernetes.submission import CLUSTER, local, submit
from tests.support.paths import APPS
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.collector,
    pytest.mark.prometheus,
    pytest.mark.thorough,
    pytest.mark.timeout(900),
]
CHECKPOINTS = "CheckpointEvent"
NAME = "watched-orders"


class Story(Submissions):
    """Three submissions of one query, with what happened to each.

    Attributes:
        lost: the number of the executor that was deleted.
        runs: how spark-submit ended, each time.
        seen: what Prometheus said of the query, at each time.
        arrived: the ids of the events that have come to the collector.
    """

    def __init__(self, folder: Path, kubernetes: KubernetesCluster, watch: Monitoring) -> None:
        super().__init__(folder / "events")
        self.folder, self._kubernetes, self._watch, self._go = folder, kubernetes, watch, folder / "go"
        self.runs: list[AppRun] = []
        self.seen: dict[str, float | None] = {}
        self._first()
        self._second()
        self._third()
        self.arrived = {event["event.id"] for event in watch.events()}

    def _first(self) -> None:
        """An executor is deleted, then the driver: both by Kubernetes, with the time to end."""
        app = self._submit("first")
        self._see("running", 'spark_query_status{query_name="orders",status="RUNNING"} == 1')
        application = self.applications[-1]
        (pod,) = self._kubernetes.running("executor", application)
        self._kubernetes.delete_pod(pod)
        self._wait(app, lambda: self.of(-1, "ExecutorLostEvent"), "the executor is lost")
        batches = len(self.of(-1, CHECKPOINTS))
        self._wait(app, lambda: len(self.of(-1, CHECKPOINTS)) > batches + 1, "the query goes on")
        self._kubernetes.delete_pod(self._driver(application))
        self.runs.append(app.end())
        self._see("down", 'spark_query_status{query_name="orders",status="FAILED"} == 1')

    def _second(self) -> None:
        """The driver is killed by force, and can say nothing."""
        app = self._submit("second")
        self._see("up again", 'spark_query_status{query_name="orders",status="RUNNING"} == 1')
        self._see("restarts", 'max(spark_query_num_restarts{query_name="orders"}) > 0')
        self._kubernetes.kill_pod(self._driver(self.applications[-1]))
        self.runs.append(app.end())

    def _third(self) -> None:
        """It ends by itself."""
        app = self._submit("third")
        self._go.touch()
        self.runs.append(app.end())

    def report(self) -> dict[str, Any]:
        return reported(self._events, self.folder / "report.json")

    def _submit(self, name: str) -> App:
        known = len(self.applications)
        conf = {
            **read_properties(MANIFESTS / "spark-defaults.conf"),
            "spark.kubernetes.driver.podTemplateFile": str(MANIFESTS / "driver.yaml"),
            **events_and_spans(self._events),
            "spark.events.heartbeat.interval": "1s",
            "spark.kubernetes.driver.volumes.hostPath.all.options.path": str(self.folder),
            "spark.kubernetes.driver.volumes.hostPath.all.mount.path": str(self.folder),
        }
        application = (local(APPS / "watched_orders.py"), str(self.folder / "state"), str(self._go))
        app = submit(self._kubernetes, self.folder / name, *CLUSTER, *application, conf=conf)
        self._wait(
            app, lambda: len(self.applications) > known and self.of(-1, CHECKPOINTS), f"the {name} query runs"
        )
        return app

    def _driver(self, application: str) -> str:
        (pod,) = self._kubernetes.running("driver", application)
        return pod

    def _see(self, what: str, expression: str) -> None:
        """Wait until a query of PromQL yields something."""

        def value() -> bool:
            self.seen[what] = self._watch.query(expression)
            return self.seen[what] is not None

        wait_until(value, f"Prometheus sees: {what}")

    def _wait(self, app: App, condition: Callable[[], Any], what: str) -> None:
        try:
            app.wait_for(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._kubernetes.logs()}") from None


@pytest.fixture(scope="module")
def story(kubernetes: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    for each in objects(MANIFESTS / "storage.yaml"):
        kubernetes.api.apply(each)
    with monitoring(kubernetes) as watch:
        yield Story(tmp_path_factory.mktemp("story"), kubernetes, watch)


def test_an_application_without_a_change_is_reported_on(story: Story) -> None:
    """By configuration alone, each time it is submitted."""
    assert {event["attributes"]["app_name"] for event in story.events} == {NAME}
    assert "import spark_events" not in (APPS / "watched_orders.py").read_text()
    assert len(story.applications) == 3


def test_an_executor_that_is_deleted(story: Story) -> None:
    """In Kubernetes' words; the query goes on with another."""
    lost = story.of(0, "ExecutorLostEvent", reason="deleted")
    assert len(lost) == 1
    assert "was deleted by a user or the framework" in lost[0]["attributes"]["reasonMessage"]


def test_a_driver_that_is_deleted(story: Story) -> None:
    """By a signal: nobody says that it was meant. So it is down."""
    assert story.states(0, "application") == ["CREATED", "RUNNING", "FAILED"]
    assert story.states(0, "query") == ["CREATED", "RUNNING", "FAILED"]
    (failure,) = story.of(0, "JobFailureEvent", job_kind="application")
    assert failure["attributes"]["exitSignal"] == "SIGTERM"
    assert "exit code: 143" in story.runs[0].err


def test_a_driver_that_is_killed(story: Story) -> None:
    """With all that ran in its pod: nobody is left to tell it."""
    assert story.states(1, "application") == ["CREATED", "RUNNING"]
    assert story.states(1, "query") == ["RESTARTING", "RUNNING"]
    assert "exit code: 137" in story.runs[1].err


def test_the_last_one(story: Story) -> None:
    """It goes on from the checkpoint of those before it, and ends well."""
    assert story.runs[2].code == 0, story.runs[2].err[-3000:]
    assert story.states(2, "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert story.states(2, "query") == ["RESTARTING", "RUNNING", "CANCELED"]
    batches = [
        event["attributes"]["checkpointId"] for event in story.events if event["eventName"] == CHECKPOINTS
    ]
    assert batches == sorted(batches)


def test_what_prometheus_has_seen(story: Story) -> None:
    """Up, down, up again, and how often it was restarted."""
    assert story.seen == {"running": 1.0, "down": 1.0, "up again": 1.0, "restarts": 1.0}


def test_nothing_is_lost_on_the_way(story: Story) -> None:
    """The collector has every event: what the driver that was killed could not send, the next one has sent."""
    assert {event["eventId"] for event in story.events} <= story.arrived


def test_its_report(story: Story) -> None:
    """Down twice, once with the signal as the reason, once because nothing was heard of it any more."""
    report = story.report()
    for of in report["uptime"]:
        assert (of["failures"], of["outages"], of["restarts"]) == (2, 2, 2), of
        assert of["down_ms"] > 0
    errors = {(row["kind"], row["error"]) for row in report["failures"]}
    assert ("executor", "deleted") in errors
    assert any(kind == "application" and error == "LOST" for kind, error in errors), errors

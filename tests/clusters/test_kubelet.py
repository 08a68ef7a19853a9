"""Applications in the pods of a real kubelet, with containers of containerd and runc: ends of drivers and executors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.applications import App, reported
from tests.support.executors import above_the_limit_of_memory
from tests.support.file_log import Submissions, events_and_spans, file_events, of_name, statuses
from tests.support.kubernetes.cluster import KubernetesCluster
from tests.support.kubernetes.kubelet import KubeletCluster, running_kubelet
from tests.support.kubernetes.query import Query
from tests.support.kubernetes.submission import CLUSTER, local, submit
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]
SQUARES = APPS / "squares.py"
IN_TIME = {
    # Otherwise Spark waits for half a minute before it believes that a pod is gone.
    "spark.kubernetes.executor.apiPollingInterval": "1s",
    "spark.kubernetes.executor.missingPodDetectDelta": "2s",
}


@pytest.fixture(scope="module")
def kubernetes(java: str) -> Iterator[KubeletCluster]:
    with running_kubelet() as cluster:
        yield cluster


@pytest.mark.parametrize("mode", [(), CLUSTER], ids=["client mode", "cluster mode"])
def test_an_application(kubernetes: KubernetesCluster, tmp_path: Path, mode: tuple[str, ...]) -> None:
    application = local(SQUARES) if mode else str(SQUARES)
    run = submit(kubernetes, tmp_path, *mode, application, conf=events_and_spans(tmp_path / "events")).end()
    assert run.code == 0, run.err[-3000:]
    events = file_events(tmp_path / "events")
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert statuses(events, "job") == ["RUNNING", "FINISHED"]
    assert [lost["attributes"]["reason"] for lost in of_name(events, "ExecutorLostEvent")] == [
        "application_ended"
    ]


def test_an_executor_above_its_limit_of_memory(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """The kernel kills it, the kubelet calls that OOMKilled, and so do event and failure of the job."""
    jvm = kubernetes.conf()["spark.executor.extraJavaOptions"]
    conf = {
        **events_and_spans(tmp_path / "events"),
        "spark.executor.memoryOverhead": "200m",
        # The kernel ends the largest process alone, where it has the first version of cgroups.
        "spark.executor.extraJavaOptions": f"{jvm} -XX:+AlwaysPreTouch",
        "spark.task.maxFailures": "1",
    }
    run = submit(kubernetes, tmp_path, str(APPS / "hungry.py"), conf=conf).end()
    assert run.code == 0, run.err[-3000:]
    above_the_limit_of_memory(file_events(tmp_path / "events"))


def test_a_driver_that_is_deleted(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """With its grace: SIGTERM ends it with exit code 143, which nobody calls finished."""
    query = Query(kubernetes, tmp_path, {})
    kubernetes.delete_pod(query.driver)
    run = query.app.end()
    assert "exit code: 143" in run.err
    for kind in ("application", "query"):
        assert statuses(query.events, kind) == ["CREATED", "RUNNING", "FAILED"]
    (failure,) = of_name(query.events, "JobFailureEvent", job_kind="application")
    assert (failure["attributes"]["exitCode"], failure["attributes"]["exitSignal"]) == (143, "SIGTERM")


class Story(Submissions):
    """A streaming query, whose driver is killed, and then the executor of the next one, by force.

    Attributes:
        applications: the ids of its applications.
        report: the tables of all that happened.
    """

    def __init__(self, kubernetes: KubeletCluster, folder: Path) -> None:
        super().__init__(folder / "events")
        self._kubernetes, self._folder, self._go = kubernetes, folder, folder / "go"
        first = self._submit("first")
        kubernetes.delete_pod(self._pod("driver"))
        first.end()
        second = self._submit("second")
        kubernetes.kill_pod(self._pod("executor"))
        second.wait_for(lambda: self.of(-1, "ExecutorLostEvent"), "the executor is lost")
        batches = len(self.of(-1, "CheckpointEvent"))
        second.wait_for(lambda: len(self.of(-1, "CheckpointEvent")) > batches + 1, "the query goes on")
        self._go.touch()
        self.code = second.end().code
        self.report = reported(self._events, folder / "report.json")

    def _submit(self, name: str) -> App:
        known = len(self.applications)
        conf = {
            **events_and_spans(self._events),
            "spark.events.state.dir": str(self._folder / "restarts"),
            "spark.kubernetes.driver.volumes.hostPath.all.options.path": str(self._folder),
            "spark.kubernetes.driver.volumes.hostPath.all.mount.path": str(self._folder),
            **IN_TIME,
        }
        words = (*CLUSTER, local(APPS / "watched_orders.py"), str(self._folder / "state"), str(self._go))
        app = submit(self._kubernetes, self._folder / name, *words, conf=conf)

        def runs() -> bool:
            return len(self.applications) > known and bool(self.of(-1, "CheckpointEvent"))

        app.wait_for(runs, f"the {name} query runs")
        return app

    def _pod(self, role: str) -> str:
        (pod,) = self._kubernetes.running(role, self.applications[-1])
        return pod


@pytest.fixture(scope="module")
def story(kubernetes: KubeletCluster, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(kubernetes, tmp_path_factory.mktemp("story"))


def test_it_is_down_with_its_driver_and_up_again(story: Story) -> None:
    assert story.states(0, "query") == ["CREATED", "RUNNING", "FAILED"]
    assert story.states(1, "query") == ["RESTARTING", "RUNNING", "CANCELED"]
    assert story.states(1, "application") == ["CREATED", "RUNNING", "FINISHED"]
    (failure,) = story.of(0, "JobFailureEvent", job_kind="application")
    assert failure["attributes"]["exitSignal"] == "SIGTERM"
    assert story.code == 0


def test_it_outlives_its_executor(story: Story) -> None:
    """Killed by hand on the node: nobody says that it was memory."""
    (lost,) = story.of(1, "ExecutorLostEvent", executor_id="1")
    attributes = lost["attributes"]
    assert (attributes["reason"], attributes["exitCode"]) == ("killed", 137)
    assert attributes["exitMeaning"].startswith("killed (SIGKILL): above a memory limit, by the cluster")


def test_its_report(story: Story) -> None:
    """Down once, from the end of the first driver until the second one ran the query."""
    for of in story.report["uptime"]:
        assert (of["failures"], of["outages"], of["restarts"]) == (1, 1, 1), of
        assert of["down_ms"] > 0
    reasons = {(row["kind"], row["error"]) for row in story.report["failures"]}
    assert ("executor", "killed") in reasons

"""Executors on Kubernetes that end before their application: for memory, deleted, killed, evicted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.executors import above_the_limit_of_memory, losses
from tests.support.file_log import Event, events_and_spans, file_events, of_name, statuses
from tests.support.kubernetes.cluster import NAMESPACE, KubernetesCluster
from tests.support.kubernetes.submission import submit
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(600)]


def test_one_above_its_limit_of_memory(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """In Kubernetes' own word, OOMKilled, and the job's failure says it whole; the application goes on."""
    conf = {
        **events_and_spans(tmp_path / "events"),
        "spark.executor.memoryOverhead": "200m",
        "spark.task.maxFailures": "1",
    }
    run = submit(kubernetes, tmp_path, str(APPS / "hungry.py"), conf=conf).end()
    assert run.code == 0, run.err[-3000:]
    failure = above_the_limit_of_memory(file_events(tmp_path / "events"))
    assert "exit code 137" in failure["body"]


class Query:
    """A streaming query whose executors go, one after the other.

    Args:
        kubernetes: where it runs; its driver is here.
        folder: for its files.
    """

    def __init__(self, kubernetes: KubernetesCluster, folder: Path) -> None:
        self._kubernetes, self._folder, self._go = kubernetes, folder, folder / "go"
        conf = {
            **events_and_spans(folder / "events"),
            # Otherwise Spark waits for half a minute before it believes that a pod is gone.
            "spark.kubernetes.executor.apiPollingInterval": "1s",
            "spark.kubernetes.executor.missingPodDetectDelta": "2s",
        }
        application = (str(APPS / "watched_orders.py"), str(folder / "state"), str(self._go))
        self._app: App = submit(kubernetes, folder, *application, conf=conf)

    @property
    def events(self) -> list[Event]:
        return file_events(self._folder / "events")

    def lose(self, number: str, way: Callable[[str], None]) -> None:
        """Let the pod of the executor that runs end, once the query has used it."""
        running = self._kubernetes.running
        self._app.wait_for(lambda: running("executor"), "it has an executor")
        batches = len(of_name(self.events, "CheckpointEvent"))
        self._app.wait_for(lambda: self._batches() > batches + 1, "its query runs")
        (pod,) = running("executor")
        way(pod)
        self._app.wait_for(lambda: number in losses(self.events), f"executor {number} is lost")

    def end(self) -> None:
        self._go.touch()
        run = self._app.end()
        assert run.code == 0, run.err[-3000:]

    def _batches(self) -> int:
        return len(of_name(self.events, "CheckpointEvent"))


def test_deleted_killed_and_evicted(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """Each has its reason in one word, in time, and the query goes on with another executor."""
    query = Query(kubernetes, tmp_path)
    query.lose("1", kubernetes.delete_pod)
    query.lose("2", partial(kubernetes.delete_pod, grace_s=0))
    query.lose("3", kubernetes.kill_pod)
    query.lose("4", lambda pod: kubernetes.node.pod(NAMESPACE, pod).evict())
    query.end()
    lost = losses(query.events)
    assert {number: loss["reason"] for number, loss in lost.items()} == {
        "1": "deleted",
        "2": "deleted",
        "3": "killed",
        "4": "evicted",
    }
    assert lost["3"]["exitCode"] == 137
    assert "low on resource: memory" in lost["4"]["reasonMessage"]
    assert lost["4"]["exitMeaning"] == "killed (SIGKILL)"
    assert statuses(query.events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert statuses(query.events, "query") == ["CREATED", "RUNNING", "CANCELED"]

"""``spark-events follow`` as a Deployment, for applications that know nothing of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.kubernetes.api import objects
from tests.support.kubernetes.cluster import MANIFESTS, NAMESPACE, KubernetesCluster
from tests.support.kubernetes.monitoring import Monitoring, monitoring
from tests.support.kubernetes.submission import CLUSTER, local, submit
from tests.support.paths import APPS
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.collector,
    pytest.mark.prometheus,
    pytest.mark.thorough,
    pytest.mark.timeout(600),
]
LOGS = "/var/log/spark"
RUNS = {"app": "spark-events-follow"}


def test_it_reports_all_that_write_event_logs(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """As follow.yaml has it; its pod is deleted between two applications, and the next goes on where it was."""
    volume = "spark.kubernetes.driver.volumes.persistentVolumeClaim.logs"
    conf = {
        "spark.events.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{LOGS}",
        f"{volume}.options.claimName": "spark-logs",
        f"{volume}.mount.path": LOGS,
    }
    with monitoring(kubernetes) as watch:
        for each in objects(MANIFESTS / "follow.yaml"):
            kubernetes.api.apply(each)
        try:
            for number, name in enumerate(("one", "two"), start=1):
                run = submit(
                    kubernetes, tmp_path / name, *CLUSTER, local(APPS / "squares.py"), conf=conf
                ).end()
                assert run.code == 0, run.err[-3000:]
                wait_until(partial(has_reported, watch, number), f"application {name} is reported")
                restart(kubernetes)
            ids = [event["event.id"] for event in watch.events()]
            assert len(ids) == len(set(ids))
        finally:
            kubernetes.api.delete("Deployment", NAMESPACE, "spark-events-follow")


def has_reported(watch: Monitoring, number: int) -> bool:
    """Return whether so many applications have been reported as FINISHED."""
    finished = {"job_kind": "application", "newJobStatus": "FINISHED"}
    return sum(finished.items() <= event.items() for event in watch.events()) == number


def restart(kubernetes: KubernetesCluster) -> None:
    """Delete the pod of follow, and wait for the next."""
    (follower,) = wait_until(lambda: kubernetes.running_with(RUNS), "follow runs")
    wait_until(lambda: "following" in kubernetes.log(follower), "it follows")
    kubernetes.delete_pod(follower)
    wait_until(lambda: kubernetes.is_gone(follower), "it has ended")
    wait_until(lambda: kubernetes.running_with(RUNS), "follow runs again")

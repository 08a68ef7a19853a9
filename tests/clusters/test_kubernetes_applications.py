"""Batch applications on Kubernetes under ``spark-events run``: in both deploy modes, with what the manifests allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_events.spark.conf import spark_submit_program
from tests.support.applications import AppRun
from tests.support.file_log import Event, events_and_spans, file_events, of_name, statuses
from tests.support.kubernetes.api import objects
from tests.support.kubernetes.cluster import MANIFESTS, NAMESPACE, KubernetesCluster
from tests.support.kubernetes.submission import CLUSTER, local, submit
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(600)]
SQUARES = APPS / "squares.py"
BOTH_MODES = pytest.mark.parametrize("mode", [(), CLUSTER], ids=["client mode", "cluster mode"])


def ran(
    kubernetes: KubernetesCluster, folder: Path, mode: tuple[str, ...], *arguments: str
) -> tuple[AppRun, list[Event]]:
    application = local(SQUARES) if mode else str(SQUARES)
    conf = events_and_spans(folder / "events")
    run = submit(kubernetes, folder, *mode, application, *arguments, conf=conf).end()
    return run, file_events(folder / "events")


@BOTH_MODES
def test_one_that_succeeds(kubernetes: KubernetesCluster, tmp_path: Path, mode: tuple[str, ...]) -> None:
    run, events = ran(kubernetes, tmp_path, mode)
    assert run.code == 0, run.err[-3000:]
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert statuses(events, "job") == ["RUNNING", "FINISHED"]
    assert {event["attributes"]["app_name"] for event in events} == {"squares"}
    assert "import spark_events" not in SQUARES.read_text()


@BOTH_MODES
def test_one_that_fails(kubernetes: KubernetesCluster, tmp_path: Path, mode: tuple[str, ...]) -> None:
    """With its exception, and the place in its code. Of a driver in a pod, spark-submit says only that it ran."""
    run, events = ran(kubernetes, tmp_path, mode, "fail")
    assert run.code == (0 if mode else 1), run.err[-3000:]
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FAILED"]
    (failure,) = of_name(events, "JobFailureEvent", job_kind="application")
    assert failure["body"] == "application 'squares' failed: ValueError: 140 is not enough"
    assert failure["attributes"]["code.line.number"] == 10


def test_a_driver_whose_python_has_no_spark_events(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """The application runs as it would without: the pod's log says why nothing is reported."""
    conf = {**events_and_spans(tmp_path / "events"), "spark.kubernetes.driverEnv.PYTHONPATH": ""}
    run = submit(
        kubernetes,
        tmp_path,
        *CLUSTER,
        "--conf",
        "spark.pyspark.driver.python=/usr/bin/python3",
        local(SQUARES),
        conf=conf,
    ).end()
    assert run.code == 0, run.err[-3000:]
    assert file_events(tmp_path / "events") == []


def test_one_that_another_program_submits(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """An operator, say, which knows spark-submit alone: one setting does what ``spark-events run`` does."""
    conf = {**events_and_spans(tmp_path / "events"), "spark.pyspark.driver.python": "spark-events-python"}
    spark_submit = (spark_submit_program(),)
    run = submit(kubernetes, tmp_path, *CLUSTER, local(SQUARES), conf=conf, program=spark_submit).end()
    assert run.code == 0, run.err[-3000:]
    assert statuses(file_events(tmp_path / "events"), "application") == ["CREATED", "RUNNING", "FINISHED"]


def test_an_image_without_spark_events(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """Its driver ends at once, and says what it has not found."""
    conf = {"spark.kubernetes.driverEnv.PATH": "/usr/bin:/bin"}
    run = submit(kubernetes, tmp_path, *CLUSTER, local(SQUARES), conf=conf).end()
    assert "exit code: 1" in run.err
    (pod,) = (
        pod["metadata"]["name"]
        for pod in kubernetes.api.all("Pod", NAMESPACE)
        if pod["metadata"]["labels"].get("spark-role") == "driver"
        and f"pod name: {pod['metadata']['name']}" in run.err
    )
    assert 'Cannot run program "spark-events-python"' in kubernetes.log(pod)


UNSEEN = {
    ("pods", "delete"),  # of executors that are not needed any more
    # The API server asks for it where a patch makes what is not there yet, but notes the patch alone.
    *((resource, "create") for resource in ("configmaps", "services", "networkpolicies")),
}
"""Rights that one application need not make use of, or not visibly."""


def test_no_right_too_few_and_none_too_many(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """Spark's account is refused nothing that it asks for, and has no right that it does not make use of."""
    run, _ = ran(kubernetes, tmp_path, CLUSTER)
    assert run.code == 0, run.err[-3000:]
    requests = list(kubernetes.requests())
    refused = {
        (each["verb"], each["requestURI"]) for each in requests if each["responseStatus"].get("code") == 403
    }
    assert refused == set()
    used = {(each["objectRef"]["resource"], each["verb"]) for each in requests if "objectRef" in each}
    (role,) = (each for each in objects(MANIFESTS / "rbac.yaml") if each["kind"] == "Role")
    allowed = {
        (resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]
    }
    assert allowed - UNSEEN == used - UNSEEN

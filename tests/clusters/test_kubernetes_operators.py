"""The manifests: what Kubernetes' API says of them, and whether those for operators do what they are to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_events.spark.conf import spark_submit_program
from tests.support.kubernetes.api import ApiError, Object, objects
from tests.support.kubernetes.cluster import MANIFESTS, NAMESPACE, KubernetesCluster
from tests.support.kubernetes.operators import define, scraped_by
from tests.support.kubernetes.query import Query
from tests.support.prometheus import PrometheusServer
from tests.support.requirements import need
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.prometheus, pytest.mark.thorough, pytest.mark.timeout(600)]
PORT = 9249
APPLICATION, MONITOR = "spark-application.yaml", "pod-monitor.yaml"


def manifest(name: str) -> Object:
    (each,) = objects(MANIFESTS / name)
    return each


@pytest.mark.parametrize("name", [APPLICATION, MONITOR])
def test_the_api_server_takes_it(kubernetes: KubernetesCluster, name: str) -> None:
    """As the operator defines it, without a key that it does not know."""
    each = manifest(name)
    define(kubernetes.api, each["kind"])
    kubernetes.api.check(each)
    each["spec"]["noSuchKey"] = "value"
    with pytest.raises(ApiError, match="noSuchKey"):
        kubernetes.api.check(each)


def test_all_manifests_are_what_kubernetes_takes(kubernetes: KubernetesCluster) -> None:
    """No key is misspelled, and no value is of another kind."""
    for name in (APPLICATION, MONITOR):
        define(kubernetes.api, manifest(name)["kind"])
    for file in sorted(MANIFESTS.glob("*.yaml")):
        for each in objects(file):
            if each["kind"] == "Pod":  # a template, which Spark completes
                each = {**each, "metadata": {"name": "driver", "namespace": NAMESPACE}}
                each["spec"]["containers"][0]["image"] = "spark-events"
            try:
                kubernetes.api.check(each)
            except ApiError as error:
                pytest.fail(f"{file.name}: {error}")


def test_an_application_of_the_operator_has_the_settings_of_the_page() -> None:
    """Those of spark-defaults.conf and driver.yaml, and the one with which the driver's Python attaches."""
    lines = (MANIFESTS / "spark-defaults.conf").read_text().splitlines()
    page = dict(line.split() for line in lines if line and not line.startswith("#"))
    spec = manifest(APPLICATION)["spec"]
    assert page.pop("spark.kubernetes.namespace") == NAMESPACE
    assert (
        page.pop("spark.kubernetes.authenticate.driver.serviceAccountName")
        == spec["driver"]["serviceAccount"]
    )
    assert page.pop("spark.kubernetes.container.image") == spec["image"]
    assert page.pop("spark.kubernetes.driver.podTemplateFile") == "conf/kubernetes/driver.yaml"
    assert spec["sparkConf"] == {**page, "spark.pyspark.driver.python": "spark-events-python"}
    assert spec["driver"]["template"] == {"spec": manifest("driver.yaml")["spec"]}


def test_a_driver_that_a_pod_monitor_finds(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """By its pod as the API server has it, and scraped by a real Prometheus; plain spark-submit submits it."""
    need("prometheus", "prometheus")
    page = "spark.metrics.reporter.page"
    conf = {
        "spark.pyspark.driver.python": "spark-events-python",
        "spark.kubernetes.driver.podTemplateFile": str(MANIFESTS / "driver.yaml"),
        f"{page}.factory.class": "prometheus",
        f"{page}.port": str(PORT),
        f"{page}.bind.address": "0.0.0.0",
    }
    query = Query(kubernetes, tmp_path, conf, program=[spark_submit_program()])
    how = scraped_by(manifest(MONITOR), kubernetes.api, tmp_path / "targets.json")
    server = PrometheusServer(tmp_path / "prometheus", (), how)
    server.start()
    try:
        running = 'spark_query_status{query_name="orders",status="RUNNING"} == 1'
        wait_until(lambda: server.query(running), "Prometheus has its query")
        address = kubernetes.node.pod(NAMESPACE, query.driver).address
        assert server.value("up") == 1
        assert server.value(f'up{{instance="{address}:{PORT}"}}') == 1
    finally:
        server.stop()
    query.end()

"""What a driver's pod gets from the cluster: secrets, a volume for its journal; and who scrapes it by its address."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.collector import Collector
from tests.support.file_log import of_name, statuses
from tests.support.kubernetes.api import objects
from tests.support.kubernetes.cluster import MANIFESTS, NAMESPACE, KubernetesCluster
from tests.support.kubernetes.query import Query
from tests.support.prometheus import PrometheusServer
from tests.support.requirements import need
from tests.support.scraping import code_of
from tests.support.waiting import free_port, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.collector,
    pytest.mark.prometheus,
    pytest.mark.thorough,
    pytest.mark.timeout(600),
]


def test_secrets_of_a_page_that_prometheus_scrapes(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """A token from a file, and one from a variable, both of a Secret; by the address of the driver's pod."""
    need("prometheus", "prometheus")
    port, token = free_port(), "a-token-of-the-secret"
    data = {"token": base64.b64encode(token.encode()).decode()}
    kubernetes.api.create("Secret", NAMESPACE, {"metadata": {"name": "scrape"}, "data": data})
    page = "spark.metrics.reporter.page"
    other = "spark.metrics.reporter.other"
    conf = {
        "spark.kubernetes.driver.secrets.scrape": "/etc/scrape",
        "spark.kubernetes.driver.secretKeyRef.SCRAPE_TOKEN": "scrape:token",
        f"{page}.factory.class": "prometheus",
        f"{page}.port": str(port),
        f"{page}.bind.address": "0.0.0.0",
        f"{page}.auth.token": "file:/etc/scrape/token",
        f"{other}.factory.class": "prometheus",
        f"{other}.port": str(port + 1),
        f"{other}.bind.address": "0.0.0.0",
        f"{other}.auth.token": "env:SCRAPE_TOKEN",
    }
    query = Query(kubernetes, tmp_path, conf)
    driver = query.driver
    address = kubernetes.node.pod(NAMESPACE, driver).address
    assert code_of(f"http://{address}:{port}/metrics") in (401, -1)
    how = f", authorization: {{credentials: {token}}}"
    server = PrometheusServer(tmp_path / "prometheus", (port, port + 1), how, host=address)
    server.start()
    try:
        wait_until(lambda: server.query('spark_query_status{status="RUNNING"} == 1'), "Prometheus has it")
        wait_until(lambda: server.value("sum(up)") == 2, "both pages are scraped")
    finally:
        server.stop()
    query.end()
    assert token not in kubernetes.log(driver)


def test_a_stop_that_is_meant(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """Where drivers are deleted only for planned stops, and the settings say so: nothing is down."""
    query = Query(kubernetes, tmp_path, {"spark.events.stop.signals": "SIGTERM"})
    kubernetes.delete_pod(query.driver)
    assert "exit code: 143" in query.app.end().err
    assert statuses(query.events, "application") == ["CREATED", "RUNNING", "CANCELED"]
    assert statuses(query.events, "query") == ["CREATED", "RUNNING", "CANCELED"]
    assert of_name(query.events, "JobFailureEvent") == []


def test_the_next_driver_sends_what_the_last_could_not(
    kubernetes: KubernetesCluster, tmp_path: Path, own_collector: Callable[..., Collector]
) -> None:
    """Its journal is on the volume of storage.yaml; no collector was there while the first one lived."""
    collector = own_collector()
    for each in objects(MANIFESTS / "storage.yaml"):
        kubernetes.api.apply(each)
    volume = "spark.kubernetes.driver.volumes.persistentVolumeClaim.spark-events"
    conf = {
        f"{volume}.options.claimName": "spark-events",
        f"{volume}.mount.path": "/var/lib/spark-events",
        "spark.events.reporter.otel.factory.class": "otlp",
        "spark.events.reporter.otel.exporter.endpoint": collector.grpc,
        "spark.events.reporter.otel.journal.dir": "/var/lib/spark-events/journal",
    }
    first = Query(kubernetes, tmp_path, conf, "first")
    kubernetes.kill_pod(first.driver)
    assert "exit code: 137" in first.app.end().err
    collector.start()
    second = Query(kubernetes, tmp_path, conf, "second")
    second.end()
    told = {event["eventId"] for query in (first, second) for event in query.events}
    assert len(told) > 10
    wait_until(lambda: told <= set(collector.ids()), "the collector has all")

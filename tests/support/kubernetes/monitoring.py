"""The collector and the Prometheus of conf/kubernetes/monitoring.yaml, in pods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.collector import Collector
from tests.support.kubernetes.api import Object, objects
from tests.support.kubernetes.cluster import MANIFESTS, NAMESPACE, KubernetesCluster
from tests.support.paths import REPO
from tests.support.prometheus import PrometheusQueries
from tests.support.requirements import OTELCOL, missing, need
from tests.support.waiting import http_get, is_listening, wait_until

_PAGE = REPO / "docs" / "deploy" / "kubernetes.md"
_CONFIG_MAP = re.compile(
    r"^kubectl create configmap -n (\S+) (\S+) --from-file=(?:(\S+)=)?(\S+)$", re.MULTILINE
)


class Monitoring:
    """What watches applications. Loki, Tempo and Grafana have no pods here, as there are no images of them.

    Args:
        kubernetes: where it runs.
    """

    def __init__(self, kubernetes: KubernetesCluster) -> None:
        self._kubernetes = kubernetes
        for namespace, name, key, path in _CONFIG_MAP.findall(_PAGE.read_text()):
            kubernetes.api.create("ConfigMap", namespace, _config_map(name, key, REPO / path))
        for each in objects(MANIFESTS / "monitoring.yaml"):
            kubernetes.api.apply(each)
        self._collector = self._pod("collector")
        self._address = kubernetes.node.pod(NAMESPACE, self._collector).address
        wait_until(lambda: is_listening(self._address, 4317), "the collector listens")
        prometheus = kubernetes.node.pod(NAMESPACE, self._pod("prometheus")).address
        self._queries = PrometheusQueries(f"http://{prometheus}:9090")
        wait_until(lambda: http_get(f"{self._queries.url}/-/ready"), "Prometheus is ready")

    def query(self, expression: str) -> float | None:
        """Return the value of a query that yields one series; None where it yields none."""
        return self._queries.value(expression)

    def events(self) -> list[dict[str, Any]]:
        """Return the attributes of all events that have come to the collector."""
        written = Collector(OTELCOL, self._kubernetes.volume(self._collector, "out"))
        return [record["attributes"] for record in written.log_records()]

    def _pod(self, name: str) -> str:
        def running() -> str | None:
            pods = self._kubernetes.running_with({"app": name})
            return pods[0] if pods else None

        return str(wait_until(running, f"the pod of {name} runs"))


@contextmanager
def monitoring(kubernetes: KubernetesCluster) -> Iterator[Monitoring]:
    """Give what watches applications."""
    if not OTELCOL.exists():
        missing("no collector at .cache/otelcol: .ci/build-collector builds it (needs Go)")
    need("prometheus", "prometheus")
    try:
        yield Monitoring(kubernetes)
    finally:
        for each in objects(MANIFESTS / "monitoring.yaml"):
            kubernetes.api.delete(each["kind"], NAMESPACE, each["metadata"]["name"])
        kubernetes.clear()


def _config_map(name: str, key: str, path: Path) -> Object:
    """Return what ``kubectl create configmap`` makes of a file under another name, or of a folder's files."""
    files = {file.name: file for file in path.iterdir()} if path.is_dir() else {key or path.name: path}
    return {"metadata": {"name": name}, "data": {name: file.read_text() for name, file in files.items()}}

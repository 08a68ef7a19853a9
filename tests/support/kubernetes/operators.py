"""What operators add to Kubernetes' API; the operators themselves do not run here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.kubernetes.api import Api, ApiError, Object, objects, place
from tests.support.kubernetes.cluster import NAMESPACE
from tests.support.paths import REPO
from tests.support.requirements import missing
from tests.support.waiting import wait_until

_CRDS = REPO / ".cache" / "crds"


def define(api: Api, kind: str) -> None:
    """Let an API server know a kind of objects; without its definition, skip the test or, in CI, fail it."""
    files = sorted(_CRDS.glob(f"*_{kind.lower()}s.yaml"))
    if not files:
        missing(f"no definition of {kind} in .cache/crds: .ci/get-crds gets it (needs Go)")
    for each in objects(files[-1]):
        api.apply(each)

    def is_known() -> bool:
        try:
            return bool(api.ask("GET", place(kind, NAMESPACE)))
        except ApiError:
            return False

    wait_until(is_known, f"the API server knows {kind}")


def scraped_by(monitor: Object, api: Api, targets: Path) -> str:
    """Return what the Prometheus operator makes of a PodMonitor: more of a scrape's configuration.

    Prometheus' own discovery of pods is no part of Debian's package of it; so a file has what it would find.

    Args:
        monitor: with one port, and labels that pods have to have.
        api: what knows the pods.
        targets: the file to write, a .json.
    """
    spec, namespace = monitor["spec"], monitor["metadata"]["namespace"]
    (endpoint,) = spec["podMetricsEndpoints"]
    targets.write_text(json.dumps([each for pod in api.all("Pod", namespace) for each in _discovered(pod)]))
    wanted = {
        **{_meta(f"pod_label_{name}"): value for name, value in spec["selector"]["matchLabels"].items()},
        _meta("pod_container_port_name"): endpoint["port"],
        _meta("pod_phase"): "Pending|Running|Unknown",
    }
    config = {
        "metrics_path": endpoint["path"],
        "file_sd_configs": [{"files": [str(targets)]}],
        "relabel_configs": [
            {"source_labels": [label], "regex": value, "action": "keep"} for label, value in wanted.items()
        ],
    }
    return f", {json.dumps(config)[1:-1]}"


def _discovered(pod: Object) -> Iterator[Object]:
    """Yield a target for each port of a pod, as Prometheus' discovery of Kubernetes' pods does."""
    status = pod["status"]
    of_pod = {_meta(f"pod_label_{name}"): value for name, value in pod["metadata"].get("labels", {}).items()}
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", ()):
            labels = {
                **of_pod,
                _meta("pod_phase"): status["phase"],
                _meta("pod_container_port_name"): port.get("name", ""),
            }
            yield {"targets": [f"{status['podIP']}:{port['containerPort']}"], "labels": labels}


def _meta(name: str) -> str:
    return "__meta_kubernetes_" + re.sub(r"[^a-zA-Z0-9_]", "_", name)

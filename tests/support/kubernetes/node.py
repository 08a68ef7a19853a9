"""A stand-in for a node: runs pods as processes of this machine."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from tests.support.kubernetes.api import Api, Object
from tests.support.kubernetes.controllers import Controllers
from tests.support.kubernetes.image import Image
from tests.support.kubernetes.pod import Pod
from tests.support.kubernetes.volumes import PodFiles

NODE = "node"


class Node(Controllers):
    """The one node of a cluster, and its controllers.

    Args:
        api: of the cluster.
        image: of all containers, whatever it is called.
        folder: for the files of containers; not on the file system that lies below them.
        logs: the folder for what containers write.
        claims: the folder for what PersistentVolumeClaims keep.
    """

    def __init__(self, api: Api, image: Image, folder: Path, logs: Path, claims: Path) -> None:
        super().__init__(api, NODE)
        self._image, self._folder = image, folder
        self._logs, self._claims = logs, claims
        self._pods: dict[str, Pod] = {}
        self._all: list[Pod] = []
        self._numbers = count(2)

    def start(self) -> None:
        """Start it."""
        self._api.ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
        super().start()

    def stop(self) -> None:
        """End it, and all its pods."""
        super().stop()
        for pod in self._all:
            pod.stop()
        # They still tell the API server how they ended.
        for pod in self._all:
            pod.thread.join(30)

    def pod(self, namespace: str, name: str) -> Pod:
        """Return a pod that runs here."""
        return next(pod for pod in self._pods.values() if (pod.namespace, pod.name) == (namespace, name))

    def _look_after_pod(self, pod: Object) -> None:
        metadata = pod["metadata"]
        ours = self._pods.get(metadata["uid"]) or self._run_pod(pod)
        if metadata.get("deletionTimestamp"):
            ours.delete(metadata.get("deletionGracePeriodSeconds") or 0)

    def _let_go(self, uid: str) -> None:
        self._pods.pop(uid).vanish()

    def _run_pod(self, spec: Object) -> Pod:
        """Bind a pod to this node, and start it."""
        metadata = spec["metadata"]
        namespace, uid = metadata["namespace"], metadata["uid"]
        self._bind(spec)
        address = f"127.0.1.{next(self._numbers) % 254}"
        folder = self._folder / uid
        files = PodFiles(self._api, spec, address, folder / "volumes", self._claims)
        pod = Pod(
            self._api, spec, address, self._image, folder, self._logs, files, lambda: self._hosts(namespace)
        )
        self._pods[uid] = pod
        self._all.append(pod)
        pod.start()
        return pod

    def _hosts(self, namespace: str) -> str:
        """Return what a pod's DNS would tell: the services of its namespace, each by the pods that it selects."""
        lines = ["127.0.0.1 localhost"]
        pods = [pod for pod in list(self._pods.values()) if pod.namespace == namespace]
        lines += [f"{pod.address} {pod.name}" for pod in pods]
        for service in self._api.all("Service", namespace):
            selector, name = service["spec"].get("selector") or {}, service["metadata"]["name"]
            for pod in pods:
                if selector and selector.items() <= pod.labels.items():
                    names = (name, f"{name}.{namespace}", f"{name}.{namespace}.svc")
                    lines.append(f"{pod.address} {' '.join(names)} {names[-1]}.cluster.local")
        return "\n".join(lines) + "\n"

"""A stand-in for a node, and for the controllers that tests need: binds and runs pods, makes and collects objects."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

from tests.support.kubernetes.api import Api, ApiError, Object, place
from tests.support.kubernetes.image import Image
from tests.support.kubernetes.pod import Pod
from tests.support.kubernetes.volumes import PodFiles

NODE = "node"
_LOOKS_EACH_S = 0.3
_OWNED = ("Pod", "Service", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy")


class Node:
    """The one node of a cluster.

    Args:
        api: of the cluster.
        image: of all containers, whatever it is called.
        folder: for the files of containers; not on the file system that lies below them.
        logs: the folder for what containers write.
        claims: the folder for what PersistentVolumeClaims keep.
    """

    def __init__(self, api: Api, image: Image, folder: Path, logs: Path, claims: Path) -> None:
        self._api, self._image, self._folder = api, image, folder
        self._logs, self._claims = logs, claims
        self._pods: dict[str, Pod] = {}
        self._all: list[Pod] = []
        self._numbers = count(2)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node", daemon=True)
        self.errors: list[str] = []

    def start(self) -> None:
        """Start it."""
        self._api.ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
        self._look_after_namespaces()
        self._thread.start()

    def stop(self) -> None:
        """End it, and all its pods."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(30)
        for pod in self._all:
            pod.stop()
        # They still tell the API server how they ended.
        for pod in self._all:
            pod.thread.join(30)

    def pod(self, namespace: str, name: str) -> Pod:
        """Return a pod that runs here."""
        return next(pod for pod in self._pods.values() if (pod.namespace, pod.name) == (namespace, name))

    def _run(self) -> None:
        while not self._stopped.wait(_LOOKS_EACH_S):
            try:
                self._look_after_namespaces()
                self._look_after_deployments()
                self._look_after_pods()
            except (ApiError, OSError) as error:  # the next look may succeed; a test that fails has them
                self.errors.append(str(error))

    def _look_after_pods(self) -> None:
        there = self._api.all("Pod")
        for each in there:
            metadata = each["metadata"]
            pod = self._pods.get(metadata["uid"]) or self._bind(each)
            if metadata.get("deletionTimestamp"):
                pod.delete(metadata.get("deletionGracePeriodSeconds") or 0)
        gone = self._pods.keys() - {each["metadata"]["uid"] for each in there}
        for uid in gone:
            self._pods.pop(uid).vanish()
        if gone:
            self._collect()

    def _bind(self, spec: Object) -> Pod:
        """Bind a pod to this node, and start it."""
        metadata = spec["metadata"]
        namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
        if not spec["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            self._api.ask("POST", f"{place('Pod', namespace)}/{name}/binding", binding)
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

    def _look_after_namespaces(self) -> None:
        """Make what each namespace has: a service account, and what vouches for the API server."""
        for namespace in self._api.ask("GET", "/api/v1/namespaces")["items"]:
            name = namespace["metadata"]["name"]
            authority = {"ca.crt": self._api.authority.read_text()}
            made = {"metadata": {"name": "kube-root-ca.crt"}, "data": authority}
            for kind, body in (("ServiceAccount", {"metadata": {"name": "default"}}), ("ConfigMap", made)):
                there = {each["metadata"]["name"] for each in self._api.all(kind, name)}
                if body["metadata"]["name"] not in there:
                    self._api.create(kind, name, body)

    def _look_after_deployments(self) -> None:
        """Keep one pod of each Deployment."""
        for deployment in self._api.all("Deployment"):
            metadata, template = deployment["metadata"], deployment["spec"]["template"]
            name, namespace, uid = metadata["name"], metadata["namespace"], metadata["uid"]
            pods = [
                pod
                for pod in self._api.all("Pod", namespace)
                if any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or ())
            ]
            if not pods:
                owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid}
                own = {"generateName": f"{name}-", "ownerReferences": [owner]}
                pod = {"metadata": {**template["metadata"], **own}, "spec": template["spec"]}
                self._api.ask("POST", place("Pod", namespace), pod)

    def _collect(self) -> None:
        """Delete what belongs to an object that is gone."""
        # What is made meanwhile has owners that are seen, as they are listed later.
        owned = [(kind, each) for kind in _OWNED for each in self._api.all(kind)]
        there = {each["metadata"]["uid"] for kind in ("Pod", "Deployment") for each in self._api.all(kind)}
        for kind, each in owned:
            metadata = each["metadata"]
            owners = {owner["uid"] for owner in metadata.get("ownerReferences") or ()}
            if owners and not owners & there:
                self._api.delete(kind, metadata["namespace"], metadata["name"])

    def story(self) -> str:
        """Return what it could not do, and which pods there are, for whoever wants to know why a test failed."""
        with suppress(ApiError, OSError):
            pods = [
                f"{pod['metadata']['name']}: {json.dumps(pod.get('status', {}).get('containerStatuses'))}"
                for pod in self._api.all("Pod")
            ]
            return "\n".join([*self.errors, *pods])
        return "\n".join(self.errors)

"""A stand-in for the controllers that tests need: makes and collects objects, and keeps Deployments."""

from __future__ import annotations

import json
import threading
from contextlib import suppress

from tests.support.kubernetes.api import Api, ApiError, Object, place

_LOOKS_EACH_S = 0.3
_OWNED = ("Pod", "Service", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy")


class Controllers:
    """What looks after the objects of a cluster with one node, to which it binds all pods.

    Args:
        api: of the cluster.
        node: the name of the node.
    """

    def __init__(self, api: Api, node: str) -> None:
        self._api, self._node = api, node
        self._known: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)
        self.errors: list[str] = []

    def start(self) -> None:
        """Start them."""
        self._look_after_namespaces()
        self._thread.start()

    def stop(self) -> None:
        """End them."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(30)

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
            self._look_after_pod(each)
            self._known.add(each["metadata"]["uid"])
        gone = self._known - {each["metadata"]["uid"] for each in there}
        self._known -= gone
        for uid in gone:
            self._let_go(uid)
        if gone:
            self._collect()

    def _look_after_pod(self, pod: Object) -> None:
        """See that a pod that there is belongs to the node."""
        self._bind(pod)

    def _let_go(self, uid: str) -> None:
        """Do what is to be done when a pod is gone."""

    def _bind(self, pod: Object) -> None:
        metadata = pod["metadata"]
        if not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self._node}
            name = {"name": metadata["name"]}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": name, "target": target}
            path = f"{place('Pod', metadata['namespace'])}/{metadata['name']}/binding"
            self._api.ask("POST", path, binding)

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

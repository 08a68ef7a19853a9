"""A client of Kubernetes' API."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
_CORE = "/api/v1"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PLACES = {
    "ConfigMap": (_CORE, "configmaps"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "Namespace": (_CORE, "namespaces"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
    "PersistentVolumeClaim": (_CORE, "persistentvolumeclaims"),
    "Pod": (_CORE, "pods"),
    "PodMonitor": ("/apis/monitoring.coreos.com/v1", "podmonitors"),
    "Role": (_RBAC, "roles"),
    "RoleBinding": (_RBAC, "rolebindings"),
    "Secret": (_CORE, "secrets"),
    "Service": (_CORE, "services"),
    "ServiceAccount": (_CORE, "serviceaccounts"),
    "SparkApplication": ("/apis/sparkoperator.k8s.io/v1beta2", "sparkapplications"),
}


class ApiError(Exception):
    """The API server has refused something.

    Attributes:
        code: of HTTP.
    """

    def __init__(self, request: str, code: int, text: str) -> None:
        super().__init__(f"{request}: {code} {text}")
        self.code = code


class Api:
    """What asks an API server.

    Args:
        url: where it is.
        token: who asks.
        authority: the file of the certificate that it is to have.
    """

    def __init__(self, url: str, token: str, authority: Path) -> None:
        self.url, self.token, self.authority = url, token, authority

    def ask(self, method: str, path: str, body: Object | None = None, kind: str = JSON) -> Object:
        """Return its answer, which is an object of Kubernetes or a list of them.

        Raises:
            ApiError: it has refused.
            OSError: it has not answered.
        """
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": kind, "Accept": JSON},
        )
        # Read each time: the server writes its certificate while it starts.
        context = ssl.create_default_context(cafile=self.authority)
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            text = error.read(1_000).decode(errors="replace")
            raise ApiError(f"{method} {path}", error.code, text) from None

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """Return an object."""
        return self.ask("GET", f"{place(kind, namespace)}/{name}")

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """Return all objects of a kind, of one namespace or of all."""
        return list(self.ask("GET", place(kind, namespace)).get("items") or [])

    def create(self, kind: str, namespace: str, body: Object) -> Object:
        """Make an object; one that is there already stays."""
        try:
            return self.ask("POST", place(kind, namespace), body)
        except ApiError as error:
            if error.code != 409:
                raise
            return self.get(kind, namespace, body["metadata"]["name"])

    def apply(self, each: Object) -> Object:
        """Do what ``kubectl apply --server-side`` does with an object, and return what has become of it."""
        return self._apply(each, "")

    def check(self, each: Object) -> None:
        """Do what ``kubectl apply --server-side --dry-run=server`` does with an object.

        Raises:
            ApiError: it has a key that there is not, or a value that cannot be.
        """
        self._apply(each, "&dryRun=All&fieldValidation=Strict")

    def _apply(self, each: Object, more: str) -> Object:
        metadata = each["metadata"]
        path = f"{place(each['kind'], metadata.get('namespace'))}/{metadata['name']}"
        return self.ask("PATCH", f"{path}?fieldManager=tests&force=true{more}", each, APPLY)

    def delete(self, kind: str, namespace: str, name: str, grace_s: int | None = None) -> None:
        """Delete an object, as ``kubectl delete`` does; one that is not there is no error.

        Args:
            kind: of the object.
            namespace: of the object.
            name: of the object.
            grace_s: how long a pod may take to end; None leaves it to the pod.
        """
        more = "" if grace_s is None else f"?gracePeriodSeconds={grace_s}"
        try:
            self.ask("DELETE", f"{place(kind, namespace)}/{name}{more}")
        except ApiError as error:
            if error.code != 404:
                raise


def place(kind: str, namespace: str | None) -> str:
    """Return the path of all objects of a kind, of one namespace or of all."""
    group, plural = _PLACES[kind]
    return f"{group}/{plural}" if namespace is None else f"{group}/namespaces/{namespace}/{plural}"


def objects(manifest: Path) -> Iterable[Object]:
    """Return the objects of a file."""
    return [each for each in yaml.safe_load_all(manifest.read_text()) if each]

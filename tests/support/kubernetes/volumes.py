"""What a pod's containers see of the cluster: their volumes, as folders, and their variables."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.kubernetes.api import Api, ApiError, Object

_REFERENCE = re.compile(r"\$\((\w+)\)")


class PodFiles:
    """The volumes of a pod, and the variables of its containers.

    Args:
        api: of the cluster.
        pod: as the API server has it.
        address: of the pod.
        folder: for its own volumes.
        claims: where the folder of each PersistentVolumeClaim is.
    """

    def __init__(self, api: Api, pod: Object, address: str, folder: Path, claims: Path) -> None:
        self._api, self._pod, self._address = api, pod, address
        self._folder, self._claims = folder, claims
        self._namespace = pod["metadata"]["namespace"]
        self._volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}

    def mounts(self, container: Object) -> list[tuple[Path, str]]:
        """Return the files and folders of a container, each with the path at which it sees it.

        Raises:
            ApiError: one of them is of an object that is not there, or not yet.
        """
        found = []
        for mount in container.get("volumeMounts") or []:
            source = self._volume(self._volumes[mount["name"]])
            found.append((source / mount.get("subPath", ""), mount["mountPath"]))
        return found

    def environment(self, container: Object, image: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a container.

        Args:
            container: of the pod.
            image: the variables that its image has.

        Raises:
            ApiError: as for ``mounts``.
        """
        variables = dict(image)
        for each in container.get("envFrom") or []:
            for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                if key in each:
                    data = self._data(kind, each[key]["name"])
                    variables |= {name: value.decode() for name, value in data.items()}
        for each in container.get("env") or []:
            if (value := self._value(each)) is not None:
                variables[each["name"]] = value
        return {name: expanded(value, variables) for name, value in variables.items()}

    def _value(self, variable: Object) -> str | None:
        source = variable.get("valueFrom") or {}
        if "fieldRef" in source:
            return self._field(source["fieldRef"]["fieldPath"])
        for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if key in source:
                try:
                    return self._data(kind, source[key]["name"])[source[key]["key"]].decode()
                except ApiError as error:
                    if error.code == 404 and source[key].get("optional"):
                        return None
                    raise
        return str(variable.get("value") or "")

    def _field(self, path: str) -> str:
        metadata, spec = self._pod["metadata"], self._pod["spec"]
        fields = {
            "status.podIP": self._address,
            "status.hostIP": "127.0.0.1",
            "metadata.name": metadata["name"],
            "metadata.namespace": metadata["namespace"],
            "metadata.uid": metadata["uid"],
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        }
        return str(fields[path])

    def _volume(self, volume: Object) -> Path:
        """Return the folder of a volume, as it is now."""
        if "hostPath" in volume:
            folder = Path(volume["hostPath"]["path"])
        elif "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
            # One that is not there holds a pod up, as a ConfigMap does.
            self._api.get("PersistentVolumeClaim", self._namespace, name)
            folder = self._claims / self._namespace / name
        else:
            folder = self._folder / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        sources = (volume.get("projected") or {}).get("sources") or [volume]
        for source in sources:
            self._fill(folder, source)
        return folder

    def _fill(self, folder: Path, source: Object) -> None:
        if config := source.get("configMap"):
            _write(folder, self._data("ConfigMap", config["name"]), config.get("items") or ())
        elif secret := source.get("secret"):
            name = secret.get("secretName") or secret["name"]
            _write(folder, self._data("Secret", name), secret.get("items") or ())
        elif token := source.get("serviceAccountToken"):
            (folder / token["path"]).write_text(self._token(token))
        elif fields := source.get("downwardAPI"):
            for item in fields["items"]:
                (folder / item["path"]).write_text(self._field(item["fieldRef"]["fieldPath"]))

    def _token(self, token: Object) -> str:
        metadata = self._pod["metadata"]
        pod = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {"expirationSeconds": token.get("expirationSeconds", 3600), "boundObjectRef": pod}
        return service_account_token(
            self._api, self._namespace, self._pod["spec"]["serviceAccountName"], spec
        )

    def _data(self, kind: str, name: str) -> dict[str, bytes]:
        found = self._api.get(kind, self._namespace, name)
        if kind == "Secret":
            return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
        return {key: value.encode() for key, value in (found.get("data") or {}).items()}


def service_account_token(api: Api, namespace: str, account: str, spec: Object) -> str:
    """Return a token of a service account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return str(api.ask("POST", path, request)["status"]["token"])


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with the variables that it names as ``$(NAME)``."""
    return _REFERENCE.sub(lambda match: variables.get(match[1], match[0]), text)


def _write(folder: Path, data: Mapping[str, bytes], items: Iterable[Object]) -> None:
    wanted = {item["key"]: item["path"] for item in items} or {key: key for key in data}
    for key, path in wanted.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data[key])

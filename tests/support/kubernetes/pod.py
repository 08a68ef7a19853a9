"""A pod: from when it is bound to the node until it is gone, as a kubelet does it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.kubernetes.api import MERGE, Api, ApiError, Object, place
from tests.support.kubernetes.container import Container, now
from tests.support.kubernetes.image import Image
from tests.support.kubernetes.volumes import PodFiles

# A kubelet lets even a pod whose object is gone already that long for its last words.
_LEAST_GRACE_S = 2
_LOOKS_EACH_S = 0.05


class Pod:
    """One pod, on a thread of its own.

    Args:
        api: of the cluster.
        spec: as the API server has it.
        address: of its own.
        image: of all its containers.
        folder: for its files.
        logs: the folder for what its containers write.
        files: its volumes and variables.
        hosts: returns what is to be in its /etc/hosts.
    """

    def __init__(
        self,
        api: Api,
        spec: Object,
        address: str,
        image: Image,
        folder: Path,
        logs: Path,
        files: PodFiles,
        hosts: Callable[[], str],
    ) -> None:
        metadata = spec["metadata"]
        self.namespace, self.name, self.uid = metadata["namespace"], metadata["name"], metadata["uid"]
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.address = address
        self._api, self._spec, self._image, self._files, self._hosts = api, spec["spec"], image, files, hosts
        self._path = f"{place('Pod', self.namespace)}/{self.name}"
        self._began = now()
        self.log = logs / f"{self.name}.log"
        self.containers = [
            Container(each, image, folder / each["name"], self.log, f"{self.uid}-{each['name']}")
            for each in self._spec["containers"]
        ]
        self._deadline: float | None = None
        self._evicted: dict[str, str] = {}
        self._changed = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"pod-{self.name}", daemon=True)

    def start(self) -> None:
        """Start it."""
        self.thread.start()

    def delete(self, grace_s: float) -> None:
        """Let it end within a time; said again, it may only be sooner."""
        deadline = time.monotonic() + grace_s
        if self._deadline is None:
            self._deadline = deadline
            for container in self.containers:
                container.signal(signal.SIGTERM)
        self._deadline = min(self._deadline, deadline)

    def vanish(self) -> None:
        """Let it end, now that its object is gone."""
        self.delete(_LEAST_GRACE_S)

    def evict(self) -> None:
        """End it at once, and leave its object, as a kubelet does that is short of memory."""
        message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi."
        self._evicted = {"reason": "Evicted", "message": message}
        for container in self.containers:
            container.signal(signal.SIGKILL)

    def stop(self) -> None:
        """End it at once, with the node."""
        self.delete(0)

    def _run(self) -> None:
        self._tell("Pending")
        try:
            started = self._start_containers()
        except OSError as error:
            self._tell("Failed", reason="StartError", message=str(error))
            return
        if started:
            self._tell("Running")
            self._wait_for_containers()
            failed = any(container.exit_code for container in self.containers)
            self._tell("Failed" if failed else "Succeeded", **self._evicted)
        if self._deadline is not None:
            self._remove()

    def _start_containers(self) -> bool:
        """Start all, as soon as there is what they need: Spark makes a driver's ConfigMap after its pod."""
        while self._deadline is None:
            if not all(container.has_image for container in self.containers):
                self._changed.wait(_LOOKS_EACH_S)
                continue
            try:
                prepared = [
                    (self._files.environment(each, self._environment()), self._files.mounts(each))
                    for each in self._spec["containers"]
                ]
            except ApiError as error:
                if error.code != 404:
                    raise OSError(str(error)) from error
                self._changed.wait(_LOOKS_EACH_S)
                continue
            for container, (environment, mounts) in zip(self.containers, prepared, strict=True):
                container.start(environment, mounts, self._hosts(), self.name[:63])
            return True
        return False

    def _environment(self) -> dict[str, str]:
        # Spark takes a host whose address begins with 127 for one that has no other.
        return {**self._image.environment, "SPARK_LOCAL_IP": self.address}

    def _wait_for_containers(self) -> None:
        while sum(container.has_ended() for container in self.containers) < len(self.containers):
            if self._deadline is not None and time.monotonic() > self._deadline:
                for container in self.containers:
                    container.signal(signal.SIGKILL)
            self._changed.wait(_LOOKS_EACH_S)

    def _tell(self, phase: str, **more: str) -> None:
        ready = "True" if phase == "Running" else "False"
        states = {"PodScheduled": "True", "Initialized": "True", "ContainersReady": ready, "Ready": ready}
        conditions = [
            {"type": name, "status": state, "lastTransitionTime": now()} for name, state in states.items()
        ]
        status = {
            "phase": phase,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "hostIP": "127.0.0.1",
            "startTime": self._began,
            "containerStatuses": [container.status() for container in self.containers],
            "conditions": conditions,
            **more,
        }
        try:
            self._api.ask("PATCH", f"{self._path}/status", {"status": status}, MERGE)
        except ApiError as error:
            if error.code != 404:  # its object is gone
                raise

    def _remove(self) -> None:
        """Remove its object, now that its containers have ended."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        try:
            self._api.ask("DELETE", self._path, {**body, "preconditions": {"uid": self.uid}})
        except ApiError as error:
            if error.code not in (404, 409):  # it is gone, or another one has its name
                raise

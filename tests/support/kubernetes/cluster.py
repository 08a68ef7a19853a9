"""Kubernetes for tests: its API server, and one node, with what Spark and a test need of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.kubernetes.api import Api, Object, objects
from tests.support.kubernetes.control_plane import HOST, ControlPlane
from tests.support.kubernetes.image import SPARK, spark_image
from tests.support.kubernetes.node import Node
from tests.support.kubernetes.volumes import service_account_token
from tests.support.memory_cgroup import new_memory_cgroup
from tests.support.paths import REPO
from tests.support.requirements import missing
from tests.support.waiting import wait_until

MANIFESTS = REPO / "conf" / "kubernetes"
NAMESPACE = ACCOUNT = "spark"
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_TOKEN_S = 7200


class KubernetesCluster:
    """An API server and one node, with the namespace and the rights that docs/deploy/kubernetes.md has for Spark.

    Args:
        folder: for their files.
        host: the address of the API server.
        enter: what a command begins with that runs where that address is.

    Attributes:
        api: what asks as an administrator.
    """

    def __init__(self, folder: Path, host: str = HOST, enter: Sequence[str] = ()) -> None:
        self._folder = folder
        self._pods = folder / "pods"
        self._logs = folder / "logs"
        (folder / "control-plane").mkdir()
        self._control_plane = ControlPlane(folder / "control-plane", host, enter)
        self.api: Api = self._control_plane.api
        self._node: Node | None = None

    def start(self) -> None:
        """Start all, and let Spark in."""
        for folder in (self._pods, self._logs):
            folder.mkdir()
        # The files of containers lie above those of this machine, which may not contain them.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(self._pods)], check=True)
        self._control_plane.start()
        self._node = Node(
            self.api, spark_image(self._pods / "image"), self._pods, self._logs, self._folder / "claims"
        )
        self._apply_rights()
        self._node.start()
        self._let_spark_in()

    def _apply_rights(self) -> None:
        for each in objects(MANIFESTS / "rbac.yaml"):
            self.api.apply(each)

    def _let_spark_in(self) -> None:
        token = service_account_token(self.api, NAMESPACE, ACCOUNT, {"expirationSeconds": _TOKEN_S})
        self.account = Api(self.api.url, token, self.api.authority)

    def stop(self) -> None:
        """End all."""
        if self._node is not None:
            self._node.stop()
        self._control_plane.stop()
        if os.path.ismount(self._pods):
            subprocess.run(["umount", "--lazy", str(self._pods)], check=True)

    @property
    def node(self) -> Node:
        """Its node."""
        assert self._node is not None, "it has not been started"
        return self._node

    def conf(self) -> dict[str, str]:
        """Return Spark's settings for small pods on this machine, as Spark's own account."""
        credentials = {"oauthToken": self.account.token, "caCertFile": str(self.api.authority)}
        asks = ("spark.kubernetes.authenticate", "spark.kubernetes.authenticate.submission")
        return {
            "spark.master": f"k8s://{self.api.url}",
            # Pods know no other name of it: nothing here resolves those of services outside of pods.
            "spark.kubernetes.driver.master": self.api.url,
            "spark.kubernetes.namespace": NAMESPACE,
            "spark.kubernetes.authenticate.driver.serviceAccountName": ACCOUNT,
            "spark.kubernetes.container.image": SPARK,
            **{f"{of}.{name}": value for of in asks for name, value in credentials.items()},
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.instances": "1",
            "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
            "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
            "spark.kubernetes.allocation.batch.delay": "300ms",
            "spark.kubernetes.report.interval": "300ms",
        }

    def conf_outside(self) -> dict[str, str]:
        """Return the settings that a driver needs in addition that runs in no pod."""
        return {}

    def running(self, role: str, application: str | None = None) -> list[str]:
        """Return the names of the pods of drivers or of executors that run, and are to run on."""
        return self.running_with(
            {"spark-role": role} | ({"spark-app-selector": application} if application else {})
        )

    def running_with(self, labels: Mapping[str, str]) -> list[str]:
        """Return the names of the pods with these labels that run, and are to run on."""
        return [
            pod["metadata"]["name"]
            for pod in self.api.all("Pod", NAMESPACE)
            if labels.items() <= (pod["metadata"].get("labels") or {}).items()
            and pod.get("status", {}).get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")
        ]

    def volume(self, pod: str, name: str) -> Path:
        """Return the folder of a volume that a pod has for itself."""
        return Path(self._pods, self.node.pod(NAMESPACE, pod).uid, "volumes", name)

    def delete_pod(self, name: str, grace_s: int | None = None) -> None:
        """Do what ``kubectl delete pod`` does, or with ``--force --grace-period 0``."""
        self.api.delete("Pod", NAMESPACE, name, grace_s)

    def kill_pod(self, name: str) -> None:
        """Kill the first process of a pod's only container, as the machine may do; its pod has failed then."""
        (container,) = self.node.pod(NAMESPACE, name).containers
        container.signal(signal.SIGKILL)

    def is_gone(self, name: str) -> bool:
        """Return whether there is no such pod."""
        return name not in (pod["metadata"]["name"] for pod in self.api.all("Pod", NAMESPACE))

    def clear(self) -> None:
        """Delete all pods of Spark's, and wait until they are gone."""
        for pod in self.api.all("Pod", NAMESPACE):
            self.delete_pod(pod["metadata"]["name"], 0)
        wait_until(lambda: not self.api.all("Pod", NAMESPACE), "all pods are gone")

    def requests(self) -> Iterator[Object]:
        """Return what Spark's own account has asked of the API server."""
        yield from self._control_plane.requests(f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}")

    def logs(self) -> str:
        """Return what happened on the node, and the ends of what containers have written."""
        files = sorted(self._logs.glob("*.log"), key=lambda file: file.stat().st_mtime)[-4:]
        texts = [f"== {file.name}\n{file.read_text(errors='replace')[-3000:]}" for file in files]
        return "\n".join([self.node.story(), *texts])

    def log(self, pod: str) -> str:
        """Return what the container of a pod has written."""
        return (self._logs / f"{pod}.log").read_text(errors="replace")


@contextmanager
def running_kubernetes() -> Iterator[KubernetesCluster]:
    """Give a Kubernetes; where this machine cannot, skip the test or, in CI, fail it."""
    _need_of_this_machine()
    with tempfile.TemporaryDirectory(prefix="kubernetes-", ignore_cleanup_errors=True) as folder:
        cluster = KubernetesCluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def need_limits_of_memory() -> None:
    """See that this machine lets a container have a limit of memory."""
    try:
        new_memory_cgroup("probe", 1 << 30).remove()
    except OSError as error:
        missing(f"no cgroup with a limit of memory can be made here: {error}")


def _need_of_this_machine() -> None:
    """See that containers can be made here: namespaces, mounts, limits of memory."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        missing("containers need root and unshare, of util-linux")
    tries = subprocess.run(
        ["unshare", "-m", "-u", "-p", "-f", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tries.returncode:
        missing(f"no namespaces can be made here: {tries.stderr.strip()}")
    need_limits_of_memory()

"""A real node of Kubernetes: kubelet and containerd, whose pods have addresses and containers of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from tests.support.kubernetes.archive import write_archive
from tests.support.kubernetes.cluster import NAMESPACE, KubernetesCluster, need_limits_of_memory
from tests.support.kubernetes.controllers import Controllers
from tests.support.kubernetes.image import SPARK, Image, spark_image
from tests.support.kubernetes.pod_network import PodNetwork
from tests.support.paths import REPO
from tests.support.requirements import missing, need
from tests.support.spark_cluster import processes
from tests.support.waiting import free_port, wait_until

NODE = "real-node"
_BINARY = REPO / ".cache" / "kubelet"
_PLUGINS = Path("/usr/lib/cni")
_PAUSE = "docker.io/library/pause:1"
_CONTAINERD = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # A machine that is itself a container may not let a process have a lower one than its parent.
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/network"
"""


class KubeletCluster(KubernetesCluster):
    """An API server and one node with a kubelet, in a network of their own.

    Args:
        folder: for their files; its path is short, because sockets are in it.
        network: where they are.
    """

    def __init__(self, folder: Path, network: PodNetwork) -> None:
        super().__init__(folder, network.node, network.enter)
        self._network = network
        self._runtime = folder / "containerd"
        self._image: Image | None = None
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._controllers = Controllers(self.api, NODE)

    def start(self) -> None:
        """Start all, let Spark in, and wait until the node is ready."""
        self._control_plane.start()
        self._apply_rights()
        self._controllers.start()
        self._start_containerd()
        self._import_images()
        self._start_kubelet()
        self._let_spark_in()
        wait_until(self._is_ready, "the node is ready")

    def stop(self) -> None:
        """End all, with what containers leave behind: processes, mounts, cgroups."""
        if "kubelet" in self._servers:
            self.clear()
        self._controllers.stop()
        for name in ("kubelet", "containerd"):
            if name in self._servers:
                self._servers[name].terminate()
                self._servers[name].wait(30)
        for pid, (_, command) in processes().items():
            if str(self._folder) in " ".join(command):  # what watches each pod outlives containerd
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._control_plane.stop()
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in reversed([mount for mount in mounts if mount.startswith(f"{self._folder}/")]):
            subprocess.run(["umount", "--lazy", mount], check=False)
        _remove_cgroups()

    def conf(self) -> dict[str, str]:
        """Return Spark's settings for small pods that see this machine's Spark and Python."""
        assert self._image is not None, "it has not been started"
        shown = (Path("/usr"), Path("/etc/java-17-openjdk"), *self._image.shown)
        folders = {
            f"spark.kubernetes.{role}.volumes.hostPath.of-image-{number}.{key}": value
            for role in ("driver", "executor")
            for number, folder in enumerate(folder for folder in shown if folder.exists())
            for key, value in {"options.path": folder, "mount.path": folder, "mount.readOnly": "true"}.items()
        }
        return {
            **super().conf(),
            **{key: str(value) for key, value in folders.items()},
            "spark.kubernetes.container.image.pullPolicy": "Never",
            # There is no DNS that would know the driver's service.
            "spark.kubernetes.executor.useDriverPodIP": "true",
        }

    def conf_outside(self) -> dict[str, str]:
        """Return where pods reach a driver that runs on this machine."""
        return dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), self._network.here)

    def kill_pod(self, name: str) -> None:
        """Kill the first process of a pod's only container, as the machine may do."""
        (status,) = self.api.get("Pod", NAMESPACE, name)["status"]["containerStatuses"]
        container = status["containerID"].rpartition("/")[2]
        tasks = (line.split() for line in self._ctr("tasks", "ls").splitlines())
        (pid,) = (int(task[1]) for task in tasks if task[0] == container)
        os.kill(pid, signal.SIGKILL)

    def logs(self) -> str:
        """Return which pods there are, and the ends of what containers and the kubelet have written."""
        pods = {
            pod["metadata"]["name"]: pod.get("status", {}).get("containerStatuses")
            for pod in self.api.all("Pod")
        }
        files = [*sorted(self._logs.glob("*/*/*.log")), self._folder / "kubelet.log"]
        texts = [f"== {file}\n{file.read_text(errors='replace')[-3000:]}" for file in files]
        return "\n".join([*self._controllers.errors, json.dumps(pods), *texts])

    def _is_ready(self) -> bool:
        for name, server in self._servers.items():
            log = self._folder / f"{name}.log"
            assert server.poll() is None, f"{name} has ended:\n{log.read_text()[-3000:]}"
        nodes = self.api.ask("GET", "/api/v1/nodes").get("items") or []
        conditions = (each for node in nodes for each in node["status"].get("conditions") or ())
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _start_containerd(self) -> None:
        (self._runtime / "network").mkdir(parents=True)
        self._network.configure(self._runtime / "network")
        conf = self._runtime / "containerd.toml"
        conf.write_text(_CONTAINERD.format(folder=self._runtime, pause=_PAUSE, plugins=_PLUGINS))
        self._start("containerd", [need("containerd", "containerd"), "--config", str(conf)])
        wait_until((self._runtime / "containerd.sock").exists, "containerd is there")

    def _import_images(self) -> None:
        self._image = spark_image(self._folder / "image")
        layer = self._image.layer
        files = {str(Path("/", file.relative_to(layer))): file for file in layer.rglob("*") if file.is_file()}
        for file in ("/etc/passwd", "/etc/group"):
            files[file] = Path(file)
        entry_point = self._image.entry_point(SPARK)
        assert entry_point is not None
        name, environment = f"docker.io/library/{SPARK}:latest", self._image.environment
        spark, pause = self._folder / "spark.tar", self._folder / "pause.tar"
        write_archive(spark, name, [entry_point], files, environment, self._image.work_dir)
        busybox = Path(need("busybox", "busybox-static"))
        write_archive(pause, _PAUSE, ["/busybox", "sleep", "1000000"], {"/busybox": busybox})
        for archive in (pause, spark):
            self._ctr("images", "import", str(archive))

    def _start_kubelet(self) -> None:
        conf = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self._network.node,
            "port": free_port(),
            "healthzPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            # Version 1.35 refuses the first version of cgroups by default.
            "failCgroupV1": False,
            "failSwapOn": False,
            "containerRuntimeEndpoint": f"unix://{self._runtime}/containerd.sock",
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "100Mi"},
            "podLogsDir": str(self._logs),
            "registerNode": True,
            "resolvConf": "",
        }
        (self._folder / "kubelet.json").write_text(json.dumps(conf))
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": self._cluster()}],
            "users": [{"name": "u", "user": {"token": self.api.token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (self._folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
        options = {
            "config": self._folder / "kubelet.json",
            "kubeconfig": self._folder / "kubeconfig",
            "hostname-override": NODE,
            "node-ip": self._network.node,
            "root-dir": self._folder / "kubelet",
            "cert-dir": self._folder / "certificates",
        }
        self._start("kubelet", [str(_BINARY), *(f"--{name}={value}" for name, value in options.items())])

    def _cluster(self) -> dict[str, str]:
        return {"server": self.api.url, "certificate-authority": str(self.api.authority)}

    def _start(self, name: str, command: list[str]) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            self._servers[name] = subprocess.Popen([*self._network.enter, *command], stdout=log, stderr=log)

    def _ctr(self, *words: str) -> str:
        address = ("--address", f"{self._runtime}/containerd.sock", "--namespace", "k8s.io")
        command = [need("ctr", "containerd"), *address, *words]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        return run.stdout


@contextmanager
def running_kubelet() -> Iterator[KubeletCluster]:
    """Give a Kubernetes with a real node; where this machine cannot, skip the test or, in CI, fail it."""
    _need_of_this_machine()
    network = PodNetwork()
    # Not below a test's own folder: the paths of sockets have to be short.
    with tempfile.TemporaryDirectory(prefix="kubelet-", ignore_cleanup_errors=True) as folder:
        try:
            network.start()
            cluster = KubeletCluster(Path(folder), network)
            try:
                cluster.start()
                yield cluster
            finally:
                cluster.stop()
        finally:
            network.stop()


def _need_of_this_machine() -> None:
    if not _BINARY.exists():
        # In CI as well, where nothing builds it.
        pytest.skip("no .cache/kubelet: .ci/build-kubernetes kubelet builds it (needs Go)")
    if os.geteuid() != 0:
        missing("a kubelet needs root")
    packages = {
        "ip": "iproute2",
        "containerd": "containerd",
        "runc": "runc",
        "busybox": "busybox-static",
        "nsenter": "util-linux",
    }
    for command, package in packages.items():
        need(command, package)
    if not (_PLUGINS / "bridge").exists():
        missing(f"no {_PLUGINS}/bridge: apt-get install containernetworking-plugins")
    if _cgroups():
        missing("this machine is a node of a Kubernetes already: it has cgroups of that name")
    need_limits_of_memory()


def _cgroups() -> list[Path]:
    """Return the uppermost cgroups of pods: one, or one for each of what the first version limits."""
    return [*Path("/sys/fs/cgroup").glob("kubepods"), *Path("/sys/fs/cgroup").glob("*/kubepods")]


def _remove_cgroups() -> None:
    """Remove the cgroups of pods, which the kubelet leaves behind."""
    for top in _cgroups():
        for folder, _, _ in os.walk(top, topdown=False):
            with suppress(OSError):  # what still runs in it has been told to end
                Path(folder).rmdir()

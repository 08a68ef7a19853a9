"""A real YARN with its HDFS, for one run of the tests: a resource manager, two node managers, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spark_events.spark.conf import spark_home
from tests.support import kerberos
from tests.support.kerberos import Kdc
from tests.support.servers import Hdfs, jars
from tests.support.spark_cluster import processes
from tests.support.waiting import free_port, http_get, wait_until

HOST = "127.0.0.1"
ANY_PORT = f"{HOST}:0"
NODES = 2
NODE_MB, CONTAINER_MB = 2_700, 896
"""Room on each node for three containers: a driver and two executors, while those of an attempt before it go."""
HEAP_MB = CONTAINER_MB - 384
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SERVER = "org.apache.hadoop.yarn.server"
_PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption"
_ALL = {
    "yarn.resourcemanager.bind-host": HOST,
    "yarn.resourcemanager.scheduler.class": f"{_SERVER}.resourcemanager.scheduler.capacity.CapacityScheduler",
    "yarn.resourcemanager.am.max-attempts": 4,
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 200,
    "yarn.scheduler.minimum-allocation-mb": 128,
    "yarn.scheduler.maximum-allocation-mb": NODE_MB,
    # Two nodes of one host are told apart by their ports.
    "yarn.scheduler.include-port-in-node-name": "true",
    "yarn.log-aggregation-enable": "true",
    "yarn.nodemanager.remote-app-log-dir": "/logs",
    # A queue that gets less than it is promised takes it from the others, after a second.
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    f"{_PREEMPTION}.monitoring_interval": 500,
    f"{_PREEMPTION}.max_wait_before_kill": 1_000,
    f"{_PREEMPTION}.total_preemption_per_round": 1.0,
    f"{_PREEMPTION}.natural_termination_factor": 1.0,
}
_NODE = {
    "yarn.nodemanager.hostname": HOST,
    "yarn.nodemanager.bind-host": HOST,
    "yarn.nodemanager.address": ANY_PORT,
    "yarn.nodemanager.localizer.address": ANY_PORT,
    "yarn.nodemanager.webapp.address": ANY_PORT,
    "yarn.nodemanager.collector-service.address": ANY_PORT,
    "yarn.nodemanager.resource.memory-mb": NODE_MB,
    "yarn.nodemanager.resource.cpu-vcores": 8,
    "yarn.nodemanager.vmem-check-enabled": "false",
    # By default YARN relies on cgroups to enforce memory limits, even where it uses none, and then kills nothing.
    "yarn.nodemanager.resource.memory.enforced": "false",
    "yarn.nodemanager.pmem-check-enabled": "true",
    "yarn.nodemanager.container-monitor.interval-ms": 500,
    # As docs/deploy/yarn.md advises. With the default, 250 ms, a driver on a busy machine may say nothing.
    "yarn.nodemanager.sleep-delay-before-sigkill.ms": 15_000,
    "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR",
    # Logs stay for whoever wants to know why a test has failed.
    "yarn.nodemanager.delete.debug-delay-sec": 3_600,
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
}
URGENT = "urgent"
"""The queue that may have half of the cluster, even if applications of the default queue have all of it."""
_QUEUE = {
    "yarn.scheduler.capacity.root.queues": f"default,{URGENT}",
    **{
        f"yarn.scheduler.capacity.root.{queue}.{key}": value
        for queue in ("default", URGENT)
        for key, value in {"capacity": 50, "maximum-capacity": 100, "user-limit-factor": 10}.items()
    },
    "yarn.scheduler.capacity.maximum-am-resource-percent": 0.9,
}
_LOG = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c{1}: %m%n
"""
# What Hadoop opens by reflection is closed since Java 17.
_OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "io")]


class YarnCluster:
    """A resource manager, two node managers, and HDFS.

    Args:
        folder: for their files.
        kdc: whose tickets they want; without one, they believe what they are told.

    Attributes:
        conf_dir: what HADOOP_CONF_DIR is to be for Spark.
        hdfs: the file system.
    """

    def __init__(self, folder: Path, kdc: Kdc | None = None) -> None:
        self._folder, self._kdc = folder, kdc
        self._jars = jars("yarn")
        (folder / "hdfs").mkdir()
        self.hdfs = Hdfs(folder / "hdfs", "yarn", kdc)
        self._web = f"{HOST}:{free_port()}"
        ports = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
        addresses = {f"yarn.resourcemanager.{name}": f"{HOST}:{free_port()}" for name in ports}
        self._conf = {**_ALL, **addresses, "yarn.resourcemanager.webapp.address": self._web}
        self._java_options = _JAVA_OPTIONS
        if kdc is not None:
            self._conf |= _secured(kdc)
            self._java_options += f" {kdc.java_option}"
        self.conf_dir = self._configure("conf", {})
        self._servers: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start all, and wait until YARN has its nodes."""
        self._start("resource-manager", "resourcemanager.ResourceManager", self.conf_dir)
        for number in range(NODES):
            files = {
                f"yarn.nodemanager.{kind}-dirs": self._folder / f"node-{number}" / kind
                for kind in ("local", "log")
            }
            conf_dir = self._configure(f"conf-{number}", {**_NODE, **files})
            self._start(f"node-{number}", "nodemanager.NodeManager", conf_dir)

        self.hdfs.start()

        def has_nodes() -> bool:
            ended = [name for name, server in self._servers.items() if server.poll() is not None]
            assert not ended, f"ended: {ended}\n{(self._folder / f'{ended[0]}.log').read_text()[-3000:]}"
            metrics = self.ask("metrics").get("clusterMetrics", {})
            return bool(metrics.get("activeNodes") == NODES)

        wait_until(has_nodes, "YARN has its nodes")

    def stop(self) -> None:
        """End all: the containers last, which their nodes would start again, or leave behind."""
        for server in self._servers.values():
            server.kill()
            server.wait(20)
        for pid, (_, command) in processes().items():
            if str(self._folder) in " ".join(command):
                _kill(pid)
        self.hdfs.stop()

    def conf(self) -> dict[str, str]:
        """Return Spark's settings for small containers on this machine."""
        own = {"SPARK_LOCAL_IP": HOST}
        jvms = ("driver", "executor", "yarn.am")
        return {
            "spark.master": "yarn",
            # Otherwise all of Spark goes to HDFS, and from there to each node.
            "spark.yarn.jars": f"local:{spark_home()}/jars/*",
            **{f"spark.yarn.appMasterEnv.{name}": value for name, value in own.items()},
            **{f"spark.executorEnv.{name}": value for name, value in own.items()},
            "spark.driver.memory": f"{HEAP_MB}m",
            "spark.executor.memory": f"{HEAP_MB}m",
            **{f"spark.{jvm}.extraJavaOptions": self._java_options for jvm in jvms},
            "spark.executor.instances": "2",
            "spark.yarn.scheduler.heartbeat.interval-ms": "500",
        }

    def ask(self, path: str) -> dict[str, Any]:
        """Return what the resource manager's REST API says; nothing while it does not answer."""
        answer = http_get(f"http://{self._web}/ws/v1/cluster/{path}")
        return dict(json.loads(answer)) if answer.startswith("{") else {}

    def kill_application(self, application: str) -> None:
        """Do what ``yarn application -kill`` does."""
        url = f"http://{self._web}/ws/v1/cluster/apps/{application}/state?user.name=root"
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, b'{"state":"KILLED"}', headers, method="PUT")
        urllib.request.urlopen(request, timeout=20).close()

    def clear(self) -> None:
        """Kill all applications that have not ended, and wait until they have."""

        def left() -> list[str]:
            found = self.ask("apps?states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING").get("apps")
            return [application["id"] for application in (found or {}).get("app", ())]

        for application in left():
            self.kill_application(application)
        wait_until(lambda: not left(), "no application is left")

    def driver(self, application: str) -> int:
        """Return the process of an application's driver in cluster mode."""
        (pid,) = self._jvms(application, "org.apache.spark.deploy.yarn.ApplicationMaster").values()
        return pid

    def executors(self, application: str) -> dict[str, int]:
        """Return the process of each of an application's executors that live, by the executor's id."""
        return self._jvms(application, "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend")

    def logs(self, application: str) -> str:
        """Return the ends of what an application's containers have written."""
        files = sorted(self._folder.glob(f"node-*/log/{application}/*/std*"))
        return "\n".join(f"== {file}\n{file.read_text(errors='replace')[-3000:]}" for file in files)

    def _jvms(self, application: str, main: str) -> Mapping[str, int]:
        found = {}
        for pid, (_, command) in processes().items():
            if main in command and Path(command[0]).name == "java" and application in " ".join(command):
                id_at = command.index("--executor-id") + 1 if "--executor-id" in command else 0
                found[command[id_at]] = pid
        return found

    def _configure(self, name: str, conf: Mapping[str, object]) -> Path:
        folder = self._folder / name
        folder.mkdir()
        (folder / "log4j.properties").write_text(_LOG)
        for file in ("core-site.xml", "hdfs-site.xml"):
            shutil.copy(self._folder / "hdfs" / file, folder)
        for file, keys in (("yarn-site.xml", {**self._conf, **conf}), ("capacity-scheduler.xml", _QUEUE)):
            properties = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in keys.items())
            (folder / file).write_text(f"<configuration>{''.join(properties)}</configuration>")
        return folder

    def _start(self, name: str, main: str, conf_dir: Path) -> None:
        home = _java_home()
        path = ":".join(map(str, (conf_dir, *self._jars)))
        command = [f"{home}/bin/java", "-Xmx256m", *self._java_options.split(), *_OPENED, "-cp", path]
        environment = {**os.environ, "JAVA_HOME": str(home), "HADOOP_CONF_DIR": str(self.conf_dir)}
        environment.pop("JDK_JAVA_OPTIONS", None)
        with (self._folder / f"{name}.log").open("wb") as log:
            self._servers[name] = subprocess.Popen(
                [*command, f"{_SERVER}.{main}"], stdout=log, stderr=log, env=environment
            )


def _secured(kdc: Kdc) -> dict[str, object]:
    """Return YARN's settings that want tickets, but for its pages and its REST API."""
    roles = ("resourcemanager", "nodemanager")
    return {
        **{f"yarn.{role}.principal": f"yarn/{kerberos.HOST}@{kerberos.REALM}" for role in roles},
        **{f"yarn.{role}.keytab": kdc.services for role in roles},
        "hadoop.http.authentication.type": "simple",
        # To read logs that belong to users, a node manager wants Hadoop's native libraries, and ends without them.
        "yarn.log-aggregation-enable": "false",
    }


@contextmanager
def running_yarn(kdc: Kdc | None = None) -> Iterator[YarnCluster]:
    """Give a YARN.

    Args:
        kdc: whose tickets it wants.
    """
    with tempfile.TemporaryDirectory(prefix="yarn-", ignore_cleanup_errors=True) as folder:
        cluster = YarnCluster(Path(folder), kdc)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def _java_home() -> Path:
    """Return the home of the Java itself: containers have another class path than the tests' archive is of."""
    java = shutil.which("java")
    return Path(java).resolve().parents[1] if java else Path(os.environ["JAVA_HOME"])


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has ended meanwhile
        os.kill(pid, signal.SIGKILL)

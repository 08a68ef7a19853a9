"""A real standalone cluster of Spark, for one run of the tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from spark_events.spark.conf import spark_home
from tests.support.waiting import free_port, is_listening, wait_until

HOST = "127.0.0.1"


class SparkCluster:
    """A standalone master with workers, started from PySpark's own jars.

    Args:
        folder: for their files.
        workers: the host of each, an address of this machine.
        cores: of each worker; there may be more than the machine has.
        recovers: whether a master that is started again knows what the one before it knew.
        masters: how many there are; of several, ZooKeeper says which one leads.
        keeps_shuffles: whether the worker, of which there is one then, serves what executors that are gone have
            written for shuffles.

    Attributes:
        master: the URL of all masters.
        shuffle_conf: the settings of an application that makes use of that.
    """

    def __init__(
        self,
        folder: Path,
        workers: Sequence[str] = (HOST,),
        cores: int = 2,
        recovers: bool = False,
        masters: int = 1,
        keeps_shuffles: bool = False,
    ) -> None:
        self._folder = folder
        self._hosts = workers
        self._cores = cores
        self._zookeeper = ZooKeeper(folder) if masters > 1 else None
        recovery = {
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": str(folder / "recovery"),
        }
        if self._zookeeper is not None:
            recovery = {
                "spark.deploy.recoveryMode": "ZOOKEEPER",
                "spark.deploy.zookeeper.url": self._zookeeper.address,
            }
        keeps = recovers or self._zookeeper is not None
        self.shuffle_conf = {
            "spark.shuffle.service.enabled": str(keeps_shuffles).lower(),
            "spark.shuffle.service.port": str(free_port()),
        }
        options = {**(recovery if keeps else {}), **(self.shuffle_conf if keeps_shuffles else {})}
        self._options = [f"-D{key}={value}" for key, value in options.items()]
        self._addresses = [f"{HOST}:{free_port()}" for _ in range(masters)]
        self.master = f"spark://{','.join(self._addresses)}"
        self._masters: dict[int, subprocess.Popen[bytes]] = {}
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all, and wait until the first master has the workers."""
        if self._zookeeper is not None:
            self._zookeeper.start()
        self.start_master()
        for number in range(1, len(self._addresses)):
            self._run_master(number)
            wait_until(
                lambda number=number: "Starting Spark master" in self._log_of(number), "it stands by", 60
            )
        for number, host in enumerate(self._hosts):
            size = ["--cores", str(self._cores), "--memory", "2g"]
            own = ["--host", host, *size, "--work-dir", str(self._folder / f"work-{number}"), self.master]
            self._workers.append(self._run(f"worker-{number}", "worker.Worker", own))
        wait_until(
            lambda: self._log_of(0).count("Registering worker") == len(self._hosts),
            "the workers are registered",
            60,
        )

    def start_master(self) -> None:
        """Start the first master, and wait until it leads: after a kill, with what it has kept on its disk."""
        self._run_master(0)
        # A worker that comes before the master is ready tries again only after many seconds.
        self.wait_for_leader(0)

    def wait_for_leader(self, number: int) -> None:
        """Wait until a master leads: it has taken over what the one before it knew."""

        def leads() -> bool:
            log = self._log_of(number)
            return "New state: ALIVE" in log or "Recovery complete" in log

        wait_until(leads, "the master leads")

    def kill_master(self) -> None:
        """End the first master by force; workers and applications go on without it."""
        master = self._masters.pop(0)
        master.kill()
        master.wait(20)

    def stop(self) -> None:
        """End all: the executors first, which would outlive their workers for a moment."""
        for number in range(len(self._workers)):
            for pid in self.executors(number).values():
                _kill(pid)
        for process in (*self._workers, *self._masters.values()):
            process.kill()
            process.wait(20)
        if self._zookeeper is not None:
            self._zookeeper.stop()

    def drivers(self) -> list[int]:
        """Return the processes of the drivers that the workers run, in cluster mode."""
        workers = {str(worker.pid) for worker in self._workers}
        wrapper = "org.apache.spark.deploy.worker.DriverWrapper"
        return [pid for pid, (parent, words) in processes().items() if parent in workers and wrapper in words]

    def executors(self, worker: int = 0) -> dict[str, int]:
        """Return the process of each executor that a worker runs, by the executor's id."""
        parent_wanted = str(self._workers[worker].pid)
        return {
            command[command.index("--executor-id") + 1]: pid
            for pid, (parent, command) in processes().items()
            if parent == parent_wanted and "--executor-id" in command
        }

    def with_children(self, pid: int) -> list[int]:
        """Return a process, those that it started, and those that they started."""
        family = [pid]
        for member in family:
            family += [child for child, (parent, _) in processes().items() if parent == str(member)]
        return family

    def kill_worker(self, number: int) -> None:
        """End a worker by force; its executors notice that by themselves."""
        self._workers[number].kill()
        self._workers[number].wait(20)

    def break_worker(self, number: int) -> None:
        """Let a worker fail at the start of each executor: a file is where their folders would be."""
        folder = self._folder / f"work-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.touch()

    def _run(self, log_name: str, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        home = spark_home()
        assert home is not None
        scripts = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name}"]
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join(self._options),
        }
        with (self._folder / f"{log_name}.log").open("wb") as log:
            return subprocess.Popen(
                [*scripts, "--webui-port", str(free_port()), *arguments],
                stdout=log,
                stderr=log,
                env=environment,
            )

    def _run_master(self, number: int) -> None:
        port = self._addresses[number].rpartition(":")[2]
        self._masters[number] = self._run(
            f"master-{number}", "master.Master", ["--host", HOST, "--port", port]
        )

    def _log_of(self, number: int) -> str:
        running = (*self._masters.values(), *self._workers)
        assert all(process.poll() is None for process in running), "a part of the cluster has ended"
        return (self._folder / f"master-{number}.log").read_text(errors="replace")


class ZooKeeper:
    """The server whose jar Spark has: one, which says which master leads.

    Args:
        folder: for its files.

    Attributes:
        address: where it is asked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "zookeeper"
        self._port = free_port()
        self.address = f"{HOST}:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._folder.mkdir()
        settings = {
            "clientPort": self._port,
            "clientPortAddress": HOST,
            "dataDir": self._folder,
            # A session, and with it a master that says nothing, is over after at most twenty of them.
            "tickTime": 250,
            "admin.enableServer": "false",
        }
        conf = self._folder / "zoo.cfg"
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["java", "-Xmx128m", "-cp", f"{spark_home()}/jars/*", main, str(conf)], stdout=log, stderr=log
            )
        wait_until(lambda: is_listening(HOST, self._port), "ZooKeeper listens")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)


@contextmanager
def running_spark_cluster(
    workers: Sequence[str] = (HOST,),
    cores: int = 2,
    recovers: bool = False,
    masters: int = 1,
    keeps_shuffles: bool = False,
) -> Iterator[SparkCluster]:
    """Give a standalone cluster; the arguments are those of ``SparkCluster``."""
    with tempfile.TemporaryDirectory(prefix="spark-cluster-", ignore_cleanup_errors=True) as folder:
        cluster = SparkCluster(Path(folder), workers, cores, recovers, masters, keeps_shuffles)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def processes() -> Mapping[int, tuple[str, list[str]]]:
    """Return the parent and the command of each process of this machine."""
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            command = (folder / "cmdline").read_text(errors="replace").split("\0")
        except OSError:  # it has ended meanwhile
            continue
        processes[int(folder.name)] = (stat.rpartition(")")[2].split()[1], command)
    return processes


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has ended meanwhile
        os.kill(pid, signal.SIGKILL)

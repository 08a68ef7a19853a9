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
from tests.support.waiting import free_port, wait_until

HOST = "127.0.0.1"


class SparkCluster:
    """A standalone master with workers, started from PySpark's own jars.

    Args:
        folder: for their files.
        workers: the host of each, an address of this machine.
        cores: of each worker; there may be more than the machine has.
        recovers: whether a master that is started again knows what the one before it knew.
    """

    def __init__(
        self, folder: Path, workers: Sequence[str] = (HOST,), cores: int = 2, recovers: bool = False
    ) -> None:
        self._folder = folder
        self._hosts = workers
        self._cores = cores
        recovery = {
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": str(folder / "recovery"),
        }
        self._options = [f"-D{key}={value}" for key, value in recovery.items()] if recovers else []
        self.master = f"spark://{HOST}:{free_port()}"
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all, and wait until the master has the workers."""
        self.start_master()
        for number, host in enumerate(self._hosts):
            size = ["--cores", str(self._cores), "--memory", "2g"]
            own = ["--host", host, *size, "--work-dir", str(self._folder / f"work-{number}"), self.master]
            self._workers.append(self._run(f"worker-{number}", "worker.Worker", own))
        wait_until(
            lambda: self._log_of_master().count("Registering worker") == len(self._hosts),
            "the workers are registered",
            60,
        )

    def start_master(self) -> None:
        """Start the master, and wait until it leads: after a kill, with what it has kept on its disk."""
        port = self.master.rpartition(":")[2]
        self._master = self._run("master", "master.Master", ["--host", HOST, "--port", port])
        # A worker that comes before the master is ready tries again only after many seconds.
        wait_until(self._leads, "the master is ready", 60)

    def kill_master(self) -> None:
        """End the master by force; workers and applications go on without it."""
        assert self._master is not None
        self._master.kill()
        self._master.wait(20)

    def stop(self) -> None:
        """End all: the executors first, which would outlive their workers for a moment."""
        for number in range(len(self._workers)):
            for pid in self.executors(number).values():
                _kill(pid)
        for process in (*self._workers, self._master):
            if process is not None:
                process.kill()
                process.wait(20)

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

    def _leads(self) -> bool:
        log = self._log_of_master()
        return "New state: ALIVE" in log or "Recovery complete" in log

    def _log_of_master(self) -> str:
        running = (self._master, *self._workers)
        assert all(process and process.poll() is None for process in running), (
            "a part of the cluster has ended"
        )
        return (self._folder / "master.log").read_text(errors="replace")


@contextmanager
def running_spark_cluster(
    workers: Sequence[str] = (HOST,), cores: int = 2, recovers: bool = False
) -> Iterator[SparkCluster]:
    """Give a standalone cluster; the arguments are those of ``SparkCluster``."""
    with tempfile.TemporaryDirectory(prefix="spark-cluster-", ignore_cleanup_errors=True) as folder:
        cluster = SparkCluster(Path(folder), workers, cores, recovers)
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

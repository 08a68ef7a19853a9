"""A real Kafka broker and a real PostgreSQL, each for one run of the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import missing
from tests.support import REPO, free_port, wait_until

JARS = REPO / ".cache" / "jars"
_CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def jars(profile: str) -> list[Path]:
    """Return the jars of a profile of .ci/jars/pom.xml; without them, skip the test or, in CI, fail it."""
    folder = JARS / profile
    if not (folder / ".complete").exists():
        missing(f"no jars in .cache/jars/{profile}: .ci/get-jars {profile} gets them (needs Maven)")
    return sorted(folder.glob("*.jar"))


class KafkaBroker:
    """One broker that is its own controller.

    Args:
        folder: for its files.
    """

    def __init__(self, folder: Path) -> None:
        port, controller = free_port(), free_port()
        self.servers = f"127.0.0.1:{port}"
        home = os.environ.get("JAVA_HOME")
        self._java = f"{home}/bin/java" if home else "java"
        self._log = folder / "kafka.log"
        self._path = ":".join(map(str, jars("kafka")))
        self._config = folder / "server.properties"
        self._config.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"listeners=PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://{self.servers}\n"
            f"controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"log.dirs={folder / 'data'}\n"
            "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\ngroup.initial.rebalance.delay.ms=0\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it serves."""
        format_log = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._config)]
        subprocess.run([self._java, "-cp", self._path, *format_log], check=True, capture_output=True)
        command = [self._java, "-Xmx256m", "-cp", self._path, "kafka.Kafka", str(self._config)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self._serves, "Kafka serves", 60)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-2000:]
        host, port = self.servers.split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0


class PostgreSql:
    """A server with a database ``shop``.

    Args:
        folder: for its files.
    """

    def __init__(self, folder: Path) -> None:
        found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
        initdb = found[-1] if found else shutil.which("initdb")
        if not initdb:
            missing("no initdb: apt-get install postgresql")
        self._bin = Path(initdb).parent
        self._folder = folder
        self._port = free_port()
        # It will not run as root.
        self._user = "nobody" if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"jdbc:postgresql://127.0.0.1:{self._port}/shop"
        self.namespace = f"postgres://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        data = self._folder / "data"
        data.mkdir(parents=True)
        if self._user:
            for path in (self._folder, data):
                shutil.chown(path, self._user)
        self._run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust")
        command = [str(self._bin / "postgres"), "-D", str(data), "-p", str(self._port)]
        options = ["-h", "127.0.0.1", "-k", str(self._folder), "-F"]
        log = (self._folder / "log.txt").open("wb")
        self._process = subprocess.Popen(
            [*command, *options], stdout=log, stderr=log, user=self._user, cwd="/"
        )
        wait_until(self._ready, "PostgreSQL answers")
        self.sql("postgres", "CREATE DATABASE shop")

    def sql(self, database: str, text: str) -> str:
        """Run a statement, and return what it prints."""
        options = ["-h", "127.0.0.1", "-p", str(self._port), "-U", "postgres", "-At"]
        return self._run("psql", *options, "-d", database, "-c", text)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)

    def _ready(self) -> bool:
        command = [str(self._bin / "pg_isready"), "-h", "127.0.0.1", "-p", str(self._port)]
        return subprocess.run(command, capture_output=True).returncode == 0

    def _run(self, name: str, *arguments: str) -> str:
        command = [str(self._bin / name), *arguments]
        run = subprocess.run(command, capture_output=True, text=True, user=self._user, cwd="/")
        assert run.returncode == 0, run.stderr
        return run.stdout


@contextmanager
def running_postgresql() -> Iterator[PostgreSql]:
    """Give a PostgreSQL in a folder of its own."""
    # pytest's own folders can be entered by their owner alone, and the server runs as another.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    server = PostgreSql(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)

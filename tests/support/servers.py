"""A real Kafka broker, PostgreSQL and HDFS, each for one run of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from spark_events.spark.file_systems import open_file_system
from tests.support import kerberos
from tests.support.kerberos import Kdc
from tests.support.paths import REPO
from tests.support.requirements import missing
from tests.support.waiting import free_port, is_listening, wait_until

JARS = REPO / ".cache" / "jars"
TOKEN_LIFETIME_S = 120
"""How long the tokens live that a secured HDFS gives to applications: by default, a week."""
_HTTP = "hadoop.http.authentication"
_CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def jars(profile: str) -> list[Path]:
    """Return the jars of a profile of .ci/jars/pom.xml; without them, skip the test or, in CI, fail it."""
    folder = JARS / profile
    if not (folder / ".complete").exists():
        missing(f"no jars in .cache/jars/{profile}: .ci/get-jars {profile} gets them (needs Maven)")
    return sorted(folder.glob("*.jar"))


class _Server(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


S = TypeVar("S", bound=_Server)


@contextmanager
def _running(server: S) -> Iterator[S]:
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


class KafkaBroker:
    """One broker that is its own controller.

    Args:
        folder: for its files.
    """

    def __init__(self, folder: Path) -> None:
        port, controller = free_port(), free_port()
        self.servers = f"127.0.0.1:{port}"
        self._java = _java()
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
        wait_until(self._serves, "Kafka serves")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-2000:]
        host, port = self.servers.split(":")
        return is_listening(host, int(port))


def running_kafka(folder: Path) -> AbstractContextManager[KafkaBroker]:
    """Give a broker.

    Args:
        folder: for its files.
    """
    return _running(KafkaBroker(folder))


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
    with (
        tempfile.TemporaryDirectory(prefix="postgresql-") as folder,
        _running(PostgreSql(Path(folder))) as server,
    ):
        yield server


class Hdfs:
    """A name node and a data node, with WebHDFS.

    Args:
        folder: for their files.
        profile: of their jars.
        kdc: whose tickets they want; without one, they believe what they are told.
    """

    def __init__(self, folder: Path, profile: str = "hdfs", kdc: Kdc | None = None) -> None:
        self._folder, self._kdc = folder, kdc
        host = kerberos.HOST if kdc else "127.0.0.1"
        self.url = f"hdfs://{host}:{free_port()}"
        self.web = f"{host}:{free_port()}"
        here = f"{host}:0"
        conf = {
            "fs.defaultFS": self.url,
            "dfs.namenode.name.dir": folder / "names",
            "dfs.namenode.http-address": self.web,
            "dfs.datanode.data.dir": folder / "blocks",
            "dfs.datanode.address": here,
            "dfs.datanode.http.address": here,
            "dfs.datanode.ipc.address": here,
            "dfs.datanode.hostname": host,
            "dfs.replication": 1,
            **(_secured(kdc, folder) if kdc else {}),
        }
        # The others of a cluster have pages, too, and may want no tickets for theirs.
        without_pages = {key: value for key, value in conf.items() if not key.startswith(_HTTP)}
        for name, site in (("core-site.xml", conf), ("hdfs-site.xml", without_pages)):
            keys = "".join(
                f"<property><name>{key}</name><value>{value}</value></property>"
                for key, value in site.items()
            )
            (folder / name).write_text(f"<configuration>{keys}</configuration>")
        for name in ("hdfs", "datanode"):  # the pages, which the jars do not have
            (folder / "webapps" / name).mkdir(parents=True)
        path = ":".join(map(str, [folder, *jars(profile)]))
        # Its REST server is older than Java's modules.
        options = ["--add-opens", "java.base/java.lang=ALL-UNNAMED", *([kdc.java_option] if kdc else [])]
        self._command = [_java(), "-Xmx256m", *options, "-cp", path]
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start both, and wait until a file can be written."""
        nodes = "org.apache.hadoop.hdfs.server"
        names = f"{nodes}.namenode.NameNode"
        subprocess.run([*self._command, names, "-format", "-nonInteractive"], check=True, capture_output=True)
        for name in (names, f"{nodes}.datanode.DataNode"):
            with (self._folder / f"{name.rpartition('.')[2]}.log").open("wb") as log:
                self._processes.append(subprocess.Popen([*self._command, name], stdout=log, stderr=log))

        def written() -> bool:
            for process in self._processes:
                assert process.poll() is None, f"a node of HDFS has ended\n{self._logs()}"
            try:
                self._write_ready()
            except (OSError, RuntimeError):  # no name node yet, or no data node that it knows
                return False
            return True

        wait_until(written, "HDFS takes files")

    def shell(self, *words: str) -> str:
        """Do what ``hdfs dfs`` does, as the user who may do all, and return what it prints."""
        run = self._shell(*words)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def stop(self) -> None:
        """End both."""
        for process in reversed(self._processes):
            process.kill()
            process.wait(20)

    def _write_ready(self) -> None:
        if self._kdc is None:
            files, _ = open_file_system(f"webhdfs://{self.web}", "HDFS")
            files.pipe_file("/ready", b"yes")
        elif (run := self._shell("-put", "-f", "-", "/ready")).returncode:
            raise RuntimeError(run.stderr)

    def _shell(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ)
        if self._kdc:
            tickets = {"KRB5CCNAME": f"FILE:{self._folder}/tickets"}
            self._kdc.log_in(f"hdfs/{kerberos.HOST}", self._kdc.services, more=tickets)
            environment |= tickets
        command = [*self._command, "org.apache.hadoop.fs.FsShell", *words]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, input="yes", check=False
        )

    def _logs(self) -> str:
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in self._folder.glob("*Node.log"))


def _secured(kdc: Kdc, folder: Path) -> dict[str, object]:
    """Return Hadoop's settings that want tickets."""
    (secret := folder / "secret").write_text("of the cookies")
    roles = ("namenode", "datanode")
    return {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": "authentication",
        # Otherwise a data node wants a port below 1024, or certificates.
        "ignore.secure.ports.for.testing": "true",
        **{f"dfs.{role}.kerberos.principal": f"hdfs/{kerberos.HOST}@{kerberos.REALM}" for role in roles},
        **{f"dfs.{role}.keytab.file": kdc.services for role in roles},
        # Without the type, the name node's pages, and WebHDFS with them, believe what they are told.
        f"{_HTTP}.type": "kerberos",
        f"{_HTTP}.kerberos.principal": f"HTTP/{kerberos.HOST}@{kerberos.REALM}",
        f"{_HTTP}.kerberos.keytab": kdc.services,
        f"{_HTTP}.signature.secret.file": secret,
        # After a ticket, a cookie will do for as long as this, in seconds.
        f"{_HTTP}.token.validity": 1,
        "dfs.namenode.delegation.token.max-lifetime": 1000 * TOKEN_LIFETIME_S,
        "dfs.namenode.delegation.token.renew-interval": 1000 * TOKEN_LIFETIME_S,
        "dfs.web.authentication.kerberos.principal": f"HTTP/{kerberos.HOST}@{kerberos.REALM}",
        "dfs.web.authentication.kerberos.keytab": kdc.services,
    }


def running_hdfs(folder: Path, kdc: Kdc | None = None) -> AbstractContextManager[Hdfs]:
    """Give an HDFS.

    Args:
        folder: for its files.
        kdc: whose tickets it wants.
    """
    return _running(Hdfs(folder, kdc=kdc))

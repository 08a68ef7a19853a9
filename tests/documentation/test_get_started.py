"""The pages of docs/get-started, as a reader follows them: each file written, each command run, in order."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_events.spark.conf import spark_home
from tests.support.paths import REPO
from tests.support.requirements import need
from tests.support.waiting import free_port, is_listening, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]
PAGES = REPO / "docs" / "get-started"
PORT = "9249"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass
class Block:
    """A block of a page: its language, its title, its text."""

    language: str
    title: str
    text: str


def blocks(name: str, port: int) -> list[Block]:
    """Return the blocks of a page, with a port that is free in place of the one that it names."""
    found = re.findall(
        r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```$', (PAGES / f"{name}.md").read_text(), re.M | re.S
    )
    return [Block(language, title, text.replace(PORT, str(port))) for language, title, text in found]


def missing_lines(expected: str, out: str) -> list[str]:
    """Return the lines that are not in an output; ``…`` stands for anything."""
    patterns = {line: ".*".join(map(re.escape, line.split("…"))) for line in expected.splitlines()}
    return [line for line, pattern in patterns.items() if not re.search(pattern, out)]


class Reader:
    """Somebody who copies what a page says, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._exports = ""
        self._left: list[subprocess.Popen[str]] = []
        scripts = Path(sys.executable).parent
        self._environment = {
            **os.environ,
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "COLUMNS": "160",
        }

    def follow(self, page: list[Block]) -> None:
        """Do what each block says; a block of text is what the one before has to print."""
        for at, block in enumerate(page):
            expected = page[at + 1].text if page[at + 1 :] and page[at + 1].language == "text" else ""
            if block.title and block.language != "bash":
                path = self.folder / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
            elif block.title == "another terminal":
                wait_until(lambda run=block, lines=expected: self._prints(run.text, lines), "it is there")
                if all(later.title != "another terminal" for later in page[at + 1 :]):
                    self._press_ctrl_c()
            elif block.language == "bash":
                waits = page[at + 1 :] and page[at + 1].title == "another terminal"
                self._start(block.text) if waits else self._run(block.text, expected)

    def run_cells(self, page: list[Block]) -> None:
        """Run the Python of a page in one process, and find what each cell should print."""
        code = "\n".join(block.text for block in page if block.language == "python")
        said = "\n".join(block.text for block in page if block.language == "text")
        (self.folder / "cells.py").write_text(code)
        self._run("python cells.py", said)

    def close(self) -> None:
        """End what still runs."""
        for process in self._left:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _run(self, commands: str, expected: str) -> None:
        done = self._shell(commands)
        assert done.returncode == 0, (commands, done.stdout, done.stderr[-3000:])
        missing = missing_lines(expected, done.stdout)
        assert missing == [], (commands, done.stdout, done.stderr[-3000:])
        self._keep_exports(commands)

    def _keep_exports(self, commands: str) -> None:
        """Remember what a terminal would: each block has a shell of its own."""
        self._exports += "".join(line + "\n" for line in commands.splitlines() if line.startswith("export "))

    def _prints(self, commands: str, expected: str) -> bool:
        return missing_lines(expected, self._shell(commands).stdout) == []

    def _shell(self, commands: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-ec", self._exports + commands],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    def _start(self, commands: str) -> None:
        with (self.folder / "said.txt").open("w") as said:
            process = subprocess.Popen(
                ["bash", "-ec", commands],
                cwd=self.folder,
                env=self._environment,
                stdout=said,
                stderr=said,
                start_new_session=True,
                text=True,
            )
        self._left.append(process)
        self._keep_exports(commands)

    def _press_ctrl_c(self) -> None:
        process = self._left[-1]
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.close()


@pytest.mark.extended
@pytest.mark.parametrize(
    "name", ["streaming", "event-log", pytest.param("batch", marks=pytest.mark.thorough)]
)
def test_a_reader_gets_what_the_page_shows(reader: Reader, name: str) -> None:
    page = blocks(name, free_port())
    if any("curl " in block.text for block in page):
        need("curl", "curl")
    reader.follow(page)


@pytest.mark.extended
def test_the_cells_of_the_notebook(reader: Reader) -> None:
    reader.run_cells(blocks("notebook", free_port()))


@pytest.fixture
def connect_server(java: str, tmp_path: Path) -> Iterator[int]:
    """A server as a platform runs it, on a free port of loopback."""
    for package in ("pandas", "pyarrow", "grpc_status"):
        pytest.importorskip(package)
    home, port = spark_home(), free_port()
    assert home is not None
    conf = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
    }
    options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command = [f"{home}/bin/spark-submit", "--class", SERVER, *options, "spark-internal"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (tmp_path / "server.txt").open("w") as said:
        server = subprocess.Popen(command, stdout=said, stderr=said, env=environment, cwd=tmp_path)
    try:
        wait_until(
            lambda: server.poll() is None and is_listening("127.0.0.1", port), "the server listens", 120
        )
        yield port
    finally:
        server.kill()
        server.wait()


@pytest.mark.thorough
def test_a_client_of_spark_connect(reader: Reader, connect_server: int) -> None:
    page = blocks("connect", free_port())
    for block in page:
        block.text = block.text.replace("sc://localhost", f"sc://localhost:{connect_server}")
    reader.follow(page)


def test_each_page_is_followed() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {
        "index",
        "batch",
        "streaming",
        "event-log",
        "notebook",
        "connect",
    }

"""What becomes of transactions whose driver is interrupted, silent or gone; in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.ctas_catalogs import configuration
from tests.support.paths import APPS
from tests.support.waiting import wait_until
from tests.support.warm_commands import WarmCommands, run_command

pytestmark = [pytest.mark.spark, pytest.mark.extended]


def start(folder: Path, how: str) -> App:
    (folder / "warehouse").mkdir()
    conf = {**configuration("memory", folder), "spark.events.ctas.abort.timeout": "5s"}
    return App([sys.executable, str(APPS / "ctas_slow.py"), how], conf, folder)


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def started(tmp_path: Path) -> Command:
    """As a user starts it."""
    environment = {"SPARK_CONF_DIR": str(tmp_path / "spark-conf"), "COLUMNS": "200"}
    return partial(run_command, "ctas", cwd=tmp_path, environment=environment)


@pytest.fixture
def command(started: Command, warm: WarmCommands) -> Command:
    return partial(started, warm=warm)


def tables(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder / "warehouse") if name != ".ctas"]


def has_files(folder: Path) -> bool:
    return any((folder / "warehouse").glob("t-*/**/*.parquet"))


def test_ctrl_c(java: str, tmp_path: Path) -> None:
    app = start(tmp_path, "sleep")
    app.wait_for(lambda: has_files(tmp_path), "it has written files")
    app.process.send_signal(signal.SIGINT)
    ended = app.end()
    assert ended.out.splitlines() == ["begins", "KeyboardInterrupt: ", "not there"]
    assert tables(tmp_path) == []


def test_the_late_commit_of_a_driver_that_was_taken_for_dead_fails(
    java: str, tmp_path: Path, command: Command
) -> None:
    app = start(tmp_path, "stop")
    wait_until(lambda: "prepared" in (tmp_path / "stdout.txt").read_text(), "it is prepared")
    (one,) = map(json.loads, command("list", "--json").stdout.splitlines())
    assert one["state"] == "PREPARED"
    wait_until(lambda: "rolled back" in command("recover").stdout, "its lease is over")
    assert tables(tmp_path) == []
    os.killpg(app.process.pid, signal.SIGCONT)
    out = app.end().out
    assert f"FencedError: transaction {one['txid']} of spark_catalog.default.t was taken on by another" in out
    assert out.endswith("not there\n")
    assert tables(tmp_path) == []


def test_the_commands(java: str, tmp_path: Path, started: Command, command: Command) -> None:
    app = start(tmp_path, "sleep")
    app.wait_for(lambda: has_files(tmp_path), "it has written files")
    listed = started("list").stdout
    assert "INTENT" in listed
    assert "its owner is alive" in listed
    txid = listed.splitlines()[1].split()[0]
    assert command("recover").stdout == f"{txid} spark_catalog.default.t: its owner is alive\n"
    app.kill()
    assert "its owner is gone: recover ends it" in command("list").stdout
    assert command("recover").stdout == f"{txid} spark_catalog.default.t: rolled back\n"
    assert tables(tmp_path) == []
    assert command("recover").stdout == "nothing to do\n"
    assert command("abort", txid).stdout == f"{txid} spark_catalog.default.t: was already aborted\n"
    assert "ABORTED" in command("list").stdout
    wrong = command("recover", "nothing")
    assert (wrong.returncode, "has no transaction 'nothing'" in wrong.stderr) == (3, True)
    wrong = command("list", "--conf", "spark.events.ctas.lease.duration=soon")
    assert wrong.returncode == 3
    assert "spark.events.ctas.lease.duration: 'soon' is not valid; expected a duration" in wrong.stderr

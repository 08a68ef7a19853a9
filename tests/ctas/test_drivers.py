"""What becomes of transactions whose driver is interrupted, silent or gone; in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.ctas_catalogs import configuration
from tests.support.paths import APPS
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark


def start(folder: Path, how: str) -> App:
    (folder / "warehouse").mkdir()
    conf = {**configuration("memory", folder), "spark.events.ctas.stragglers.timeout": "30s"}
    return App([sys.executable, str(APPS / "ctas_slow.py"), how], conf, folder)


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SPARK_CONF_DIR": str(folder / "spark-conf"), "COLUMNS": "200"}
    return subprocess.run(
        cli("ctas", *arguments), capture_output=True, text=True, env=environment, timeout=120
    )


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


def test_the_late_commit_of_a_driver_that_was_taken_for_dead_fails(java: str, tmp_path: Path) -> None:
    app = start(tmp_path, "stop")
    wait_until(lambda: "prepared" in (tmp_path / "stdout.txt").read_text(), "it is prepared")
    (one,) = map(json.loads, command(tmp_path, "list", "--json").stdout.splitlines())
    assert one["state"] == "PREPARED"
    wait_until(lambda: "rolled back" in command(tmp_path, "recover").stdout, "its lease is over")
    assert tables(tmp_path) == []
    os.killpg(app.process.pid, signal.SIGCONT)
    out = app.end().out
    assert f"FencedError: transaction {one['txid']} of spark_catalog.default.t was ended by" in out
    assert out.endswith("not there\n")
    assert tables(tmp_path) == []


def test_the_commands(java: str, tmp_path: Path) -> None:
    app = start(tmp_path, "sleep")
    app.wait_for(lambda: has_files(tmp_path), "it has written files")
    listed = command(tmp_path, "list").stdout
    assert "INTENT" in listed
    assert "its owner is alive" in listed
    txid = listed.splitlines()[1].split()[0]
    assert command(tmp_path, "recover").stdout == f"{txid} spark_catalog.default.t: its owner is alive\n"
    app.kill()
    assert "its owner is gone: recover ends it" in command(tmp_path, "list").stdout
    assert command(tmp_path, "recover").stdout == f"{txid} spark_catalog.default.t: rolled back\n"
    assert tables(tmp_path) == []
    assert command(tmp_path, "recover").stdout == "nothing to do\n"
    assert command(tmp_path, "abort", txid).stdout == f"{txid} spark_catalog.default.t: was aborted already\n"
    assert "ABORTED" in command(tmp_path, "list").stdout
    wrong = command(tmp_path, "recover", "nothing")
    assert (wrong.returncode, "has no transaction 'nothing'" in wrong.stderr) == (2, True)
    wrong = command(tmp_path, "list", "--conf", "spark.events.ctas.lease=soon")
    assert wrong.returncode == 2
    assert "spark.events.ctas.lease: 'soon' is not allowed; expected a duration" in wrong.stderr

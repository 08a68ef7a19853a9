"""``spark-events doctor``: what a bug report needs."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
from pathlib import Path

from tests.support.forked_commands import run_forked
from tests.support.paths import REPO

REPORTER = "spark.events.reporter.file"


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked("doctor", *arguments, cwd=REPO)


def test_what_is_there(tmp_path: Path) -> None:
    conf = tmp_path / "mine.conf"
    conf.write_text(f"{REPORTER}.factory.class file_log\n{REPORTER}.path {tmp_path / 'events'}\n")
    done = doctor("--properties-file", str(conf), "--json")
    found = json.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert found["versions"]["Python"].startswith(platform.python_version())
    assert found["versions"]["PySpark"][0].isdigit()
    assert found["extras"]["prometheus"] == "installed"
    assert found["configuration"]["file"] == str(conf)
    assert found["reporters"] == {"events file": f"file_log: {tmp_path / 'events'} is writable"}
    assert found["problems"] == []


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        reporter = "spark.metrics.reporter.p"
        done = doctor(
            *("--conf", f"{reporter}.factory.class=prometheus", "--conf", f"{reporter}.port={port}")
        )

    assert done.returncode == 0
    assert str(port) in done.stderr
    assert "PySpark" in done.stdout


def test_a_file_that_is_not_read(tmp_path: Path) -> None:
    """As ``check`` says it: Spark does not look into the folder conf here."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.master local\n")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    for command in ("doctor", "check"):
        done = run_forked(command, cwd=tmp_path, env=environment)
        hint = f"./conf/spark-defaults.conf exists; to use it: export SPARK_CONF_DIR={tmp_path}/conf"
        assert hint in done.stderr, done.stderr

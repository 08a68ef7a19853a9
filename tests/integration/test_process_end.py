"""However an application ends: no hang, no lost tail, and its own exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import APPS, App, cli, file_events, of_name, statuses, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


def conf_for(folder: Path) -> dict[str, str]:
    return {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(folder / "events"),
    }


def command_for(way: str, how: str) -> list[str]:
    app = str(APPS / "ending.py")
    return [sys.executable, app, how, "--attach"] if way == "attach" else cli("run", app, how)


CASES = [
    # way, how, exit code, last status of the application, exception
    ("attach", "raise", 1, "FAILED", "ValueError"),
    ("run", "raise", 1, "FAILED", "ValueError"),
    ("attach", "finally", 1, "FAILED", "ValueError"),
    ("attach", "slowly", 1, "FAILED", "ValueError"),
    ("attach", "handled", 0, "FINISHED", None),
    ("attach", "no-stop", 0, "FINISHED", None),
    ("run", "exit-3", 3, "FAILED", None),
    ("run", "stop", 0, "FINISHED", None),
    ("attach", "kill-jvm", 0, "FAILED", None),
]


@pytest.mark.parametrize(("way", "how", "code", "status", "exception"), CASES)
def test_end(tmp_path: Path, way: str, how: str, code: int, status: str, exception: str | None) -> None:
    """The last event says how it ended, and why."""
    run = App(command_for(way, how), conf_for(tmp_path), tmp_path).end()
    events = file_events(tmp_path / "events")

    assert run.code == code, run.err[-3000:]
    assert statuses(events, "application") == ["CREATED", "RUNNING", status], run.err[-3000:]
    assert statuses(events, "job")[-1] == "FINISHED"
    failures = of_name(events, "JobFailureEvent", job__kind="application")
    assert len(failures) == (status == "FAILED")
    if exception:
        assert failures[0]["attributes"]["exception.type"] == exception
        assert failures[0]["attributes"]["exception.message"] == "nobody handles this"
        assert "spark_events" not in run.err.split("Traceback")[-1]


@pytest.mark.parametrize("way", ["attach", "run"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal(tmp_path: Path, way: str, number: signal.Signals) -> None:
    """Ctrl-C, which reaches the whole process group, and SIGTERM to the process itself: no lost tail."""
    app = App(command_for(way, "wait"), conf_for(tmp_path), tmp_path)
    app.wait_for_line("ready")
    dies_at_once = way == "attach" and number is signal.SIGTERM  # Python does, with us or without
    if dies_at_once:
        wait_until(
            lambda: len(statuses(file_events(tmp_path / "events"), "job")) == 2, "the end of the job, written"
        )
    if number is signal.SIGINT:
        os.killpg(app.process.pid, number)
    else:
        app.process.send_signal(number)
    run = app.end(timeout_s=40)
    events = file_events(tmp_path / "events")

    assert run.code != 0
    assert statuses(events, "job") == ["RUNNING", "FINISHED"]
    if dies_at_once:
        return  # an event log shows the end
    assert statuses(events, "application")[-1] in ("FAILED", "FINISHED"), run.err[-3000:]


@pytest.mark.parametrize("way", ["attach", "run"])
def test_two_sessions_in_one_process(tmp_path: Path, way: str) -> None:
    """After ``spark.stop()`` a new session is a new application, with files of its own."""
    run = App(command_for(way, "two-sessions"), conf_for(tmp_path), tmp_path).end()
    events = file_events(tmp_path / "events")
    names = [
        e["attributes"]["app_name"] for e in of_name(events, "JobStatusChangeEvent", job__kind="application")
    ]

    assert run.code == 0, run.err[-3000:]
    assert names == ["ending"] * 3 + ["ending-2"] * 3
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"] * 2
    assert len(list((tmp_path / "events").iterdir())) == 2


def test_run_refuses_cluster_mode(tmp_path: Path) -> None:
    """Cluster mode, where the driver is elsewhere, is refused with the way out."""
    command = cli("run", "--deploy-mode", "cluster", "app.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "client mode" in done.stderr
    assert "attach" in done.stderr

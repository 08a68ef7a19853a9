"""``spark-events follow`` beside a real application whose driver knows nothing of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import file_events, statuses
from tests.support.paths import APPS
from tests.support.waiting import free_port, http_get, wait_until

pytestmark = pytest.mark.spark


class Daemon:
    """The command in a process of its own."""

    def __init__(self, folder: Path, dead_after: str) -> None:
        conf = {
            "spark.events.reporter.file.factory.class": "file_log",
            "spark.events.reporter.file.path": str(folder / "events"),
            "spark.metrics.reporter.prom.factory.class": "prometheus",
            "spark.metrics.reporter.prom.port": str(free_port()),
            "spark.metrics.ended.retention": "0",
            "spark.events.event-log.poll-interval": "200ms",
            "spark.events.event-log.idle-timeout": dead_after,
            "spark.events.checkpoint.sla": "1h",
        }
        options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        self._command = cli("follow", str(folder / "logs"), "--state", str(folder / "state"), *options)
        self._log = folder / "daemon.log"
        self.start()

    def start(self) -> None:
        with self._log.open("a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture
def daemon(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Daemon]:
    (tmp_path / "logs").mkdir()
    running = Daemon(tmp_path, getattr(request, "param", "1h"))
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()


def start_app(tmp_path: Path, *arguments: str) -> App:
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "logs").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
    }
    command = [sys.executable, str(APPS / "endless_query.py"), str(tmp_path / "go"), *arguments]
    return App(command, conf, tmp_path)


@pytest.mark.extended
def test_an_application_from_its_start_to_its_end(daemon: Daemon, tmp_path: Path, java: str) -> None:
    """Seen while it runs, across a kill of the daemon; afterwards each event is there once, as in a replay."""
    app = start_app(tmp_path)
    events = tmp_path / "events"
    checkpoints = lambda: sum(e["eventName"] == "CheckpointEvent" for e in file_events(events))  # noqa: E731
    app.wait_for(lambda: checkpoints() >= 3, "three checkpoints are reported")
    url = re.search(r"http://\S+/metrics", daemon.said)
    assert url is not None
    page = http_get(url.group())
    assert re.search(
        r'spark_query_status\{app_id="local-\d+",.*query_name="ticks",status="RUNNING"\} 1', page
    )
    assert "spark_eventlog_followed_logs 1" in page

    assert daemon.end(signal.SIGKILL) == -signal.SIGKILL
    before = checkpoints()
    daemon.start()
    app.wait_for(lambda: checkpoints() >= before + 2, "the daemon goes on")
    (tmp_path / "go").touch()
    assert app.end().code == 0
    wait_until(lambda: statuses(file_events(events), "application")[-1:] == ["FINISHED"], "the end is seen")
    wait_until(lambda: "spark_eventlog_followed_logs 0" in http_get(url.group()), "it is no longer followed")
    assert daemon.end() == 0

    found = [event["eventId"] for event in file_events(events)]
    options = ("--conf", "spark.events.reporter.f.factory.class=file_log")
    target = f"spark.events.reporter.f.path={tmp_path / 'replayed'}"
    command = cli(
        "replay",
        str(tmp_path / "logs"),
        *options,
        "--conf",
        target,
        "--conf",
        "spark.events.checkpoint.sla=1h",
    )
    subprocess.run(command, check=True, capture_output=True, timeout=280)
    # What was delivered and not written down as such when the daemon was killed may be there twice.
    assert set(found) == {event["eventId"] for event in file_events(tmp_path / "replayed")}
    assert len(found) - len(set(found)) < 10


@pytest.mark.extended
@pytest.mark.parametrize("daemon", ["12s"], indirect=True)
def test_an_application_that_is_killed(daemon: Daemon, tmp_path: Path, java: str) -> None:
    """Nobody tells that it died: its log rests without an end."""
    app = start_app(tmp_path, "--die")
    events = tmp_path / "events"
    app.wait_for(lambda: "RUNNING" in statuses(file_events(events), "query"), "the query is reported")
    (tmp_path / "go").touch()
    wait_until(lambda: app.ended, "it is dead")
    last = lambda kind: statuses(file_events(events), kind)[-1]  # noqa: E731
    wait_until(lambda: last("application") == "FAILED", "it is reported as failed")
    assert last("query") == "FAILED"
    assert "is marked FAILED: its log has had no record for" in daemon.said
    assert daemon.end(signal.SIGINT) == 130


def test_wrong_configuration(tmp_path: Path) -> None:
    """One sentence each, and an exit code of its kind."""
    for code, arguments, said in (
        (4, (str(tmp_path / "nope"),), "no such file or folder"),
        (
            3,
            (str(tmp_path), "--conf", "spark.events.event-log.idle-timeout=soon"),
            "spark.events.event-log.idle-timeout",
        ),
        (3, (str(tmp_path), "--state", "/proc/nope/x"), "/proc/nope/x: cannot be used"),
    ):
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
        run = subprocess.run(
            cli("follow", *arguments),
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            env=environment,
        )
        assert run.returncode == code, run.stderr
        assert said in run.stderr
        assert "Traceback" not in run.stderr

"""However an application ends: no hang, no lost tail, and its own exit code."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, cli
from tests.support.endings import ended
from tests.support.event_log_reading import read
from tests.support.file_log import Event, file_events, of_name, statuses
from tests.support.paths import APPS
from tests.support.waiting import free_port, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


def conf_for(folder: Path) -> dict[str, str]:
    (folder / "logs").mkdir(exist_ok=True)
    return {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(folder / "events"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "logs").as_uri(),
    }


def command_for(way: str, how: str) -> list[str]:
    app = str(APPS / "ending.py")
    return [sys.executable, app, how, "--attach"] if way == "attach" else cli("run", app, how)


# way, how, exit code, last status of the application, exception
SAMPLE = [
    ("attach", "atexit", 1, "FAILED", "ValueError"),
    ("run", "finally-exit-3", 3, "FAILED", None),
    ("attach", "finally", 1, "FAILED", "ValueError"),
    ("run", "atexit-exit-3", 3, "FAILED", None),
    ("attach", "own-hook", 1, "FAILED", "ValueError"),
    ("attach", "no-stop", 0, "FINISHED", None),
    ("attach", "children", 0, "FINISHED", None),  # forked ones, which end on their own
    ("attach", "stop-exit-3", 3, "FAILED", None),
]
REST = [
    ("run", "atexit", 1, "FAILED", "ValueError"),
    ("attach", "atexit-exit-3", 3, "FAILED", None),
    ("attach", "atexit-exit-0", 0, "FINISHED", None),
    ("attach", "shown", 0, "FINISHED", None),
    ("attach", "shown-and-left", 0, "FINISHED", None),
    ("run", "own-hook", 1, "FAILED", "ValueError"),
    ("run", "finally", 1, "FAILED", "ValueError"),
    ("run", "no-stop", 0, "FINISHED", None),
    ("run", "children", 0, "FINISHED", None),
    ("attach", "finally-exit-3", 3, "FAILED", None),
    ("attach", "slowly", 1, "FAILED", "ValueError"),
    ("attach", "handled", 0, "FINISHED", None),
    ("run", "stop-exit-3", 3, "FAILED", None),
    ("attach", "stop-os-exit-3", 3, "FAILED", None),
    ("run", "stop-os-exit-3", 3, "FAILED", None),
    ("attach", "stop-raise", 1, "FAILED", "ValueError"),
    ("run", "stop-raise", 1, "FAILED", "ValueError"),
    ("attach", "stop-later-exit-3", 3, "FINISHED", None),
    ("run", "stop-later-exit-3", 3, "FINISHED", None),
]
extended = pytest.mark.extended
thorough = pytest.mark.thorough
CASES = [
    *(pytest.param(*case, marks=extended) for case in SAMPLE),
    *(pytest.param(*case, marks=thorough) for case in REST),
]
STOPPED_UNSEEN = ("slowly",)
"""The program stops Spark past PySpark, so the log has no mark."""
KNOWN_LATER = ("handled", "stop-exit-3", "stop-os-exit-3", "stop-raise")
"""What the program does once it has stopped Spark comes too late for the log."""


@pytest.mark.parametrize(("way", "how", "code", "status", "exception"), CASES)
def test_end(tmp_path: Path, way: str, how: str, code: int, status: str, exception: str | None) -> None:
    """The last event says how it ended, and why."""
    run = App(command_for(way, how), conf_for(tmp_path), tmp_path).end()
    # The JVM tells it where Python could not.
    wait_until(lambda: ended(file_events(tmp_path / "events")), "the end is told")
    events = file_events(tmp_path / "events")

    assert run.code == code, run.err[-3000:]
    assert statuses(events, "application") == ["CREATED", "RUNNING", status], run.err[-3000:]
    assert statuses(events, "job")[-1] == "FINISHED"
    failures = of_name(events, "JobFailureEvent", job_kind="application")
    assert len(failures) == (status == "FAILED")
    if exception:
        assert failures[0]["attributes"]["exception.type"] == exception
        assert failures[0]["attributes"]["exception.message"] == "nobody handles this"
        assert "spark_events" not in run.err.split("Traceback")[-1]
    if how in STOPPED_UNSEEN:
        assert_the_log_cannot_know(tmp_path / "logs")
    elif how not in KNOWN_LATER:
        assert_the_log_says_it_too(tmp_path / "logs", events)


def assert_the_log_says_it_too(logs: Path, live: list[Event]) -> None:
    """Assert that the mark in the event log gives the same statuses and failure of the application."""
    # Python is gone before its JVM, which writes the end.
    wait_until(lambda: not list(logs.rglob("*.inprogress")), "the log has its end")
    whole = {event["eventId"]: event["attributes"] for event in live}
    of_applications = {key for key, value in whole.items() if value["job_kind"] == "application"}
    beats = {event["eventId"] for event in of_name(live, "HeartbeatEvent")}
    expected = {key: whole[key] for key in of_applications - beats}
    told = {event.id: event.attributes for event in of_application(logs)}

    assert told.keys() == expected.keys()
    for event_id, attributes in expected.items():
        for key in ("newJobStatus", "exception.type", "exception.message"):
            assert told[event_id].get(key) == attributes.get(key)


def assert_the_log_cannot_know(logs: Path) -> None:
    """Without a mark, Spark writes the same end after a failure as after a success."""
    wait_until(lambda: not list(logs.rglob("*.inprogress")), "the log has its end")
    last = of_application(logs)[-1]

    assert last.attributes["newJobStatus"] == "FINISHED"
    assert last.attributes["outcome"] == "assumed"


def of_application(logs: Path) -> list[Any]:
    """Return the events of the application itself, from the one log in a folder."""
    (log,) = logs.glob("[!.]*")
    return [event for event in read(log).events if event.attributes["job_kind"] == "application"]


@pytest.mark.extended
@pytest.mark.parametrize("way", ["a terminal", pytest.param("-i", marks=thorough)])
def test_an_exception_at_the_prompt_is_no_failure(tmp_path: Path, way: str) -> None:
    """Python goes on after it; only what ends the process is its failure."""
    typed = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').getOrCreate()\n"
        "import spark_events; attachment = spark_events.attach(spark)\n"
        "1/0\n"
        "spark.range(3).count()\n"
        "exit()\n"
    )
    command = [sys.executable, "-q", *(["-i"] if way == "-i" else [])]
    stdin: int = subprocess.PIPE
    terminal = -1
    if way == "a terminal":
        terminal, stdin = pty.openpty()
    run = App(command, conf_for(tmp_path), tmp_path, stdin=stdin)
    if terminal >= 0:
        os.close(stdin)
        os.write(terminal, typed.encode())
    else:
        assert run.process.stdin is not None
        run.process.stdin.write(typed.encode())
        run.process.stdin.close()
    done = run.end()
    events = file_events(tmp_path / "events")

    assert "ZeroDivisionError" in done.err + done.out
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"], done.err[-3000:]
    assert statuses(events, "job")[-1] == "FINISHED"
    assert not of_name(events, "JobFailureEvent")


@pytest.mark.parametrize("way", [pytest.param("attach", marks=thorough), pytest.param("run", marks=extended)])
def test_two_sessions_in_one_process(tmp_path: Path, way: str) -> None:
    """After ``spark.stop()`` a new session is a new application, with files and an end of its own."""
    run = App(command_for(way, "two-sessions"), conf_for(tmp_path), tmp_path).end()
    events = file_events(tmp_path / "events")
    names = [
        e["attributes"]["app_name"] for e in of_name(events, "JobStatusChangeEvent", job_kind="application")
    ]

    assert run.code == 3, run.err[-3000:]
    assert names == ["ending"] * 3 + ["ending-2"] * 3
    begin = ["CREATED", "RUNNING"]
    assert statuses(events, "application") == [*begin, "FINISHED", *begin, "FAILED"]
    assert len(list((tmp_path / "events").iterdir())) == 2


def test_a_spark_context_that_cannot_start(tmp_path: Path) -> None:
    """``run`` reports the application, to which nothing could attach, with the reason."""
    conf = {
        **conf_for(tmp_path),
        "spark.eventLog.dir": (tmp_path / "absent").as_uri(),
        "spark.events.reporter.otlp.factory.class": "otlp",
        "spark.events.reporter.otlp.exporter.endpoint": f"http://127.0.0.1:{free_port()}",
        "spark.events.close.timeout": "3s",
    }
    run = App(command_for("run", "no-stop"), conf, tmp_path).end()
    events = file_events(tmp_path / "events")

    assert run.code == 1
    assert statuses(events, "application") == ["CREATED", "FAILED"]
    (failure,) = of_name(events, "JobFailureEvent", job_kind="application")
    assert failure["attributes"]["exception.type"] == "java.io.FileNotFoundException"
    assert failure["attributes"]["app_name"] == "ending"
    assert "absent does not exist" in failure["body"]
    assert "cannot be reported" not in run.err


def test_run_refuses_cluster_mode(tmp_path: Path) -> None:
    """Where Spark has no Python drivers, it is refused with the way out."""
    command = cli("run", "--master", "spark://m:7077", "--deploy-mode", "cluster", "app.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "--deploy-mode client" in " ".join(done.stderr.split())

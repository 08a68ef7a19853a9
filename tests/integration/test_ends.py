"""Every way to end, on real processes: what is told of it live, and what its event log tells."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import cli
from tests.support.endings import ATTACH, LAUNCHED, RUN, STOPPED, WAYS, Ends, Told, Way, ended
from tests.support.event_log_reading import read
from tests.support.file_log import Event, file_events, of_name
from tests.support.paths import REPO
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]
ALWAYS = ("SIGKILL of Python",)


def how_often(way: Way, started: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a way to end: each takes half a minute."""
    if started != way.sample:
        return [pytest.mark.thorough]
    return [] if way.name.strip("`") in ALWAYS else [pytest.mark.extended]


CASES = [
    pytest.param(way, started, id=f"{started}: {way.name}", marks=how_often(way, started))
    for way in WAYS
    for started in way.told
]


@pytest.mark.parametrize(("way", "started"), CASES)
def test_end(tmp_path: Path, way: Way, started: str, request: pytest.FixtureRequest) -> None:
    """The end is told with its code, signal and reason, of whatever ran; the event log agrees where it knows."""
    ends = Ends(started, way.how, tmp_path, CONF.get(way.how))
    request.addfinalizer(ends.leave_nothing)
    ends.go(way.signals)
    ends.end()

    if way.may_stop_spark and STOPPED.says in of_name(ends.events, "JobFailureEvent")[-1]["body"]:
        assert_told(ends.events, STOPPED)
        return
    assert_told(ends.events, way.told[started])
    assert_served(ends, way.told[started])
    assert_nothing_runs(ends.events, way.told[started].status)
    assert_spans_end(ends.spans, ends.events)
    expected = way.logged[started]
    if expected is not None and way.log_may_lack_its_end:
        wait_until(lambda: not in_progress(ends) or not ends.jvm_lives, "the JVM has ended")
        expected = None if in_progress(ends) else expected
    if expected is None:
        last = of_name(logged(ends.logs), "JobStatusChangeEvent", job_kind="application")[-1]
        assert last["attributes"]["newJobStatus"] == "RUNNING"
        assert_told(followed(ends.logs, tmp_path), Told("FAILED", says="the event log has no end"))
        return
    ends.wait_for(lambda: not in_progress(ends), "the log has its end")
    for events in (logged(ends.logs), followed(ends.logs, tmp_path)):
        assert_told(events, expected)
        assert_nothing_runs(events, expected.status)


def assert_served(ends: Ends, told: Told) -> None:
    """Assert that Prometheus sees the end."""
    wait_until(lambda: ends.statuses_served() == told.statuses, f"{told.statuses} is served")
    ends.free_port()


def in_progress(ends: Ends) -> list[Path]:
    """Return the files of event logs that lack their end."""
    return list(ends.logs.rglob("*.inprogress"))


CONF = {"metaspace": {"spark.driver.extraJavaOptions": "-XX:MaxMetaspaceSize=220m"}}


def assert_told(events: list[Event], told: Told) -> None:
    """Assert that the end of the application and of its query is told so."""
    for kind, status in told.statuses.items():
        changes = of_name(events, "JobStatusChangeEvent", job_kind=kind)
        last = changes[-1]["attributes"]
        assert last["newJobStatus"] == status, changes[-1]
        assert last.get("outcome") == ("assumed" if told.assumed else None)
        failures = of_name(events, "JobFailureEvent", job_kind=kind)
        assert len(failures) == (status == "FAILED")
        for attributes in (last, *(failure["attributes"] for failure in failures)):
            if status == "FAILED":
                assert attributes.get("exitCode") == told.code
                assert attributes.get("exitSignal") == told.signal
        for failure in failures:
            assert told.says in failure["attributes"]["exception.message"] + failure["body"]
            if told.exception:
                assert failure["attributes"]["exception.type"] == told.exception
            if told.signal not in (None, "SIGINT"):
                assert failure["attributes"]["failureLabel.type"] == "SYSTEM"


def assert_nothing_runs(events: list[Event], status: str) -> None:
    """Assert that each job and query that began has ended, with or before its application."""
    last: dict[tuple[str, str], str] = {}
    for event in of_name(events, "JobStatusChangeEvent"):
        attributes = event["attributes"]
        which = str(attributes.get("job_id", attributes.get("run_id", "")))
        last[attributes["job_kind"], which] = attributes["newJobStatus"]
    assert set(last.values()) <= {"FINISHED", "FAILED", "CANCELED"}, last
    of_program = {
        event["attributes"]["newJobStatus"]
        for event in of_name(events, "JobStatusChangeEvent", job_kind="job")
        if "query_name" not in event["attributes"] and event["attributes"]["newJobStatus"] != "RUNNING"
    }
    # PySpark cancels its jobs at Ctrl-C.
    assert of_program
    assert of_program <= ({"FAILED", "CANCELED"} if status == "FAILED" else {"CANCELED"})
    ends = [e for e in events if e["attributes"].get("newJobStatus") in ("FINISHED", "FAILED", "CANCELED")]
    assert ends[-1]["attributes"]["job_kind"] == "application"


def assert_spans_end(spans: list[Event], events: list[Event]) -> None:
    """Assert that each job that was told of has its span, and so have its query and the application."""
    names = [span["name"] for span in spans]
    assert names.count("Application") == 1
    assert names.count("Query") == 1
    jobs = {e["attributes"]["job_id"] for e in of_name(events, "JobStatusChangeEvent", job_kind="job")}
    of_no_query = [span for span in spans if span["name"] == "Job"]
    assert {span["attributes"]["job_id"] for span in of_no_query} <= jobs
    assert [span for span in of_no_query if "query_name" not in span["attributes"]]


def logged(folder: Path) -> list[Event]:
    """Return the events of the one event log in a folder, as the file log writes them."""
    (log,) = folder.glob("[!.]*")
    conf = {"spark.events.failure.enrichers": "type"}
    return [
        {"eventName": event.name, "body": event.body, "attributes": {**event.variables, **event.attributes}}
        for event in read(log, conf).events
    ]


def followed(logs: Path, folder: Path) -> list[Event]:
    """Return the events of the one event log in a folder that ``spark-events follow`` gives."""
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(folder / "followed"),
        "spark.events.event-log.idle-timeout": "1s",
    }
    options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    command = cli("follow", str(logs), "--complete-too", "--state", str(folder / "state"), *options)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: ended(file_events(folder / "followed")), "its end is followed")
        finally:
            process.terminate()
    return file_events(folder / "followed")


@pytest.mark.thorough
@pytest.mark.parametrize("started", [RUN, ATTACH])
def test_a_signal_that_is_meant_stops(tmp_path: Path, started: str) -> None:
    """With the setting, SIGTERM is a planned stop: nothing has failed, and no checkpoint is owed."""
    ends = Ends(started, "sleep", tmp_path, {"spark.events.stop.signals": "SIGTERM"})
    ends.go(((LAUNCHED, signal.SIGTERM),))
    run = ends.end()

    assert run.code in (143, -15)
    for kind in ("application", "query", "job"):
        last = of_name(ends.events, "JobStatusChangeEvent", job_kind=kind)[-1]["attributes"]
        assert last["newJobStatus"] == "CANCELED"
    assert not of_name(ends.events, "JobFailureEvent")
    assert_served(ends, Told("CANCELED"))


def test_the_table_of_ends(tmp_path: Path) -> None:
    """The table in docs/events.md says what these tests see."""
    text = (REPO / "docs" / "events.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows: dict[str, list[str]] = {}
    for line in lines:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    for way in WAYS:
        expected: list[Any] = [
            way.told[started].cell if started in way.told else None for started in (ATTACH, RUN)
        ]
        for started in (ATTACH, RUN):
            of_log = way.logged[started]
            expected.append(of_log.cell if of_log else "no end")
        cells = rows[way.name]
        for cell, wanted in zip((cells[0], cells[1], cells[4], cells[5]), expected, strict=True):
            if wanted is not None:
                assert cell == wanted, (way.name, cells, expected)

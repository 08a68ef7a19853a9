"""Streaming queries that cannot start, of which Spark posts nothing, in a real driver and over Spark Connect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App
from tests.support.file_log import Event, file_events, of_name, statuses
from tests.support.paths import APPS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("java"),
    pytest.mark.xdist_group("connect"),
    pytest.mark.extended,
]
MODE = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"
LINES = (APPS / "failing_starts.py").read_text().splitlines()
NAMES = {
    "start_named": "no_watermark",
    "start_with_option": "by_option",
    "start_by_argument": "by_argument",
    "start_into_table": "no_folder",
}


def line_of(function: str) -> int:
    """Return the line with which a function of the application ends: there, a query is started."""
    begin = LINES.index(f"def {function}():")
    return next(number for number in range(begin, len(LINES)) if not LINES[number])


def run(folder: Path, how: str) -> tuple[list[Event], dict[str, str]]:
    """Return the events, and what each way to start a query has raised in the program."""
    done = App([sys.executable, str(APPS / "failing_starts.py"), str(folder), how], {}, folder).end()
    assert done.code == 0, done.err[-3000:]
    words = [line.split() for line in done.out.splitlines() if line.startswith("start_")]
    return file_events(folder / "events"), {way: error for way, error, _ in words}


def of_query(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["attributes"].get("query_name") == name]


def check(events: list[Event], function: str, name: str) -> dict[str, Any]:
    """Check what was told of a query that one of the program's functions could not start; return the failure's."""
    told = of_query(events, name)
    assert statuses(told, "query") == ["CREATED", "FAILED"]
    (failure,) = of_name(told, "JobFailureEvent")
    attributes: dict[str, Any] = failure["attributes"]
    assert attributes["failureLabel.type"] == "USER"
    assert attributes["code.file.path"].endswith("/failing_starts.py")
    assert (attributes["code.line.number"], attributes["code.function.name"]) == (line_of(function), function)
    return attributes


def test_in_the_driver(tmp_path: Path) -> None:
    """Each is told by its name, with what was thrown and where it was started; the program gets what it always got."""
    events, raised = run(tmp_path, "classic")
    assert set(raised) == {*NAMES, "start_unnamed", "start_again"}
    failures = {function: check(events, function, name) for function, name in NAMES.items()}
    failures["start_unnamed"] = check(
        events, "start_unnamed", f"unnamed (failing_starts.py:{line_of('start_unnamed')})"
    )
    for function in ("start_with_option", "start_by_argument", "start_unnamed"):
        assert raised[function] == "AnalysisException"
        assert failures[function]["exception.type"].endswith(".AnalysisException")
    assert raised["start_into_table"] == "Py4JJavaError"
    assert failures["start_into_table"]["exception.type"].endswith("ParentNotDirectoryException")

    # One that runs under that name is not touched by it.
    running = of_query(events, "running")
    assert statuses(running, "query")[0] == "CREATED"
    assert statuses(running, "query")[-1] == "CANCELED"
    assert "FAILED" not in statuses(running, "query")
    (failure,) = of_name(running, "JobFailureEvent")
    assert "already active" in failure["body"]


def test_over_connect(tmp_path: Path) -> None:
    """A client tells the same, with the places in its own program."""
    for needed in ("pandas", "pyarrow", "grpc_status"):
        pytest.importorskip(needed)
    pyspark = pytest.importorskip("pyspark")
    if int(pyspark.__version__.split(".")[0]) < 4:
        pytest.skip("spark-events attaches to Spark Connect from 4.0 on")
    events, raised = run(tmp_path, "connect")
    for function in ("start_with_option", "start_by_argument"):
        assert raised[function] == "AnalysisException"
        assert check(events, function, NAMES[function])["errorClass"] == MODE
    assert check(events, "start_by_argument", "by_argument")["errorClass"] == MODE
    check(events, "start_unnamed", f"unnamed (failing_starts.py:{line_of('start_unnamed')})")

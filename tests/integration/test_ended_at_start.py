"""Applications that are ended while they start, before anything is attached to them: ``run`` tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import file_events, of_name, statuses

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]
APPLICATION = """
import os
import signal

from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_events.sources.attaching import attach, starting


def end(*_, **__):
    os.kill(os.getpid(), getattr(signal, ENDS_BY))


make_java = SparkContext._initialize_context


def initialize_context(self, *args):
    if MOMENT in ("fails", "is caught"):
        raise RuntimeError("the cluster refuses it")
    if MOMENT == "times out":
        raise TimedOut
    java = make_java(self, *args)
    if MOMENT in ("starts", "is broken off"):
        end()
    return java


SparkContext._initialize_context = initialize_context
class TimedOut(BaseException):
    pass


if MOMENT == "attaches":
    attach.compile_meanwhile = end
if MOMENT == "is attached to":
    starting.Start.over = end
try:
    SparkSession.builder.getOrCreate()
except RuntimeError:
    if MOMENT == "fails":
        raise
except TimedOut:
    pass
"""
"""Ends at a moment of its start, by a signal that it sends itself, or does not start."""


AGAIN = """
from pyspark import SparkContext
from pyspark.sql import SparkSession

make_java = SparkContext._initialize_context


def initialize_context(self, *args):
    SparkContext._initialize_context = make_java
    make_java(self, *args).stop()
    raise KeyboardInterrupt


SparkContext._initialize_context = initialize_context
try:
    SparkSession.builder.getOrCreate()
except KeyboardInterrupt:
    SparkContext._active_spark_context = None
SparkSession.builder.getOrCreate().range(3).count()
"""
"""Starts a second time."""


@pytest.mark.parametrize(
    ("moment", "ends_by", "code", "told"),
    [
        ("starts", "SIGTERM", 143, ["CREATED", "FAILED"]),
        pytest.param("starts", "SIGKILL", 137, ["CREATED", "FAILED"], marks=pytest.mark.extended),
        ("attaches", "SIGTERM", 143, ["CREATED", "RUNNING", "FAILED"]),
        pytest.param("fails", "", 1, ["CREATED", "FAILED"], marks=pytest.mark.extended),
        pytest.param("is caught", "", 0, ["CREATED", "FAILED"], marks=pytest.mark.extended),
        pytest.param("is broken off", "SIGINT", 130, ["CREATED", "FAILED"], marks=pytest.mark.extended),
        pytest.param("times out", "", 0, ["CREATED", "FAILED"], marks=pytest.mark.extended),
        pytest.param(
            "is attached to", "SIGKILL", 137, ["CREATED", "RUNNING", "FAILED"], marks=pytest.mark.extended
        ),
    ],
)
def test_its_end_is_told(tmp_path: Path, moment: str, ends_by: str, code: int, told: list[str]) -> None:
    app = tmp_path / "app.py"
    app.write_text(f"MOMENT, ENDS_BY = {moment!r}, {ends_by!r}\n{APPLICATION}")
    conf = {
        "spark.app.name": "early",
        "spark.events.reporter.f.factory.class": "file_log",
        "spark.events.reporter.f.path": str(tmp_path / "events"),
    }
    done = App(cli("run", "--master", "local[2]", str(app)), conf, tmp_path).end(280)

    assert done.code == code, done.err[-2000:]
    events = file_events(tmp_path / "events")
    assert statuses(events, "application") == told
    (failure,) = of_name(events, "JobFailureEvent")
    assert failure["attributes"]["app_name"] == "early"
    assert failure["attributes"].get("exitSignal") == (ends_by or None)
    is_started = moment in ("attaches", "is attached to")
    assert failure["attributes"]["app_id"].startswith("local-" if is_started else "unstarted-")


def test_a_start_that_is_broken_off_and_tried_again(tmp_path: Path) -> None:
    """Ctrl-C that the program catches ends nothing."""
    app = tmp_path / "app.py"
    app.write_text(AGAIN)
    conf = {
        "spark.app.name": "again",
        "spark.events.reporter.f.factory.class": "file_log",
        "spark.events.reporter.f.path": str(tmp_path / "events"),
    }
    done = App(cli("run", "--master", "local[2]", str(app)), conf, tmp_path).end(280)
    assert done.code == 0, done.err[-2000:]
    assert statuses(file_events(tmp_path / "events"), "application") == ["CREATED", "RUNNING", "FINISHED"]


def test_a_start_that_is_broken_off_and_not_tried_again(tmp_path: Path) -> None:
    """The program has done without Spark: there is no application of which an end could be told."""
    app = tmp_path / "app.py"
    app.write_text(AGAIN.rpartition("SparkSession")[0])
    conf = {
        "spark.events.reporter.f.factory.class": "file_log",
        "spark.events.reporter.f.path": str(tmp_path / "events"),
    }
    done = App(cli("run", "--master", "local[2]", str(app)), conf, tmp_path).end(280)
    assert done.code == 0, done.err[-2000:]
    assert not list((tmp_path / "events").glob("*"))

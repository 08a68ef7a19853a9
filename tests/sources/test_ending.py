"""What an exit code, a signal, or a JVM that is gone says about the end of an application."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

import pytest

import spark_events.sources.driver
from spark_events.listeners.application.application import outcome_of
from spark_events.listeners.record_fields import EXECUTOR_ID, EXIT_CODE, TIMESTAMP
from spark_events.listeners.spark_records import (
    APPLICATION_END,
    APPLICATION_EXIT,
    END_CAUSE,
    EXECUTOR_REMOVED,
    INTERACTIVE,
)
from spark_events.sources.driver.ending.last_word import Rest, ending_by_status, ending_of, tell
from spark_events.sources.ending import Ending, ExitMark, by_exit_code, by_signal, by_status, of_lost_jvm
from tests.support.plugins import Collecting, KeepingMetrics
from tests.support.spark_records import T0, application_start, batch_begins, query_started, terminated

JAVA = Path(spark_events.sources.driver.__file__).parent / "java"


@pytest.mark.parametrize(
    ("ending", "code", "name"),
    [
        (by_exit_code(0), 0, None),
        (by_exit_code(3), 3, None),
        (by_exit_code(143), 143, "SIGTERM"),
        (by_exit_code(200), 200, None),
        (by_status(-9), 137, "SIGKILL"),
        (by_status(-6), 134, "SIGABRT"),
        (by_status(-10), 138, "SIGUSR1"),
        (by_status(-(signal.SIGRTMIN + 3)), 128 + signal.SIGRTMIN + 3, "SIGRTMIN+3"),
        (by_exit_code(138), 138, None),
        (by_exit_code(152), 152, "SIGXCPU"),
        (by_status(52), 52, None),
        (by_signal("SIGHUP"), 129, "SIGHUP"),
    ],
)
def test_codes_and_signals(ending: Ending, code: int, name: str | None) -> None:
    """A signal and its exit code belong together, whoever says so."""
    assert (ending.exit_code, ending.exit_signal) == (code, name)


@pytest.mark.parametrize(
    ("status", "said", "code", "name", "message"),
    [
        (-9, "", 137, "SIGKILL", "the driver's JVM is gone (signal 9, exit code 137)"),
        (0, "", None, None, "the driver's JVM is gone (exit code 0)"),
        (None, "", None, None, "the driver's JVM is gone"),
        (50, "", 50, None, "the driver's JVM is gone (exit code 50, after an exception that nothing in it caught)"),
        (52, "… java.lang.OutOfMemoryError: Metaspace\n\tat …", 52, None, "Metaspace"),
        (52, "something else", 52, None, "the JVM's memory was full"),
    ],
)  # fmt: skip
def test_a_jvm_that_is_gone(
    status: int | None, said: str, code: int | None, name: str | None, message: str
) -> None:
    """The program had not ended, so even an exit code of 0 is a failure."""
    outcome = outcome_of(of_lost_jvm(status, said=said).record(1))

    assert outcome.status.value == "FAILED"
    assert outcome.failure is not None
    assert (outcome.exit_code, outcome.exit_signal) == (code, name)
    assert outcome.failure.message == message


@pytest.mark.parametrize(
    ("words", "cause", "code", "name", "assumed"),
    [
        ("exit 4", {"by": "python"}, 4, None, False),
        ("exit 0", {"by": "python"}, 0, None, False),
        ('Current thread 0x1 (most recent call first):\0  File "a.py"', {"by": "python"}, 143, "SIGTERM", False),
        ("exit \0\0", {}, None, None, True),
        ("", {"by": "signal", "signal": "SIGHUP"}, 129, "SIGHUP", False),
        ("", {"by": "python", "exitCode": 137}, 137, "SIGKILL", False),
        ("", {"by": "python"}, None, None, True),
        ("", {"by": "program"}, None, None, True),
        ("", {"by": "spark", "said": "too many", "exitCode": 11}, 11, None, False),
        ("", {}, None, None, True),
    ],
)  # fmt: skip
def test_last_words(words: str, cause: dict[str, str], code: int, name: str | None, assumed: bool) -> None:
    """What Python left comes first, then what its JVM saw; without either it is a guess."""
    ending = ending_of(words, {END_CAUSE: cause})

    assert (ending.exit_code, ending.exit_signal, ending.assumed) == (code, name, assumed)


@pytest.mark.parametrize(
    ("words", "cause", "code", "name"),
    [
        ("", {"by": "program"}, 137, "SIGKILL"),
        ("exit 4", {"by": "program"}, 4, None),
        ("", {"by": "signal", "signal": "SIGHUP"}, 129, "SIGHUP"),
    ],
)
def test_last_words_where_spark_knows_an_exit_code(
    words: str, cause: dict[str, str], code: int, name: str | None
) -> None:
    """On Kubernetes it says that of the driver's Python in its ApplicationEnd: then nothing is a guess."""
    ending = ending_of(words, {END_CAUSE: cause, EXIT_CODE: 137})

    assert (ending.exit_code, ending.exit_signal, ending.assumed) == (code, name, False)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ({"by": "exit", "said": "Max number of executor failures (3) reached", "frames": ""}, True),
        ({"by": "exit", "said": ""}, False),
        ({"by": "python", "said": "old"}, False),
        ({}, False),
    ],
)
def test_a_process_whose_jvm_has_said_why_it_ends(cause: dict[str, str], said: bool) -> None:
    """Spark on Kubernetes gives up with 11, and logs why."""
    ending = ending_by_status(11, {END_CAUSE: cause})

    why = "the driver's JVM is gone: Max number of executor failures (3) reached" if said else None
    assert (ending.exit_code, ending.exit_signal, ending.exception) == (11, None, why)


def test_who_goes_after_an_orderly_stop_has_not_failed() -> None:
    """A program may replace itself by another; of one that is killed instead, nobody knows."""
    stopped, not_stopped = (ending_of("", {END_CAUSE: {"by": by}}) for by in ("program", "python"))

    assert [outcome_of(end.record(1)).status.value for end in (stopped, not_stopped)] == [
        "FINISHED",
        "FAILED",
    ]


def test_an_end_without_a_word_claims_no_cause() -> None:
    """SIGHUP leaves no word either; and the JVM's mark in an event log says the same."""
    said = ending_of("", {}).exception

    assert (
        said
        == "the driver's Python ended without a word: by a signal (SIGKILL, say), os._exit, exec or a crash"
    )
    assert f'"{said}"' in JAVA.joinpath("LastWord.java").read_text()


def test_a_rest_that_is_cut() -> None:
    """A JVM that is killed while it writes leaves half a line: the others count."""
    whole = b'{"Event":"a"}\n{"Event":\n\n1 {"Event":"b"}\n2 {"Event":"SparkListenerApplicationEnd","Timest'
    rest = Rest.read(whole)

    assert ([*rest.known, *rest.records], rest.end) == ([{"Event": "a"}, {"Event": "b"}], {})


def test_a_signal_that_is_meant_is_no_failure() -> None:
    """It cancels; another one still fails."""
    assert outcome_of(by_signal("SIGTERM").record(1), ("SIGTERM",)).status.value == "CANCELED"
    assert outcome_of(by_signal("SIGKILL").record(1), ("SIGTERM",)).status.value == "FAILED"
    assert outcome_of(by_signal("SIGTERM").record(1)).status.value == "FAILED"


@pytest.mark.parametrize(
    ("mark", "withheld"),
    [
        ({"exitCode": 130, "exitSignal": "SIGINT"}, True),
        ({"exitSignal": "SIGTERM"}, True),
        ({"exitCode": 0}, False),
        ({"exitCode": 1, "exception": "KeyError: 'customer'"}, False),
        (None, False),
    ],
)
def test_what_fails_after_a_signal(mark: dict[str, Any] | None, withheld: bool) -> None:
    """A query that fails of Spark's shutdown after a signal ends with its application, and not by itself."""
    exit_mark = ExitMark()
    failed = terminated(exception="java.lang.NullPointerException: session() is null")
    assert not exit_mark.withholds(failed)
    if mark is not None:
        assert exit_mark.withholds({"Event": APPLICATION_EXIT, **mark})

    assert exit_mark.withholds(failed) is withheld
    assert not exit_mark.withholds(terminated())


@pytest.mark.parametrize(
    ("thrown", "withheld"),
    [
        ("org.apache.spark.SparkException: Job 7 cancelled because SparkContext was shut down", True),
        ("java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.", True),
        ("java.lang.IllegalStateException: Shutdown in progress", True),
        ("py4j.Py4JException: Error while sending a command.\n\tat py4j.CallbackClient.sendCommand", True),
        ("py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: KeyError", False),
        ("KeyError: 'customer'", False),
    ],
)
def test_what_fails_because_spark_is_shut_down(thrown: str, withheld: bool) -> None:
    """Whatever ended the process; before that, it is the query's own failure."""
    exit_mark = ExitMark()
    assert not exit_mark.withholds(terminated(exception=thrown))
    exit_mark.withholds({"Event": APPLICATION_EXIT, "exitCode": 3})
    assert exit_mark.withholds(terminated(exception=thrown)) is withheld


def test_an_executor_that_goes_while_the_driver_ends() -> None:
    """In a local-cluster, the workers end before Spark does, and say that they asked the executors to end."""
    exit_mark = ExitMark()
    removed = {"Event": EXECUTOR_REMOVED, EXECUTOR_ID: "0", "Removed Reason": "Command exited with code 143"}
    assert not exit_mark.withholds(removed)
    exit_mark.withholds({"Event": APPLICATION_EXIT, "exitCode": 0})
    assert exit_mark.withholds(removed)


def test_an_exit_code_in_a_mark() -> None:
    """What the JVM writes down of a Python that is gone is a code alone; it means the same signal as live."""
    exit_mark = ExitMark()
    exit_mark.withholds({"Event": APPLICATION_EXIT, "exitCode": 137})
    end = exit_mark.complete({"Event": APPLICATION_END, TIMESTAMP: 1})

    assert end == by_exit_code(137).record(1)


@pytest.mark.parametrize(
    ("mark", "kept"),
    [
        ({"exitCode": 1}, True),
        ({}, True),
        ({"assumed": True}, False),
        ({"exitCode": 3}, False),
    ],
)
def test_where_spark_knows_an_exit_code_too(mark: dict[str, Any], kept: bool) -> None:
    """On Kubernetes it says that of the driver's Python: what that has raised is in the mark, if it is of it."""
    exit_mark = ExitMark()
    exit_mark.withholds({"Event": APPLICATION_EXIT, "exception": "KeyError: 'customer'", **mark})
    end = exit_mark.complete({"Event": APPLICATION_END, TIMESTAMP: 1, EXIT_CODE: 1})

    assert end == by_exit_code(1, "KeyError: 'customer'" if kept else None).record(1)


@pytest.mark.parametrize("python_first", [True, False])
def test_two_marks_of_one_signal(python_first: bool) -> None:
    """After Ctrl-C, Python and the JVM write one each, in any order: Python's has the stack."""
    of_python = {"exitCode": 130, "exitSignal": "SIGINT", "exception": "Traceback\nKeyboardInterrupt"}
    marks = [of_python, {"exitCode": None, "exitSignal": "SIGINT", "exception": None, "assumed": False}]
    exit_mark = ExitMark()
    for mark in marks if python_first else reversed(marks):
        assert exit_mark.withholds({"Event": APPLICATION_EXIT, **mark})
    end = exit_mark.complete({"Event": APPLICATION_END, TIMESTAMP: 1})
    assert end == by_signal("SIGINT", of_python["exception"]).record(1)


def test_the_last_word_has_statuses_for_metrics() -> None:
    """And whether it was a notebook, of which alerts ask; counters would begin again from 0."""
    conf = {"spark.metrics.reporter.m.factory.class": "tests.support.plugins:KeepingMetricsFactory"}
    known = [application_start(**{INTERACTIVE: True}), query_started(1_000), batch_begins(2_000, 1)]
    tell({"conf": conf, "close_timeout_ms": 5_000}, known, [], by_signal("SIGTERM"), T0 + 60_000)
    values = KeepingMetrics.values

    assert {name.rpartition(".")[2] for name in values} == {"status", "interactive"}
    assert [name for name, value in sorted(values.items()) if value] == [
        "app.FAILED.status",
        "app.interactive",
        "app.query.orders.FAILED.status",
    ]


@pytest.mark.parametrize("metrics", ["prometheus", "tests.support.plugins:UnopenedMetricsFactory"])
def test_the_last_word_where_metrics_cannot_be_told(metrics: str) -> None:
    """Another driver may have the port by now: events are told all the same."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        conf = {
            "spark.events.reporter.all.factory.class": "tests.support.plugins:CollectingFactory",
            "spark.metrics.reporter.m.factory.class": metrics,
            "spark.metrics.reporter.m.port": str(other.getsockname()[1]),
        }
        Collecting.instances.clear()
        tell(
            {"conf": conf, "close_timeout_ms": 5_000}, [application_start()], [], by_signal("SIGTERM"), T0 + 1
        )
    assert "application 'app' RUNNING -> FAILED" in [
        event.body for reporter in Collecting.instances for event in reporter.events
    ]


def test_the_last_word_does_not_repeat_what_was_overdue() -> None:
    """The application has warned of it long ago, with an id that what is left does not suffice for."""
    conf = {
        "spark.events.reporter.all.factory.class": "tests.support.plugins:CollectingFactory",
        "spark.events.checkpoint.sla": "3s",
        "spark.events.source.idle-timeout": "3s",
    }
    known = [application_start(), query_started(1_000), batch_begins(2_000, 1)]
    Collecting.instances.clear()
    tell({"conf": conf, "close_timeout_ms": 5_000}, known, [], by_signal("SIGTERM"), T0 + 60_000)
    (reporter,) = Collecting.instances

    assert [event.name for event in reporter.events if "query" in event.body] == [
        "CheckpointEvent",
        "JobFailureEvent",
        "JobStatusChangeEvent",
    ]

"""When the listeners hear of the end of a live application, and what is concluded of how it ended."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from spark_events.listeners.record_fields import EXIT_CODE
from spark_events.listeners.spark_records import APPLICATION_END, END_CAUSE
from spark_events.sources.driver.ending.application_end import (
    ApplicationEnd,
    EndFacts,
    EndState,
    JvmCause,
    Question,
    conclude,
    question,
)
from spark_events.sources.driver.ending.end_inquiry import EndInquiry
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT
from spark_events.sources.ending import Ending

OF_SPARK, OF_PROCESS, OF_JVM = {"Event": "spark"}, {"Event": "process"}, {"Event": "jvm"}


def test_spark_s_end_waits_for_the_plans_of_the_last_statements() -> None:
    end = ApplicationEnd(2.0)

    assert end.by_spark(OF_SPARK, by_signal=False, now_s=10.0) is None
    assert end.state is EndState.HELD
    assert (end.is_late(12.0), end.is_late(12.1)) == (False, True)
    assert end.release() == OF_SPARK
    assert end.state is EndState.TOLD
    assert end.release() is None
    assert not end.is_late(99.0)


@pytest.mark.parametrize(("wait_s", "by_signal"), [(None, False), (2.0, True)])
def test_without_plans_or_time_nothing_waits(wait_s: float | None, by_signal: bool) -> None:
    end = ApplicationEnd(wait_s)

    assert end.by_spark(OF_SPARK, by_signal, 10.0) == OF_SPARK
    assert end.state is EndState.TOLD
    assert end.release() is None


def test_plans_that_are_read_before_spark_s_end_hold_nothing_up() -> None:
    """They come on a queue of the bus of their own, which may be ahead."""
    end = ApplicationEnd(2.0)

    assert end.release() is None
    assert end.state is EndState.RUNS
    assert end.by_spark(OF_SPARK, by_signal=False, now_s=10.0) == OF_SPARK
    assert end.state is EndState.TOLD


def test_what_spark_said_is_better_than_that_its_jvm_is_gone() -> None:
    held, silent = ApplicationEnd(2.0), ApplicationEnd(2.0)
    held.by_spark(OF_SPARK, by_signal=False, now_s=10.0)

    assert held.by_lost_jvm(lambda: OF_JVM) == OF_SPARK
    assert silent.by_lost_jvm(lambda: OF_JVM) == OF_JVM


def test_the_end_of_the_process_replaces_one_that_is_held() -> None:
    end = ApplicationEnd(2.0)
    end.by_spark(OF_SPARK, by_signal=False, now_s=10.0)

    assert end.by_process(lambda: OF_PROCESS) == OF_PROCESS
    assert end.release() is None


def test_an_end_is_told_once() -> None:
    """A signal ends Spark and the process: what Spark says of that may come first, or last."""
    end = ApplicationEnd(2.0)
    end.by_spark(OF_SPARK, by_signal=True, now_s=10.0)

    assert end.by_process(lambda: OF_PROCESS) is None
    assert end.by_lost_jvm(lambda: OF_JVM) is None


RAISED = Ending(1, exception="ValueError: x")
EXITED = Ending(3)
FULL = Ending(1, exception="Py4JJavaError: …\n: java.lang.OutOfMemoryError: Java heap space")


@pytest.mark.parametrize(
    ("cause", "facts", "asked", "ending"),
    [
        (JvmCause("signal", "SIGTERM"), EndFacts(), Question.NOTHING, Ending(143, "SIGTERM")),
        (JvmCause("signal", "SIGINT"), EndFacts(raised="K"), Question.INTERRUPT, Ending(130, "SIGINT", "K")),
        (JvmCause("signal", "SIGINT"), EndFacts(is_kernel=True), Question.NOTHING, Ending()),
        (
            JvmCause("exit", frames="\n\tat a"),
            EndFacts(jvm_status=3),
            Question.JVM_STATUS,
            Ending(3, None, "the driver's JVM is gone (exit code 3)\n\tat a"),
        ),
        (
            JvmCause("exit", frames="\n\tat a"),
            EndFacts(),
            Question.JVM_STATUS,
            Ending(exception="the driver's JVM is gone, ended from within\n\tat a"),
        ),
        (
            JvmCause("exit", frames="\n\tat a", said="Max number of executor failures (3) reached"),
            EndFacts(jvm_status=11),
            Question.JVM_STATUS,
            Ending(11, None, "the driver's JVM is gone: Max number of executor failures (3) reached\n\tat a"),
        ),
        (
            JvmCause("spark", frames="\n\tat a"),
            EndFacts(said="no block"),
            Question.NOTHING,
            Ending(exception="Spark stopped its SparkContext by itself: no block\n\tat a"),
        ),
        (
            JvmCause("spark", frames="\n\tat a", said="removed"),
            EndFacts(said="no block"),
            Question.NOTHING,
            Ending(exception="Spark stopped its SparkContext by itself: removed\n\tat a"),
        ),
        (JvmCause("spark"), EndFacts(raised=FULL.exception, of_program=FULL), Question.OUT_OF_MEMORY, FULL),
        (
            JvmCause("spark"),
            EndFacts(raised=FULL.exception),  # that of another SparkContext, which has begun meanwhile
            Question.OUT_OF_MEMORY,
            Ending(exception="Spark stopped its SparkContext by itself"),
        ),
        (
            JvmCause("spark"),
            EndFacts(raised="SparkContext was shut down", of_program=RAISED),
            Question.OUT_OF_MEMORY,
            Ending(exception="Spark stopped its SparkContext by itself"),
        ),
        (
            JvmCause("spark", said="removed"),
            EndFacts(raised=FULL.exception, of_program=FULL),
            Question.NOTHING,
            Ending(exception="Spark stopped its SparkContext by itself: removed"),
        ),
        (JvmCause(), EndFacts(), Question.PROGRAM, Ending()),
        (JvmCause(), EndFacts(of_program=RAISED), Question.PROGRAM, RAISED),
        (JvmCause(), EndFacts(of_program=EXITED), Question.PROGRAM, EXITED),
    ],
)
def test_what_is_asked_and_concluded(
    cause: JvmCause, facts: EndFacts, asked: Question, ending: Ending
) -> None:
    """A program that stops Spark in good order, and then returns an exit code, has failed."""
    assert question(cause, facts) is asked
    assert conclude(cause, facts) == ending


class _Stopped:
    """A driver whose SparkContext has stopped."""

    stopped = True

    def __init__(self, has_successor: bool) -> None:
        self.has_successor = has_successor


@pytest.mark.parametrize(("has_successor", "code"), [(False, 3), (True, 0)])
def test_an_exit_code_is_the_last_application_s(
    monkeypatch: pytest.MonkeyPatch, has_successor: bool, code: int
) -> None:
    """Of several in one process, the others had ended before."""
    known = threading.Event()
    known.set()
    monkeypatch.setattr(PROCESS_EXIT, "known", known)
    monkeypatch.setattr(PROCESS_EXIT, "code", 3)
    inquiry = EndInquiry(cast(Any, _Stopped(has_successor)), cast(Any, None), None, threading.Event())

    assert inquiry.complete({"Event": APPLICATION_END, EXIT_CODE: 0})[EXIT_CODE] == code


class _LastingJvm:
    """A JVM that ends a while later, and what it was waited for."""

    def __init__(self) -> None:
        self.waited_s: list[float] = []

    def status_of_jvm(self, wait_s: float) -> int | None:
        self.waited_s.append(wait_s)
        return None

    def finish(self) -> None:
        """The bridge in it is told."""


@pytest.mark.parametrize("ends", [True, False])
def test_a_process_that_ends_does_not_wait_long_for_a_jvm_that_ends_itself(ends: bool) -> None:
    """It is not waited for so long itself, and nobody would tell why Spark has given up."""
    stopping, jvm = threading.Event(), cast(Any, _LastingJvm())
    if ends:
        stopping.set()
    inquiry = EndInquiry(cast(Any, _Stopped(False)), jvm, jvm, stopping)

    end = inquiry.complete({"Event": APPLICATION_END, END_CAUSE: {"by": "exit", "said": "too many failures"}})

    assert end["Exception"] == "the driver's JVM is gone: too many failures"
    assert sum(jvm.waited_s) == (5.0 if ends else 10.0)

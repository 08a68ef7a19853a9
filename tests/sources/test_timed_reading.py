"""Gauges of the user's own functions: one that waits takes nothing from others, and no reporter waits for it."""

from __future__ import annotations

import threading

import pytest

from spark_events.api import ApplicationInfo
from spark_events.listeners.settings import ListenerSettings
from spark_events.runtime.registry import Registry
from spark_events.sources.attaching import timed_reading
from spark_events.sources.attaching.own_signals import OwnSignals
from spark_events.sources.attaching.timed_reading import TimedReading
from tests.support.waiting import wait_until


def test_a_function_that_waits(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It has no value and is not called again; what it returns late comes with the next values."""
    monkeypatch.setattr(timed_reading, "LONGEST_S", 0.05)
    begun, freed, calls = threading.Event(), threading.Event(), []

    def read() -> int:
        calls.append(1)
        begun.set()
        freed.wait()
        return len(calls)

    reading = TimedReading("depth", read)
    first = reading()
    begun.wait()
    assert [first, reading(), len(calls)] == [None, None, 1]
    assert caplog.text.count("gauge 'depth': its function takes longer than 0.05 s") == 1

    freed.set()
    wait_until(lambda: reading() is not None, "there is a value")
    wait_until(lambda: reading() == len(calls), "each call has its own")


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
def test_what_it_raises(error: BaseException) -> None:
    def read() -> int:
        raise error

    with pytest.raises(type(error)):
        TimedReading("depth", read)()


def test_several_reporters_wait_for_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_reading, "LONGEST_S", 60)
    begun, freed, calls = threading.Event(), threading.Event(), []

    def read() -> int:
        calls.append(1)
        begun.set()
        freed.wait()
        return 7

    reading = TimedReading("depth", read)
    values: list[object] = []
    threads = [threading.Thread(target=lambda: values.append(reading())) for _ in range(2)]
    threads[0].start()
    begun.wait()
    threads[1].start()
    freed.set()
    for thread in threads:
        thread.join()
    assert values == [7, 7]


def test_a_call_that_another_reporter_has_begun_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has waited for the call before takes its value, and not the next call away."""
    monkeypatch.setattr(timed_reading, "LONGEST_S", 60)
    reading = TimedReading("depth", lambda: 7)
    waits = timed_reading._Call.is_done_in_time
    next_call = object()

    def begun_meanwhile(call: timed_reading._Call) -> bool:
        is_done = waits(call)
        monkeypatch.setattr(reading, "_call", next_call)
        return is_done

    monkeypatch.setattr(timed_reading._Call, "is_done_in_time", begun_meanwhile)
    assert reading() == 7
    assert reading._call is next_call  # type: ignore[comparison-overlap]


def gauge_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "spark-events-gauges"]


def test_one_thread_calls_all_functions_of_a_reporter(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each thread of Python that uses Spark, py4j keeps one of the JVM. It ends with the reporter's own."""
    monkeypatch.setattr(timed_reading, "LONGEST_S", 60)
    before, freed = gauge_threads(), threading.Event()
    callers: list[float | None] = []

    def report() -> None:
        stuck = TimedReading("stuck", freed.wait)  # type: ignore[arg-type]
        callers.extend(TimedReading("depth", threading.get_ident)() for _ in range(5))
        with monkeypatch.context() as patched:
            patched.setattr(timed_reading, "LONGEST_S", 0.05)
            assert stuck() is None
        for _ in range(5):
            callers.append(TimedReading("depth", threading.get_ident)())
            assert stuck() is None

    reporter = threading.Thread(target=report)
    reporter.start()
    reporter.join()
    first, second = callers[:5], callers[5:]
    assert len(set(first)) == len(set(second)) == 1
    assert set(first) != set(second)
    freed.set()
    wait_until(lambda: set(gauge_threads()) <= set(before), "no thread is left")


def test_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of the interpreter: it is called at once."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(timed_reading, "_local", threading.local())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert TimedReading("depth", lambda: 5)() == 5


def test_the_gauge_of_an_attachment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_reading, "LONGEST_S", 60)
    own = OwnSignals(Registry(()), ApplicationInfo("shop", "app-1"), ListenerSettings())

    assert own.gauge("size", lambda: 3, {}).value == 3
    monkeypatch.setattr(timed_reading, "LONGEST_S", 0.05)
    assert own.gauge("depth", threading.Event().wait, {}).value is None  # type: ignore[arg-type]

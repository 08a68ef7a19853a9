"""Handlers of the program's run after a block of ours, and what they raise comes out of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from spark_events.process.held_signals import held_signals

Seen = list[str]


@pytest.fixture
def seen() -> Iterator[Seen]:
    """Give what was seen, in order; the program has handlers of two signals."""
    told: Seen = []

    def alarm(*_: object) -> None:
        told.append("alarm")
        raise TimeoutError("too slow")

    before = (
        signal.signal(signal.SIGALRM, alarm),
        signal.signal(signal.SIGUSR1, lambda *_: told.append("usr1")),
    )
    yield told
    signal.signal(signal.SIGALRM, before[0])
    signal.signal(signal.SIGUSR1, before[1])


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def held(seen: Seen, *signals: signal.Signals, divisor: int = 1) -> None:
    """Send this process signals while they are held, and note when that is done."""
    with held_signals():
        for number in signals:
            send(number)
        seen.append("done")
        1 // divisor


def test_they_run_after_it(seen: Seen) -> None:
    handlers = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGUSR1)
    with pytest.raises(TimeoutError, match="too slow"):
        held(seen, signal.SIGUSR1, signal.SIGALRM, signal.SIGALRM)
    assert seen == ["done", "usr1", "alarm"]
    assert (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGUSR1)) == handlers


def test_one_that_raises_keeps_no_other_from_running(seen: Seen) -> None:
    with pytest.raises(TimeoutError, match="too slow"):
        held(seen, signal.SIGALRM, signal.SIGUSR1)
    assert seen == ["done", "alarm", "usr1"]


def test_blocks_within_blocks(seen: Seen) -> None:
    with held_signals():
        with held_signals():
            send(signal.SIGUSR1)
        seen.append("inner")
    assert seen == ["inner", "usr1"]


def test_an_error_of_the_block_itself(seen: Seen) -> None:
    with pytest.raises(ZeroDivisionError):
        held(seen, signal.SIGUSR1, divisor=0)
    assert seen == ["done", "usr1"]


def test_a_handler_that_is_set_within_it_stays(seen: Seen) -> None:
    with held_signals():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def test_ctrl_c_is_not_held(seen: Seen) -> None:
    with pytest.raises(KeyboardInterrupt):
        held(seen, signal.SIGINT)
    assert not seen


def test_in_another_thread(seen: Seen) -> None:
    """No handler runs there, and none may be set."""

    def hold() -> None:
        with held_signals():
            seen.append("held")

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert seen == ["held"]

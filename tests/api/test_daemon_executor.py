from __future__ import annotations

import queue
import subprocess
import sys
import threading
from typing import Any

import pytest

from spark_events.api.toolkit.daemon_executor import DaemonExecutor

_NEVER_RETURNS = """
import threading
from spark_events.api.toolkit.daemon_executor import DaemonExecutor
DaemonExecutor(1, "io").submit(threading.Event().wait)
print("done")
"""


def test_work_that_never_returns_lets_the_process_end() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _NEVER_RETURNS], capture_output=True, text=True, timeout=280, check=True
    )
    assert run.stdout == "done\n"


def test_as_many_at_once_as_there_are_threads() -> None:
    executor = DaemonExecutor(3, "io")
    together = threading.Barrier(3)
    futures = [executor.submit(together.wait, 30) for _ in range(3)]
    assert sorted(future.result(30) for future in futures) == [0, 1, 2]
    executor.shutdown()


def test_a_thread_that_has_just_taken_work_is_not_idle() -> None:
    taken, go = threading.Event(), threading.Event()

    class HoldsTheFirst(queue.SimpleQueue):  # type: ignore[type-arg]
        def get(self, *args: Any, **kwargs: Any) -> Any:
            work = super().get(*args, **kwargs)
            if not taken.is_set():
                taken.set()
                go.wait(60)
            return work

    executor = DaemonExecutor(2, "io")
    executor._waiting = HoldsTheFirst()
    first = executor.submit(str, "first")
    assert taken.wait(30)
    assert executor.submit(str, "second").result(30) == "second"
    go.set()
    assert first.result(30) == "first"
    executor.shutdown()


def test_what_it_was_given_is_done_before_it_is_shut_down() -> None:
    executor = DaemonExecutor(1, "io")
    done: list[int] = []
    for number in range(20):
        executor.submit(done.append, number)
    executor.shutdown(wait=True)
    assert done == list(range(20))
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(print)


def test_what_the_work_raises_is_the_futures() -> None:
    executor = DaemonExecutor(1, "io")
    with pytest.raises(ZeroDivisionError):
        executor.submit(lambda: 1 / 0).result(30)
    executor.shutdown()


def test_waiting_work_can_be_cancelled() -> None:
    executor = DaemonExecutor(1, "io")
    go, running = threading.Event(), threading.Event()

    def hold() -> None:
        running.set()
        go.wait(30)

    first = executor.submit(hold)
    assert running.wait(30)
    second = executor.submit(print)
    executor.shutdown(wait=False, cancel_futures=True)
    go.set()
    assert first.result(30) is None
    assert second.cancelled()


def test_waiting_work_that_a_thread_takes_first() -> None:
    """While it is being cancelled; neither that nor shutting down waits for what is no longer there."""
    executor = DaemonExecutor(1, "io")
    go = threading.Event()
    executor.submit(go.wait, 30)
    second = executor.submit(print)
    waiting = executor._waiting

    class Taken:
        def empty(self) -> bool:
            was = waiting.empty()
            self._let_it_be_taken()
            return was

        def get_nowait(self) -> object:
            self._let_it_be_taken()
            return waiting.get_nowait()

        def _let_it_be_taken(self) -> None:
            go.set()
            second.result(30)

        def __getattr__(self, name: str) -> Any:
            return getattr(waiting, name)

    executor._waiting = Taken()  # type: ignore[assignment]
    shutting = threading.Thread(target=executor.shutdown, kwargs={"cancel_futures": True}, daemon=True)
    shutting.start()
    shutting.join(30)
    assert not shutting.is_alive()


def test_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that is refused is not done later; with a thread that is there already, all is done."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    done: list[int] = []
    executor = DaemonExecutor(2, "io")
    with monkeypatch.context() as short:
        short.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            executor.submit(done.append, 1)
    go = threading.Event()
    executor.submit(go.wait, 30)
    with monkeypatch.context() as short:
        short.setattr(threading.Thread, "start", start)
        last = executor.submit(done.append, 2)
    go.set()
    assert last.result(30) is None
    executor.shutdown()
    assert done == [2]

"""Calls of code that may block forever: on threads that never keep a process from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from typing import ParamSpec, TypeVar

from spark_events.api.toolkit.own_process import OwnProcess

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")
_Work = tuple["Future[object]", Callable[[], object]]


class DaemonExecutor(Executor):
    """An executor like ``ThreadPoolExecutor``, but Python does not wait for its threads at exit.

    Args:
        max_workers: how many threads there are at most; each starts when there is work for it.
        name: what the threads are called.
    """

    def __init__(self, max_workers: int, name: str) -> None:
        self._max_workers = max_workers
        self._name = name
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        # How much accepted work has not ended. The queue's size does not show whether a thread is idle: one
        # that has just taken work from the queue does not count as busy yet.
        self._unfinished = 0
        self._lock = threading.Lock()
        self._closed = False

    def submit(
        self, fn: Callable[_Args, _Result], /, *args: _Args.args, **kwargs: _Args.kwargs
    ) -> Future[_Result]:
        """Run a function on one of the threads.

        Raises:
            RuntimeError: it has been shut down, or has no thread and cannot start one.
        """
        future: Future[_Result] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the executor is shut down, because its listener is closed")
            if len(self._threads) < min(self._unfinished + 1, self._max_workers):
                self._start_thread()
            self._waiting.put((future, lambda: fn(*args, **kwargs)))  # type: ignore[arg-type]
            self._unfinished += 1
        return future

    def _start_thread(self) -> None:
        name = f"{self._name}_{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the machine has no more of them: those that there are do the work
            if not self._threads:
                raise
        else:
            self._threads.append(thread)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work; with ``wait``, return when all accepted work is done."""
        with self._lock:
            self._closed = True
        if cancel_futures:
            self._cancel_waiting()
        for _ in self._threads:
            self._waiting.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _cancel_waiting(self) -> None:
        with suppress(queue.Empty):  # its threads take work, too
            while work := self._waiting.get_nowait():
                work[0].cancel()

    def _work(self) -> None:
        while work := self._waiting.get():
            _run(*work)
            with self._lock:
                self._unfinished -= 1


def call_within(
    seconds: float, call: Callable[[], _Result], executor: DaemonExecutor | None = None
) -> _Result:
    """Call a function on another thread, and wait for it for a limited time.

    A call that takes longer is abandoned on its daemon thread.

    Args:
        seconds: how long to wait, in s.
        call: what to call.
        executor: provides the thread; None uses a new thread.

    Returns:
        What it returns.

    Raises:
        TimeoutError: it takes longer.
        BaseException: what it raises.
    """
    caller = executor or DaemonExecutor(1, "spark-events-call")
    future = caller.submit(call)
    if executor is None:
        caller.shutdown(wait=False)
    if not wait([future], seconds).done:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return future.result()


def _run(future: Future[object], call: Callable[[], object]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        with OwnProcess():
            result = call()
        future.set_result(result)
    except BaseException as error:  # the future's result raises it
        future.set_exception(error)

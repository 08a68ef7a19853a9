"""Gauges that a function of the user's reads, which may wait for a lock, say: nobody waits long for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from spark_events.runtime.log_once import logger

LONGEST_S = 1.0
Value = float | int | None
_local = threading.local()


class TimedReading:
    """A function that returns what another one returns, or None while that takes too long.

    The other one runs on another thread. What it returns late is returned the next time.

    Args:
        name: the gauge's, for the log.
        read: the other function.
    """

    def __init__(self, name: str, read: Callable[[], Value]) -> None:
        self._name = name
        self._read = read
        self._call: _Call | None = None
        self._is_told = False

    def __call__(self) -> Value:
        """Return the value; None if there is none in time.

        Raises:
            BaseException: what the function raises.
        """
        call = self._call
        if call is None:
            call = self._call = _Call(self._read)
            try:
                call.begin(_caller().calls)
            except RuntimeError:  # at the end of the interpreter, or where there may be no more threads
                self._call = None
                return self._read()
        if not call.is_done_in_time():
            call.leave()
            self._tell()
            return None
        if self._call is call:  # another reporter may have begun the next one
            self._call = None
        return call.value()

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            logger.warning(
                "gauge %r: its function takes longer than %g s; there is no value until it returns (said "
                "once). Let it return what another thread has found out",
                self._name,
                LONGEST_S,
            )


class _Call:
    """One call of the function; several reporters may wait for it."""

    def __init__(self, read: Callable[[], Value]) -> None:
        self._read = read
        self._value: Value = None
        self._error: BaseException | None = None
        self._calls: _Calls | None = None
        self._until = time.monotonic() + LONGEST_S
        self._done = threading.Event()

    def begin(self, calls: _Calls) -> None:
        """Let the thread of these calls make this one."""
        self._calls = calls
        calls.put(self)

    def leave(self) -> None:
        """Let this thread's next calls be made by another one than that which is still at this."""
        caller: _Caller | None = getattr(_local, "caller", None)
        if caller is not None and caller.calls is self._calls:
            _local.caller = None

    def is_done_in_time(self) -> bool:
        """Wait, as long as that is not too long, and return whether the function has returned."""
        return self._done.wait(max(0.0, self._until - time.monotonic()))

    def value(self) -> Value:
        """Return what the function has returned.

        Raises:
            BaseException: what it has raised.
        """
        if self._error is not None:
            raise self._error
        return self._value

    def run(self) -> None:
        """Call the function."""
        try:
            self._value = self._read()
        except BaseException as error:
            self._error = error
        self._done.set()


_Calls = SimpleQueue[_Call | None]


class _Caller:
    """A thread that calls functions for the thread that made it, and ends with that.

    It lasts, for py4j keeps a thread of the JVM for each of Python's that uses Spark.

    Raises:
        RuntimeError: there can be no thread.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.calls: _Calls = SimpleQueue()
        threading.Thread(target=_run_all, args=(self.calls,), name="spark-events-gauges", daemon=True).start()

    def __del__(self) -> None:
        self.calls.put(None)


def _caller() -> _Caller:
    """Return the thread that calls functions for this one; a forked child has none."""
    caller: _Caller | None = getattr(_local, "caller", None)
    if caller is None or caller.process != os.getpid():
        caller = _local.caller = _Caller()
    return caller


def _run_all(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call.run()
        del call  # or the last one would be kept, with what it has raised

"""Gauges that a function of the user's reads, which may wait for a lock, say: nobody waits long for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from spark_events.runtime.log_once import logger

LONGEST_S = 1.0
Value = float | int | None


class TimedReading:
    """A function that returns what another one returns, or None while that takes too long.

    The other one runs on a thread of its own. What it returns late is returned the next time.

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
        call = self._call or _Call(self._read)
        if self._call is None:
            self._call = call
            try:
                call.start()
            except RuntimeError:  # at the end of the interpreter, or where there may be no more threads
                self._call = None
                return self._read()
        if not call.is_done_in_time():
            self._tell()
            return None
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
        self._until = time.monotonic() + LONGEST_S
        self._done = threading.Event()

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: there can be no thread.
        """
        threading.Thread(target=self._run, name="spark-events-gauge", daemon=True).start()

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

    def _run(self) -> None:
        try:
            self._value = self._read()
        except BaseException as error:
            self._error = error
        self._done.set()

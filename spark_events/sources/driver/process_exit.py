"""Finds out how the driver's Python process ends, and leaves a mark of that in the event log.

Spark never learns of an exception or an exit code in Python: it records a failure like a success.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from types import FrameType, TracebackType
from typing import Any

from spark_events.jvm.janino import JavaUnit, new
from spark_events.listeners.long_texts import cut
from spark_events.runtime.log_once import logger

INTERRUPTED = 130
"""The exit code after Ctrl-C, as a shell gives it."""
_MAIN = threading.main_thread().ident
_JAVA = JavaUnit("spark_events.sources.driver", "io.sparkevents", ("ApplicationExit",))


class ProcessExit:
    """Remembers what ended the main thread.

    Attributes:
        raised: the unhandled exception as Python prints it; None while there is none.
        code: the exit code, if known.
        known: set when either of them is known.
        raising_at_stop: whether the main thread was raising or handling an exception when it called
            ``SparkContext.stop``; None if it has not called that since the last SparkContext was started.
    """

    def __init__(self) -> None:
        self.raised: str | None = None
        self.code: int | None = None
        self.known = threading.Event()
        self.raising_at_stop: bool | None = None
        self._noting = False
        self._installed = False

    def install(self) -> None:
        """Listen for unhandled exceptions; the previous hook is still called."""
        if self._installed:
            return
        self._installed = True
        previous = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            if not _goes_on_after_errors(sys._getframe()):
                self.note(error, trace)
            previous(kind, error, trace)

        sys.excepthook = hook

    def note(self, error: BaseException, trace: TracebackType | None) -> None:
        """Remember an exception that nobody handled."""
        self._noting = True  # formatting takes a while, and Python no longer reports the exception
        self.raised = "".join(traceback.format_exception(type(error), error, trace))
        self.code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        self.known.set()

    def note_exit_code(self, code: object) -> None:
        """Remember what ``sys.exit`` was called with."""
        self.code = exit_code_of(code)
        self.known.set()

    def main_thread_is_raising(self) -> bool:
        """Return whether an exception is carrying the main thread out of a ``try``.

        It is so in ``try: … finally: spark.stop()`` after a failure; Spark sees an orderly stop there.
        """
        if self.raising_at_stop is not None:
            return self.raising_at_stop
        if self._noting:
            return True
        current: object = sys._current_exceptions().get(_MAIN)  # type: ignore[arg-type]
        if isinstance(current, tuple):  # type, exception and trace, before Python 3.12
            current = current[1]
        if isinstance(current, SystemExit):
            return bool(exit_code_of(current.code))
        return current is not None


class ExitMark:
    """The marks of one application; without an event log there are none.

    A mark is an event of our own, posted by ``spark-events run``. Spark's event log stores it like any other,
    and its History Server ignores it.

    Args:
        spark_context: PySpark's SparkContext, just started.
    """

    def __init__(self, spark_context: Any) -> None:
        self._context = spark_context
        self._class: Any = None
        if spark_context.getConf().get("spark.eventLog.enabled", "false").strip().lower() == "true":
            self._class = _JAVA.load(spark_context._jvm, "ApplicationExit")

    def leave_at_stop(self) -> bool:
        """Mark a ``SparkContext.stop``, and return whether the main thread is raising an exception."""
        error = sys.exc_info()[1] if threading.current_thread() is threading.main_thread() else None
        if error is None or (isinstance(error, SystemExit) and not exit_code_of(error.code)):
            self.leave(0)
            return False
        self.leave(exit_code_of(error.code) if isinstance(error, SystemExit) else None, error)
        return True

    def leave(self, exit_code: int | None, error: BaseException | None = None) -> None:
        """Leave a mark; the last one before the application's end counts.

        Args:
            exit_code: of the process; None if not known yet.
            error: what was raised, unless it was ``sys.exit``.
        """
        if self._class is None or self._context._jsc is None:
            return
        trace = None
        if error is not None and not isinstance(error, SystemExit):
            trace = cut("".join(traceback.format_exception(error)))
        try:
            mark = new(self._context._gateway, self._class, exit_code, trace)
            self._context._jsc.sc().listenerBus().post(mark)
        except Exception as problem:  # the JVM may be gone already; the application ends as it would
            logger.debug("could not write the end of the application to the event log: %r", problem)


def exit_code_of(code: object) -> int:
    """Return the exit code of a process that calls ``sys.exit`` with this."""
    return code if isinstance(code, int) else 0 if code is None else 1


def _goes_on_after_errors(frame: FrameType | None) -> bool:
    """Return whether an unhandled exception is only shown at a prompt, so that the process goes on.

    Args:
        frame: the frame in which the exception is shown.
    """
    if sys.flags.interactive or os.environ.get("PYTHONINSPECT"):
        return True
    if not hasattr(sys, "ps1"):
        return False
    if not hasattr(sys.modules["__main__"], "__file__"):
        return True
    while frame is not None:  # a prompt within a program: code.interact
        if frame.f_globals.get("__name__") == "code":
            return True
        frame = frame.f_back
    return False


PROCESS_EXIT = ProcessExit()

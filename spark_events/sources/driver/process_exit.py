"""Learns how the driver's Python process ends: Spark hears nothing of an exception or an exit code."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from types import FrameType, TracebackType

INTERRUPTED = 130
"""The exit code after Ctrl-C, as a shell gives it."""
_MAIN = threading.main_thread().ident


class ProcessExit:
    """Remembers what ended the main thread.

    Attributes:
        raised: the unhandled exception as Python prints it; None while there is none.
        code: the exit code, where it is known.
    """

    def __init__(self) -> None:
        self.raised: str | None = None
        self.code: int | None = None
        self.known = threading.Event()
        self._noting = False
        self._raising_at_stop: bool | None = None
        self._installed = False

    def install(self) -> None:
        """Listen for unhandled exceptions; the hook that was there is still called."""
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
        self._noting = True  # formatting it takes a while, and Python takes it as over by now
        self.raised = "".join(traceback.format_exception(type(error), error, trace))
        self.code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        self.known.set()

    def note_exit_code(self, code: object) -> None:
        """Remember what ``sys.exit`` was called with."""
        self.code = exit_code_of(code)
        self.known.set()

    def note_stop(self, error: BaseException | None) -> None:
        """Remember what the main thread was raising or handling when it called ``SparkContext.stop``."""
        self._raising_at_stop = error is not None

    def forget_stop(self) -> None:
        """Forget that stop: another SparkContext has been started."""
        self._raising_at_stop = None

    @property
    def stop_is_known(self) -> bool:
        """Whether ``note_stop`` was called."""
        return self._raising_at_stop is not None

    def main_thread_is_raising(self) -> bool:
        """Tell whether the main thread is on its way out of a ``try`` by an exception.

        So it is in ``try: … finally: spark.stop()`` after a failure: Spark sees an orderly stop there.
        """
        if self._raising_at_stop is not None:
            return self._raising_at_stop
        if self._noting:
            return True
        current: object = sys._current_exceptions().get(_MAIN)  # type: ignore[arg-type]
        if isinstance(current, tuple):  # type, exception and trace, before Python 3.12
            current = current[1]
        if isinstance(current, SystemExit):
            return bool(exit_code_of(current.code))
        return current is not None


def exit_code_of(code: object) -> int:
    """Return the exit code of a process that calls ``sys.exit`` with this."""
    return code if isinstance(code, int) else 0 if code is None else 1


def _goes_on_after_errors(frame: FrameType | None) -> bool:
    """Tell whether an exception that nobody handles is shown at a prompt, and the process goes on.

    Args:
        frame: where the exception is shown.
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

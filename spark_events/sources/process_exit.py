"""Learns how the driver's Python process ends: Spark hears nothing of an exception or an exit code."""

from __future__ import annotations

import sys
import threading
import traceback
from types import TracebackType

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
        self._installed = False

    def install(self) -> None:
        """Listen for unhandled exceptions; the hook that was there is still called."""
        if self._installed:
            return
        self._installed = True
        previous = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self.note(error, trace)
            previous(kind, error, trace)

        sys.excepthook = hook

    def note(self, error: BaseException, trace: TracebackType | None) -> None:
        """Remember an exception that nobody handled."""
        self._noting = True  # formatting it takes a while, and Python takes it as over by now
        self.raised = "".join(traceback.format_exception(type(error), error, trace))
        self.code = 130 if isinstance(error, KeyboardInterrupt) else 1
        self.known.set()

    def note_exit_code(self, code: object) -> None:
        """Remember what ``sys.exit`` was called with."""
        self.code = code if isinstance(code, int) else 0 if code is None else 1
        self.known.set()

    def main_thread_is_raising(self) -> bool:
        """Tell whether the main thread is on its way out of a ``try`` by an exception.

        So it is in ``try: … finally: spark.stop()`` after a failure: Spark sees an orderly stop there.
        """
        if self._noting:
            return True
        current: object = sys._current_exceptions().get(_MAIN)  # type: ignore[arg-type]
        if isinstance(current, tuple):  # type, exception and trace, before Python 3.12
            current = current[1]
        return current is not None and not isinstance(current, SystemExit)


PROCESS_EXIT = ProcessExit()

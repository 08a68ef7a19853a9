"""Finds out how the driver's Python process ends, and leaves marks of that.

Spark never learns of an exception or an exit code in Python: it records a failure like a success.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from spark_events.api.wrong_values import text_of
from spark_events.jvm.janino import new
from spark_events.listeners.failures.python_errors import TRACEBACK
from spark_events.listeners.long_texts import cut
from spark_events.process.exits import take_back, tell_exits_to, tell_held
from spark_events.process.program_end import (
    MAIN_THREAD,
    goes_on_after_errors,
    has_left,
    is_over,
)
from spark_events.process.replaced_functions import replace_function
from spark_events.runtime.foreign_errors import with_type
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.bridge import DriverBridge
from spark_events.sources.driver.bridge_java import JAVA
from spark_events.sources.ending import Ending, by_exit_code, by_signal
from spark_events.sources.interactive import kernel_is_shutting_down

INTERRUPTED = 130
"""The exit code after Ctrl-C, as a shell gives it."""


class ProcessExit:
    """Remembers what ended the main thread.

    Attributes:
        raised: the unhandled exception as Python prints it; None while there is none.
        code: the exit code, if known.
        known: set when either of them is known.
        raising_at_stop: whether the main thread was raising or handling an exception when it called
            ``SparkContext.stop``, or had failed before that; None if nobody has called that since the last
            SparkContext was started.
        word: the descriptor of the file for a last word; None where nobody would read it.
        hand_on: takes the unhandled exception at once, as Python prints it; None where nobody wants it.
    """

    def __init__(self) -> None:
        self.raised: str | None = None
        self.code: int | None = None
        self.known = threading.Event()
        self.raising_at_stop: bool | None = None
        self.word: int | None = None
        self.hand_on: Callable[[str], None] | None = None
        self._said: str | None = None
        self._process = 0
        self._noting = False
        self._dumps_at_sigterm = False
        self._installed = False

    def install(self) -> None:
        """Listen for unhandled exceptions and exit codes; whatever was called before still is."""
        if self._installed:
            return
        self._installed = True
        self._install_hook()
        tell_exits_to(self.note_exit_code)
        _note_abrupt_exits(self)

    @property
    def ending(self) -> Ending:
        """How the program ended, as far as it is known: well, if nothing else is."""
        if self.raised is not None and self.code == INTERRUPTED:
            return by_signal("SIGINT", self.raised)
        if self.raised is not None:
            return Ending(self.code, exception=self.raised)
        return by_exit_code(self.code or 0, self._said)

    @property
    def has_failed(self) -> bool:
        """Whether an exception, or an exit code other than 0, was noted."""
        return self.raised is not None or bool(self.code)

    def leave_word_in(self, descriptor: int | None) -> None:
        """Leave a word in a file if the process ends so abruptly that nothing of Python's runs any more.

        That is so after ``os._exit``, and after SIGTERM where the program does not handle it: then the word
        is a stack. The signal still does what it did.

        Args:
            descriptor: of the file; None leaves no more words.
        """
        former, self.word = self.word, descriptor
        self._process = os.getpid()
        if descriptor is not None:
            self._dumps_at_sigterm = self._dumps_at_sigterm or not _is_caught(signal.SIGTERM)
        if self._dumps_at_sigterm:
            _at_sigterm(descriptor)
        self._dumps_at_sigterm = self._dumps_at_sigterm and descriptor is not None
        if former is not None:
            os.close(former)

    def _install_hook(self) -> None:
        previous = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            if is_over():  # or else a program shows what it has handled
                if isinstance(error, SystemExit):
                    take_back(error)
                self.note_unhandled(error, trace)
            previous(kind, error, trace)

        replace_function(sys, "excepthook", hook)

    def leave_word(self, word: str) -> None:
        """Leave a word, unless this is a forked child, which has inherited the file."""
        if self.word is not None and os.getpid() == self._process:
            with contextlib.suppress(OSError):
                os.write(self.word, word.encode())

    def note_unhandled(self, error: BaseException, trace: TracebackType | None) -> None:
        """Remember an exception that nobody handled, unless it is only shown at a prompt."""
        if not goes_on_after_errors(sys._getframe()):
            self._remember(error, trace)

    def note_unseen(self) -> None:
        """Called when the program is over: remember what ended it if nobody was told of that.

        ``sys.excepthook`` may be another by now, and something may hold the exception of ``sys.exit``.
        """
        error = getattr(sys, "last_value", None)
        if error is not None and not self.known.is_set() and has_left(error):
            self.note_unhandled(error, error.__traceback__)
        if not self.known.is_set():
            tell_held()

    def _remember(self, error: BaseException, trace: TracebackType | None) -> None:
        self._noting = True  # formatting takes a while, and Python no longer reports the exception
        self.raised = _shown(error, trace)
        self.code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        self.known.set()
        if self.hand_on is not None:
            self.hand_on(self.raised)

    def note_exit_code(self, code: object) -> None:
        """Remember what ``sys.exit`` was called with, unless it is known what has ended the program."""
        if self.known.is_set():
            return
        self.code, self._said = exit_code_of(code), said_by_exit(code)
        self.known.set()

    def main_thread_is_raising(self) -> bool:
        """Return whether an exception is carrying the main thread out of a ``try``.

        It is so in ``try: … finally: spark.stop()`` after a failure; Spark sees an orderly stop there.
        """
        if self.raising_at_stop is not None:
            return self.raising_at_stop
        if self._noting:
            return True
        current: object = sys._current_exceptions().get(MAIN_THREAD)  # type: ignore[arg-type]
        if isinstance(current, tuple):  # type, exception and trace, before Python 3.12
            current = current[1]
        if isinstance(current, SystemExit):
            return bool(exit_code_of(current.code))
        return current is not None


class ExitMarks:
    """The marks of one application, for its event log and for ourselves.

    A mark is an event of our own. Spark's event log stores it like any other, and its History Server ignores
    it.

    Args:
        spark_context: PySpark's SparkContext, just started.
    """

    def __init__(self, spark_context: Any) -> None:
        self._context = spark_context
        self._class: Any = JAVA.load(spark_context._jvm, "ApplicationExit")
        self._kernel_ends = False

    def leave_at_stop(self) -> bool:
        """Mark a ``SparkContext.stop``, and return whether the program is raising, or has failed before."""
        if is_over():  # in a function of ``atexit``, say
            PROCESS_EXIT.note_unseen()
            if PROCESS_EXIT.has_failed:
                self.leave(PROCESS_EXIT.ending)
                return True
        ending = ending_by(raised_here())
        self.leave(ending)
        return ending != Ending(0)

    def leave_if_kernel_ends(self, bridge: DriverBridge) -> None:
        """Mark the end if this process is a kernel of Jupyter that is shut down, and tell the JVM.

        The kernel ends the JVM by SIGTERM, which would count as a failure in the event log.
        """
        if self._kernel_ends or not kernel_is_shutting_down():
            return
        self._kernel_ends = True
        self.leave(Ending(0))
        bridge.java.kernelEnds()

    def leave(self, ending: Ending) -> None:
        """Leave a mark; the last one before the application's end counts."""
        if self._context._jsc is None:
            return
        try:
            mark = new(
                self._context._gateway,
                self._class,
                ending.exit_code,
                ending.exit_signal,
                cut(ending.exception) if ending.exception else None,
                ending.assumed,
            )
            self._context._jsc.sc().listenerBus().post(mark)
        except Exception as problem:  # the JVM may be gone already; the application ends as it would
            logger.debug("could not write the end of the application to the event log: %r", problem)


def raised_here() -> BaseException | None:
    """Return what the main thread is raising or handling; None for nothing, and in any other thread."""
    return failure_of(sys.exc_info()[1]) if threading.current_thread() is threading.main_thread() else None


def failure_of(error: BaseException | None) -> BaseException | None:
    """Return what is raised; None for what closes a generator of which nobody wants the rest."""
    return None if isinstance(error, GeneratorExit) else error


def ending_by(error: BaseException | None) -> Ending:
    """Return the ending of a program that raises this while it ends its application; it may be caught yet."""
    if error is None:
        return Ending(0)
    if isinstance(error, SystemExit):
        return by_exit_code(exit_code_of(error.code), said_by_exit(error.code))
    return Ending(exception=cut(_shown(error, error.__traceback__)), assumed=True)


def _shown(error: BaseException, trace: TracebackType | None) -> str:
    """Return an exception as Python shows it, or at least its type and what it says."""
    try:
        return "".join(traceback.format_exception(type(error), error, trace))
    except Exception:  # of a property of the program's own class, such as its __cause__
        return with_type(error)


def exit_code_of(code: object) -> int:
    """Return the exit code of a process that calls ``sys.exit`` with this, from 0 to 255."""
    if not isinstance(code, int):
        return 0 if code is None else 1
    # The system keeps eight bits: of -1 it makes 255, of 256, 0. Python makes -1 of what is no long of C's.
    return (code if -(2**63) <= code < 2**63 else -1) & 0xFF


def said_by_exit(code: object) -> str | None:
    """Return what a program says that ends with ``sys.exit("no orders")``, as Python prints exceptions."""
    if code is None or isinstance(code, int):
        return None
    said = text_of(code)
    return said if TRACEBACK in said else f"{TRACEBACK}\nSystemExit: {said}"


def _note_abrupt_exits(known: ProcessExit) -> None:
    """Replace ``os._exit``, whose exit code nobody else in this process learns of."""
    at_once = os._exit

    def leave_at_once(status: int) -> NoReturn:
        known.leave_word(f"exit {exit_code_of(status)}")
        at_once(status)

    replace_function(os, "_exit", leave_at_once)


def _is_caught(number: signal.Signals) -> bool:
    """Return whether anything handles a signal, faulthandler and other code in C included.

    Python knows of its own handlers alone; elsewhere than on Linux, those are all that is found.
    """
    if signal.getsignal(number) is not signal.SIG_DFL:
        return True
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return False
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def _at_sigterm(descriptor: int | None) -> None:
    """Let SIGTERM write a stack into a file before it does what it does, without any code of Python's."""
    if not hasattr(faulthandler, "register") or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    if descriptor is None:
        faulthandler.unregister(signal.SIGTERM)
        return
    faulthandler.register(signal.SIGTERM, file=descriptor, all_threads=False, chain=True)
    # A child is not the driver: its end is no word of this process.
    os.register_at_fork(after_in_child=lambda: faulthandler.unregister(signal.SIGTERM))


PROCESS_EXIT = ProcessExit()

"""``sys.exit``, which alone knows what a process exits with: it is replaced once spark_events is imported.

Python looks it up before it evaluates what it is called with. In ``sys.exit(main())``, where ``main``
attaches, a function that came with that would come too late.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from spark_events.process.program_end import MAIN_THREAD, has_ended, is_over
from spark_events.process.replaced_functions import replace_function

_WORKERS = ("pyspark.daemon", "pyspark.worker")
_ATTRIBUTE = "_noted_by_spark_events"
_tell: Callable[[object], None] | None = None
_carried: weakref.WeakSet[_Status] = weakref.WeakSet()


class _Status:
    """What ``sys.exit`` exits with. The exception that carries it has it, and lets go of it in the end.

    The interpreter does that before the ``atexit`` functions run, and no frame of Python's is there then; so
    it is known whether the exception has ended the program, or was caught. One that another exit answers lets
    go of it later than that. What else holds the exception, as asyncio does, ``tell_held`` looks for.
    """

    def __init__(self, status: object) -> None:
        self.status = status
        _carried.add(self)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return int, ()  # where the exception is unpickled, nothing is noted

    def __del__(self) -> None:
        ends = threading.get_ident() == MAIN_THREAD and sys._getframe().f_back is None
        if ends and _tell is not None:
            _tell(self.status)


def _noting(leave: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does what another one does, and notes with what it leaves."""

    def leave_noted(*arguments: Any) -> Any:
        if arguments and isinstance(arguments[0], tuple):
            return leave(*arguments)  # before Python 3.12, it would mean something else once it is caught
        try:
            return leave(*arguments)
        except SystemExit as end:
            # Functions of ``atexit`` end nothing. Another thread does if the main one raises its exception.
            if not is_over():
                vars(end)[_ATTRIBUTE] = _Status(end.code)
            raise

    setattr(leave_noted, _ATTRIBUTE, True)
    return leave_noted


def take_back(end: SystemExit) -> None:
    """Forget what an exit ends the program with: Python has only shown it, and goes on at a prompt."""
    vars(end).pop(_ATTRIBUTE, None)


def tell_held() -> None:
    """Called when the program is over: tell what ended it if something holds the exception."""
    statuses = list(_carried)
    if not statuses or _tell is None:
        return
    attributes = [holder for holder in gc.get_referrers(*statuses) if type(holder) is dict]
    for end in gc.get_referrers(*attributes):
        if isinstance(end, SystemExit) and has_ended(end):
            _tell(end.code)
            return


def tell_exits_to(tell: Callable[[object], None]) -> None:
    """Have a function called, before those of ``atexit``, with what ``sys.exit`` ends the program with."""
    global _tell
    _tell = tell
    replace_exit()


def replace_exit() -> None:
    """Replace ``sys.exit``, ``exit`` and ``quit``, but in PySpark's workers, which end in their own ways.

    What they did before is still done, and the exception is Python's own, with one more attribute.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if getattr(main, "name", None) in _WORKERS:
        return
    if not hasattr(sys.exit, _ATTRIBUTE):
        replace_function(sys, "exit", _noting(sys.exit))
    quitter = getattr(sys.modules.get("_sitebuiltins"), "Quitter", None)  # not with python -S
    if quitter is not None and not hasattr(quitter.__call__, _ATTRIBUTE):
        quitter.__call__ = _noting(quitter.__call__)

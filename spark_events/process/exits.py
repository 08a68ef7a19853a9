"""``sys.exit``, which alone knows what a process exits with: it is replaced once spark_events is imported.

Python looks it up before it evaluates what it is called with. In ``sys.exit(main())``, where ``main``
attaches, a function that came with that would come too late.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from spark_events.process.replaced_functions import replace_function

_MAIN_THREAD = threading.main_thread().ident
_WORKERS = ("pyspark.daemon", "pyspark.worker")
_tell: Callable[[object], None] | None = None


class _Exit(SystemExit):
    """What ``sys.exit`` raises: it knows whether it ended the program, or was caught.

    The interpreter lets go of it before the ``atexit`` functions run, and no frame of Python's is there then.
    """

    def __reduce__(self) -> tuple[type[SystemExit], tuple[object, ...]]:
        return SystemExit, self.args

    def __del__(self) -> None:
        ends = threading.get_ident() == _MAIN_THREAD and sys._getframe().f_back is None
        if ends and _tell is not None:
            _tell(self.code)


# A traceback of it shall read as it would without us.
_Exit.__name__ = _Exit.__qualname__ = "SystemExit"
_Exit.__module__ = "builtins"


def _raise_exit(status: object = None, /) -> NoReturn:
    # Other threads end nothing, and ``threading`` passes over a SystemExit only if it is exactly that.
    raise _Exit(status) if threading.get_ident() == _MAIN_THREAD else SystemExit(status)


def _quit(self: object, code: object = None) -> NoReturn:
    """What ``exit()`` and ``quit()`` do, with which Python's own would leave past ``sys.exit``."""
    with contextlib.suppress(Exception):  # as there: a shell, such as IDLE, waits for it
        sys.stdin.close()
    _raise_exit(code)


def tell_exits_to(tell: Callable[[object], None]) -> None:
    """Have a function called, before those of ``atexit``, with what ``sys.exit`` ends the program with."""
    global _tell
    _tell = tell
    replace_exit()


def replace_exit() -> None:
    """Replace ``sys.exit``, ``exit`` and ``quit``, but in PySpark's workers, which end in their own ways."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if sys.exit is _raise_exit or getattr(main, "name", None) in _WORKERS:
        return
    replace_function(sys, "exit", _raise_exit)
    quitter = sys.modules.get("_sitebuiltins")
    if quitter is not None:  # not with python -S
        quitter.Quitter.__call__ = _quit

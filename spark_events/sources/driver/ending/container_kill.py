"""What YARN does to a driver's Python whose JVM is gone: it ends what is left of the container at once."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_OF_YARN = "CONTAINER_ID"
"""The environment variable that YARN sets in its containers."""
_DEFAULT, _IGNORE = 0, 1


@contextmanager
def outliving_sigterm() -> Iterator[None]:
    """Let YARN's SIGTERM pass by while the end is told; SIGKILL follows, by default after 250 ms.

    Not where the program handles the signal, nor outside of YARN, where somebody may want this process gone.
    Python lets only its main thread do this, which may be anywhere in the program.
    """
    if not os.environ.get(_OF_YARN) or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    change = ctypes.CDLL(None).signal
    change.argtypes, change.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    change(signal.SIGTERM, _IGNORE)
    try:
        yield
    finally:
        # Not what was there before: the word that SIGTERM would leave is not needed any more.
        change(signal.SIGTERM, _DEFAULT)

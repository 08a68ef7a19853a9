"""Calls that are interrupted, at each line in turn, as by a signal handler or a destructor."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import spark_events

_OURS = str(spark_events.__path__[0])
_LONGEST_S = 30.0


def interrupted_everywhere(call: Callable[[], Any], interruption: Callable[[], Any]) -> Iterator[int]:
    """Make a call again and again, with an interruption before its first line, its second, and so on,
    whichever of our functions, or of Python's locks, they are in.

    Yields:
        How many lines came before, after each call.
    """
    for before in itertools.count():
        if not _interrupted(call, interruption, before):
            return
        yield before


def _interrupted(call: Callable[[], Any], interruption: Callable[[], Any], before: int) -> bool:
    """Return whether the call had so many lines; it fails where it waits for itself."""
    left = before
    was_there = False
    place = ""

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left, was_there, place
        if not frame.f_code.co_filename.startswith((_OURS, threading.__file__)):
            return None
        if event == "line" and not was_there:
            if left == 0:
                was_there = True
                place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                interruption()  # untraced, as it is called by a trace function
            left -= 1
        return trace

    raised: list[BaseException] = []

    def run() -> None:
        sys.settrace(trace)
        try:
            call()
        except BaseException as error:
            raised.append(error)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_LONGEST_S)
    assert not thread.is_alive(), f"it waits for itself when it is interrupted at {place}"
    if raised:
        raise raised[0]
    return was_there

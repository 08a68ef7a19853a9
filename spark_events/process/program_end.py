"""Whether the program of this process is over, or goes on after an exception that it did not handle."""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType

_OUTERMOST = ("<module>", "_run_module_as_main")
MAIN_THREAD = threading.main_thread().ident


def is_over() -> bool:
    """Return whether the main thread runs no module any more, but what Python calls at its end."""
    frame = sys._current_frames().get(MAIN_THREAD)  # type: ignore[arg-type]
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame is None or frame.f_code.co_name not in _OUTERMOST


def has_left(error: BaseException) -> bool:
    """Return whether an exception has left the outermost frame: no prompt within a program lets it do so."""
    trace = error.__traceback__
    return trace is not None and trace.tb_frame.f_back is None


def has_ended(error: BaseException) -> bool:
    """Return whether an exception has left the program, now that this is over, and nothing caught it.

    What caught it went on, and returned in the end, or raised another. Before Python 3.12, an exception does
    not know of the frames that it has left since it was handled last, but these know each other.
    """
    trace = error.__traceback__
    if trace is None:
        return False
    frame = trace.tb_frame
    left = frame.f_lasti == trace.tb_lasti or _raised_again(frame) or _raised(frame, error)
    while frame.f_back is not None:
        frame = frame.f_back
        left = (left and _last_of(frame)[0] not in ("RETURN_VALUE", "RETURN_CONST")) or _raised(frame, error)
    return left and frame.f_code.co_name in _OUTERMOST


def _raised_again(frame: FrameType) -> bool:
    """Return whether a frame has ended by what it had caught: by ``raise`` alone, or behind a ``finally``."""
    name, argument = _last_of(frame)
    return name == "RERAISE" or (name, argument) == ("RAISE_VARARGS", 0)


def _raised(frame: FrameType, error: BaseException) -> bool:
    """Return whether a frame has ended by ``raise`` of a variable that is the exception."""
    if _last_of(frame) != ("RAISE_VARARGS", 1):
        return False
    from dis import get_instructions  # which few programs need

    before = [each for each in get_instructions(frame.f_code) if each.offset < frame.f_lasti][-1]
    variables = {**frame.f_globals, **frame.f_locals}
    return before.opname.startswith("LOAD_") and variables.get(str(before.argval)) is error


def _last_of(frame: FrameType) -> tuple[str, int]:
    """Return the last instruction of a frame, and its argument."""
    from opcode import opname  # which few programs need

    code, last = frame.f_code.co_code, frame.f_lasti
    return opname[code[last]], code[last + 1]


def goes_on_after_errors(frame: FrameType | None) -> bool:
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

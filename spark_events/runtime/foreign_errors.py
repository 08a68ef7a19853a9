"""Errors of others' code: of any class, and maybe themselves raising when they are asked for their text."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import CodeType

from spark_events.api import SparkEventsError


def describe(error: BaseException) -> str:
    """Return an error as one line: our own by their message, others with their type. Never raises."""
    return text_of(error) if isinstance(error, SparkEventsError) else with_type(error)


def with_type(error: BaseException) -> str:
    """Return an error's type and message. Never raises."""
    return f"{type(error).__name__}: {text_of(error)}"


def text_of(error: BaseException) -> str:
    """Return an error's message. Never raises."""
    try:
        return str(error)
    except BaseException as problem:  # sys.exit, too, says no more than that
        return f"<its str() raised {type(problem).__name__}>"


def wants_out(error: BaseException) -> bool:
    """Return whether an error that came out of a plugin's code is to end the process.

    Ctrl-C is, and what the application's handler of a signal raises, which Python calls in the middle of
    whatever its main thread does. ``sys.exit`` in a module that is a program is not.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    if isinstance(error, Exception):
        return False
    handlers = {signal.getsignal(number) for number in signal.valid_signals()}
    handlers.discard(signal.default_int_handler)
    known = {getattr(handler, "__code__", None) for handler in handlers if callable(handler)}
    return None in known or any(code in known for code in _codes(error))  # None: it cannot be recognized


def _codes(error: BaseException) -> Iterator[CodeType]:
    """Yield what ran, from the one who caught the error to the one who raised it."""
    place = error.__traceback__
    while place is not None:
        yield place.tb_frame.f_code
        place = place.tb_next

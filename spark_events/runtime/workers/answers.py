"""What a reporter's answer asks for, whatever its author has put into it."""

from __future__ import annotations

import inspect

from spark_events.api import PartlyRefused, RetryLater
from spark_events.runtime.foreign_errors import describe, text_of

LONGEST_REASON = 1_000
"""So much of a reason is logged, and written with each record that is refused, in characters."""
_MOST = 2**31


def reason_of(answer: BaseException) -> str:
    """Return why a reporter cannot deliver, as it says itself."""
    return text_of(answer)[:LONGEST_REASON]


def described(error: BaseException) -> str:
    """Return what a reporter has raised as one line; see ``describe``."""
    return describe(error)[:LONGEST_REASON]


def pause_ms_of(later: RetryLater) -> int | None:
    """Return the pause that is asked for, in ms; None where that is none, or no number."""
    return _number(later, "after_ms")


def tries_of(later: RetryLater) -> int | None:
    """Return how many tries in a row are the most; None where there may be any number, or it is none."""
    return _number(later, "tries")


def refused_of(partly: PartlyRefused, most: int = _MOST, unsaid: int | None = None) -> int:
    """Return how many records are refused.

    Args:
        partly: the answer.
        most: how many there are.
        unsaid: what counts where it does not say how many; None for all.
    """
    count = _number(partly, "count")
    if count is None:
        count = most if unsaid is None else unsaid
    return max(0, min(count, most))


def _number(answer: BaseException, name: str) -> int | None:
    """Return a number that a destination may have answered as a text, as in a header of HTTP."""
    try:
        return max(-_MOST, min(int(getattr(answer, name)), _MOST))
    except Exception:  # it may be of any class; one that does not call ours has no such attribute
        return None


def check_done(answer: object) -> None:
    """Check that a call has done its work: one of a coroutine or of a generator only returns an object.

    Raises:
        TypeError: it has not.
    """
    if inspect.isawaitable(answer) or inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        if inspect.iscoroutine(answer):
            answer.close()  # or Python warns of it
        raise TypeError(
            f"it returned a {type(answer).__name__}, which nobody runs; expected a plain function"
        )

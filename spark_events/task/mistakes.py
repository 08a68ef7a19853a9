"""What is wrong with a call of the user's code: said once, and never raised, for the job comes first."""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from typing import Any

from spark_events.task.current import current_report
from spark_events.task.values import number_of

_MOST_SAID = 100
_LOG = logging.getLogger("spark_events.task")
_said: set[str] = set()


def say_once(what: str, why: str) -> None:
    """Log a mistake, unless there was one of the same kind in this process.

    Args:
        what: its kind.
        why: a sentence.
    """
    if what in _said or len(_said) >= _MOST_SAID:
        return
    _said.add(what)
    with suppress(Exception):  # a handler or a filter may be the user's own
        _LOG.warning("%s: %s (said once; more are counted)", what, why)


def drop_value(what: str, value: Any, why: str = "is no finite number") -> None:
    """Count a value that cannot be reported, and say it once.

    Args:
        what: it was for.
        value: only its type is shown.
        why: it cannot.
    """
    if (report := current_report()) is not None:
        report.drop("values")
    say_once(what, f"what was given ({type(value).__name__}) {why}; it is dropped")


def finite_of(value: Any) -> float | None:
    """Return a finite number as Python's own, whichever library it is of; None if it is none."""
    try:
        number = number_of(value)
        if number is None and hasattr(type(value), "__float__"):  # Decimal, say, but no text
            number = float(value)
        return number if number is not None and math.isfinite(number) else None
    except Exception:  # a library may raise anything; an int may exceed a float's range
        return None

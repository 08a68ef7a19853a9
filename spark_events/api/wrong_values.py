"""Values that cannot be reported: dropped, counted by kind, and logged once, for the job comes first.

Attributes:
    KINDS: of what is counted, with what is wrong with it.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spark_events.api.toolkit.read_only import ReadOnly

KINDS = {
    "metric": "a metric was given no number that it can have, or had the name of another one",
    "series": "a metric had more values of labels, or the application more metrics, than there may be, or a "
    "reporter could not tell a series from another one",
    "event": "an event, or a part of one, was of a type that cannot be reported",
    "span": "a span, or a part of one, was of a type that cannot be reported, or it ended before it began",
}
LARGEST = 2**63 - 1
"""The largest whole number of OTLP, and of most JSON."""
_DEEPEST = 2
_PLAIN = frozenset((str, int, float, bool))
_LOG = logging.getLogger("spark_events")
_lock = threading.RLock()
_counts = dict.fromkeys(KINDS, 0)


def _renew_lock() -> None:
    """Take another lock: a forked child has no thread that would release one that was held at the fork."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def counts() -> dict[str, int]:
    """Return how much was dropped in this process so far, by kind."""
    return dict(_counts)


def count_dropped(kind: str) -> int:
    """Count a value that is dropped, and return how many of its kind were dropped so far.

    Args:
        kind: one of ``KINDS``: metric, series, event or span; see ``spark_values_dropped_total``.
    """
    with _lock:
        _counts[kind] += 1
        return _counts[kind]


def drop(kind: str, where: str, value: Any, why: str) -> None:
    """Count a value that is dropped; the first of a kind is logged.

    Args:
        kind: one of ``KINDS``.
        where: it was handed over.
        value: only its type is shown.
        why: it is dropped.
    """
    if count_dropped(kind) == 1:
        with suppress(Exception):  # a handler or a filter may be the user's own
            name = type(value).__name__
            _LOG.warning(
                "%s: what was given (%s) %s; it is dropped (repeats are counted, not logged)",
                where,
                name,
                why,
            )


def finite_of(value: Any) -> float | int | None:
    """Return a finite number as Python's own, whichever library it is of; None if it is none, or a text."""
    try:
        own = value.item() if callable(getattr(value, "item", None)) else value
        if isinstance(own, int):
            return int(own) if math.isfinite(own) else None
        return number if hasattr(type(own), "__float__") and math.isfinite(number := float(own)) else None
    except Exception:  # a library may raise anything; an int may exceed a float's range
        return None


def time_of(value: Any) -> int | None:
    """Return a time in ms as Python's own, as one that can at least be written; None if it is none."""
    number = finite_of(value)
    return int(max(-LARGEST, min(LARGEST, number))) if number is not None else None


def attributes_of(given: Any, kind: str, where: str) -> dict[str, Any]:
    """Return attributes without those that are None; what is of no type that can be reported becomes text.

    Args:
        given: a mapping.
        kind: see ``drop``, for what is not a mapping.
        where: it was handed over.
    """
    try:
        pairs = list(given.items())
    except Exception:
        drop(kind, where, given, "has no attributes")
        return {}
    return {
        key if type(key) is str else text_of(key): value if type(value) is str else plain_of(value)
        for key, value in pairs
        if value is not None
    }


def beside(variables: Mapping[str, str], attributes: Mapping[str, Any]) -> ReadOnly[str, Any]:
    """Return attributes as they are reported beside variables: one with the name of a variable is renamed."""
    if attributes.keys().isdisjoint(variables):
        return ReadOnly(attributes)
    return ReadOnly(
        {f"exported_{key}" if key in variables else key: value for key, value in attributes.items()}
    )


def is_a(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return whether a value is of a type; never raises, as asking a proxy for its class may."""
    try:
        return isinstance(value, kind)
    except Exception:
        return False


def plain_of(value: Any) -> Any:
    """Return a value as a type that can be reported: Python's own numbers and texts, or a tuple.

    A tuple may have tuples; what is in those, and no number or text, becomes text: it may contain itself.
    """
    return _plain_of(value, _DEEPEST)


def _plain_of(value: Any, deeper: int) -> Any:
    if type(value) in _PLAIN:
        return text_of(value) if type(value) is int and not -LARGEST <= value <= LARGEST else value
    if deeper and is_a(value, (tuple, list)):
        try:
            return tuple(_plain_of(each, deeper - 1) for each in value)
        except Exception:  # of the user's own iterator
            return text_of(value)
    if is_a(value, str):
        return text_of(value)
    number = finite_of(value)
    return text_of(value) if number is None else number


def text_of(value: Any) -> str:
    """Return a text of whatever was given."""
    try:
        if isinstance(value, str):
            return str.__str__(value)
        return str(value).encode("utf-8", "replace").decode()
    except Exception as error:  # it is the user's own method
        return f"<its str raised {type(error).__name__}>"

"""The metrics of a task, from the end of its line: without parsing the JSON where its form is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import orjson

METRICS_KEY = b'"Task Metrics":{'
_READ, _WRITE = "Shuffle Read Metrics", "Shuffle Write Metrics"
WANTED = (
    ("", "Executor Deserialize Time"),
    ("", "Executor Run Time"),
    ("", "Executor CPU Time"),
    ("", "JVM GC Time"),
    ("", "Result Serialization Time"),
    ("", "Memory Bytes Spilled"),
    ("", "Disk Bytes Spilled"),
    (_READ, "Fetch Wait Time"),
    (_READ, "Remote Bytes Read"),
    (_READ, "Local Bytes Read"),
    (_READ, "Total Records Read"),
    (_WRITE, "Shuffle Bytes Written"),
    ("Input Metrics", "Bytes Read"),
    ("Input Metrics", "Records Read"),
    ("Output Metrics", "Bytes Written"),
)
"""The group and the name of each metric that is used."""
_DIGITS = b"0123456789"
_NO_NUMBERS = bytes(set(range(256)) - set(_DIGITS + b","))
_MOST_FORMS = 64
_Pick = Callable[[Sequence[int]], tuple[int, ...]]
_forms: dict[bytes, _Pick] = {}


def metrics_of(tail: bytes) -> tuple[int, ...] | None:
    """Return the ``WANTED`` metrics of a task; those that its Spark version lacks are 0.

    Args:
        tail: the end of a TaskEnd's line, from its ``METRICS_KEY`` on.

    Returns:
        None if that is not JSON, or not of numbers.
    """
    # Without its digits, each line of a log is the same, but for some of old versions.
    pick = _forms.get(tail.translate(None, _DIGITS))
    try:
        if pick is not None:
            return pick(_numbers(tail))
        metrics = orjson.loads(b"{" + tail)["Task Metrics"]
        _learn(tail, metrics)
        return wanted_metrics(metrics)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def wanted_metrics(metrics: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the ``WANTED`` metrics of a task; those that its Spark version lacks are 0."""
    return tuple(
        int((metrics.get(group) or {} if group else metrics).get(name) or 0) for group, name in WANTED
    )


def _numbers(tail: bytes) -> list[int]:
    """Return all numbers, and at last a 0 for metrics that are not there."""
    digits = tail.translate(None, _NO_NUMBERS).replace(b",,", b",").strip(b",")
    numbers: list[int] = orjson.loads(b"[%b,0]" % digits)
    return numbers


def _learn(tail: bytes, metrics: Mapping[str, Any]) -> None:
    """Remember at which places lines of this form have the wanted metrics, if they have no other digits."""
    names = list(_names_of_numbers(metrics))
    try:
        known = len(names) == len(_numbers(tail)) - 1
    except ValueError:  # digits in a text, with a 0 in front
        return
    if known and len(_forms) < _MOST_FORMS:
        places = {name: place for place, name in enumerate(names)}
        _forms[tail.translate(None, _DIGITS)] = itemgetter(*(places.get(wanted, -1) for wanted in WANTED))


def _names_of_numbers(metrics: Mapping[str, Any], group: str = "") -> Iterator[tuple[str, str]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from _names_of_numbers(value, f"{group}/{name}" if group else name)
        elif isinstance(value, int) and value >= 0:
            yield group, name

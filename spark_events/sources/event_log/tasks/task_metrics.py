"""The metrics of a task, from the end of its line: without parsing the JSON where its form is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

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
_NO_NUMBERS = bytes(set(range(256)) - set(_DIGITS + b",\n"))
_LINE_ENDS_AS_COMMAS = bytes.maketrans(b"\n", b",")
_MOST_FORMS = 64


class _Form(NamedTuple):
    """Where the numbers stand in lines that are the same but for their digits.

    Attributes:
        total: how many numbers there are.
        places: which of them each of the ``WANTED`` is; -1 for metrics that are not there.
    """

    total: int
    places: tuple[int, ...]


_forms: dict[bytes, _Form] = {}


def metrics_of(tail: bytes) -> tuple[int, ...] | None:
    """Return the ``WANTED`` metrics of a task; those that its Spark version lacks are 0.

    Args:
        tail: the end of a TaskEnd's line, from its ``METRICS_KEY`` on.

    Returns:
        None if that is not JSON, or not of numbers.
    """
    # Without its digits, each line of a log is the same, but for some of old versions.
    form = _forms.get(tail.translate(None, _DIGITS))
    try:
        if form is not None:
            numbers = [*_numbers(tail), 0]
            return tuple(numbers[place] for place in form.places)
        metrics = orjson.loads(b"{" + tail)["Task Metrics"]
        _learn(tail, metrics)
        return wanted_metrics(metrics)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def metrics_of_many(tails: Sequence[bytes]) -> Sequence[Sequence[int]] | None:
    """Return the ``WANTED`` metrics of many tasks, by columns.

    Args:
        tails: the ends of the lines of their TaskEnds.

    Returns:
        None if not all have the same form, or one that is not known: each has to be read by itself.
    """
    without_digits = tails[0].translate(None, _DIGITS)
    form, joined = _forms.get(without_digits), b"\n".join(tails)
    if form is None or joined.translate(None, _DIGITS) != b"\n".join([without_digits] * len(tails)):
        return None
    try:
        numbers = _numbers(joined)
    except ValueError:
        return None
    if len(numbers) != len(tails) * form.total:
        return None
    return [numbers[place :: form.total] if place >= 0 else [0] * len(tails) for place in form.places]


def wanted_metrics(metrics: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the ``WANTED`` metrics of a task; those that its Spark version lacks are 0."""
    return tuple(
        int((metrics.get(group) or {} if group else metrics).get(name) or 0) for group, name in WANTED
    )


def _numbers(tails: bytes) -> list[int]:
    """Return all numbers in the ends of one or more lines."""
    digits = tails.translate(_LINE_ENDS_AS_COMMAS, _NO_NUMBERS).replace(b",,", b",").strip(b",")
    numbers: list[int] = orjson.loads(b"[%b]" % digits)
    return numbers


def _learn(tail: bytes, metrics: Mapping[str, Any]) -> None:
    """Remember at which places lines of this form have the wanted metrics, if they have no other digits."""
    names = list(_names_of_numbers(metrics))
    try:
        known = len(names) == len(_numbers(tail))
    except ValueError:  # digits in a text, with a 0 in front
        return
    if known and len(_forms) < _MOST_FORMS:
        places = {name: place for place, name in enumerate(names)}
        form = _Form(len(names), tuple(places.get(wanted, -1) for wanted in WANTED))
        _forms[tail.translate(None, _DIGITS)] = form


def _names_of_numbers(metrics: Mapping[str, Any], group: str = "") -> Iterator[tuple[str, str]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from _names_of_numbers(value, f"{group}/{name}" if group else name)
        elif isinstance(value, int) and value >= 0:
            yield group, name

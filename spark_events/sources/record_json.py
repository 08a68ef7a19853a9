"""Parses the JSON of one of Spark's records."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import orjson

from spark_events.listeners.long_texts import whole_characters

_DIGITS_OF_64_BITS = 18


class NoRecordError(ValueError):
    """JSON that is not an object."""


def load(line: bytes | str) -> dict[str, Any]:
    """Return the record of a line.

    Java's strings may contain lone surrogates, which Spark writes as escapes: they become U+FFFD.

    Raises:
        NoRecordError: it is JSON, and no object.
        ValueError: it is not JSON, or not UTF-8.
    """
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        escape = rb"\u" if isinstance(line, bytes) else r"\u"
        if escape not in line:  # type: ignore[operator]
            raise
        record = _load_with_halves(line, error)
    if type(record) is not dict:
        raise NoRecordError(f"a {type(record).__name__}, not an object")
    return record


def _load_with_halves(line: bytes | str, error: orjson.JSONDecodeError) -> Any:
    try:
        record = json.loads(
            line, parse_constant=_reject_constant, parse_int=_number_in_range, parse_float=_number_in_range
        )
        return _with_whole_characters(record)
    except (ValueError, RecursionError):
        raise error from None


def _with_whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {whole_characters(key): _with_whole_characters(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_whole_characters(item) for item in value]
    return value


def _number_in_range(text: str) -> int | float:
    """Return a number as orjson does: beyond 64 bits as a float, and none beyond that."""
    if text.lstrip("-").isdigit() and len(text) <= _DIGITS_OF_64_BITS:
        return int(text)
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]}… is beyond a float's range")
    return number


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

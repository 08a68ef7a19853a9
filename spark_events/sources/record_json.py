"""Parses the JSON of one of Spark's records."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import orjson

from spark_events.listeners.long_texts import whole_characters


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
        return _with_whole_characters(json.loads(line, parse_constant=_reject_constant))
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


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

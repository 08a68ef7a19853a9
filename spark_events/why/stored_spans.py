"""Reads the spans of applications from stored files: of a file log, or of a collector's file exporter."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from spark_events.api import ConfigError
from spark_events.diagnosis.time_use import KEYS
from spark_events.spark.file_systems import open_file_system

_MARK = b'"timeUse.'
_ATTRIBUTES = "attributes"


class ApplicationSpan(NamedTuple):
    """The span of an application that has ended: when, in ms since the epoch, and its attributes."""

    begun_ms: int
    ended_ms: int
    attributes: Mapping[str, Any]


def application_spans(files: Sequence[str]) -> Iterator[ApplicationSpan]:
    """Yield the spans of applications that say where their time went.

    Args:
        files: paths or fsspec URLs of files with a JSON object a line; compressed ones have a known ending.

    Raises:
        ConfigError: a file cannot be read.
    """
    for name in files:
        file_system, path = open_file_system(name, name)
        try:
            with file_system.open(path, "rb", compression="infer") as file:
                for line in file:
                    if _MARK in line:
                        yield from _spans_of(line)
        except (OSError, ValueError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise ConfigError(f"{name}: cannot be read: {error}") from error


def _spans_of(line: bytes) -> Iterator[ApplicationSpan]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return  # half a line, at the end of a file that is being written
    if not isinstance(record, dict):
        return
    for span in _otlp_spans(record) if "resourceSpans" in record else [record]:
        attributes = span.get(_ATTRIBUTES) or {}
        if any(key in attributes for key in KEYS.values()):
            yield ApplicationSpan(_ms(span, "startTimeUnixNano"), _ms(span, "endTimeUnixNano"), attributes)


def _otlp_spans(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for of_resource in request["resourceSpans"]:
        for of_scope in of_resource.get("scopeSpans") or ():
            for span in of_scope.get("spans") or ():
                pairs = span.get(_ATTRIBUTES) or ()
                yield {**span, _ATTRIBUTES: {pair["key"]: _value(pair.get("value") or {}) for pair in pairs}}


def _value(value: Mapping[str, Any]) -> Any:
    """Return the value of an attribute of OTLP's JSON, in which integers are strings."""
    if "arrayValue" in value:
        return [_value(each) for each in value["arrayValue"].get("values") or ()]
    if "intValue" in value:
        return int(value["intValue"])
    return next(iter(value.values()), None)


def _ms(span: Mapping[str, Any], key: str) -> int:
    return int(span.get(key) or 0) // 1_000_000

"""Reads the spans of applications from stored files: of a file log, or of a collector's file exporter."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import orjson

from spark_events.api import ConfigError
from spark_events.api.errors import needs_extra
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_secrets_of
from spark_events.diagnosis.times.cores_model import CORES, CRITICAL_PATH, ESTIMATES, Estimate
from spark_events.diagnosis.times.ledger import ACCOUNTS
from spark_events.history.reading.packed_ends import zstandard_has_no_end
from spark_events.history.reading.stored_forms import otlp_value
from spark_events.spark.file_systems import open_file_system

_MARK = b'"timeUseMs.'
_ATTRIBUTES = "attributes"
_LONGEST_LINE = 16 << 20
_MOST_MS = 2**53
_LATEST_NS = 2**63 - 1
_TORN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_NOT_AS_WRITTEN = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
_PARTS = frozenset(account.attribute for account in ACCOUNTS.values())


class ApplicationSpan(NamedTuple):
    """The span of an application that has ended.

    Attributes:
        app_name, app_id: of the application.
        begun_ms, ended_ms: when, in ms since the epoch.
        parts: where its time went, in ms, by the names of the parts.
        critical_path_ms: see ``critical_path_ms``; None if that is not known.
        estimates: see ``estimates``.
    """

    app_name: str
    app_id: str
    begun_ms: int
    ended_ms: int
    parts: Mapping[str, int]
    critical_path_ms: int | None
    estimates: Sequence[Estimate]


class Skipped(NamedTuple):
    """How many lines of each file were skipped.

    Attributes:
        torn: those that are not JSON objects.
        odd: those with a span that is not as it was written.
        cut: files that cannot be unpacked to their end.
    """

    torn: Counter[str]
    odd: Counter[str]
    cut: list[str]


def application_spans(files: Sequence[str], skipped: Skipped) -> Iterator[ApplicationSpan]:
    """Yield the spans of applications that say where their time went.

    Args:
        files: paths or fsspec URLs of files with a JSON object a line; compressed ones have a known ending.
        skipped: counts the lines that cannot be used.

    Raises:
        ConfigError: a file cannot be read.
    """
    for name in files:
        try:
            with _unpacked(name) as file:
                for line in _lines(file, skipped, name):
                    if _MARK in line:
                        yield from _spans_of(line, skipped, name)
        except _TORN:
            skipped.cut.append(name)
        except (OSError, ValueError) as error:
            reason = text_without_secrets_of(name, str(error))
            raise ConfigError(f"{path_without_secrets(name)}: cannot be read: {reason}") from error


@contextmanager
def _unpacked(name: str) -> Iterator[IO[bytes]]:
    """Open a file; of one that ends in the middle, there is what comes before.

    Raises:
        EOFError: at the end, for Zstandard that ends in the middle.
        MissingExtraError: there is no Zstandard.
    """
    file_system, path = open_file_system(name, name)
    if not name.endswith(".zst"):
        with file_system.open(path, "rb", compression="infer") as file:
            yield file
        return
    with needs_extra("eventlog", "zstandard", "reading .zst files"):
        import zstandard
    with file_system.open(path, "rb") as packed:
        is_cut = zstandard_has_no_end(packed)
        packed.seek(0)
        unpacker = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        try:
            yield io.BufferedReader(unpacker)
        except zstandard.ZstdError as error:
            raise EOFError(str(error)) from error
        if is_cut:
            raise EOFError("it ends in the middle")


def _lines(file: IO[bytes], skipped: Skipped, name: str) -> Iterator[bytes]:
    """Yield the lines of a file but for those that are too long, of which memory has no more than a part."""
    while line := file.readline(_LONGEST_LINE):
        if line.endswith(b"\n") or len(line) < _LONGEST_LINE:
            yield line
            continue
        skipped.torn[name] += 1
        while line and not line.endswith(b"\n"):
            line = file.readline(_LONGEST_LINE)


def _spans_of(line: bytes, skipped: Skipped, name: str) -> Iterator[ApplicationSpan]:
    try:
        record = orjson.loads(line.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError:
        record = None
    if not isinstance(record, dict):  # half a line, say, at the end of a file that is being written
        skipped.torn[name] += 1
        return
    try:
        spans = list(_otlp_spans(record)) if "resourceSpans" in record else [record]
        yield from [_span_of(span) for span in spans if not _PARTS.isdisjoint(span[_ATTRIBUTES] or ())]
    except _NOT_AS_WRITTEN:
        skipped.odd[name] += 1


def _span_of(span: Mapping[str, Any]) -> ApplicationSpan:
    attributes = span[_ATTRIBUTES]
    critical_path = attributes.get(CRITICAL_PATH)
    critical_path_ms = None if critical_path is None else _whole(critical_path)
    cores, times_ms = (list(map(_whole, attributes.get(key) or ())) for key in (CORES, ESTIMATES))
    estimates = [Estimate(number, time_ms) for number, time_ms in zip(cores, times_ms, strict=False)]
    if estimates and critical_path_ms is not None:
        estimates.append(Estimate(None, critical_path_ms))
    return ApplicationSpan(
        str(attributes.get("app_name") or ""),
        str(attributes.get("app_id") or ""),
        _whole(span.get("startTimeUnixNano") or 0, _LATEST_NS) // 1_000_000,
        _whole(span.get("endTimeUnixNano") or 0, _LATEST_NS) // 1_000_000,
        {part: _whole(attributes.get(account.attribute) or 0) for part, account in ACCOUNTS.items()},
        critical_path_ms,
        estimates,
    )


def _whole(value: Any, most: int = _MOST_MS) -> int:
    """Return a whole number that can be.

    Raises:
        ValueError, TypeError, OverflowError: it is none.
    """
    number = int(value)
    if not 0 <= number <= most:
        raise ValueError(f"{number} cannot be")
    return number


def _otlp_spans(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for of_resource in request["resourceSpans"]:
        for of_scope in of_resource.get("scopeSpans") or ():
            for span in of_scope.get("spans") or ():
                pairs = span.get(_ATTRIBUTES) or ()
                yield {
                    **span,
                    _ATTRIBUTES: {pair["key"]: otlp_value(pair.get("value") or {}) for pair in pairs},
                }

"""How stored events are read, as DuckDB's SQL: of lines of JSON, OTLP requests and Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spark_events.history.reading.local_files import StoredFiles

_PATTERN = re.compile(r"([*?[])")
_ATTRIBUTES = "MAP(VARCHAR, VARCHAR)"
_VALUE = "STRUCT(stringValue VARCHAR, intValue VARCHAR, doubleValue VARCHAR, boolValue VARCHAR)"
_LOG_RECORD = (
    "STRUCT(timeUnixNano VARCHAR, eventName VARCHAR, severityText VARCHAR, "
    f'attributes STRUCT("key" VARCHAR, "value" {_VALUE})[])'
)
_JSON = {
    "eventName": "VARCHAR",
    "eventId": "VARCHAR",
    "timeUnixNano": "VARCHAR",
    "time": "VARCHAR",
    "attributes": _ATTRIBUTES,
    "resourceLogs": f"STRUCT(scopeLogs STRUCT(logRecords {_LOG_RECORD}[])[])[]",
    "resourceSpans": "VARCHAR",
    "resourceMetrics": "VARCHAR",
    "traceId": "VARCHAR",
}


def events_of(files: StoredFiles, longest_line: int) -> str:
    """Return the events of some files; see ``facts.classified`` for the columns.

    Args:
        files: JSON and Parquet.
        longest_line: that is read, in bytes.
    """
    sources = []
    if files.json:
        types = ", ".join(f"{name}: {text_of(of_type)}" for name, of_type in _JSON.items())
        options = f"ignore_errors = true, filename = true, maximum_object_size = {longest_line}"
        rows = f"read_ndjson({file_list(files.json)}, columns = {{{types}}}, {options})"
        sources.append(_events_of_lines(f"(SELECT *, filename AS file FROM {rows})"))
    if files.parquet:
        sources.append(_events_of_parquet(file_list(files.parquet)))
    return f"({' UNION ALL BY NAME '.join(sources)})"


def file_list(names: Iterable[str]) -> str:
    """Return the SQL of a list of files, whose names DuckDB would take for patterns."""
    literal_names = (_PATTERN.sub(r"[\1]", name) for name in names)
    return f"[{', '.join(map(text_of, literal_names))}]"


def text_of(text: str) -> str:
    """Return the SQL of a text."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


def _events_of_lines(lines: str) -> str:
    """Return the SQL of lines: an event of a file log each, or an OTLP request with many log records."""
    other = (
        "coalesce(resourceSpans, resourceMetrics, traceId) IS NOT NULL "
        "AND coalesce(eventName, eventId) IS NULL"
    )
    records = (
        "flatten(list_transform(flatten(list_transform(resourceLogs, "
        "lambda of_resource: of_resource.scopeLogs)), lambda of_scope: of_scope.logRecords))"
    )
    # A line of a file log has one record, which is null.
    each = f"unnest(CASE WHEN resourceLogs IS NULL THEN [NULL] ELSE {records} END)"
    event_attributes = f"CASE WHEN record IS NULL THEN attributes ELSE {_attributes_of('record')} END"
    nanos = "try_cast(coalesce(record.timeUnixNano, timeUnixNano) AS BIGINT)"
    # In OTLP, the id is one of the attributes; so is the name, where a collector's filelog receiver read it.
    return (
        "SELECT coalesce(eventId, of_event['event.id']) AS event_id, "
        "coalesce(record.eventName, eventName, of_event['event.name']) AS event_name, "
        f"coalesce({nanos} // 1000000, epoch_ms(try_cast(time AS TIMESTAMPTZ))) AS time_ms, "
        f"of_event AS attributes, file, of_event IS NULL AS unreadable, {other} AS other "
        f"FROM (SELECT *, {event_attributes} AS of_event FROM (SELECT *, {each} AS record FROM {lines}))"
    )


def _attributes_of(record: str) -> str:
    """Return the SQL of OTLP's list of attributes as a map; of two with one key, the first counts."""
    keys = f"list_transform({record}.attributes, lambda pair: pair.key)"
    value = f"{record}.attributes[list_position({keys}, of_key)].value"
    texts = f"coalesce({value}.stringValue, {value}.intValue, {value}.doubleValue, {value}.boolValue)"
    return f"map(list_distinct({keys}), list_transform(list_distinct({keys}), lambda of_key: {texts}))"


def _events_of_parquet(files: str) -> str:
    """Return the SQL of Parquet that ``replay --on-spark`` wrote."""
    return (
        "SELECT eventId AS event_id, eventName AS event_name, epoch_ms(time) AS time_ms, attributes, "
        "filename AS file, attributes IS NULL AS unreadable, false AS other "
        f"FROM read_parquet({files}, filename = true, hive_partitioning = false)"
    )

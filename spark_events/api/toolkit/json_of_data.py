"""What a job has read and written, as JSON; what is not known is left out."""

from __future__ import annotations

from typing import Any, TypedDict

from spark_events.api.job_data import DataRead, DataWritten, ObservedData


class ObservedJson(TypedDict, total=False):
    """What a program has measured of a dataset's rows; ``columns`` are figures by column."""

    rows: int
    columns: dict[str, dict[str, float]]


class DataReadJson(TypedDict, total=False):
    """How much of a dataset was read."""

    namespace: str
    name: str
    version: str
    rows: int
    bytes: int
    files: int
    report: dict[str, Any]
    observed: ObservedJson


class DataWrittenJson(TypedDict, total=False):
    """What a statement has made of a dataset."""

    namespace: str
    name: str
    version: str
    report: dict[str, Any]
    observed: ObservedJson


def data_read_json(data: DataRead) -> DataReadJson:
    """Return what was read of a dataset as JSON has it."""
    record: DataReadJson = {"namespace": data.namespace, "name": data.name}
    if data.version:
        record["version"] = data.version
    if data.rows is not None:
        record["rows"] = data.rows
    if data.bytes is not None:
        record["bytes"] = data.bytes
    if data.files is not None:
        record["files"] = data.files
    if data.report:
        record["report"] = dict(data.report)
    if data.observed is not None:
        record["observed"] = _observed(data.observed)
    return record


def data_written_json(data: DataWritten) -> DataWrittenJson:
    """Return what was made of a dataset as JSON has it."""
    record: DataWrittenJson = {"namespace": data.namespace, "name": data.name}
    if data.version:
        record["version"] = data.version
    if data.report:
        record["report"] = dict(data.report)
    if data.observed is not None:
        record["observed"] = _observed(data.observed)
    return record


def _observed(observed: ObservedData) -> ObservedJson:
    record: ObservedJson = {"columns": {name: dict(figures) for name, figures in observed.columns.items()}}
    if observed.rows is not None:
        record["rows"] = observed.rows
    return record

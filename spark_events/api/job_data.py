"""What a job has read, and what it has made of the data that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class ObservedData:
    """What ``DataFrame.observe`` has measured of all rows of a dataset, those that were read or written.

    Attributes:
        rows: how many there are; None if they were not counted.
        columns: by column, its figures: ``count``, ``nullCount``, ``distinctCount``, ``min``, ``max`` and
            ``sum``.
    """

    rows: int | None = None
    columns: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class DataRead:
    """How much of a dataset a job has read.

    Attributes:
        namespace: of the dataset.
        name: of the dataset.
        version: Delta's version, Iceberg's snapshot id, or the offsets of a stream or of a topic, up to which
            it was read; empty for data without versions.
        rows: rows read; None if unknown.
        bytes: size of the files read; None if unknown.
        files: number of files read; None if unknown.
        report: Iceberg's own report of the scan, as JSON has it; empty for other data.
        observed: what the program has measured of it; None if it has measured nothing.
    """

    namespace: str
    name: str
    version: str = ""
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    report: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    observed: ObservedData | None = None


@dataclass(frozen=True, slots=True)
class DataWritten:
    """What a statement or a micro-batch has made of a dataset.

    Attributes:
        namespace: of the dataset.
        name: of the dataset.
        version: Delta's version or Iceberg's snapshot id that was committed; empty if unknown.
        report: Iceberg's own report of the commit, as JSON has it; empty for other data.
        observed: what the program has measured of the dataset's rows; None if it has measured nothing.
    """

    namespace: str
    name: str
    version: str = ""
    report: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    observed: ObservedData | None = None

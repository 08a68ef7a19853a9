"""What a statement has read of each dataset, and what it has made of the data that it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from spark_events.api import DataRead, DataWritten, ObservedData
from spark_events.lineage.datasets import Catalogs, datasets_of

_Key = tuple[str, str]


def data_read(end: Mapping[str, Any], catalogs: Catalogs) -> tuple[DataRead, ...]:
    """Return what a statement has read of each dataset.

    Args:
        end: its end's record, with scans in the form of ``DataRead.java``.
        catalogs: gives tables their names.
    """
    by_key: dict[_Key, list[Mapping[str, Any]]] = {}
    for scan in end.get("read") or ():
        for key, part in _by_dataset(scan, catalogs):
            by_key.setdefault(key, []).append(part)
    reads = {key: _sum(key, scans) for key, scans in by_key.items()}
    for key, observed in _observed(end, catalogs, written=False):
        reads[key] = replace(reads.get(key) or DataRead(*key), observed=observed)
    return tuple(reads.values())


def data_written(end: Mapping[str, Any], catalogs: Catalogs) -> tuple[DataWritten, ...]:
    """Return what a statement has made of each dataset, as far as known.

    Args:
        end: its end's record, with versions in the form of ``DataWritten.java``.
        catalogs: gives tables their names.
    """
    made: dict[_Key, DataWritten] = {}
    for version in end.get("versions") or ():
        for dataset in datasets_of(version["identity"], (), catalogs):
            report = version.get("report") or {}
            made[dataset.key] = DataWritten(*dataset.key, str(version["version"]), report)
    for key, observed in _observed(end, catalogs, written=True):
        made[key] = replace(made.get(key) or DataWritten(*key), observed=observed)
    return tuple(made.values())


def _by_dataset(scan: Mapping[str, Any], catalogs: Catalogs) -> Iterator[tuple[_Key, Mapping[str, Any]]]:
    """Yield a scan for each dataset; of several at once, only the offsets of topics are known apart."""
    datasets = datasets_of(scan["identity"], (), catalogs)
    offsets = scan.get("offsets") or {}
    for dataset in datasets:
        of_topic = offsets.get(dataset.name)
        if len(datasets) == 1:
            # A pattern stands for several topics.
            known = of_topic or offsets
            version = orjson.dumps(known).decode() if known else scan.get("version")
            yield dataset.key, {**scan, "version": version}
        elif of_topic:
            yield dataset.key, {"version": orjson.dumps(of_topic).decode()}


def _sum(key: _Key, scans: list[Mapping[str, Any]]) -> DataRead:
    versions = {str(scan["version"]) for scan in scans if scan.get("version") is not None}
    reports = [scan["report"] for scan in scans if scan.get("report")]
    rows, size, files = (_total(scans, amount) for amount in ("rows", "bytes", "files"))
    # A statement may read a table more than once, and several versions of it, by time travel.
    version = versions.pop() if len(versions) == 1 else ""
    return DataRead(*key, version, rows, size, files, reports[0] if len(reports) == 1 else {})


def _total(scans: list[Mapping[str, Any]], amount: str) -> int | None:
    values = [int(scan[amount]) for scan in scans if scan.get(amount) is not None]
    return sum(values) if len(values) == len(scans) else None


def _observed(
    end: Mapping[str, Any], catalogs: Catalogs, written: bool
) -> Iterator[tuple[_Key, ObservedData]]:
    """Yield what a program has measured of its data, in the form of ``Observed.java``, by dataset."""
    for data in end.get("observed") or ():
        datasets = datasets_of(data["identity"], (), catalogs)
        if len(datasets) == 1 and bool(data["written"]) is written:
            rows = data.get("rows")
            yield datasets[0].key, ObservedData(None if rows is None else int(rows), data["columns"])

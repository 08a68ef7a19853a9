"""Adds up what the scans of a statement have read, by dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spark_events.api import DataRead
from spark_events.lineage.datasets import Catalogs, datasets_of

_AMOUNTS = ("rows", "bytes", "files")


def data_read(scans: Iterable[Mapping[str, Any]], catalogs: Catalogs) -> tuple[DataRead, ...]:
    """Return what was read of each dataset; scans of several datasets at once, as of topics, are left out.

    Args:
        scans: in the form of ``DataRead.java``.
        catalogs: gives tables their names.
    """
    by_key: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for scan in scans:
        datasets = datasets_of(scan["identity"], (), catalogs)
        if len(datasets) == 1:
            by_key.setdefault(datasets[0].key, []).append(scan)
    return tuple(_sum(namespace, name, scans) for (namespace, name), scans in by_key.items())


def _sum(namespace: str, name: str, scans: list[Mapping[str, Any]]) -> DataRead:
    versions = {str(scan["version"]) for scan in scans if scan.get("version") is not None}
    amounts: dict[str, int | None] = {}
    for amount in _AMOUNTS:
        values = [int(scan[amount]) for scan in scans if scan.get(amount) is not None]
        amounts[amount] = sum(values) if len(values) == len(scans) else None
    # A statement may read several versions of a table, by time travel.
    return DataRead(namespace, name, versions.pop() if len(versions) == 1 else "", **amounts)

"""Facets of what was measured of data: by the program, and by Iceberg.

Iceberg's facets, with these names of fields, are in OpenLineage's registry; its client has no classes for
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attr
from openlineage.client.generated.base import InputDatasetFacet, OutputDatasetFacet

from spark_events.api import ObservedData
from spark_events_openlineage.producer import PRODUCER

_SPEC = "https://openlineage.io/spec/facets"
_WHOLE = ("count", "nullCount", "distinctCount")
Metrics = TypeVar("Metrics")


@attr.define
class IcebergScanReportInputDatasetFacet(InputDatasetFacet):
    """How Iceberg planned a scan."""

    snapshotId: int  # noqa: N815
    filterDescription: str  # noqa: N815
    schemaId: int  # noqa: N815
    projectedFieldNames: list[str]  # noqa: N815
    scanMetrics: dict[str, int]  # noqa: N815
    metadata: dict[str, str]

    @staticmethod
    def _get_schema() -> str:
        name = "IcebergScanReportInputDatasetFacet"
        return f"{_SPEC}/1-0-1/{name}.json#/$defs/{name}"


@attr.define
class IcebergCommitReportOutputDatasetFacet(OutputDatasetFacet):
    """What Iceberg committed."""

    snapshotId: int  # noqa: N815
    sequenceNumber: int  # noqa: N815
    operation: str
    commitMetrics: dict[str, int]  # noqa: N815
    metadata: dict[str, str]

    @staticmethod
    def _get_schema() -> str:
        name = "IcebergCommitReportOutputDatasetFacet"
        return f"{_SPEC}/1-0-2/{name}.json#/$defs/{name}"


def scan_report(report: Mapping[str, Any]) -> IcebergScanReportInputDatasetFacet:
    """Return the facet of a scan, by Iceberg's report."""
    return IcebergScanReportInputDatasetFacet(
        snapshotId=report["snapshotId"],
        filterDescription=report.get("filterDescription") or "",
        schemaId=report["schemaId"],
        projectedFieldNames=list(report["projectedFieldNames"]),
        scanMetrics=dict(report["scanMetrics"]),
        metadata=dict(report["metadata"]),
        producer=PRODUCER,
    )


def commit_report(report: Mapping[str, Any]) -> IcebergCommitReportOutputDatasetFacet:
    """Return the facet of a commit, by Iceberg's report."""
    return IcebergCommitReportOutputDatasetFacet(
        snapshotId=report["snapshotId"],
        sequenceNumber=report["sequenceNumber"],
        operation=report["operation"],
        commitMetrics=dict(report["commitMetrics"]),
        metadata=dict(report["metadata"]),
        producer=PRODUCER,
    )


def column_metrics(observed: ObservedData, make: Callable[..., Metrics]) -> dict[str, Metrics]:
    """Return the figures of each column.

    Args:
        observed: what was measured.
        make: the client's class of them, which is another one for an input than for an output.
    """
    return {
        column: make(
            **{name: int(value) if name in _WHOLE else float(value) for name, value in figures.items()},
        )
        for column, figures in observed.columns.items()
    }

"""A lineage graph as a person would write it down."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.api import (
    LineageDataset,
    LineageGraph,
    SourceColumn,
    TableLineageDataset,
    TableLineageEdge,
    TableSinkLineageVertex,
)
from spark_events.jobs.job_names import short_name


@dataclass(frozen=True)
class Shown:
    """A graph.

    Attributes:
        sources: short names, sorted.
        sinks: what is done to which.
        columns: of all sinks, each with its sources: ``orders.amount AGGREGATION``.
        influences: source columns that decide which rows there are.
        incomplete: why something misses.
    """

    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]
    influences: tuple[str, ...]
    incomplete: str


def shown(graph: LineageGraph) -> Shown:
    columns: dict[str, list[str]] = {}
    influences: list[str] = []
    for edge in graph.relations:
        if isinstance(edge, TableLineageEdge):
            for column in edge.columns:
                columns.setdefault(column.column, []).extend(map(_source, column.sources))
            influences += map(_source, edge.influences)
    return Shown(
        tuple(sorted(_short(dataset) for vertex in graph.sources for dataset in vertex.datasets)),
        tuple(
            f"{vertex.modify_type.value if isinstance(vertex, TableSinkLineageVertex) else '?'} {_short(dataset)}"
            for vertex in graph.sinks
            for dataset in vertex.datasets
        ),
        {column: tuple(sorted(set(sources))) for column, sources in columns.items()},
        tuple(sorted(set(influences))),
        graph.incomplete,
    )


def _short(dataset: LineageDataset) -> str:
    name = short_name(dataset)
    return name.removeprefix("default.") if isinstance(dataset, TableLineageDataset) else name.split(".")[-1]


def _source(source: SourceColumn) -> str:
    kinds = "+".join(kind.value for kind in source.transformations)
    masked = " masked" if source.masking else ""
    return f"{_short(source.dataset)}.{source.column} {kinds}{masked}"

"""Makes the lineage graph of what the driver's side found in a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from spark_events.api import (
    Boundedness,
    LineageDataset,
    LineageGraph,
    LineageVertex,
    ModifyType,
    SchemaField,
    SourceColumn,
    SourceLineageVertex,
    TableColumnLineageEdge,
    TableLineageEdge,
    TableSinkLineageVertex,
    Transformation,
)
from spark_events.lineage.datasets import Catalogs, datasets_of
from spark_events.lineage.providers import provided

_MASKING = 8
_BITS = {
    1: Transformation.IDENTITY,
    2: Transformation.TRANSFORMATION,
    4: Transformation.AGGREGATION,
    16: Transformation.CONDITIONAL,
    32: Transformation.WINDOW,
    64: Transformation.JOIN,
    128: Transformation.GROUP_BY,
    256: Transformation.FILTER,
    512: Transformation.SORT,
}
"""As in ``Inputs.java``."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A source column: of which source, by its place, and its name."""

    source: int
    name: str


class GraphBuilder:
    """Builds the graph of one statement or query.

    Args:
        found: as ``Statement.java`` has it.
        catalogs: where tables have their names.
        bounded: whether a stream ends by itself.
    """

    def __init__(self, found: Mapping[str, Any], catalogs: Catalogs, bounded: bool = False) -> None:
        self._found = found
        self._catalogs = catalogs
        self._bounded = bounded
        schemas: list[list[SchemaField]] = [[] for _ in found["sources"]]
        for source, name, column_type in found["columns"]:
            schemas[int(source)].append(SchemaField(str(name), str(column_type)))
        self._vertices = [
            self._source(source, tuple(schema))
            for source, schema in zip(found["sources"], schemas, strict=True)
        ]
        # What is read twice is one source.
        first: dict[LineageVertex | None, int] = {}
        same = [first.setdefault(vertex, i) for i, vertex in enumerate(self._vertices)]
        self._columns = [_Column(same[int(source)], str(name)) for source, name, _ in found["columns"]]
        self._distinct = [i for i, vertex in enumerate(self._vertices) if same[i] == i and vertex is not None]

    def build(self) -> LineageGraph:
        """Return the graph, with sources that feed no sink and sinks that no source feeds."""
        sinks: list[LineageVertex] = []
        edges: dict[TableLineageEdge, None] = {}
        dropped: set[int] = set()
        for sink in self._found["sinks"]:
            vertex = self._sink(sink)
            groups = self._groups(sink, vertex, dropped)
            if vertex is None:
                continue
            sinks.append(vertex)
            for edge in self._edges(sink, vertex, groups, dropped):
                edges[edge] = None
        sources = [self._vertices[i] for i in self._distinct if i not in dropped]
        incomplete = self._found.get("incomplete")
        return LineageGraph(
            tuple(vertex for vertex in sources if vertex is not None),
            tuple(dict.fromkeys(sinks)),
            tuple(edges),
            str(incomplete) if incomplete else "",
        )

    # ------------------------------------------------------------------------------------------------

    def _source(self, source: Mapping[str, Any], schema: tuple[SchemaField, ...]) -> LineageVertex | None:
        identity = source["identity"]
        vertex = provided(identity, is_sink=False)
        if vertex is not None:
            return vertex
        datasets = datasets_of(identity, schema, self._catalogs)
        endless = source.get("streaming") and not self._bounded
        return (
            SourceLineageVertex(
                datasets, Boundedness.CONTINUOUS_UNBOUNDED if endless else Boundedness.BOUNDED
            )
            if datasets
            else None
        )

    def _sink(self, sink: Mapping[str, Any]) -> LineageVertex | None:
        vertex = provided(sink["identity"], is_sink=True)
        if vertex is not None:
            return vertex
        schema = tuple(SchemaField(str(name), str(of)) for name, of, _ in sink["columns"])
        datasets = datasets_of(sink["identity"], schema, self._catalogs)
        return TableSinkLineageVertex(datasets, ModifyType(sink["modify"])) if datasets else None

    def _groups(
        self, sink: Mapping[str, Any], vertex: LineageVertex | None, dropped: set[int]
    ) -> dict[int, dict[int, int]]:
        """Return for each column of a sink, by its place, the numbers of source columns and their kinds.

        UPDATE, DELETE and MERGE read the table that they write: a column that stays as it is says nothing,
        and a table of which nothing else is taken is no source.
        """
        groups = [_numbers(group) for group in self._found["groups"]]
        by_column = {place: groups[column[2]] for place, column in enumerate(sink["columns"])}
        if not sink.get("rowLevel") or vertex is None:
            return by_column
        own = {i for i, v in enumerate(self._vertices) if v is not None and v.datasets == vertex.datasets}
        for place, (name, _, _) in enumerate(sink["columns"]):
            by_column[place] = {
                number: kinds
                for number, kinds in by_column[place].items()
                if not (self._columns[number].source in own and self._columns[number].name == name)
                or kinds & ~1
            }
        read = {self._columns[number].source for inputs in by_column.values() for number in inputs}
        dropped |= own - read
        return by_column

    def _edges(
        self,
        sink: Mapping[str, Any],
        vertex: LineageVertex,
        by_column: dict[int, dict[int, int]],
        dropped: set[int],
    ) -> list[TableLineageEdge]:
        columns: dict[int, list[TableColumnLineageEdge]] = {}
        split = cache(self._split)
        for place, (name, _, _) in enumerate(sink["columns"]):
            for source, inputs in split(tuple(by_column[place].items())).items():
                columns.setdefault(source, []).append(TableColumnLineageEdge(str(name), inputs))
        influences = self._split(
            tuple((int(key), int(kind)) for key, kind in self._found["indirect"].items())
        )
        return [
            TableLineageEdge(feeding, vertex, tuple(columns.get(i, ())), influences.get(i, ()))
            for i in self._distinct
            if i not in dropped and (feeding := self._vertices[i]) is not None
        ]

    def _split(self, inputs: tuple[tuple[int, int], ...]) -> dict[int, tuple[SourceColumn, ...]]:
        """Return source columns by the source that they are of."""
        merged_kinds: dict[_Column, int] = {}
        for number, kinds in inputs:
            column = self._columns[number]
            merged_kinds[column] = merged_kinds.get(column, 0) | kinds
        found: dict[int, list[SourceColumn]] = {}
        for column, kinds in merged_kinds.items():
            vertex = self._vertices[column.source]
            for dataset in vertex.datasets if vertex is not None else ():
                found.setdefault(column.source, []).append(_source_column(dataset, column.name, kinds))
        return {source: tuple(columns) for source, columns in found.items()}


def _numbers(kinds: Mapping[str, Any]) -> dict[int, int]:
    """Return the kinds by a column's number, which JSON has as text."""
    return {int(number): int(kind) for number, kind in kinds.items()}


def _source_column(dataset: LineageDataset, name: str, kinds: int) -> SourceColumn:
    return SourceColumn(dataset, name, _transformations(kinds), bool(kinds & _MASKING))


@cache
def _transformations(kinds: int) -> tuple[Transformation, ...]:
    return tuple(transformation for bit, transformation in _BITS.items() if kinds & bit)


def merged(graphs: Sequence[LineageGraph]) -> LineageGraph:
    """Return all of several graphs as one."""
    return LineageGraph(
        tuple(dict.fromkeys(vertex for graph in graphs for vertex in graph.sources)),
        tuple(dict.fromkeys(vertex for graph in graphs for vertex in graph.sinks)),
        tuple(dict.fromkeys(edge for graph in graphs for edge in graph.relations)),
        "; ".join(dict.fromkeys(graph.incomplete for graph in graphs if graph.incomplete)),
    )

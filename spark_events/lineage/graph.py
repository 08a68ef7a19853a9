"""Makes the lineage graph from what a plan says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from spark_events.api import (
    Boundedness,
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
from spark_events.lineage.datasets import Catalogs, datasets_of, renamed
from spark_events.lineage.providers import provided

_IDENTITY, _MASKING = 1, 8
_BITS = {
    _IDENTITY: Transformation.IDENTITY,
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
_UNKNOWN_WRITES = "what the query's function of foreachBatch writes is not known"
"""As in ``QueryRecords.java``."""


class _Column(NamedTuple):
    """A source column: the index of its source, and its name."""

    source: int
    name: str


class GraphBuilder:
    """Builds the graph of one statement or query.

    Args:
        plan: what its plan says, in the form of ``Statement.java``.
        catalogs: gives tables their names.
        bounded: whether a stream ends by itself.
        redact: takes secrets out of the texts of expressions.
    """

    def __init__(
        self,
        plan: Mapping[str, Any],
        catalogs: Catalogs,
        bounded: bool = False,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._plan = plan
        self._redact = redact
        self._catalogs = catalogs
        self._bounded = bounded
        schemas: list[list[SchemaField]] = [[] for _ in plan["sources"]]
        for source, name, column_type in plan["columns"]:
            schemas[int(source)].append(SchemaField(str(name), str(column_type)))
        self._vertices = [
            self._source(source, tuple(schema))
            for source, schema in zip(plan["sources"], schemas, strict=True)
        ]
        # Data that is read twice is one source.
        first: dict[LineageVertex | None, int] = {}
        same = [first.setdefault(vertex, i) for i, vertex in enumerate(self._vertices)]
        self._columns = [_Column(same[int(source)], str(name)) for source, name, _ in plan["columns"]]
        self._distinct = [i for i, vertex in enumerate(self._vertices) if same[i] == i and vertex is not None]

    def build(self) -> LineageGraph:
        """Return the graph, with sources that feed no sink and sinks that no source feeds."""
        sinks: list[LineageVertex] = []
        edges: dict[TableLineageEdge, None] = {}
        dropped: set[int] = set()
        groups = [_kinds(group) for group in self._plan["groups"]]
        for sink in self._plan["sinks"]:
            vertex = self._sink(sink)
            if vertex is None:
                continue
            sinks.append(vertex)
            inputs = [groups[group] for _, _, group in sink["columns"]]
            if sink.get("rowLevel"):
                datasets = [source.datasets if source is not None else None for source in self._vertices]
                own = {place for place, read in enumerate(datasets) if read == vertex.datasets}
                inputs = self._changing_inputs(sink, inputs, own)
                dropped |= own - {self._columns[number].source for column in inputs for number in column}
            for edge in self._edges(sink, vertex, inputs, dropped):
                edges[edge] = None
        sources = [self._vertices[i] for i in self._distinct if i not in dropped]
        incomplete = self._plan.get("incomplete")
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
        boundedness = Boundedness.CONTINUOUS_UNBOUNDED if endless else Boundedness.BOUNDED
        return SourceLineageVertex(datasets, boundedness) if datasets else None

    def _sink(self, sink: Mapping[str, Any]) -> LineageVertex | None:
        vertex = provided(sink["identity"], is_sink=True)
        if vertex is not None:
            return vertex
        schema = tuple(SchemaField(str(name), str(of)) for name, of, _ in sink["columns"])
        datasets = datasets_of(sink["identity"], schema, self._catalogs)
        if before := sink.get("renamedFrom"):
            datasets = renamed(datasets, before, self._catalogs)
        return TableSinkLineageVertex(datasets, ModifyType(sink["modify"])) if datasets else None

    def _changing_inputs(
        self, sink: Mapping[str, Any], inputs: list[dict[int, int]], own: set[int]
    ) -> list[dict[int, int]]:
        """Return the inputs of UPDATE, DELETE or MERGE without those of unchanged columns.

        Such a statement reads the table that it writes, which is ``own`` among the sources. If no inputs
        from that table are left, it is not a source.
        """

        def stays(number: int, kinds: int, name: str) -> bool:
            column = self._columns[number]
            return column.source in own and column.name == name and not kinds & ~_IDENTITY

        return [
            {number: kinds for number, kinds in column.items() if not stays(number, kinds, name)}
            for (name, _, _), column in zip(sink["columns"], inputs, strict=True)
        ]

    def _edges(
        self,
        sink: Mapping[str, Any],
        vertex: LineageVertex,
        inputs: list[dict[int, int]],
        dropped: set[int],
    ) -> list[TableLineageEdge]:
        columns: dict[int, list[TableColumnLineageEdge]] = {}
        texts = {name: self._redact(str(text)) for name, text in (sink.get("expressions") or {}).items()}
        split = cache(self._split)
        for (name, _, _), column in zip(sink["columns"], inputs, strict=True):
            for source, source_columns in split(tuple(column.items())).items():
                edge = TableColumnLineageEdge(str(name), source_columns, texts.get(str(name), ""))
                columns.setdefault(source, []).append(edge)
        influences = self._split(tuple(_kinds(sink.get("indirect", self._plan["indirect"])).items()))
        return [
            TableLineageEdge(feeding, vertex, tuple(columns.get(i, ())), influences.get(i, ()))
            for i in self._distinct
            if i not in dropped and (feeding := self._vertices[i]) is not None
        ]

    def _split(self, inputs: tuple[tuple[int, int], ...]) -> dict[int, tuple[SourceColumn, ...]]:
        """Return source columns grouped by source."""
        merged_kinds: dict[_Column, int] = {}
        for number, kinds in inputs:
            column = self._columns[number]
            merged_kinds[column] = merged_kinds.get(column, 0) | kinds
        by_source: dict[int, list[SourceColumn]] = {}
        for column, kinds in merged_kinds.items():
            vertex = self._vertices[column.source]
            for dataset in vertex.datasets if vertex is not None else ():
                by_source.setdefault(column.source, []).append(
                    SourceColumn(dataset, column.name, _transformations(kinds), bool(kinds & _MASKING))
                )
        return {source: tuple(columns) for source, columns in by_source.items()}


def _kinds(inputs: Mapping[str, Any]) -> dict[int, int]:
    """Return the kinds of inputs by number of the source column, which is text in JSON."""
    return {int(number): int(kinds) for number, kinds in inputs.items()}


@cache
def _transformations(kinds: int) -> tuple[Transformation, ...]:
    return tuple(transformation for bit, transformation in _BITS.items() if kinds & bit)


def merged(graphs: Sequence[LineageGraph]) -> LineageGraph:
    """Return several graphs merged into one."""
    sinks = tuple(dict.fromkeys(vertex for graph in graphs for vertex in graph.sinks))
    reasons = dict.fromkeys(reason for graph in graphs for reason in graph.incomplete.split("; ") if reason)
    if sinks:
        # A first batch may have had nothing to write.
        reasons.pop(_UNKNOWN_WRITES, None)
    return LineageGraph(
        tuple(dict.fromkeys(vertex for graph in graphs for vertex in graph.sources)),
        sinks,
        tuple(dict.fromkeys(edge for graph in graphs for edge in graph.relations)),
        "; ".join(reasons),
    )

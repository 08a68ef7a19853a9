"""Names for statements, which have none in Spark; each run of the same statement gets the same name."""

from __future__ import annotations

from spark_events.api import (
    LineageDataset,
    LineageGraph,
    LineageVertex,
    TableLineageDataset,
    TableSinkLineageVertex,
)

_PARTS_OF_PATH = 2


def name_of_statement(graph: LineageGraph) -> str:
    """Return a name that says what a statement does, and to what, such as ``insert.sales.orders``.

    It does not depend on how Spark plans the statement, or on its place in the program.
    """
    if graph.sinks:
        sink = graph.sinks[0]
        verb = sink.modify_type.value if isinstance(sink, TableSinkLineageVertex) else "INSERT"
        return f"{verb.lower()}.{_short(sink)}"
    return f"read.{_short(graph.sources[0])}" if graph.sources else "statement"


def _short(vertex: LineageVertex) -> str:
    return short_name(vertex.datasets[0]) if vertex.datasets else "unknown"


def short_name(dataset: LineageDataset) -> str:
    """Return a dataset's table, or the last two folders of its path, joined with dots."""
    if isinstance(dataset, TableLineageDataset):
        parts = [
            dataset.catalog if dataset.catalog != "spark_catalog" else "",
            dataset.database,
            dataset.table,
        ]
    else:
        parts = dataset.name.strip("/").split("/")[-_PARTS_OF_PATH:]
    return ".".join(part for part in parts if part) or dataset.namespace

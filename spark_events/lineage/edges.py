"""Lineage that the program provides itself, instead of what plans say (FLIP-314)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_events.api import LineageDataset, LineageEdge, LineageGraph, LineageVertex
from spark_events.lineage.graph import merged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TAG = "spark-events-lineage-"
_numbers = itertools.count(1)
_lock = threading.Lock()
_of_thread = threading.local()
_given: dict[str, GivenEdges] = {}


@dataclass(slots=True)
class GivenEdges:
    """Edges that the program gave for a job, instead of or in addition to the plan's.

    Attributes:
        job: the job that they belong to, once known.
    """

    edges: tuple[LineageEdge, ...]
    replace: bool
    job: str = ""

    def applied_to(self, graph: LineageGraph) -> LineageGraph:
        """Return a graph with these edges."""
        own = LineageGraph(
            tuple(dict.fromkeys(edge.source for edge in self.edges)),
            tuple(dict.fromkeys(edge.sink for edge in self.edges)),
            tuple(dict.fromkeys(self.edges)),
        )
        return own if self.replace else merged((graph, own))


def add_lineage_edges(spark: SparkSession, *edges: LineageEdge, replace: bool = True) -> None:
    """Give the lineage of the next job that this thread starts and that writes something.

    That is the next statement that writes, or the next streaming query, whichever comes first, and the edges
    apply only to it. A second call before that replaces the first.

    Args:
        spark: a SparkSession.
        edges: from sources to sinks, each a ``LineageVertex`` with the datasets that are read or written.
        replace: whether they replace what Spark's plan says, as in Flink, or are added to it.

    Example::

        orders = LineageVertex((LineageDataset("orders", "kafka://broker:9092"),))
        totals = LineageVertex((LineageDataset("/data/totals", "file"),))
        add_lineage_edges(spark, LineageEdge(orders, totals))
        frame.write.parquet("/data/totals")

    Raises:
        TypeError: an edge is not a ``LineageEdge``, or its source or sink is not a vertex.
    """
    for edge in edges:
        _demand_vertices(edge)
    context = spark.sparkContext
    tag = f"{_TAG}{next(_numbers)}"
    before = getattr(_of_thread, "tag", None)
    if before is not None:
        context.removeJobTag(before)
        with _lock:
            if not _given[before].job:
                del _given[before]
    _of_thread.tag = tag
    with _lock:
        _given[tag] = GivenEdges(tuple(edges), replace)
    context.addJobTag(tag)


def _demand_vertices(edge: object) -> None:
    if not isinstance(edge, LineageEdge):
        raise TypeError(
            f"add_lineage_edges takes edges, such as TableLineageEdge(source, sink), not a "
            f"{type(edge).__name__}"
        )
    for name, vertex in (("source", edge.source), ("sink", edge.sink)):
        if not isinstance(vertex, LineageVertex):
            shown = type(vertex).__name__
        elif not _is_sequence_of_datasets(vertex.datasets):
            shown = f"LineageVertex of {vertex.datasets!r}"
        else:
            continue
        raise TypeError(
            f"an edge's {name} is a {shown}; expected a LineageVertex with its datasets: "
            "LineageVertex((LineageDataset(name, namespace),))"
        )


def _is_sequence_of_datasets(datasets: object) -> bool:
    return isinstance(datasets, list | tuple) and all(isinstance(of, LineageDataset) for of in datasets)


def edges_of(tags: Iterable[str], job: str) -> GivenEdges | None:
    """Return the edges that the program gave for a job, found through the job's tags in Spark.

    Args:
        tags: as in ``SparkListenerSQLExecutionStart``.
        job: its id; the first that asks for a tag's edges has them.
    """
    with _lock:
        for tag in tags:
            given = _given.get(str(tag))
            if given is not None and given.job in ("", job):
                given.job = job
                return given
    return None

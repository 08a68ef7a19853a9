"""Graphs out of what the driver's side found: what is the same is one, and what says nothing is left out."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.api import LineageDataset, LineageVertex, TableLineageEdge
from spark_events.lineage import add_lineage_edges
from spark_events.lineage.datasets import Catalogs
from spark_events.lineage.graph import GraphBuilder, merged
from tests.support.shown_lineage import shown


def found(modify: str, inputs: list[dict[str, int]], row_level: bool = False) -> dict[str, Any]:
    """Return a write to /t, whose columns a and b come from /t's and from /s's column c."""
    return {
        "sources": [
            {"identity": {"paths": ["/t"], "format": "delta"}, "streaming": False},
            {"identity": {"paths": ["/s"], "format": "parquet"}, "streaming": False},
        ],
        "columns": [[0, "a", "int"], [0, "b", "int"], [1, "c", "int"]],
        "sinks": [
            {
                "identity": {"paths": ["/t"], "format": "delta"},
                "modify": modify,
                "columns": [["a", "int", 0], ["b", "int", 1]],
                "rowLevel": row_level,
            }
        ],
        "groups": inputs,
        "indirect": {"2": 256},
    }


def test_a_column_that_a_merge_leaves_as_it_is_says_nothing() -> None:
    graph = GraphBuilder(found("MERGE", [{"0": 1}, {"1": 1, "2": 1}], row_level=True), Catalogs()).build()
    assert shown(graph).sources == ("s",)
    assert shown(graph).columns == {"b": ("s.c IDENTITY",)}


def test_a_table_that_an_update_reads_for_another_column_is_a_source() -> None:
    graph = GraphBuilder(found("UPDATE", [{"1": 2}, {"1": 2}], row_level=True), Catalogs()).build()
    assert "t" in shown(graph).sources
    assert shown(graph).columns == {"a": ("t.b TRANSFORMATION",), "b": ("t.b TRANSFORMATION",)}


def test_an_insert_into_the_table_that_it_reads_keeps_it() -> None:
    graph = GraphBuilder(found("INSERT", [{"0": 1}, {}]), Catalogs()).build()
    assert shown(graph).sources == ("s", "t")
    assert shown(graph).columns == {"a": ("t.a IDENTITY",)}
    assert shown(graph).influences == ("s.c FILTER",)


def test_what_is_read_twice_is_one_source_with_all_its_ways() -> None:
    twice = found("INSERT", [{"0": 1, "2": 4}, {}])
    twice["sources"][1] = twice["sources"][0]
    twice["columns"][2] = [1, "a", "int"]
    graph = GraphBuilder(twice, Catalogs()).build()
    assert len(graph.sources) == len(graph.relations) == 1
    assert shown(graph).columns == {"a": ("t.a IDENTITY+AGGREGATION",)}


def test_merged_graphs_have_each_thing_once() -> None:
    one = GraphBuilder(found("INSERT", [{"0": 1}, {}]), Catalogs()).build()
    both = merged((one, one))
    assert both == one
    assert merged(()).sources == ()


DATASET = LineageDataset("orders", "mystore://host")


@pytest.mark.parametrize(
    ("edge", "said"),
    [
        (DATASET, "takes edges, such as TableLineageEdge(source, sink), not a LineageDataset"),
        (
            TableLineageEdge(DATASET, LineageVertex((DATASET,))),
            "an edge's source is a LineageDataset; expected",
        ),  # type: ignore[arg-type]
        (TableLineageEdge(LineageVertex((DATASET,)), "orders"), "an edge's sink is a str; expected"),  # type: ignore[arg-type]
        (TableLineageEdge(LineageVertex(DATASET), LineageVertex((DATASET,))), "source is a LineageVertex of"),  # type: ignore[arg-type]
    ],
    ids=["dataset", "source", "sink", "vertex"],
)
def test_edges_are_checked_at_the_call(edge: Any, said: str) -> None:
    """Before anything is asked of Spark."""
    with pytest.raises(TypeError) as raised:
        add_lineage_edges(None, edge)
    assert said in str(raised.value)

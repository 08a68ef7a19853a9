"""What functions of foreachBatch write, which is what their query writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.support.applications import App, cli
from tests.support.lakehouse import CONNECTORS, ON_4_1, lakehouse
from tests.support.lineage_shop import Shop, listeners
from tests.support.openlineage_schema import problems_of
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
WITH_PANDAS = pytest.mark.skipif(
    pyspark.__version__ < "4", reason="PySpark 3.5 fails in its own code with this pandas"
)
OF_RDD = "a DataFrame was made of an RDD: which columns that reads is not known"
OF_PROGRAM = "a DataFrame was made of the program's own data: where that is from is not known"
UNKNOWN = "what the query's function of foreachBatch writes is not known"
ORDERS = "data/orders"


@pytest.fixture(scope="module")
def batches(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("batches")
    conf = {**listeners(folder), "spark.log.level": "ERROR", "spark.sql.shuffle.partitions": "1"}
    if ON_4_1:
        conf |= lakehouse(folder)
    run = App(cli("run", "--master", "local[2]", str(APPS / "batches.py"), str(folder)), conf, folder).end(
        500
    )
    assert run.code == 0, run.out[-2000:] + run.err[-3000:]
    return Shop.read(run, folder)


def last(shop: Shop, query: str) -> dict[str, Any]:
    told = [event["lineage"] for event in shop.of(query) if "lineage" in event]
    return dict(told[-1])


def columns(shop: Shop, query: str, sink: str) -> dict[str, list[str]]:
    graph, place = last(shop, query), shop.lineage(query)[1].index(sink)
    return {
        column: [source["column"] for source in sources]
        for edge in graph["relations"]
        if edge["sink"] == place
        for column, sources in edge.get("columns", {}).items()
    }


def influences(shop: Shop, query: str, sink: str) -> set[str]:
    graph, place = last(shop, query), shop.lineage(query)[1].index(sink)
    edges = [edge for edge in graph["relations"] if edge["sink"] == place]
    return {source["column"] for edge in edges for source in edge.get("influences", ())}


@pytest.mark.parametrize(
    ("query", "sources", "sinks", "incomplete"),
    [
        ("two_writes", [ORDERS, "warehouse/kinds"], ["data/most", "warehouse/named"], ""),
        ("with_itself", [ORDERS], ["data/twice"], ""),
        ("cached", [ORDERS], ["data/double", "data/ids"], ""),
        ("checkpointed", [ORDERS], ["data/cut"], ""),
        ("by_rdd", [ORDERS], ["data/pairs"], OF_RDD),
        pytest.param("by_pandas", [ORDERS], ["data/of_pandas"], OF_PROGRAM, marks=WITH_PANDAS),
        ("by_itself", [ORDERS], [], UNKNOWN),
        ("in_threads", [ORDERS], ["data/of_thread0", "data/of_thread1"], ""),
        ("made_anew", [ORDERS], ["warehouse/anew"], ""),
        ("later", [ORDERS], ["data/later"], ""),
        pytest.param("merged", [ORDERS], ["warehouse/merged", "iceberg/db/merged"], "", marks=CONNECTORS),
        pytest.param(
            "replaced", [ORDERS], ["iceberg/db/replaced", "warehouse/replaced"], "", marks=CONNECTORS
        ),
    ],
)
def test_what_is_read_and_written(
    batches: Shop, query: str, sources: list[str], sinks: list[str], incomplete: str
) -> None:
    read, written = batches.lineage(query)
    assert (read, sorted(written)) == (sources, sorted(sinks))  # threads write in any order
    assert last(batches, query).get("incomplete", "") == incomplete
    fed = {(edge["source"], edge["sink"]) for edge in last(batches, query)["relations"]}
    assert {(0, place) for place in range(len(sinks))} <= fed


@pytest.mark.parametrize(
    ("query", "sink", "wanted"),
    [
        ("two_writes", "data/most", {"kind": ["kind"], "most": ["amount"]}),
        ("two_writes", "warehouse/named", {"name": ["name"], "amount": ["amount"]}),
        ("with_itself", "data/twice", {"id": ["id"], "again": ["amount"]}),
        ("cached", "data/double", {"double": ["amount"]}),
        ("cached", "data/ids", {"id": ["id"]}),
        ("checkpointed", "data/cut", {"more": ["amount"]}),
        ("by_rdd", "data/pairs", {}),
        pytest.param("by_pandas", "data/of_pandas", {}, marks=WITH_PANDAS),
        *(
            pytest.param("merged", sink, {"id": ["id"], "amount": ["amount"]}, marks=CONNECTORS)
            for sink in ("warehouse/merged", "iceberg/db/merged")
        ),
        *(
            pytest.param("replaced", sink, {key: [key] for key in ("id", "kind", "amount")}, marks=CONNECTORS)
            for sink in ("warehouse/replaced", "iceberg/db/replaced")
        ),
    ],
)
def test_the_columns(batches: Shop, query: str, sink: str, wanted: dict[str, list[str]]) -> None:
    assert columns(batches, query, sink) == wanted


@pytest.mark.parametrize(
    ("query", "sink", "wanted"),
    [
        ("two_writes", "data/most", {"amount", "kind"}),
        ("cached", "data/double", {"amount"}),
        ("checkpointed", "data/cut", {"amount", "kind"}),
    ],
)
def test_which_rows_there_are_is_decided_by_the_query_too(
    batches: Shop, query: str, sink: str, wanted: set[str]
) -> None:
    assert influences(batches, query, sink) == wanted


def test_that_nothing_is_known_is_told_with_the_first_batch(batches: Shop) -> None:
    """And no more, once something is."""
    told = [event["lineage"].get("incomplete", "") for event in batches.of("later") if "lineage" in event]
    assert told == ["", UNKNOWN, ""]


def test_it_is_told_once(batches: Shop) -> None:
    """However many batches write it."""
    told = [len(event["lineage"]["sinks"]) for event in batches.of("two_writes") if "lineage" in event]
    assert told == [0, 1, 2]


@CONNECTORS
def test_a_write_of_a_late_batch(batches: Shop) -> None:
    """Though each batch before it has written another version of a table."""
    assert batches.lineage("often")[1] == ["iceberg/db/often", "data/seldom"]


def test_openlineage_is_told(batches: Shop) -> None:
    events = [event for event in batches.openlineage if event["job"]["name"] == "batches.two_writes"]
    names = [{output["name"] for output in event["outputs"]} for event in events]
    folder = Path(batches.folder)
    assert names[-1] == {str(folder / "data" / "most"), str(folder / "warehouse" / "named")}
    assert [problem for event in batches.openlineage for problem in problems_of(event)] == []

"""What Spark reads to find the columns of CSV files."""

from __future__ import annotations

import pytest

from spark_events.api import LineageDataset, LineageGraph, SourceLineageVertex
from spark_events.api.lineage import TableSinkLineageVertex
from spark_events.jobs.header_reads import with_folder


def reading(*names: str, sinks: bool = False) -> LineageGraph:
    sources = SourceLineageVertex(tuple(LineageDataset(name, "file") for name in names))
    written = (TableSinkLineageVertex((LineageDataset("/lake/out", "file"),)),) if sinks else ()
    return LineageGraph((sources,), written)


READER = "org.apache.spark.sql.classic.DataFrameReader"


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ("/in/dates/export-2026-11-28.csv", "/in/dates"),
        ("/in/dates/2026-11-29.csv /in/dates/2026-11-28.csv", "/in/dates"),
        ("/in/dates/part-0.3394.csv", "/in/dates"),
        ("bucket/dates/7.csv.gz", "bucket/dates"),
        ("/in/dates", "/in/dates"),
        ("/in/orders.csv", "/in/orders.csv"),
        ("/in/monday.csv /in/sunday.csv", "/in"),
        ("/1.csv", "/1.csv"),
        ("1.csv", "1.csv"),
    ],
)
def test_which_file_it_is_does_not_matter(files: str, name: str) -> None:
    graph = with_folder(reading(*files.split()), {"call": f"{READER}.csv(DataFrameReader.scala:266)"})
    assert [str(each) for each in graph.inputs] == [name]


@pytest.mark.parametrize(
    ("graph", "record"),
    [
        (reading("/in/1.csv"), {"call": "org.apache.spark.sql.classic.Dataset.head(Dataset.scala:3)"}),
        (reading("/in/1.csv", sinks=True), {"call": "org.apache.spark.sql.DataFrameWriter.csv(W.scala:3)"}),
        (reading("/in/1.csv"), {"description": "csv at load.py:3"}),
    ],
    ids=["an action", "a write", "words"],
)
def test_other_statements(graph: LineageGraph, record: dict[str, str]) -> None:
    assert with_folder(graph, record) is graph


def test_what_a_log_has_of_it() -> None:
    """All of the stack, with any description."""
    stack = (
        f"{READER}.load(DataFrameReader.scala:59)\njava.base/jdk.internal.reflect.X.invoke0(Native Method)"
    )
    record = {"description": "the nightly load", "details": stack}
    (source,) = with_folder(reading("/in/export-1.csv"), record).inputs
    assert str(source) == "/in"

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


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ("/in/dates/export-2026-11-28.csv", "/in/dates"),
        ("/in/dates/2026-11-29.csv /in/dates/2026-11-28.csv", "/in/dates"),
        ("/in/dates/part-0.3394.csv", "/in/dates"),
        ("bucket/dates/7.csv.gz", "bucket/dates"),
        ("/in/dates", "/in/dates"),
        ("/in/orders.csv", "/in/orders.csv"),
        ("/1.csv", "/1.csv"),
        ("1.csv", "1.csv"),
    ],
)
def test_which_file_it_is_does_not_matter(files: str, name: str) -> None:
    graph = with_folder(reading(*files.split()), "csv at load.py:3")
    assert [str(each) for each in graph.inputs] == [name]


@pytest.mark.parametrize(
    ("graph", "description"),
    [
        (reading("/in/1.csv"), "head at load.py:3"),
        (reading("/in/1.csv", sinks=True), "csv at load.py:3"),
        (reading("/in/1.csv"), "csv at midnight"),  # the user's own words
    ],
    ids=["an action", "a write", "words"],
)
def test_other_statements(graph: LineageGraph, description: str) -> None:
    assert with_folder(graph, description) is graph

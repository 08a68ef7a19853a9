"""What a program measures of its data by ``observe``: told of a dataset if it is of all its rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.applications import App, cli
from tests.support.lineage_shop import Shop, listeners
from tests.support.openlineage_schema import problems_of
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]


@pytest.fixture(scope="module")
def observed(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("observed")
    command = cli("run", "--master", "local[2]", str(APPS / "observed.py"), str(folder))
    run = App(command, {**listeners(folder), "spark.log.level": "OFF"}, folder).end()
    assert run.code == 0, run.err[-3000:]
    return Shop.read(run, folder)


def complete(shop: Shop, name: str) -> dict[str, Any]:
    (event,) = [
        event
        for event in shop.openlineage
        if event["job"]["name"] == f"observed.{name}" and event["eventType"] == "COMPLETE"
    ]
    return event


def metrics(facet: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    columns = {
        column: {name: value for name, value in figures.items() if value not in (None, {})}
        for column, figures in facet["columnMetrics"].items()
    }
    return facet["rowCount"], columns


def test_all_rows_of_a_source(observed: Shop) -> None:
    """Those that a filter leaves of it are other rows."""
    event = complete(observed, "insert.data.filtered")
    (source,), (sink,) = event["inputs"], event["outputs"]
    amount = {"count": 8, "nullCount": 2, "min": 4, "max": 18, "sum": 88}
    assert metrics(source["inputFacets"]["dataQualityMetrics"]) == (10, {"amount": amount})
    assert "dataQualityMetrics" not in sink["facets"]


def test_all_rows_that_a_table_has_from_now_on(observed: Shop) -> None:
    event = complete(observed, "ctas.default.prices")
    (source,), (sink,) = event["inputs"], event["outputs"]
    price = {"count": 6, "nullCount": 0, "min": 9, "max": 19, "sum": 84}
    assert metrics(sink["facets"]["dataQualityMetrics"]) == (6, {"price": price})
    assert "dataQualityMetrics" not in source["inputFacets"]


def test_rows_that_are_added_to_others_say_nothing_of_the_table(observed: Shop) -> None:
    event = complete(observed, "insert.default.prices")
    assert "dataQualityMetrics" not in event["outputs"][0]["facets"]


@pytest.mark.parametrize("table", ["parts", "hive_parts"])
def test_rows_that_take_the_place_of_a_partition_say_nothing_of_the_table(observed: Shop, table: str) -> None:
    """Neither of one that is named, nor of those that the rows are in."""
    events = [
        event
        for event in observed.openlineage
        if event["job"]["name"] == f"observed.overwrite.default.{table}" and event["eventType"] == "COMPLETE"
    ]
    assert len(events) == (2 if table == "parts" else 1)
    assert not [event for event in events if "dataQualityMetrics" in event["outputs"][0]["facets"]]


@pytest.mark.parametrize("name", ["data.whole", "data.parts", "default.hive_whole", "default.again"])
def test_all_rows_that_a_folder_or_table_has_after_it_was_overwritten(observed: Shop, name: str) -> None:
    (sink,) = complete(observed, f"overwrite.{name}")["outputs"]
    assert metrics(sink["facets"]["dataQualityMetrics"])[0] == 6


@pytest.mark.parametrize("name", ["limited", "joined_and_limited", "offset", "sorted", "in_ranges"])
def test_rows_below_what_may_stop_reading_or_read_twice_say_nothing_of_the_source(
    observed: Shop, name: str
) -> None:
    (source,) = complete(observed, f"insert.data.{name}")["inputs"]
    assert "dataQualityMetrics" not in source["inputFacets"]


@pytest.mark.parametrize("name", ["joined", "shuffled", "counted"])
def test_rows_below_what_reads_all_once_are_those_of_the_source(observed: Shop, name: str) -> None:
    (source,) = complete(observed, f"insert.data.{name}")["inputs"]
    assert metrics(source["inputFacets"]["dataQualityMetrics"])[0] == 10


def test_a_file_log_has_them(observed: Shop) -> None:
    (read,) = observed.of("insert.data.filtered")[-1]["read"]
    assert read["observed"]["rows"] == 10
    (made,) = observed.of("ctas.default.prices")[-1]["made"]
    assert made["observed"]["columns"]["price"]["nullCount"] == 0


def test_every_event_conforms_to_the_schemas(observed: Shop) -> None:
    assert [problem for event in observed.openlineage for problem in problems_of(event)] == []

"""Jobs that write RDDs, and DataFrames made of RDDs: what they read and write, without columns."""

from __future__ import annotations

from typing import Any

import pyspark
import pytest

from tests.support.applications import App, cli
from tests.support.lineage_shop import Shop, listeners
from tests.support.openlineage_schema import problems_of
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]
WITH_PANDAS = pytest.mark.skipif(
    pyspark.__version__ < "4", reason="PySpark 3.5 fails in its own code with this pandas"
)

NO_COLUMNS = "RDDs have no columns"
OF_RDD = "a DataFrame was made of an RDD: which columns that reads is not known"

OF_MEMORY = "a streaming query keeps its rows in memory: where those are from is not known"
OF_PROGRAM = "a DataFrame was made of the program's own data: where that is from is not known"


@pytest.fixture(scope="module")
def rdds(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("rdds")
    command = cli("run", "--master", "local[2]", str(APPS / "rdds.py"), str(folder))
    run = App(command, {**listeners(folder), "spark.log.level": "OFF"}, folder).end()
    assert run.code == 0, run.err[-3000:]
    return Shop.read(run, folder)


@pytest.mark.parametrize(
    ("name", "sources", "sinks", "incomplete"),
    [
        ("insert.data.counted", ["data/words"], ["data/counted"], NO_COLUMNS),
        ("insert.data.united", ["data/words", "data/more"], ["data/united"], NO_COLUMNS),
        ("insert.data.whole", ["data/words"], ["data/whole"], NO_COLUMNS),
        ("insert.data.from_whole", ["data/whole"], ["data/from_whole"], NO_COLUMNS),
        ("insert.data.of_table", ["data/words", "warehouse/numbers"], ["data/of_table"], NO_COLUMNS),
        ("insert.data.of_nothing", [], ["data/of_nothing"], NO_COLUMNS),
        ("insert.data.failing", ["data/words"], ["data/failing"], NO_COLUMNS),
        ("insert.data.made", ["warehouse/numbers"], ["data/made"], OF_RDD),
        ("insert.data.of_list", [], ["data/of_list"], OF_PROGRAM),
        ("insert.data.of_pandas_true", [], ["data/of_pandas_true"], OF_PROGRAM),
        ("insert.data.of_pandas_false", [], ["data/of_pandas_false"], OF_PROGRAM),
        ("insert.data.of_values", [], ["data/of_values"], ""),
        ("insert.data.of_memory", [], ["data/of_memory"], OF_MEMORY),
        pytest.param(
            "insert.data.by_pandas", ["warehouse/numbers"], ["data/by_pandas"], "", marks=WITH_PANDAS
        ),
        ("insert.heard", ["told"], ["heard"], ""),
        ("batches", ["data/words"], ["data/batch-0"], NO_COLUMNS),
    ],
)
def test_what_is_read_and_written(
    rdds: Shop, name: str, sources: list[str], sinks: list[str], incomplete: str
) -> None:
    assert rdds.lineage(name) == (sources, sinks)
    assert [event["lineage"] for event in rdds.of(name) if "lineage" in event][-1].get(
        "incomplete", ""
    ) == incomplete


def kind(shop: Shop, name: str) -> set[Any]:
    return {event["jobKind"] for event in shop.of(name)}


def test_each_is_one_job_that_ends(rdds: Shop) -> None:
    assert rdds.statuses("insert.data.counted") == ["CREATED", "RUNNING", "FINISHED"]
    assert kind(rdds, "insert.data.counted") == {"rdd_job"}
    assert rdds.statuses("insert.data.failing") == ["CREATED", "RUNNING", "FAILED"]
    assert rdds.of("insert.data.failing")[-1]["exception"]["type"].endswith("ZeroDivisionError")


@WITH_PANDAS
def test_columns_by_pandas_on_spark(rdds: Shop) -> None:
    told = [event["lineage"] for event in rdds.of("insert.data.by_pandas") if "lineage" in event][-1]
    (edge,) = told["relations"]
    columns = {
        column: [source["column"] for source in sources] for column, sources in edge["columns"].items()
    }
    assert columns == {"id": ["id"], "twice": ["twice"], "more": ["twice"]}
    assert list(edge["expressions"]) == ["more"]


def test_an_action_that_writes_nothing_is_no_job(rdds: Shop) -> None:
    """What ``foreach`` does may be to write: that is told, and that nobody knows where."""
    told = [event for event in rdds.jobs if event["jobKind"] == "rdd_job" and "lineage" in event]
    reading = [event for event in told if not event["lineage"]["sinks"]]
    assert [event["jobName"] for event in reading] == ["read.data.words"]
    assert "foreach" in reading[0]["lineage"]["incomplete"]


def test_what_a_batch_writes_is_fed_by_the_query(rdds: Shop) -> None:
    told = [event["lineage"] for event in rdds.of("batches") if "lineage" in event][-1]
    assert [(edge["source"], edge["sink"]) for edge in told["relations"]] == [(0, 0)]


def test_openlineage_is_told(rdds: Shop) -> None:
    (complete,) = [
        event
        for event in rdds.openlineage
        if event["job"]["name"] == "rdds.insert.data.counted" and event["eventType"] == "COMPLETE"
    ]
    assert complete["job"]["facets"]["jobType"]["jobType"] == "RDD_JOB"
    assert [problem for event in rdds.openlineage for problem in problems_of(event)] == []

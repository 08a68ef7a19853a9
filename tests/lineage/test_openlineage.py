"""The OpenLineage listener: what it says of a real application, and what becomes of it on the way."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from uuid import UUID

import pytest

from tests.support.lineage_shop import Shop
from tests.support.openlineage_schema import problems_of

pytestmark = pytest.mark.spark

AIRFLOW = "0197d6ab-0000-7000-8000-000000000001"


def of_job(shop: Shop, name: str) -> list[dict[str, Any]]:
    return [event for event in shop.openlineage if event["job"]["name"] == name]


def test_every_event_conforms_to_the_schemas(shop: Shop) -> None:
    assert len(shop.openlineage) > 40
    assert [problem for event in shop.openlineage for problem in problems_of(event)] == []


def test_a_problem_would_be_seen(shop: Shop) -> None:
    event = of_job(shop, "shop.ctas.default.sums")[0]
    wrong = {**event, "eventType": "STARTED", "run": {**event["run"], "runId": "7"}}
    wrong["job"] = {**event["job"], "facets": {"jobType": {"processingType": "BATCH"}}}
    assert len(problems_of(wrong)) >= 4


def test_each_run_begins_and_ends_once(shop: Shop) -> None:
    runs = defaultdict(list)
    for event in shop.openlineage:
        UUID(event["run"]["runId"])
        runs[event["run"]["runId"]].append(event["eventType"])
    for types in runs.values():
        assert types[0] == "START"
        assert [one for one in types if one in ("COMPLETE", "FAIL", "ABORT")] == types[-1:]


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("shop", "COMPLETE"),
        ("shop.ctas.default.sums", "COMPLETE"),
        ("shop.insert.data.in_task", "FAIL"),
        ("shop.insert.data.in_driver", "FAIL"),
        ("shop.insert.data.slow", "ABORT"),
        ("shop.doubled", "COMPLETE"),
        ("shop.into_table", "ABORT"),
        ("shop.failing", "FAIL"),
    ],
)
def test_the_last_event(shop: Shop, name: str, last: str) -> None:
    assert of_job(shop, name)[-1]["eventType"] == last


def test_what_only_reads_is_left_out(shop: Shop) -> None:
    assert not [event for event in shop.openlineage if ".read." in event["job"]["name"]]


def test_a_run_says_whose_part_it_is(shop: Shop) -> None:
    application = of_job(shop, "shop")[0]["run"]
    parent = of_job(shop, "shop.doubled")[0]["run"]["facets"]["parent"]
    assert parent["run"]["runId"] == application["runId"]
    assert parent["job"] == {"namespace": "default", "name": "shop", "facets": {}}
    assert parent["root"]["run"]["runId"] == AIRFLOW
    assert application["facets"]["parent"]["run"]["runId"] == AIRFLOW
    assert application["facets"]["parent"]["job"]["name"] == "load.shop"


def test_what_a_statement_makes_is_said_at_its_end(shop: Shop) -> None:
    start, *_, complete = of_job(shop, "shop.ctas.default.sums")
    (before,), (after,) = start["outputs"], complete["outputs"]
    assert "lifecycleStateChange" not in before["facets"]
    assert after["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    assert after["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert after["name"] == str(shop.folder / "warehouse" / "sums")
    assert after["facets"]["catalog"]["name"] == "spark_catalog"
    (symlink,) = after["facets"]["symlinks"]["identifiers"]
    assert symlink == {
        "namespace": f"file:{shop.folder}/warehouse",
        "name": "default.sums",
        "type": "TABLE",
    }
    (read,) = complete["inputs"]
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 100
    assert read["inputFacets"]["inputStatistics"]["fileCount"] > 0
    total = after["facets"]["columnLineage"]["fields"]["total"]["inputFields"]
    assert [(one["name"], one["field"]) for one in total] == [
        (str(shop.folder / "data" / "orders"), "amount")
    ]
    assert total[0]["transformations"][0]["subtype"] == "AGGREGATION"
    grouped = after["facets"]["columnLineage"]["dataset"]
    assert [one["field"] for one in grouped] == ["customer"]
    assert complete["job"]["facets"]["sql"]["query"].startswith("CREATE TABLE sums")


def test_a_failure_is_told(shop: Shop) -> None:
    facet = of_job(shop, "shop.insert.data.in_driver")[-1]["run"]["facets"]["errorMessage"]
    assert "already exists" in facet["message"]
    assert facet["stackTrace"]


def test_a_query_is_streaming_and_has_all_it_writes(shop: Shop) -> None:
    last = of_job(shop, "shop.batches")[-1]
    assert last["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert [one["name"].rsplit("/", 1)[-1] for one in last["outputs"]] == ["most", "copy"]
    assert [one["name"].rsplit("/", 1)[-1] for one in last["inputs"]] == ["orders"]

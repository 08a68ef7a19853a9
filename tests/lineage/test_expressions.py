"""The texts of the expressions that compute columns: short, and without secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_events.lineage import lineage_of
from tests.support.openlineage_schema import problems_of
from tests.support.told_jobs import STATEMENT_CREATED, Told, lineage_record


@pytest.mark.spark
def test_the_text_of_an_expression(spark: Any) -> None:
    """The one that computes a column last, with the names at its place; none of a column that is passed on."""
    graph = lineage_of(
        spark,
        "INSERT INTO totals SELECT upper(n), CAST(t * 2 AS DECIMAL(20, 2)), 7 FROM"
        " (SELECT c.name AS n, sum(o.amount) AS t FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.name)",
    )
    assert {
        name: text.replace("__auto_generated_subquery_name.", "")
        for name, text in graph.expressions(graph.sinks[0]).items()
    } == {"name": "upper(n)", "total": "CAST((t * CAST(2 AS DECIMAL(1,0))) AS DECIMAL(20,2))"}

    passed_on = lineage_of(
        spark,
        "INSERT INTO totals SELECT name, t, n FROM (SELECT name, sum(id) t, count(1) n FROM customers GROUP BY name)",
    )
    texts = passed_on.expressions(passed_on.sinks[0])
    assert "name" not in texts
    assert "sum(" in texts["total"]


@pytest.mark.spark
def test_a_huge_expression_has_no_text(spark: Any) -> None:
    sum_of_many = " + ".join(["amount"] * 400)
    graph = lineage_of(spark, f"INSERT INTO totals SELECT 'x', {sum_of_many}, 1 FROM orders")
    assert graph.column_edges(graph.sinks[0])["total"]
    assert graph.expressions(graph.sinks[0]) == {}


@pytest.mark.spark
def test_a_subquery_has_no_text(spark: Any) -> None:
    """Spark's words for it have what it is compared with, and not what it computes."""
    most = "(SELECT max(amount) FROM orders o WHERE o.customer = c.id)"
    graph = lineage_of(spark, f"INSERT INTO totals SELECT c.name, {most}, 1 FROM customers c")
    assert graph.column_edges(graph.sinks[0])["total"]
    assert graph.expressions(graph.sinks[0]) == {}


@pytest.mark.spark
def test_a_long_text_is_cut(spark: Any) -> None:
    graph = lineage_of(spark, f"INSERT INTO totals SELECT concat(name, '{'x' * 1000}'), 1, 1 FROM customers")
    text = graph.expressions(graph.sinks[0])["name"]
    assert len(text) == 500
    assert text.endswith("…")


@pytest.mark.spark
def test_the_value_that_update_gives(lineage: Any, spark: Any) -> None:
    graph = lineage_of(
        spark,
        "INSERT INTO customers SELECT id, CASE WHEN id > 1 THEN name ELSE 'x' END, country FROM customers",
    )
    (text,) = graph.expressions(graph.sinks[0]).values()
    assert text.startswith("CASE WHEN")


def test_they_have_no_secrets_and_reach_openlineage(tmp_path: Path) -> None:
    """As the description of what makes the value; what decides which value there is has none."""
    file = tmp_path / "lineage.jsonl"
    told = Told(
        "hunter2",
        __ol__factory__class="openlineage",
        __ol__transport__type="file",
        __ol__transport__path=str(file),
        __log__factory__class="file_log",
        __log__path=str(tmp_path / "jobs"),
    )
    lineage = lineage_record()
    lineage["sinks"][0]["expressions"] = {"b": "sha2(concat(a, 'hunter2'), 256)"}
    transformation, masking, conditional = 2, 8, 16
    lineage["groups"] = [{"0": transformation | masking | conditional}]
    told.record(STATEMENT_CREATED, executionId=1, lineage=lineage)
    told.close()

    event = [json.loads(line) for line in file.read_text().splitlines()][-1]
    assert problems_of(event) == []
    (field,) = event["outputs"][0]["facets"]["columnLineage"]["fields"]["b"]["inputFields"]
    assert [
        (kind["subtype"], kind.get("description"), kind["masking"]) for kind in field["transformations"]
    ] == [
        ("TRANSFORMATION", "sha2(concat(a, '******'), 256)", True),
        ("CONDITIONAL", None, True),
    ]
    (log,) = (tmp_path / "jobs").iterdir()
    (created,) = [
        event
        for event in map(json.loads, log.read_text().splitlines())
        if event["event"] == "JobCreatedEvent" and event["jobKind"] == "statement"
    ]
    assert created["lineage"]["relations"][0]["expressions"] == {"b": "sha2(concat(a, '******'), 256)"}

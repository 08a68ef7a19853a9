"""A statement of a real Delta or Iceberg right before ``spark.stop()``: nothing of its lineage is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.lakehouse import CONNECTORS, lakehouse
from tests.support.lineage_shop import Shop, listeners
from tests.support.paths import APPS

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.spark,
    CONNECTORS,
]
STATEMENTS = {
    "ctas": "CREATE TABLE {table} USING {of_format} AS SELECT * FROM parquet.rows",
    "insert": "INSERT INTO {table} SELECT * FROM parquet.rows",
    "merge": "MERGE INTO {table} t USING parquet.rows s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "alter": "ALTER TABLE {table} ADD COLUMNS (more INT)",
}


@pytest.mark.parametrize("verb", STATEMENTS)
@pytest.mark.parametrize(
    ("of_format", "table", "place"),
    [("delta", "default.t", "warehouse/t"), ("iceberg", "ice.shop.t", "iceberg/shop/t")],
)
def test_all_is_told(java: str, tmp_path: Path, verb: str, of_format: str, table: str, place: str) -> None:
    conf = {**listeners(tmp_path), **lakehouse(tmp_path), "spark.log.level": "OFF"}
    app = cli(
        "run", "--master", "local[2]", str(APPS / "last_statement.py"), table, of_format, STATEMENTS[verb]
    )
    run = App(app, conf, tmp_path).end(300)
    assert run.code == 0, run.out[-2000:] + run.err[-2000:]
    shop = Shop.read(run, tmp_path)

    name = f"{verb}.{table}"
    assert shop.statuses(name) == ["CREATED", "RUNNING", "FINISHED"]
    assert shop.lineage(name) == ([] if verb == "alter" else ["rows"], [place])
    told = [event["lineage"] for event in shop.of(name) if "lineage" in event][-1]
    columns = ["id", "twice", *(["more"] if verb == "alter" else [])]
    assert [field["name"] for field in told["sinks"][0]["datasets"][0]["schema"]] == columns
    assert [list(edge["columns"]) for edge in told["relations"]] == ([] if verb == "alter" else [columns])
    versions = [data.get("version") for data in shop.of(name)[-1].get("made", ())]
    assert len(versions) == (0 if verb == "alter" else 1)
    (completed,) = [
        event
        for event in shop.openlineage
        if event["job"]["name"] == f"last.{name}" and event["eventType"] == "COMPLETE"
    ]
    (output,) = completed["outputs"]
    assert output["name"] == str(tmp_path / place)
    assert output["facets"].get("version", {}).get("datasetVersion") == (versions or [None])[0]


@pytest.mark.parametrize(
    ("of_format", "table", "place"),
    [("delta", "default.t", "warehouse/t"), ("iceberg", "ice.shop.t", "iceberg/shop/t")],
)
def test_a_new_table_whose_plan_is_read_once_spark_has_stopped(
    java: str, tmp_path: Path, of_format: str, table: str, place: str
) -> None:
    """Its place is known all the same: Delta's catalog fails by then."""
    conf = {**listeners(tmp_path), **lakehouse(tmp_path), "spark.log.level": "OFF"}
    app = cli("run", "--master", "local[2]", str(APPS / "late_reading.py"), table, of_format)
    run = App(app, conf, tmp_path).end(300)
    assert run.code == 0, run.out[-2000:] + run.err[-2000:]
    shop = Shop.read(run, tmp_path)

    assert shop.statuses(f"ctas.{table}") == ["CREATED", "RUNNING", "FINISHED"]
    assert shop.lineage(f"ctas.{table}") == (["rows"], [place])

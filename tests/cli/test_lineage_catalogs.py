"""The lineage of SQL files and manifests that name tables of several catalogs, none of which is reached."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.warm_commands import WarmCommands, run_command

pytestmark = [pytest.mark.spark, pytest.mark.extended]

TABLES = """
CREATE NAMESPACE ice.shop;
CREATE DATABASE shop;
CREATE TABLE shop.orders (id INT, paid BOOLEAN) USING parquet;
CREATE TABLE ice.shop.orders (id INT, price DECIMAL(10,2), at TIMESTAMP)
  USING iceberg PARTITIONED BY (days(at)) LOCATION '{0}/orders';
CREATE TABLE unity.shop.orders (id INT, amount DECIMAL(10,2)) USING delta;
"""
JOBS = """
INSERT INTO ice.shop.orders SELECT id, 1, now() FROM shop.orders WHERE paid;
MERGE INTO unity.shop.orders t USING ice.shop.orders s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET amount = s.price WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.price);
CREATE OR REPLACE VIEW ice.shop.recent (number, much) COMMENT 'of today' AS
  WITH today AS (SELECT * FROM ice.shop.orders WHERE at > current_date())
  SELECT id, price FROM today;
CREATE VIEW loud AS SELECT number, much * 2 AS more FROM ice.shop.recent;
CREATE TABLE unity.shop.loud USING delta AS SELECT number, more FROM loud;
USE ice.shop;
CREATE TABLE sums (id INT, total DECIMAL(20,2)) USING iceberg;
INSERT OVERWRITE sums SELECT id, sum(price) FROM orders GROUP BY id;
ALTER TABLE sums ADD COLUMN more INT;
INSERT INTO spark_catalog.shop.orders SELECT more, true FROM sums;
CREATE VIEW gone AS SELECT * FROM sums; DROP VIEW gone; DROP TABLE IF EXISTS ice.shop.never;
"""


def run(
    warm: WarmCommands | None, folder: Path, *arguments: str, conf: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {"COLUMNS": "160"}
    if conf is not None:
        environment["SPARK_CONF_DIR"] = str(conf)
    return run_command("lineage", "plan", *arguments, cwd=folder, environment=environment, warm=warm)


def edges(done: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], dict[str, Any]]:
    rows = json.loads(done.stdout)
    return {
        (row["source"], row["sink"]): row["columns"]
        for row in rows
        if "-" not in (row["source"], row["sink"])
    }


@pytest.fixture
def folder(java: str, tmp_path: Path) -> Path:
    (tmp_path / "tables.sql").write_text(TABLES.format(tmp_path))
    (tmp_path / "jobs.sql").write_text(JOBS)
    return tmp_path


def test_tables_of_the_same_name_in_several_catalogs(folder: Path, warm: WarmCommands) -> None:
    """And views of another catalog, which count as tables; without any catalog's class."""
    (folder / "orders").mkdir()
    (folder / "orders" / "rows").write_text("mine")
    before = sorted(folder.rglob("*"))

    done = run(warm, folder, "tables.sql", "jobs.sql", "--format", "json")

    assert done.returncode == 0, done.stderr
    found = edges(done)
    assert set(found) == {
        ("shop.orders", "ice.shop.orders"),
        ("ice.shop.orders", "unity.shop.orders"),
        ("ice.shop.orders", "ice.shop.recent"),
        ("ice.shop.recent", "unity.shop.loud"),
        ("ice.shop.orders", "ice.shop.sums"),
        ("ice.shop.sums", "shop.orders"),
        ("ice.shop.sums", "ice.shop.gone"),
    }
    assert found["ice.shop.orders", "unity.shop.orders"]["amount"] == ["price"]
    assert found["ice.shop.orders", "ice.shop.recent"] == {"number": ["id"], "much": ["price"]}
    assert found["ice.shop.recent", "unity.shop.loud"]["more"] == ["much"]
    assert found["ice.shop.sums", "shop.orders"]["id"] == ["more"]
    assert sorted(folder.rglob("*")) == before


def test_views_of_another_catalog_are_altered(folder: Path, warm: WarmCommands) -> None:
    """As Spark's own are: by another query, properties and names, whether or not the catalog is the current one."""
    (folder / "views.sql").write_text(
        "CREATE VIEW ice.shop.recent AS SELECT id, price FROM ice.shop.orders;\n"
        "ALTER VIEW ice.shop.recent AS\nSELECT id, price * 2 AS doubled FROM ice.shop.orders;\n"
        "ALTER /* no TABLE */ VIEW ice.shop.recent SET TBLPROPERTIES ('k' = 'VIEW');\n"
        "ALTER VIEW ice.shop.recent UNSET TBLPROPERTIES ('k');\n"
        "ALTER VIEW ice.shop.recent RENAME TO ice.shop.newest;\n"
        "USE ice.shop; ALTER VIEW newest RENAME TO last;\n"
        "CREATE VIEW spark_catalog.shop.own AS SELECT id FROM spark_catalog.shop.orders;\n"
        "ALTER VIEW spark_catalog.shop.own AS SELECT paid FROM spark_catalog.shop.orders;\n"
        "ALTER VIEW spark_catalog.shop.own RENAME TO shop.own2;\n"
        "CREATE TABLE sums AS SELECT doubled, paid FROM last, spark_catalog.shop.own2;\n"
    )
    done = run(warm, folder, "tables.sql", "views.sql", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = edges(done)
    assert found["ice.shop.orders", "ice.shop.recent"] == {"id": ["id"], "doubled": ["price"]}
    assert found["ice.shop.last", "ice.shop.sums"] == {"doubled": ["doubled"]}
    assert found["shop.orders", "ice.shop.sums"] == {"paid": ["paid"]}


@pytest.mark.parametrize("change", ["AS SELECT 1", "SET TBLPROPERTIES ('k' = 'v')", "RENAME TO shop.there"])
def test_a_view_of_another_catalog_that_is_missing(folder: Path, change: str, warm: WarmCommands) -> None:
    (folder / "views.sql").write_text(f"ALTER VIEW ice.shop.missing {change};")
    done = run(warm, folder, "tables.sql", "views.sql")
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "views.sql:1: [TABLE_OR_VIEW_NOT_FOUND] The table or view `ice`.`shop`.`missing`" in said


def test_what_a_change_affects_across_catalogs(folder: Path, warm: WarmCommands) -> None:
    done = run(
        warm, folder, "tables.sql", "jobs.sql", "--impact", "ice.shop.orders.price", "--fail-on", "impact",
        "--format", "json",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    affected = {(row["data"], row["column"]) for row in json.loads(done.stdout)}
    assert {("unity.shop.orders", "amount"), ("unity.shop.loud", "more")} <= affected


def test_mistakes_are_said_with_their_lines(folder: Path, warm: WarmCommands) -> None:
    (folder / "wrong.sql").write_text(
        "INSERT INTO unity.shop.orders SELECT id, 1 FROM ice.shop.missing;\n"
        "CREATE VIEW ice.shop.wrong AS\nSELECT id,\n nothing FROM ice.shop.orders;\n"
        "CREATE TABLE ice.shop.orders (id INT);\n"
    )
    done = run(warm, folder, "tables.sql", "wrong.sql")
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "wrong.sql:1: [TABLE_OR_VIEW_NOT_FOUND] The table or view `ice`.`shop`.`missing`" in said
    assert "put its CREATE TABLE into an SQL file that comes first" in said
    assert "wrong.sql:4: [UNRESOLVED_COLUMN" in said
    assert "wrong.sql:5: [TABLE_OR_VIEW_ALREADY_EXISTS]" in said


def test_catalogs_that_spark_is_configured_for_are_not_reached(folder: Path) -> None:
    """Not even by names of two parts, nor in the place of Spark's own."""
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(
        "spark.sql.catalog.ice org.nowhere.Catalog\nspark.sql.catalog.spark_catalog org.nowhere.Session\n"
    )
    (folder / "two.sql").write_text(
        "CREATE TABLE ice.raw (id INT); CREATE TABLE copied AS SELECT id FROM ice.raw; DROP TABLE ice.raw;"
    )
    done = run(None, folder, "two.sql", "--format", "json", conf=folder / "conf")
    assert done.returncode == 0, done.stderr
    assert [row["sink"] for row in json.loads(done.stdout) if row["source"] != "-"] == ["default.copied"]


def test_the_files_of_a_folder_wait_for_tables_of_each_others_catalogs(
    folder: Path, warm: WarmCommands
) -> None:
    (folder / "sql").mkdir()
    (folder / "sql" / "a.sql").write_text("USE ice.shop; INSERT INTO unity.shop.x SELECT id FROM y;")
    (folder / "sql" / "b.sql").write_text(
        "CREATE TABLE unity.shop.x (id INT); CREATE TABLE ice.shop.y (id INT);"
    )
    (folder / "sql" / "c.sql").write_text(
        "CREATE DATABASE ice_too; CREATE TABLE here AS SELECT id FROM ice.shop.y;"
    )
    done = run(warm, folder, "tables.sql", "sql", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert set(edges(done)) == {("ice.shop.y", "unity.shop.x"), ("ice.shop.y", "default.here")}


def test_a_manifest_whose_target_is_in_another_catalog(folder: Path, warm: WarmCommands) -> None:
    (folder / "query.yaml").write_text(
        "name: copy\ntarget-table: unity.shop.orders\nsparkProperties:\n"
        "  spark.sql.catalog.unity: org.nowhere.Catalog\n"
        "sql: |\n  SELECT id, price AS amount FROM ice.shop.orders\n"
    )
    (folder / "template.yaml").write_text("include-query-metadata: false\n")
    done = run(
        warm, folder, "tables.sql", "query.yaml", "--template-file", "template.yaml", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    assert edges(done)["ice.shop.orders", "unity.shop.orders"] == {"id": ["id"], "amount": ["price"]}

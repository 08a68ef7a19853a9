"""Manifests as a spec of Spark Declarative Pipelines: it is what spark-pipelines takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_events.sql_runner.pipelines import Export, export_pipeline
from tests.sql_runner.shop import Bench

pytestmark = pytest.mark.spark


def export(bench: Bench, folder: Path, *manifests: dict[str, Any]) -> Export:
    return export_pipeline(bench.analyst, bench._read(manifests), folder, f"file://{folder}/storage")


def test_it_runs_and_writes_the_same_rows(bench: Bench, tmp_path: Path) -> None:
    if bench.analyst.spark_version < "4.1":
        pytest.skip("spark-pipelines came with PySpark 4.1")
    shop, folder = bench.shop, tmp_path / "pipeline"
    shop.order(2)
    sql = f"""
WITH cheap AS (SELECT * FROM default.{shop.prefix}orders o WHERE price < 5)
SELECT id, price -- {shop.prefix}orders
FROM cheap JOIN {shop.prefix}items USING (item)"""

    done = export(bench, folder, shop.manifest(sql=sql, description="it's cheap"))

    assert done.left_out == {}
    assert (
        f"FROM STREAM `{shop.prefix}orders` o WHERE" in (folder / "transformations" / "cheap.sql").read_text()
    )
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run", "--spec", "spark-pipeline.yml"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    written = list((folder / "spark-warehouse").rglob("part-*.json"))
    rows = [line for path in written for line in path.read_text().splitlines()]
    assert len(rows) == len(shop.cheap_ids())
    assert all('"__query_description":"it\'s cheap"' in row for row in rows)


def test_what_cannot_be_exported_is_said(bench: Bench, tmp_path: Path) -> None:
    shop = bench.shop
    code = f"execution_output = spark.readStream.table('{shop.prefix}orders').select('id', 'price')"
    wrong = shop.manifest("wrong", sql="SELECT nothing")

    done = export(
        bench,
        tmp_path / "p",
        shop.manifest("code", code=code),
        shop.manifest("update", output_mode="update"),
        wrong,
    )

    assert done.files == []
    assert set(done.left_out) == {"code", "update", "wrong"}
    assert "is code" in done.left_out["code"]
    assert "output-mode update" in done.left_out["update"]

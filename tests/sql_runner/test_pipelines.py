"""Manifests as a spec of Spark Declarative Pipelines: it is what spark-pipelines takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_events.sql_runner.analysis.pipelines import PipelineExport, export_pipeline
from tests.support.query_shop import COLUMNS, Bench

pytestmark = pytest.mark.spark


def export(bench: Bench, folder: Path, *manifests: dict[str, Any]) -> PipelineExport:
    return export_pipeline(bench.analyst, bench._read(manifests), folder, f"file://{folder}/storage")


@pytest.mark.thorough
def test_it_runs_and_writes_the_same_rows(bench: Bench, tmp_path: Path) -> None:
    """Also where one query reads what another writes."""
    if bench.analyst.spark_version < "4.1":
        pytest.skip("spark-pipelines came with PySpark 4.1")
    shop, folder = bench.shop, tmp_path / "pipeline"
    shop.order(2)
    sql = f"""
WITH cheap AS (SELECT * FROM default.{shop.prefix}orders o WHERE price < 5)
SELECT id, price -- {shop.prefix}orders
FROM cheap JOIN {shop.prefix}items USING (item)"""

    done = export(
        bench,
        folder,
        shop.manifest(sql=sql, description="it's\ncheap"),
        shop.step("again", "out", "other"),
    )

    assert done.left_out == {}
    texts = {path.stem: path.read_text() for path in (folder / "transformations").iterdir()}
    assert f"FROM STREAM `{shop.prefix}orders` o WHERE" in texts["cheap"]
    assert f"FROM STREAM `{shop.prefix}out`\n" in texts["again"]
    run_pipeline(folder)
    assert len(rows(folder, f"{shop.prefix}out")) == len(shop.cheap_ids())
    assert all('"__query_description":"it\'s\\ncheap"' in row for row in rows(folder, f"{shop.prefix}out"))
    assert len(rows(folder, f"{shop.prefix}other")) == len(shop.cheap_ids())


def run_pipeline(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run", "--spec", "spark-pipeline.yml"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]


def rows(folder: Path, table: str) -> list[str]:
    written = (folder / "spark-warehouse").rglob(f"{table}/part-*.json")
    return [line for path in written for line in path.read_text().splitlines()]


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


def test_a_watermark_of_a_table_that_the_pipeline_makes(bench: Bench, tmp_path: Path) -> None:
    """Spark analyses it at once, when there is no such table; so what reads that query's target reads files."""
    shop = bench.shop
    timed = "TBLPROPERTIES ('watermark.column' = '__create_timestamp', 'watermark.delay' = '1 minute')"
    bench.define(shop.table("timed", COLUMNS, timed))
    manifests = (
        shop.step("a", "orders", "timed"),
        shop.step("b", "timed", "other"),
        shop.step("c", "other", "out"),
    )

    done = export(bench, tmp_path, *manifests)

    assert "which another manifest writes, with a watermark" in done.left_out.pop("b")
    assert done.left_out == {}
    sources = (tmp_path / "transformations" / "sources.py").read_text()
    assert f"temporary_view(name='{shop.prefix}other')" in sources
    assert f"temporary_view(name='{shop.prefix}timed')" not in sources

"""The examples of docs/ctas.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import REPO

pytestmark = pytest.mark.spark


def test_the_examples_run(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (REPO / "docs" / "ctas.md").read_text()
    first, second, third = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    spark.sql("CREATE DATABASE sales")
    spark.sql(
        "CREATE TABLE sales.orders USING parquet AS SELECT current_date() AS day, id AS amount FROM range(9)"
    )
    spark.range(5).write.parquet(str(tmp_path / "in"))
    names = {
        "spark": spark,
        "df": spark.range(4).selectExpr("id AS day", "id AS amount"),
        "stream": spark.readStream.schema("id long").parquet(str(tmp_path / "in")),
    }
    try:
        exec(first, names)
        assert (
            "spark_catalog.sales.daily was created with 1 rows (pointer, transaction "
            in capsys.readouterr().out
        )
        exec(second, names)
        assert spark.table("sales.daily").count() == 4
        exec(third, names)
        assert spark.table("events").count() == 5
    finally:
        spark.sql("DROP DATABASE sales CASCADE")

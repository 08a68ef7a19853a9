"""How many rows a statement has read: Spark reads what it sorts as a whole more than once, and counts all of it."""

from __future__ import annotations

import pytest

from tests.support.applications import App, cli
from tests.support.lineage_shop import Shop, listeners
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]


@pytest.fixture(scope="module")
def shop(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("rows")
    command = cli("run", "--master", "local[2]", str(APPS / "rows_read.py"), str(folder))
    run = App(command, {**listeners(folder), "spark.log.level": "OFF"}, folder).end()
    assert run.code == 0, run.err[-3000:]
    return Shop.read(run, folder)


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ("plain", 1000),
        ("sorted_within", 1000),
        ("sorted_true", None),
        ("sorted_false", None),
        ("ranges_true", None),
        ("ranges_false", None),
        # What an exchange keeps is sampled instead of the source,
        # and one range needs no sample.
        ("sorted_groups_true", 1000),
        ("sorted_groups_false", 1000),
        ("one_range_true", 1000),
        ("one_range_false", 1000),
    ],
)
def test_rows_that_are_read_for_a_sample_are_not_told(shop: Shop, written: str, rows: int | None) -> None:
    (read,) = shop.of(f"insert.data.{written}")[-1]["read"]
    assert read.get("rows") == rows
    assert (read["files"], read["bytes"] > 0) == (4, True)

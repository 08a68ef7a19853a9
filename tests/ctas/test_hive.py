"""Tables of a Hive metastore, in a process of their own: Derby takes one at a time."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support.applications import App
from tests.support.ctas_catalogs import configuration
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]


@pytest.fixture(scope="module")
def found(java: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("hive")
    (folder / "warehouse").mkdir()
    conf = {**configuration("hive", folder), "spark.events.ctas.replaced-files.retention": "1h"}
    ended = App([sys.executable, str(APPS / "ctas_hive.py"), str(folder)], conf, folder).end()
    assert ended.code == 0, ended.out[-2000:] + ended.err[-3000:]
    result: dict[str, Any] = json.loads(ended.out.splitlines()[-1])
    return result


@pytest.mark.parametrize(
    ("step", "level", "rows"),
    [
        ("parquet, partitioned", "pointer", 10),
        ("other format, more columns", "pointer", 8),
        ("other types at the same places", "rename", 8),
        ("other partitions", "rename", 5),
        ("a format that Hive does not know", "rename", 6),
        ("and another one, other columns", "pointer", 7),
        ("text of Hive", "rename", 4),
        ("text of Hive, replaced", "rename", 9),
        ("Hive's, partitioned", "rename", 4),
        ("Hive's, partitioned, replaced", "rename", 7),
        ("Hive's, replaced by files", "rename", 6),
        ("a location", "pointer", 4),
        ("Hive's at a location", "rename", 4),
        ("Hive's at a location, partitioned", "rename", 4),
        ("another database", "pointer", 3),
    ],
)
def test_each_kind_of_table(found: dict[str, Any], step: str, level: str, rows: int) -> None:
    assert found["steps"][step] == [level, rows, rows]


def test_the_metastore_itself_knows_where_the_files_are(found: dict[str, Any]) -> None:
    """Hive and Trino read there, and dropping the table removes what is there."""
    for name, (kind, where, true) in found["raw"].items():
        assert (kind, where) == ("EXTERNAL" if "location" in name else "MANAGED", true), name


def test_a_required_level_that_a_replacement_does_not_have(found: dict[str, Any]) -> None:
    assert found["refused"].startswith(
        "spark_catalog.default.t can only be created at level 'rename', but require='atomic': for a moment during "
        "the replacement, no table has its name; nothing was run"
    )


def test_what_drop_table_leaves(found: dict[str, Any]) -> None:
    assert found["left"] == []
    assert found["left_at_locations"] == ["files", "of_hive", "partitioned"]


def test_partitions_are_known_to_the_metastore(found: dict[str, Any]) -> None:
    assert found["partitions"] == {"t": 3, "p": 2, "p_at_location": 2}

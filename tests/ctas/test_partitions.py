"""Partitions in a Hive metastore, registered again and again: readers see all rows all the time."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, AppRun
from tests.support.ctas_catalogs import configuration
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]
ROWS = 100


@pytest.fixture(scope="module")
def seen(java: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("partitions")
    (folder / "warehouse").mkdir()
    killed = run(folder, "kill")
    assert killed.code == -signal.SIGKILL, killed.out[-2000:] + killed.err[-2000:]
    ended = run(folder, "go")
    assert ended.code == 0, ended.out[-2000:] + ended.err[-3000:]
    result: dict[str, Any] = json.loads(ended.out.splitlines()[-1])
    return result


def run(folder: Path, what: str) -> AppRun:
    conf = {**configuration("hive", folder), "spark.events.ctas.replaced-files.retention": "1h"}
    return App([sys.executable, str(APPS / "ctas_partitions.py"), str(folder), what], conf, folder).end()


def test_a_second_collection_changes_nothing(seen: dict[str, Any]) -> None:
    assert seen["added"] == 7  # which somebody has added since, with files elsewhere


def test_readers_see_all_rows_while_partitions_are_registered(seen: dict[str, Any]) -> None:
    assert seen["during"] == [ROWS, ROWS]
    assert seen["replaced"] == ROWS


def test_a_commit_that_is_finished_twice_keeps_its_partitions(seen: dict[str, Any]) -> None:
    assert seen["finished"] == ["committed"]
    assert seen["during_finish"] == [ROWS, ROWS]


def test_a_table_whose_driver_was_killed_before_its_partitions_were_registered(seen: dict[str, Any]) -> None:
    assert seen["killed"] == ROWS


def test_recover_repairs_a_table_without_partitions(seen: dict[str, Any]) -> None:
    assert seen["torn"] == 0
    assert seen["repaired"] == [[True, "its catalog had lost its partitions, and has them again"]]
    assert (seen["after"], seen["again"]) == (ROWS, [])

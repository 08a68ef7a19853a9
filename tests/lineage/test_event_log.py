"""Lineage out of the event log of the application whose lineage a driver told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_events.lineage.plan_info import NO_COLUMNS, read_plan_info
from tests.support.applications import AppRun
from tests.support.forked_commands import run_forked
from tests.support.lineage_shop import Shop

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def replayed(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("replayed")
    listener = "spark.job-status-changed.listener"
    conf = [f"{listener}s=file_log", f"{listener}.file_log.path={folder}"]
    options = [part for one in conf for part in ("--conf", one)]
    done = run_forked("replay", str(shop.folder / "event-log"), *options, check=True)
    jobs = [json.loads(line) for file in folder.iterdir() for line in file.read_text().splitlines()]
    return Shop(AppRun(0, done.stdout, done.stderr), shop.folder, jobs, [])


@pytest.mark.extended
def test_sources_and_sinks_are_those_that_the_driver_told(shop: Shop, replayed: Shop) -> None:
    different = {}
    for name in {event["jobName"] for event in shop.jobs}:
        told = shop.lineage(name)
        again = replayed.lineage(name) if replayed.of(name) else "nothing"
        if told != again:
            different[name] = again
    assert different == {
        # What the program said, or a provider in it, is in no log.
        "insert.heard": "nothing",
        "told_too": (["data/orders"], []),
        "into_table": ([], ["warehouse/ticks"]),
        # What DDL does to a table is in no log.
        "create.default.in_hive": "nothing",
        "create.default.ticks": "nothing",
        # The last of them is LOAD DATA, of which a log says its name alone.
        "insert.default.in_hive": (["warehouse/sums"], ["warehouse/in_hive"]),
        # The plan was cut, and a log does not say where.
        "insert.data.after_checkpoint": ([], ["data/after_checkpoint"]),
        "insert.data.cut_twice": ([], ["data/cut_twice"]),
        # The log says of a new table only that its files are written.
        "ctas.default.sums": "nothing",
        "ctas.default.hive_made": "nothing",
        "insert.default.saved": "nothing",
        # It failed before its first batch was done, and progress tells what it reads.
        "failing": ([], []),
    }
    assert replayed.lineage("overwrite.warehouse.sums") == (["data/orders"], ["warehouse/sums"])
    assert replayed.lineage("overwrite.warehouse.saved") == (["warehouse/sums"], ["warehouse/saved"])


@pytest.mark.extended
def test_what_misses_is_said(replayed: Shop) -> None:
    told = [event["lineage"] for event in replayed.jobs if event.get("lineage", {}).get("sinks")]
    assert told
    assert {graph["incomplete"] for graph in told} == {NO_COLUMNS}
    not_understood = {event.get("lineage", {}).get("incomplete") for event in replayed.of("statement")}
    assert f"{NO_COLUMNS}; not understood: Execute LoadDataCommand" in not_understood
    assert not any(edge["columns"] for graph in told for edge in graph["relations"])


@pytest.mark.extended
def test_statuses_are_the_same(shop: Shop, replayed: Shop) -> None:
    for name in ("insert.data.in_task", "insert.data.in_driver", "insert.data.slow", "failing", "shop"):
        assert replayed.statuses(name) == shop.statuses(name), name


def test_a_command_that_is_not_understood_is_named() -> None:
    plan = {"nodeName": "Execute SaveIntoDataSourceCommand", "simpleString": "…", "children": []}
    assert "not understood: Execute SaveIntoDataSourceCommand" in read_plan_info(plan)["incomplete"]


def test_paths_with_commas_and_many_files() -> None:
    location = "InMemoryFileIndex(3 paths)[file:/data/a, file:/data/b, ...]"
    plan = {
        "nodeName": "Execute InsertIntoHadoopFsRelationCommand",
        "simpleString": "Execute InsertIntoHadoopFsRelationCommand s3a://lake/a, b/out, false, [day#1], ORC, "
        "[path=x], Overwrite, `cat`.`db`.`t`, org.apache.hadoop.X, 1.2, [id, name]",
        "children": [
            {
                "nodeName": "Scan orc ",
                "simpleString": "",
                "metadata": {"Location": location, "Format": "ORC"},
            },
            {"nodeName": "Scan hive cat.db.other", "simpleString": "", "metadata": {}, "children": []},
        ],
    }
    found = read_plan_info(plan)
    assert [source["identity"] for source in found["sources"]] == [
        {"format": "orc", "paths": ["file:/data/a", "file:/data/b"]},
        {"format": "hive", "table": {"catalog": "cat", "database": "db", "table": "other"}},
    ]
    (sink,) = found["sinks"]
    assert sink["modify"] == "OVERWRITE"
    assert sink["identity"]["table"] == {"catalog": "cat", "database": "db", "table": "t"}
    assert sink["identity"]["paths"] == ["s3a://lake/a, b/out"]
    assert [column[0] for column in sink["columns"]] == ["id", "name"]


@pytest.mark.extended
def test_a_log_is_read_as_before_where_nobody_listens(shop: Shop) -> None:
    folder = Path(shop.folder / "event-log")
    run = run_forked("replay", str(folder))
    assert run.returncode == 0, run.stderr

"""What is told of the statements, live and from the event log."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import file_events
from tests.support.lineage_shop import Shop, listeners
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]


def reporter(folder: Path) -> dict[str, str]:
    prefix = "spark.events.reporter.file"
    return {f"{prefix}.factory.class": "file_log", f"{prefix}.path": str(folder)}


@pytest.fixture(scope="module")
def app(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("tables")
    logs = folder / "logs"
    logs.mkdir()
    conf = {
        **listeners(folder),
        **reporter(folder / "live"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.log.level": "OFF",
    }
    command = cli("run", "--master", "local[2]", str(APPS / "ctas_events.py"))
    run = App(command, conf, folder).end()
    assert run.code == 0, run.err[-3000:]
    replayed = [
        part for key, value in reporter(folder / "replayed").items() for part in ("--conf", f"{key}={value}")
    ]
    subprocess.run(cli("replay", str(logs), *replayed), check=True, capture_output=True, timeout=120)
    return Shop.read(run, folder)


def transitions(folder: Path) -> list[dict[str, Any]]:
    return [event for event in file_events(folder) if event["eventName"] == "TableTransactionEvent"]


def test_each_state_is_an_event(app: Shop) -> None:
    told = [
        (event["attributes"]["table"].rpartition(".")[2], event["attributes"]["transactionStatus"])
        for event in transitions(app.folder / "live")
    ]
    whole = ["INTENT", "PREPARED", "COMMITTED"]
    assert told == [
        *(("src", state) for state in whole),
        *(("dst", state) for state in whole * 2),
        ("bad", "INTENT"),
        ("bad", "ABORTED"),
    ]
    committed = transitions(app.folder / "live")[2]
    assert {key: committed["attributes"][key] for key in ("rows", "level", "purpose", "job_kind")} == {
        "rows": 100,
        "level": "pointer",
        "purpose": "CREATE",
        "job_kind": "statement",
    }
    aborted = transitions(app.folder / "live")[-1]
    assert (aborted["severityText"], "too much" in aborted["body"]) == ("WARN", True)


def test_the_event_log_tells_the_same(app: Shop) -> None:
    live, replayed = (transitions(app.folder / name) for name in ("live", "replayed"))
    assert len(live) == 11
    assert [(event["eventId"], event["attributes"]) for event in live] == [
        (event["eventId"], event["attributes"]) for event in replayed
    ]


def test_a_statement_is_one_job_that_finishes_with_its_commit(app: Shop) -> None:
    assert app.statuses("ctas.default.src") == ["CREATED", "RUNNING", "FINISHED"]
    assert app.statuses("ctas.default.bad") == ["CREATED", "RUNNING", "FAILED"]
    assert {event["jobName"] for event in app.jobs} == {
        "tables",
        "ctas.default.src",
        "ctas.default.dst",
        "ctas.default.bad",
    }
    committed = transitions(app.folder / "live")[2]
    finished = app.of("ctas.default.src")[-1]
    assert int(finished["timeUnixNano"]) >= int(committed["timeUnixNano"])
    assert finished["written"]["rows"] == 100


def test_a_table_keeps_its_name_in_lineage_when_it_is_replaced(app: Shop) -> None:
    told = [event["lineage"] for event in app.of("ctas.default.dst") if "lineage" in event]
    names = {
        (graph["sources"][0]["datasets"][0]["name"], graph["sinks"][0]["datasets"][0]["name"])
        for graph in told
    }
    assert names == {(f"{app.folder}/warehouse/src", f"{app.folder}/warehouse/dst")}
    assert len(told) == 2

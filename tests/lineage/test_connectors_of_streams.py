"""The versions that streaming queries write to real Delta and Iceberg tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="module")
def streamed(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("versions")
    conf = {
        **listeners(folder),
        "spark.events.lineage.progress-interval": "1ms",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "1",
        **lakehouse(folder),
    }
    command = cli("run", "--master", "local[2]", str(APPS / "stream_versions.py"), str(folder))
    run = App(command, conf, folder).end(500)
    assert run.code == 0, run.out[-2000:] + run.err[-2000:]
    return Shop.read(run, folder)


def committed(folder: Path, table: str) -> dict[int, str]:
    """Return the version that each micro-batch has committed, as the table itself says."""
    if table == "to_iceberg":
        snapshots = json.loads((folder / "data" / "snapshots.json").read_text())
        epochs = ((summary.get("spark.sql.streaming.epochId"), str(number)) for number, summary in snapshots)
        return {int(epoch): number for epoch, number in epochs if epoch is not None}
    versions = {}
    for file in (folder / "data" / table / "_delta_log").glob("*.json"):
        lines = map(json.loads, file.read_text().splitlines())
        (commit,) = [line["commitInfo"] for line in lines if "commitInfo" in line]
        if commit["operation"] == "STREAMING UPDATE":
            versions[int(commit["operationParameters"]["epochId"])] = str(int(file.stem))
    return versions


def made(event: dict[str, Any]) -> list[str]:
    return [data["version"] for data in event.get("made", ())]


@pytest.mark.parametrize("table", ["to_delta", "to_iceberg"])
def test_the_version_that_a_batch_has_written(streamed: Shop, table: str) -> None:
    """Others have written to the same table before and after it."""
    wanted = committed(streamed.folder, table)
    assert sorted(wanted) == [0, 1, 2, 3]
    told = [event for event in streamed.of(table) if event["event"] == "JobProgressEvent"]
    assert [(event["batch"], made(event)) for event in told] == [
        (batch, [wanted[batch]]) for batch in sorted(wanted)
    ]


@pytest.mark.parametrize("table", ["to_delta", "to_iceberg"])
def test_the_last_version_is_told_with_the_end_of_the_query(streamed: Shop, table: str) -> None:
    wanted = committed(streamed.folder, table)
    ends = [event for event in streamed.of(table) if event.get("newStatus") in ("FINISHED", "CANCELED")]
    assert [made(event) for event in ends] == [[wanted[2]], [wanted[3]]]
    outputs = [
        event["outputs"][0]["facets"].get("version", {}).get("datasetVersion")
        for event in streamed.openlineage
        if event["job"]["name"] == f"versions.{table}" and event["eventType"] == "COMPLETE"
    ]
    assert outputs[-1] == wanted[3]


def test_the_version_of_a_table_of_the_catalog(streamed: Shop) -> None:
    """Which was created as version 0."""
    assert made(streamed.of("to_table")[-1]) == ["1"]


def test_what_has_no_versions_ends_without_one(streamed: Shop) -> None:
    events = streamed.of("to_files")
    assert events[-1]["newStatus"] == "FINISHED"
    assert [event["event"] for event in events if made(event)] == []


def test_the_version_of_a_statement_right_before_the_end_of_the_application(streamed: Shop) -> None:
    told = [made(event) for event in streamed.jobs if event["jobName"].endswith("data.before_the_end")]
    assert [version for version in told if version] == [["0"], ["1"]]


def test_every_event_conforms_to_the_schemas(streamed: Shop) -> None:
    from tests.support.openlineage_schema import problems_of

    assert [problem for event in streamed.openlineage for problem in problems_of(event)] == []

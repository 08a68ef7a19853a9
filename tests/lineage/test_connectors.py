"""Lineage of real Delta and Iceberg tables, a real Kafka and a real PostgreSQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.applications import App, cli
from tests.support.lakehouse import CONNECTORS, lakehouse
from tests.support.lineage_shop import Shop, listeners
from tests.support.paths import APPS
from tests.support.servers import KafkaBroker, PostgreSql, jars, running_kafka, running_postgresql

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.spark,
    CONNECTORS,
]


@pytest.fixture(scope="module")
def broker(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with running_kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PostgreSql]:
    with running_postgresql() as server:
        yield server


@pytest.fixture(scope="module")
def connected(
    java: str, broker: KafkaBroker, postgresql: PostgreSql, tmp_path_factory: pytest.TempPathFactory
) -> Shop:
    folder = tmp_path_factory.mktemp("connectors")
    listener = "spark.job-status-changed.listener"
    postgres = "spark.sql.catalog.pg"
    conf = {
        **listeners(folder),
        f"{listener}.kafka.factory.class": "openlineage",
        f"{listener}.kafka.transport.type": "kafka",
        f"{listener}.kafka.transport.topic": "lineage",
        f"{listener}.kafka.transport.config": f"bootstrap.servers:{broker.servers}",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        **lakehouse(folder),
        "spark.jars": ",".join(map(str, [*jars("lakehouse"), *jars("postgresql")])),
        postgres: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{postgres}.url": postgresql.url,
        f"{postgres}.driver": "org.postgresql.Driver",
        f"{postgres}.user": "postgres",
    }
    app = APPS / "connectors.py"
    command = cli("run", "--master", "local[2]", str(app), str(folder), broker.servers, postgresql.url)
    run = App(command, conf, folder).end(500)
    assert run.code == 0, run.out[-2000:] + run.err[-2000:]
    return Shop.read(run, folder)


SOURCE = "data/source"
DELTA, ICEBERG = "warehouse/delta_table", "iceberg/db/iceberg_table"


@pytest.mark.parametrize(
    ("name", "sources", "sinks"),
    [
        *(
            (f"{verb}.{table}", sources, [place])
            for table, place in (("default.delta_table", DELTA), ("ice.db.iceberg_table", ICEBERG))
            for verb, sources in {
                "ctas": [SOURCE],
                "insert": [SOURCE],
                "overwrite": [SOURCE],
                "update": [place],
                "delete": [],
                "merge": [SOURCE],
            }.items()
        ),
        ("insert.data.from_delta", [DELTA], ["data/from_delta"]),
        ("insert.data.from_iceberg", [ICEBERG], ["data/from_iceberg"]),
        ("insert.data.delta_by_path", [DELTA], ["data/delta_by_path"]),
        ("ctas.ice.db.made", [SOURCE], ["iceberg/db/made"]),
        ("insert.ice.db.made", [SOURCE], ["iceberg/db/made"]),
        ("insert.data.from_branch", ["iceberg/db/made"], ["data/from_branch"]),
        ("insert.lines", [SOURCE], ["lines"]),
        ("insert.by_column", [SOURCE], ["by_column"]),
        ("insert.data.from_kafka", ["lines", "by_column"], ["data/from_kafka"]),
        ("to_kafka", ["lines"], ["copied"]),
        ("to_delta", ["li.*"], ["data/delta_stream"]),
        ("to_iceberg", ["lines"], ["iceberg/db/stream"]),
        ("from_delta", ["data/delta_stream"], ["data/from_delta_stream"]),
        ("insert.shop.public.things", [SOURCE], ["shop.public.things"]),
        ("insert.data.from_table", ["shop.public.things"], ["data/from_table"]),
        ("insert.data.from_query", ["shop.public.things"], ["data/from_query"]),
        ("ctas.pg.public.by_catalog", [SOURCE], ["shop.public.by_catalog"]),
        ("insert.pg.public.by_catalog", ["shop.public.things"], ["shop.public.by_catalog"]),
    ],
)
def test_sources_and_sinks(connected: Shop, name: str, sources: list[str], sinks: list[str]) -> None:
    assert connected.lineage(name) == (sources, sinks)


def test_namespaces(connected: Shop, broker: KafkaBroker, postgresql: PostgreSql) -> None:
    found = {
        (dataset["namespace"], dataset["name"])
        for event in connected.jobs
        for vertex in (
            *event.get("lineage", {}).get("sources", ()),
            *event.get("lineage", {}).get("sinks", ()),
        )
        for dataset in vertex["datasets"]
    }
    assert {space for space, name in found if name in ("lines", "copied", "li.*", "by_column")} == {
        f"kafka://{broker.servers}"
    }
    assert {space for space, name in found if "things" in name} == {postgresql.namespace}


@pytest.mark.parametrize("table", ["default.delta_table", "ice.db.iceberg_table"])
def test_columns_of_row_changes(connected: Shop, table: str) -> None:
    def columns(verb: str) -> dict[str, list[str]]:
        graph = [event["lineage"] for event in connected.of(f"{verb}.{table}") if "lineage" in event][-1]
        return {
            column: sorted(source["column"] for source in sources)
            for edge in graph["relations"]
            for column, sources in edge["columns"].items()
            if sources
        }

    assert columns("update") == {"v": ["id"]}
    assert columns("merge") == {"id": ["id"], "v": ["v"], "k": ["k"]}


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("insert.data.from_delta", r"\d"),
        ("insert.data.from_iceberg", r"\d{5,}"),
        ("insert.data.from_table", ""),
    ],
)
def test_the_version_that_was_read(connected: Shop, name: str, versions: str) -> None:
    """Delta counts versions, and Iceberg gives snapshots random ids."""
    (read,) = connected.of(name)[-1]["read"]
    assert re.fullmatch(versions, read.get("version", ""))
    assert read["rows"] == 10
    (complete,) = [
        event
        for event in connected.openlineage
        if event["job"]["name"] == f"connectors.{name}" and event["eventType"] == "COMPLETE"
    ]
    (input_dataset,) = complete["inputs"]
    assert input_dataset["facets"].get("version", {}).get("datasetVersion", "") == read.get("version", "")


def completed(shop: Shop, name: str) -> list[dict[str, Any]]:
    return [
        event
        for event in shop.openlineage
        if event["job"]["name"] == f"connectors.{name}" and event["eventType"] == "COMPLETE"
    ]


def written(shop: Shop, table: str, place: str = "") -> list[tuple[str, Any]]:
    """Return the version that each statement made of a table, and how many rows it wrote."""
    found = []
    for event in shop.jobs:
        is_end = event.get("newStatus") == "FINISHED" and event["jobName"].endswith(f".{place}{table}")
        if is_end and not event["jobName"].startswith(("create", "alter")):
            (event_made,) = event.get("made") or [{}]
            found.append((event_made.get("version", ""), event["written"].get("rows")))
    return found


def test_the_version_that_was_written_to_delta(connected: Shop) -> None:
    """CTAS, INSERT, OVERWRITE, UPDATE, DELETE, one that changes nothing, MERGE, REPLACE."""
    rows = [10, 10, 8, 8, None, None, 10, 10]
    versions = ["0", "1", "2", "3", "4", "", "5", "6"]
    assert [version for version, _ in written(connected, "delta_table")] == versions
    told = [amount for _, amount in written(connected, "delta_table")]
    assert [one if wanted is not None else None for one, wanted in zip(told, rows, strict=True)] == rows
    (complete,) = completed(connected, "ctas.default.delta_table")
    (output,) = complete["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == "0"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 10
    assert output["outputFacets"]["outputStatistics"]["fileCount"] > 0
    assert written(connected, "delta_by_path") == [("0", 10)]


def test_deltas_own_log_is_no_data(connected: Shop) -> None:
    read = [data["name"] for event in connected.jobs for data in event.get("read", ())]
    assert not [name for name in read if "_delta_log" in name]
    assert f"{connected.folder}/{DELTA}" in read


def test_a_version_of_delta_that_another_may_have_written_is_not_told(connected: Shop) -> None:
    """The statement that was held up: two commits lie between its beginning and its end."""
    assert sorted(written(connected, "contended")) == [("", None), ("0", 3), ("1", 4)]


def test_a_statement_that_changes_nothing_is_not_told_what_another_one_has_committed(connected: Shop) -> None:
    """INSERT of no row, DELETE, UPDATE and MERGE that find none, while another thread commits the same once."""
    delta = sorted(version for version, _ in written(connected, "unchanged", "default."))
    assert delta == ["", "", "", "", "0", "1", "2", "3", "4"]
    iceberg = [(bool(version), rows) for version, rows in written(connected, "unchanged", "ice.db.")]
    assert sorted(iceberg, key=str) == [(False, None)] * 3 + [(True, 1)]


def test_the_version_of_delta_with_a_change_data_feed_and_deletion_vectors(connected: Shop) -> None:
    assert [version for version, _ in written(connected, "tracked")] == ["0", "1", "2", "3", "4"]
    assert written(connected, "hollow") == [("0", 0)]


def test_files_that_mark_rows_as_deleted_are_no_data(connected: Shop) -> None:
    """The size that Iceberg reports is of both kinds of files."""
    for name, amounts in (("delete", (0, 0)), ("update", (1, 1))):
        (complete,) = completed(connected, f"{name}.ice.db.marked")
        statistics = complete["outputs"][0]["outputFacets"]["outputStatistics"]
        assert (statistics["rowCount"], statistics["fileCount"]) == amounts
        assert "size" not in statistics
    (complete,) = completed(connected, "ctas.ice.db.marked")
    assert complete["outputs"][0]["outputFacets"]["outputStatistics"]["size"] > 0


@pytest.mark.parametrize(
    ("table", "told"), [("ice.db.measured", [True, False]), ("default.measured", [False, False])]
)
def test_what_is_observed_of_rows_that_replace_all_others(
    connected: Shop, table: str, told: list[bool]
) -> None:
    """Not those that a condition finds; of Delta, a setting of the session decides what is replaced."""
    facets = [event["outputs"][0]["facets"] for event in completed(connected, f"overwrite.{table}")]
    assert ["dataQualityMetrics" in facet for facet in facets] == told


@pytest.mark.parametrize(("table", "others"), [("iceberg_table", 1), ("made", 0)])
def test_the_snapshot_that_was_written_to_iceberg(connected: Shop, table: str, others: int) -> None:
    """Of statements that write files; DELETE of no row makes a snapshot, too, but not by a write."""
    in_table = json.loads((connected.folder / "data" / "snapshots.json").read_text())[table]
    told = [one for one in written(connected, table) if one[0]]
    assert told == [
        (str(snapshot), int(summary["added-records"]))
        for snapshot, summary in in_table
        if "added-records" in summary
    ]
    assert len(written(connected, table)) == len(told) + others


def test_what_iceberg_reports(connected: Shop) -> None:
    (complete,) = completed(connected, "insert.ice.db.iceberg_table")
    (output,) = complete["outputs"]
    commit = output["outputFacets"]["icebergCommitReport"]
    assert str(commit["snapshotId"]) == output["facets"]["version"]["datasetVersion"]
    assert (commit["operation"], commit["commitMetrics"]["addedRecords"]) == ("append", 10)
    assert (
        output["outputFacets"]["outputStatistics"]["fileCount"] == commit["commitMetrics"]["addedDataFiles"]
    )
    (complete,) = completed(connected, "insert.data.from_iceberg")
    (source,) = complete["inputs"]
    scan = source["inputFacets"]["icebergScanReport"]
    assert str(scan["snapshotId"]) == source["facets"]["version"]["datasetVersion"]
    assert (scan["projectedFieldNames"], scan["scanMetrics"]["resultDataFiles"]) == (
        ["id", "v"],
        source["inputFacets"]["inputStatistics"]["fileCount"],
    )


def test_up_to_where_topics_were_read(connected: Shop) -> None:
    """Where that was up to the latest offsets, only the tasks know which those were."""
    read = connected.of("insert.data.up_to")[-1]["read"]
    assert {data["name"]: data["version"] for data in read} == {"lines": '{"0":7}', "by_column": '{"0":9}'}
    assert "read" not in connected.of("insert.data.from_kafka")[-1]


def test_no_secret_is_told(connected: Shop) -> None:
    assert "hunter22" not in json.dumps([connected.jobs, connected.openlineage])


def test_every_event_conforms_to_the_schemas(connected: Shop) -> None:
    from tests.support.openlineage_schema import problems_of

    assert [problem for event in connected.openlineage for problem in problems_of(event)] == []


def test_the_same_events_go_to_kafka(connected: Shop, broker: KafkaBroker) -> None:
    """In order for each job: all of an application have one key."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {"bootstrap.servers": broker.servers, "group.id": "test", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["lineage"])
    messages = []
    while len(messages) < len(connected.openlineage):
        message = consumer.poll(30)
        assert message is not None, f"{len(messages)} of {len(connected.openlineage)} events"
        assert message.error() is None, message.error()
        messages.append(message)
    consumer.close()
    assert [json.loads(message.value()) for message in messages] == connected.openlineage
    assert {message.key() for message in messages} == {b"run:default/connectors"}

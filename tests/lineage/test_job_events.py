"""What job status listeners learn of one real application: statements, queries, failures, the end."""

from __future__ import annotations

import pytest

from tests.support.lineage_shop import Shop

pytestmark = pytest.mark.spark


def test_the_application_ends_as_it_would_have(shop: Shop) -> None:
    assert shop.run.code == 0, shop.run.err[-3000:]
    assert [line.split(":")[0] for line in shop.run.out.splitlines()] == [
        "in_task",
        "in_driver",
        "slow",
        "failing",
    ]


def test_the_application_is_a_job_itself(shop: Shop) -> None:
    assert shop.statuses("shop") == ["CREATED", "RUNNING", "FINISHED"]
    assert shop.jobs[0]["jobName"] == shop.jobs[-1]["jobName"] == "shop"


@pytest.mark.parametrize(
    ("name", "sources", "sinks"),
    [
        ("insert.data.orders", [], ["data/orders"]),
        ("ctas.default.sums", ["data/orders"], ["warehouse/sums"]),
        ("insert.default.in_hive", ["data/to_load"], ["warehouse/in_hive"]),
        ("ctas.default.hive_made", ["warehouse/in_hive"], ["warehouse/hive_made"]),
        ("insert.default.saved", ["warehouse/sums"], ["warehouse/saved"]),
        ("read.default.sums", ["warehouse/sums"], []),
        ("read.data.days", ["data/days"], []),
        ("insert.data.after_checkpoint", ["warehouse/sums"], ["data/after_checkpoint"]),
        ("insert.data.cut_twice", ["warehouse/sums"], ["data/cut_twice"]),
        ("insert.data.not_told", ["warehouse/sums"], ["data/not_told"]),
        ("insert.heard", ["told"], ["heard"]),
        ("told_too", ["data/orders", "told"], ["heard"]),
        ("doubled", ["data/orders"], ["data/streamed"]),
        ("batches", ["data/orders"], ["data/most", "data/copy"]),
        ("into_table", ["mine"], ["warehouse/ticks"]),
        ("failing", ["data/orders"], []),
    ],
)
def test_sources_and_sinks(shop: Shop, name: str, sources: list[str], sinks: list[str]) -> None:
    assert shop.lineage(name) == (sources, sinks)


def test_a_statement_is_told_once_and_with_what_it_wrote(shop: Shop) -> None:
    created, running, finished = shop.of("ctas.default.sums")
    assert created["statement"].startswith("CREATE TABLE sums USING parquet AS SELECT")
    assert (running["oldStatus"], running["newStatus"]) == ("CREATED", "RUNNING")
    assert finished["written"]["rows"] == 7
    assert finished["written"]["files"] > 0
    assert created["jobId"] == running["jobId"] == finished["jobId"]


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("of_view", ""),
        ("of_temporary", ""),
        ("of_two", ""),
        ("of_query", "SELECT id FROM viewed WHERE id > 1"),
    ],
)
def test_the_statement_of_a_write(shop: Shop, name: str, statement: str) -> None:
    """Its query's, where that has one; not that of a view or of a part of the query."""
    created = shop.of(f"insert.data.{name}")[0]
    assert created["statement"].startswith(statement or "parquet at")


def test_how_much_was_read(shop: Shop) -> None:
    """Rows, and of files, how many and how large."""
    (of_files,) = shop.of("ctas.default.sums")[-1]["read"]
    (of_hive,) = shop.of("ctas.default.hive_made")[-1]["read"]
    assert of_files["name"] == str(shop.folder / "data" / "orders")
    assert of_files["rows"] == 100
    assert of_files["files"] > 0
    assert of_files["bytes"] > 0
    assert "version" not in of_files
    assert of_hive["name"].endswith("warehouse/in_hive")
    assert of_hive["rows"] == 14


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("insert.data.in_task", "FAILED", "too much"),
        ("insert.data.in_driver", "FAILED", "already exists"),
        ("insert.data.slow", "CANCELED", "cancelled"),
        ("failing", "FAILED", "no more"),
    ],
)
def test_how_jobs_end_that_do_not_finish(shop: Shop, name: str, status: str, message: str) -> None:
    last = shop.of(name)[-1]
    assert last["newStatus"] == status
    assert message in last["exception"]["message"]
    assert last["exception"]["stacktrace"]


def test_columns_go_through_a_checkpoint_and_a_batch(shop: Shop) -> None:
    def columns(name: str, sink: str) -> dict[str, list[str]]:
        graph = [event["lineage"] for event in shop.of(name) if "lineage" in event][-1]
        place = shop.lineage(name)[1].index(sink)
        return {
            column: [source["column"] for source in sources]
            for edge in graph["relations"]
            if edge["sink"] == place
            for column, sources in edge["columns"].items()
        }

    assert columns("insert.data.after_checkpoint", "data/after_checkpoint") == {"more": ["total"]}
    assert columns("insert.data.cut_twice", "data/cut_twice") == {"total": ["total"]}
    assert columns("batches", "data/most") == {"customer": ["customer"], "most": ["amount"]}
    assert columns("batches", "data/copy") == {name: [name] for name in ("id", "customer", "amount")}


def test_a_query_is_a_new_job_with_each_run(shop: Shop) -> None:
    assert shop.statuses("batches") == [
        *("CREATED", "RUNNING", "FINISHED"),
        *("CREATED", "RESTARTING", "RUNNING", "FINISHED"),
    ]
    created = [event for event in shop.of("batches") if event["event"] == "JobCreatedEvent"]
    assert len({event["jobId"] for event in created}) == 2
    assert {event["executionMode"] for event in created} == {"STREAMING"}


def test_boundedness_is_the_triggers(shop: Shop) -> None:
    def boundedness(name: str) -> str:
        return str(shop.of(name)[0]["lineage"]["sources"][0]["boundedness"])

    assert boundedness("doubled") == "BOUNDED"
    assert boundedness("failing") == "CONTINUOUS_UNBOUNDED"


def test_nothing_is_told_of_the_batches_of_a_query(shop: Shop) -> None:
    """They are the query's; so are the writes of its function, and they are not jobs of their own."""
    statements = {event["jobName"] for event in shop.jobs if event["jobKind"] == "statement"}
    assert not {name for name in statements if "most" in name or "copy" in name or "streamed" in name}


def test_every_job_ends(shop: Shop) -> None:
    created = [event["jobId"] for event in shop.jobs if event["event"] == "JobCreatedEvent"]
    ended = [
        event["jobId"] for event in shop.jobs if event.get("newStatus") in ("FINISHED", "FAILED", "CANCELED")
    ]
    assert sorted(created) == sorted(ended)

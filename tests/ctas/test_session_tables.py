"""Tables of the session catalog, in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from spark_events import ctas
from spark_events.ctas import fault_points
from spark_events.ctas.transactions.journal import TransactionJournal
from spark_events.ctas.transactions.transaction import Level, State
from tests.support.waiting import wait_until

Folders = Callable[[], list[str]]
pytestmark = pytest.mark.spark
TEN = "SELECT id, id % 3 AS p, 'x' AS name FROM range(10)"


def table_of(spark: Any, name: str) -> Any:
    java = spark._jsparkSession.sessionState()
    return java.catalog().getTableMetadata(java.sqlParser().parseTableIdentifier(name))


@pytest.mark.parametrize(
    "format_",
    [
        "parquet",
        *(
            pytest.param(each, marks=pytest.mark.extended)
            for each in ("orc", "json", "csv OPTIONS (header true)")
        ),
    ],
)
def test_a_table_is_as_spark_would_make_it(spark: Any, folders: Folders, format_: str) -> None:
    text = f"CREATE TABLE {{}} USING {format_} PARTITIONED BY (p) COMMENT 'why' TBLPROPERTIES ('a' = 'b') AS {TEN}"
    spark.sql(text.format("plain"))
    done = ctas.sql(spark, text.format("ours"))

    assert (done.table, done.created, done.level) == ("spark_catalog.default.ours", True, Level.POINTER)
    assert (done.rows, done.files) == (10, len(spark.table("ours").inputFiles()))
    plain, ours = table_of(spark, "plain"), table_of(spark, "ours")
    for field in (
        "tableType",
        "schema",
        "provider",
        "comment",
        "tracksPartitionsInCatalog",
    ):
        assert str(getattr(ours, field)()) == str(getattr(plain, field)()), field
    assert str(ours.storage().properties()) == str(plain.storage().properties())
    assert ours.partitionColumnNames().mkString(",") == "p"
    assert ours.properties().apply("a") == "b"
    assert ours.properties().apply("ctas.txid") == done.txid
    assert sorted(spark.table("ours").collect()) == sorted(spark.table("plain").collect())
    assert spark.sql("SHOW PARTITIONS ours").count() == 3
    spark.sql("INSERT INTO ours VALUES (10, 'y', 7)")
    assert spark.table("ours").where("p = 7").count() == 1
    spark.sql("DROP TABLE ours")
    assert folders() == ["plain"]


def test_buckets_and_a_dataframe(spark: Any) -> None:
    done = ctas.create_table_as(
        spark.range(20).withColumnRenamed("id", "the `id`"),
        "bucketed",
        format="parquet",
        bucket_by=(4, ["the `id`"]),
        sort_by=["the `id`"],
        comment="it's \\ quoted",
        properties={"k'": "v"},
        options={"compression": "gzip"},
    )
    table = table_of(spark, "bucketed")
    assert (done.rows, table.bucketSpec().get().numBuckets()) == (20, 4)
    assert table.comment().get() == "it's \\ quoted"
    assert table.properties().apply("k'") == "v"
    assert all("gz" in path for path in spark.table("bucketed").inputFiles())


def test_the_query_runs_once(spark: Any) -> None:
    ran = spark.sparkContext.accumulator(0)

    def count(number: int) -> int:
        ran.add(1)
        return number

    spark.udf.register("counted", count, "int")
    ctas.sql(
        spark,
        "CREATE TABLE once USING parquet AS SELECT counted(id) AS id FROM range(50)",
        checks=[ctas.row_count(50, 50), ctas.each_row("id >= 0")],
    )
    assert ran.value == 50


def test_a_table_that_was_replaced_was_not_created(spark: Any, folders: Folders) -> None:
    statement = f"CREATE OR REPLACE TABLE t USING parquet AS {TEN}"
    first, second = ctas.sql(spark, statement), ctas.sql(spark, statement)
    assert [(done.created, done.replaced) for done in (first, second)] == [(True, False), (True, True)]
    assert str(first).startswith("spark_catalog.default.t was created with 10 rows (pointer, transaction ")
    assert str(second).startswith("spark_catalog.default.t was replaced with 10 rows (pointer, transaction ")


def test_if_not_exists_and_a_name_that_is_taken(spark: Any, folders: Folders) -> None:
    ctas.sql(spark, f"CREATE TABLE t USING parquet AS {TEN}")
    done = ctas.sql(spark, "CREATE TABLE IF NOT EXISTS t USING parquet AS SELECT raise_error('run') AS a")
    assert (done.created, done.level, str(done)) == (False, None, "spark_catalog.default.t already existed")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT raise_error('run') AS a")
    assert folders() == ["t"]


def test_replacing_keeps_the_old_table_readable_until_its_grace_is_over(
    spark: Any, folders: Folders, collect: Callable[[], None]
) -> None:
    ctas.sql(spark, f"CREATE TABLE t USING parquet PARTITIONED BY (p) AS {TEN}")
    before = spark.table("t")
    assert before.count() == 10
    ctas.sql(spark, "CREATE OR REPLACE TABLE t USING orc AS SELECT 1 AS other")
    assert spark.table("t").collect() == [(1,)]
    assert folders() == ["t", "t"]
    assert before.count() == 10
    collect()
    assert folders() == ["t"]


def test_a_grace_that_is_over_ends_by_itself(spark: Any, folders: Folders) -> None:
    from dataclasses import replace

    transactions = ctas.transactions_of(spark)
    ctas.sql(spark, f"CREATE TABLE t USING parquet AS {TEN}")
    transactions.settings = replace(transactions.settings, grace_ms=100)
    try:
        ctas.sql(spark, "CREATE OR REPLACE TABLE t USING orc PARTITIONED BY (b) AS SELECT 1 AS a, 2 AS b")
    finally:
        transactions.settings = replace(transactions.settings, grace_ms=3_600_000)
    wait_until(lambda: folders() == ["t"], "the table before is removed")
    assert spark.table("t").collect() == [(1, 2)]
    assert table_of(spark, "t").tracksPartitionsInCatalog()


def test_partitions_of_a_replacement_come_to_the_catalog_with_the_end_of_the_grace(
    spark: Any, collect: Callable[[], None]
) -> None:
    """Who has begun to read the table before asks the catalog for its partitions by the table's name."""
    ctas.sql(spark, f"CREATE TABLE t USING parquet PARTITIONED BY (p) AS {TEN}")
    before = spark.newSession().table("t")
    ctas.sql(spark, "REPLACE TABLE t USING parquet PARTITIONED BY (p) AS SELECT 1 AS a, 9 AS p")
    assert before.count() == 10
    assert spark.table("t").collect() == [(1, 9)]
    collect()
    assert [row.partition for row in spark.sql("SHOW PARTITIONS t").collect()] == ["p=9"]
    assert spark.table("t").collect() == [(1, 9)]


def test_a_replacement_with_other_partition_columns(
    spark: Any, folders: Folders, collect: Callable[[], None]
) -> None:
    """The catalog in memory keeps the partitions of the table before until its time is over."""
    for column in ("a", "b", "c", "b"):
        rows = f"SELECT id, id % 2 AS {column} FROM range(6)"
        ctas.sql(spark, f"CREATE OR REPLACE TABLE Parted USING parquet PARTITIONED BY ({column}) AS {rows}")
        collect()
    assert folders() == ["Parted"]
    assert [row.partition for row in spark.sql("SHOW PARTITIONS parted").collect()] == ["b=0", "b=1"]
    assert spark.table("parted").where("b = 1").count() == 3
    ctas.sql(spark, "CREATE OR REPLACE TABLE Parted USING parquet AS SELECT 1 AS a")
    collect()
    assert folders() == ["Parted"]


def test_a_failing_replacement_leaves_the_old_table(spark: Any, folders: Folders) -> None:
    ctas.sql(spark, f"CREATE TABLE t USING parquet AS {TEN}")
    text = "SELECT if(id > 1, raise_error('too much'), id) AS a FROM range(3)"
    with pytest.raises(Exception, match="too much"):
        ctas.sql(spark, f"REPLACE TABLE t USING parquet AS {text}")
    assert spark.table("t").count() == 10
    assert folders() == ["t"]


def test_what_cannot_be_replaced(spark: Any) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        ctas.sql(spark, "REPLACE TABLE nothing USING parquet AS SELECT 1 AS a")
    spark.sql("CREATE VIEW v AS SELECT 1 AS a")
    with pytest.raises(ctas.CtasError, match="is a view"):
        ctas.sql(spark, "CREATE OR REPLACE TABLE v USING parquet AS SELECT 1 AS a")
    spark.sql("DROP VIEW v")


@pytest.mark.parametrize("folder", ["data", "our data, 50%"])
def test_a_location_and_what_is_in_it_already(
    spark: Any, tmp_path: Path, folders: Folders, folder: str
) -> None:
    place = tmp_path / folder
    ctas.sql(spark, f"CREATE TABLE t USING parquet LOCATION '{place}' AS {TEN}")
    assert spark.table("t").count() == 10
    assert {path.suffix for path in place.iterdir() if not path.name.startswith((".", "_"))} == {".parquet"}
    spark.sql("DROP TABLE t")
    assert place.exists()
    before = {path: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(ctas.CtasError, match="is not empty, and its files are not touched"):
        ctas.sql(spark, f"CREATE TABLE t USING parquet LOCATION '{place}' AS {TEN}")
    assert {path: path.read_bytes() for path in place.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    assert folders() == []


def test_files_that_come_to_a_location_meanwhile_are_not_touched(spark: Any, tmp_path: Path) -> None:
    from spark_events.ctas import fault_points

    place = tmp_path / "data"

    def intrude(point: str) -> None:
        if point == "before_catalog":
            place.mkdir()
            (place / "foreign").write_text("mine")

    fault_points.observers.append(intrude)
    with pytest.raises(Exception, match="files appeared in LOCATION"):
        ctas.sql(spark, f"CREATE TABLE t USING parquet LOCATION '{place}' AS {TEN}")
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "foreign"]
    assert (place / "foreign").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", r"'SELECT 1' is not a CREATE \[OR REPLACE\] TABLE"),
        ("CREATE TABLE t (a INT) USING parquet", "is not a CREATE"),
        ("CREATE TABLE t USING jdbc AS SELECT 1 AS a", "format 'jdbc' is not a file format"),
    ],
)
def test_statements_that_are_refused(spark: Any, text: str, message: str) -> None:
    with pytest.raises(ctas.CtasError, match=message):
        ctas.sql(spark, text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "append"}, "mode='append' is not valid; expected one of create, create_if_not_exists"),
        ({"sort_by": ["id"]}, "needs bucket_by"),
        ({"require": "perfect"}, "require='perfect' is not valid; expected one of atomic, native"),
        ({"require": "native"}, "can only be created at level 'pointer'.*nothing was run"),
        ({"trigger": {"availableNow": True}}, None),
    ],
)
def test_arguments_that_are_wrong(
    spark: Any, folders: Folders, arguments: dict[str, Any], message: str | None
) -> None:
    if message is None:
        ctas.create_table_as(spark.range(3), "t", format="parquet", **arguments)
        return
    with pytest.raises(ctas.CtasError, match=message):
        ctas.create_table_as(spark.range(3), "t", format="parquet", **arguments)
    assert folders() == []


def test_a_check_that_says_nothing_that_could_be_read(spark: Any, folders: Folders) -> None:
    with pytest.raises(ctas.CtasError, match=r"returned 5; expected a sentence of what is wrong, or None"):
        ctas.create_table_as(spark.range(3), "t", format="parquet", checks=[lambda data, written: 5])
    assert folders() == []


def test_checks_stand_between_write_and_publication(spark: Any, folders: Folders) -> None:
    seen: list[int] = []

    def own(data: Any, written: ctas.Written) -> str | None:
        seen.append(data.count())
        assert not spark.catalog.tableExists("t")
        return "I do not like it"

    checks = [ctas.row_count(11), ctas.row_count(0, 9), ctas.each_row("p < 2"), own]
    with pytest.raises(ctas.CheckFailedError) as failed:
        ctas.sql(spark, f"CREATE TABLE t USING parquet AS {TEN}", checks=checks)
    assert str(failed.value) == (
        "the table was not published: 10 rows were written; expected at least 11; "
        "10 rows were written; expected at most 9; 3 rows violate 'p < 2'; I do not like it"
    )
    assert (seen, folders(), spark.catalog.tableExists("t")) == ([10], [], False)


def test_hooks_are_told_in_order_and_cannot_undo_a_commit(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    class Hook(ctas.JobStatusHook):
        def on_created(self, job_id: str) -> None:
            told.append(f"created {spark.catalog.tableExists('t')}")
            assert job_id.startswith(spark.sparkContext.applicationId)

        def on_finished(self, job_id: str) -> None:
            told.append(f"finished {spark.catalog.tableExists('t')}")
            raise ValueError("too late")

        def on_failed(self, job_id: str, error: BaseException) -> None:
            told.append(f"failed {type(error).__name__}")

    ctas.sql(spark, f"CREATE TABLE t USING parquet AS {TEN}", hooks=[Hook()])
    assert told == ["created False", "finished True"]
    assert "Hook raised after spark_catalog.default.t was committed" in caplog.text
    with pytest.raises(ctas.CheckFailedError):
        ctas.sql(
            spark, f"REPLACE TABLE t USING parquet AS {TEN}", hooks=[Hook()], checks=[ctas.row_count(11)]
        )
    assert told[2:] == ["created True", "failed CheckFailedError"]


def test_a_hook_that_refuses_the_beginning(spark: Any, folders: Folders) -> None:
    class Hook(ctas.JobStatusHook):
        def on_created(self, job_id: str) -> None:
            raise PermissionError("not today")

    with pytest.raises(PermissionError):
        ctas.sql(spark, f"CREATE TABLE t USING parquet AS {TEN}", hooks=[Hook()])
    reasons = {one.reason for one in ctas.transactions_of(spark).journal.all()}
    assert "PermissionError: not today" in reasons
    assert folders() == []


def test_the_interface_of_flip_305_by_hand(spark: Any) -> None:
    from spark_events.ctas.statement import parse

    transactions = ctas.transactions_of(spark)
    definition = parse(transactions.entry, f"CREATE TABLE t USING parquet AS {TEN}")
    table = transactions.create_two_phase_table(definition.path, definition, False, False)
    assert table is not None
    table.begin_transaction()
    assert table.write().rows == 10
    table.prepare()
    again = ctas.table_of(spark, table.descriptor())
    assert again.txid == table.txid
    assert again.commit()
    assert spark.table("t").count() == 10
    assert again.commit()
    again.abort()
    assert spark.table("t").count() == 10
    with pytest.raises(ctas.FencedError):
        table.commit()


def test_a_disk_that_is_full_of_what_is_rolled_back(
    spark: Any, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has room for the end of the transaction once its files are gone."""
    advance = TransactionJournal.advance
    full: list[str] = []

    def of_a_full_disk(journal: Any, transaction: Any, state: State, **changes: Any) -> Any:
        if state is State.ABORTING and Path(transaction.stage.removeprefix("file:")).exists():
            full.append(transaction.txid)
            raise_in_java(spark)
        return advance(journal, transaction, state, **changes)

    monkeypatch.setattr(TransactionJournal, "advance", of_a_full_disk)
    before = folders()
    with pytest.raises(ctas.CheckFailedError):
        ctas.sql(spark, f"CREATE TABLE t USING parquet AS {TEN}", checks=[ctas.row_count(99)])
    assert folders() == before
    journal = ctas.transactions_of(spark).journal
    assert [journal.read(txid).state for txid in full] == [State.ABORTED]


def test_a_full_disk_while_a_transaction_of_others_is_rolled_back(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner may commit it at that moment: nobody removes its files who has not recorded that."""
    advance = TransactionJournal.advance

    def of_a_full_disk(journal: Any, transaction: Any, state: State, **changes: Any) -> Any:
        return (
            raise_in_java(spark)
            if state is State.ABORTING
            else advance(journal, transaction, state, **changes)
        )

    def meanwhile(point: str) -> None:
        if point != "after_write":
            return
        monkeypatch.setattr(TransactionJournal, "advance", of_a_full_disk)
        (transaction,) = ctas.transactions_of(spark).journal.unfinished()
        with pytest.raises(Py4JJavaError):
            ctas.transactions_of(spark).abort(transaction.txid)
        monkeypatch.setattr(TransactionJournal, "advance", advance)

    fault_points.observers.append(meanwhile)
    assert ctas.sql(spark, f"CREATE TABLE t USING parquet AS {TEN}").rows == 10
    assert spark.table("t").count() == 10


def raise_in_java(spark: Any) -> Any:
    """Raise what a file system in Java does that cannot write."""
    return spark._jvm.java.io.File("/no/folder/file").createNewFile()


def test_without_a_driver_in_reach(spark: Any) -> None:
    class Connected:
        pass

    with pytest.raises(ctas.CtasError, match="not one of Spark Connect"):
        ctas.sql(Connected(), "CREATE TABLE t AS SELECT 1")


def test_of_a_session_that_is_stopped(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)  # as SparkContext.stop() leaves it
    with pytest.raises(ctas.CtasError, match="this SparkSession is stopped; make a new one"):
        ctas.sql(spark, "CREATE TABLE t AS SELECT 1")

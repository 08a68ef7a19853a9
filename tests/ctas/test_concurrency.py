"""Two writers, a writer and its readers, and a writer that is stopped."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark import InheritableThread
from pyspark.errors import AnalysisException

from spark_events import ctas
from spark_events.ctas import fault_points
from spark_events.ctas.transactions.journal import TransactionJournal
from spark_events.ctas.transactions.journaled_table import JournaledTable
from spark_events.ctas.transactions.recovery import RecoveryRequest
from spark_events.ctas.transactions.session_transactions import transactions_of
from spark_events.ctas.transactions.transaction import State, Transaction
from tests.support.races import is_corrupt
from tests.support.waiting import wait_until

Folders = Callable[[], list[str]]
pytestmark = [pytest.mark.spark, pytest.mark.extended]
SLOW = (  # the row before says that the task has come as far as this
    "CASE id WHEN 7 THEN reflect('java.lang.System', 'setProperty', 'ctas.test', 'slow') "
    "WHEN 8 THEN reflect('java.lang.Thread', 'sleep', 8000L) END"
)


def another_creates_it_first(spark: Any) -> None:
    """Let table ``t`` be there once a statement is about to create it."""

    def be_faster(point: str) -> None:
        if point == "before_catalog":
            spark.sql("CREATE TABLE t USING parquet AS SELECT 'faster' AS who")

    fault_points.observers.append(be_faster)


@pytest.mark.parametrize("races", [4, pytest.param(50, marks=pytest.mark.thorough)])
def test_races_of_two_sessions(spark: Any, tmp_path: Path, races: int) -> None:
    """Of two statements for one name one wins, and its rows alone are there; with Spark's own, not so."""
    sessions = spark, spark.newSession()
    ours = sum(is_corrupt(sessions, f"ours_{number}", True) for number in range(races))
    # Spark's own may leave folders behind, which other tests would take for ours.
    spark.sql(f"CREATE DATABASE plain LOCATION '{tmp_path}'")
    plain = any(is_corrupt(sessions, f"plain.t_{number}", False) for number in range(50))
    spark.sql("DROP DATABASE plain CASCADE")
    assert ours == 0
    assert plain  # the races are ones that can be lost


def test_of_two_replacements_the_first_one_wins(
    spark: Any, folders: Folders, collect: Callable[[], None]
) -> None:
    ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 0 AS a")
    both = threading.Barrier(2, timeout=60)

    def meet(point: str) -> None:
        if point == "after_prepared":
            both.wait()

    def replace(number: int) -> int | str:
        try:
            ctas.sql(spark, f"CREATE OR REPLACE TABLE t USING parquet AS SELECT {number} AS a")
        except ctas.CommitConflictError as error:
            return str(error)
        return number

    fault_points.observers.append(meet)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(replace, (1, 2))
    winner, loser = (first, second) if isinstance(first, int) else (second, first)
    assert spark.table("t").collect() == [(winner,)]
    assert "was replaced while this replacement was written" in str(loser)
    collect()
    assert folders() == ["t"]


def file_of(data: Any) -> Path:
    """Return the only file that a DataFrame reads."""
    (file,) = data.inputFiles()
    return Path(urlsplit(file).path)


INSERTED = "INSERT INTO t SELECT 2"
"""What another session does meanwhile."""


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT a FROM t",
        "SELECT 1 AS a WHERE EXISTS (SELECT * FROM default.t)",
        "WITH old AS (SELECT * FROM t) SELECT a FROM old UNION SELECT a FROM old",
        "SELECT a FROM parquet.`{location}`",
    ],
)
def test_rows_that_others_insert_meanwhile_into_a_table_that_is_read_and_replaced(
    spark: Any, folders: Folders, collect: Callable[[], None], query: str
) -> None:
    """They would be in no table; so they stay where they are, and the statement fails."""
    ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 1 AS a")
    query = query.format(location=file_of(spark.table("t")).parent)
    fault_points.observers.append(
        lambda point: spark.newSession().sql(INSERTED) if point == "after_prepared" else None
    )
    with pytest.raises(ctas.CommitConflictError, match="reads it, and its files have changed since"):
        ctas.sql(spark, f"CREATE OR REPLACE TABLE t USING parquet AS {query}")
    spark.catalog.refreshTable("t")  # which this session has read before
    assert sorted(spark.table("t").collect()) == [(1,), (2,)]
    collect()
    assert folders() == ["t"]


def test_rows_that_others_insert_meanwhile_into_a_table_that_is_only_replaced(spark: Any) -> None:
    """As if they had been inserted right before."""
    ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 1 AS a")
    fault_points.observers.append(lambda point: spark.sql(INSERTED) if point == "after_prepared" else None)
    ctas.sql(spark, "CREATE OR REPLACE TABLE t USING parquet AS SELECT 3 AS a")
    assert spark.table("t").collect() == [(3,)]


@pytest.mark.parametrize("change", ["ADD PARTITION (p = 9) LOCATION '{}'", "DROP PARTITION (p = 1)"])
def test_partitions_that_others_add_or_drop_meanwhile(spark: Any, tmp_path: Path, change: str) -> None:
    """Also such as have a folder of their own elsewhere."""
    spark.range(3).write.parquet(str(tmp_path / "p9"))
    ctas.sql(spark, "CREATE TABLE t USING parquet PARTITIONED BY (p) AS SELECT id, 1 AS p FROM range(2)")
    statement = f"ALTER TABLE t {change.format(tmp_path / 'p9')}"
    fault_points.observers.append(lambda point: spark.sql(statement) if point == "after_prepared" else None)
    with pytest.raises(ctas.CommitConflictError, match="its files have changed since"):
        ctas.sql(spark, "CREATE OR REPLACE TABLE t USING parquet PARTITIONED BY (p) AS SELECT id, p FROM t")


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (a)"])
def test_rows_of_another_application_are_read_before_the_table_is_replaced(
    spark: Any, partitioned: str, cached: bool
) -> None:
    """Spark remembers the files of a table that it has read, and another application adds some."""
    ctas.sql(
        spark, f"CREATE TABLE t USING parquet {partitioned} AS SELECT id AS b, 1 AS a FROM range(0, 2, 1, 1)"
    )
    file = file_of(spark.table("t"))
    old = spark.table("t").repartition(1)
    old = old.cache() if cached else old
    assert old.count() == 2
    shutil.copy(file, file.with_stem(f"{file.stem}-2"))

    ctas.create_table_as(old, "t", mode="replace", format="parquet")
    assert spark.table("t").count() == 4


def test_a_statement_that_waits_for_one_that_fails(
    spark: Any, folders: Folders, collect: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at the other one while that still commits, and acts once that is over."""
    ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 0 AS a")
    commits, is_seen, is_over = threading.Event(), threading.Event(), threading.Event()
    publish, is_abandoned = JournaledTable._publish, TransactionJournal.is_abandoned

    def failing(table: Any) -> bool:
        if commits.is_set():
            return publish(table)
        commits.set()
        assert is_seen.wait(60)
        raise OSError("the metastore is away for a moment")

    def slow(journal: Any, transaction: Any) -> bool:
        if transaction.state is State.COMMITTING and not is_seen.is_set():
            is_seen.set()
            assert is_over.wait(60)
        return is_abandoned(journal, transaction)

    monkeypatch.setattr(JournaledTable, "_publish", failing)
    monkeypatch.setattr(TransactionJournal, "is_abandoned", slow)

    def fail() -> None:
        with pytest.raises(OSError, match="the metastore is away"):
            ctas.sql(spark, "CREATE OR REPLACE TABLE t USING parquet AS SELECT 1 AS a")
        is_over.set()

    def succeed() -> None:
        assert commits.wait(60)
        ctas.sql(spark, "CREATE OR REPLACE TABLE t USING parquet AS SELECT 2 AS a")

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(fail), pool.submit(succeed)]:
            each.result()
    assert spark.table("t").collect() == [(2,)]
    collect()
    assert folders() == ["t"]


def test_a_recovery_that_has_looked_before_a_statement_fails(spark: Any, folders: Folders) -> None:
    """It finds that the statement has ended its transaction itself, which is no trouble."""
    ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 0 AS a")
    transactions, seen = transactions_of(spark), list[Transaction]()

    def fail(point: str) -> None:
        if point == "before_catalog":
            seen.extend(transactions.journal.unfinished())
            raise OSError("the metastore is away for a moment")

    fault_points.observers.append(fail)
    with pytest.raises(OSError, match="the metastore is away"):
        ctas.sql(spark, "CREATE OR REPLACE TABLE t USING parquet AS SELECT 1 AS a")

    outcomes = transactions._end_all(seen, RecoveryRequest.SWEEP)

    assert [each.state for each in seen] == [State.COMMITTING]
    assert [each.failed for each in outcomes] == [False]
    assert (folders(), spark.table("t").collect()) == (["t"], [(0,)])


def test_of_two_replacements_of_no_table_the_first_one_wins(spark: Any, folders: Folders) -> None:
    """Spark's advice, to say OR REPLACE, has been followed."""
    another_creates_it_first(spark)
    with pytest.raises(ctas.CommitConflictError, match="was created by another writer"):
        ctas.sql(spark, "CREATE OR REPLACE TABLE t USING parquet AS SELECT 'slower' AS who")
    assert (folders(), spark.table("t").collect()) == (["t"], [("faster",)])


def test_if_not_exists_that_is_too_late_is_no_error(spark: Any, folders: Folders) -> None:
    another_creates_it_first(spark)
    done = ctas.sql(spark, "CREATE TABLE IF NOT EXISTS t USING parquet AS SELECT 'slower' AS who")
    assert (done.created, spark.table("t").collect()) == (False, [("faster",)])
    spark.sql("DROP TABLE t")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 'slower' AS who")
    assert (folders(), spark.table("t").collect()) == (["t"], [("faster",)])


def test_a_table_that_is_dropped_while_it_is_replaced(spark: Any, folders: Folders) -> None:
    ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 0 AS a")

    def drop(point: str) -> None:
        if point == "after_prepared":
            spark.sql("DROP TABLE t")

    fault_points.observers.append(drop)
    with pytest.raises(ctas.CommitConflictError, match="was dropped while its replacement was written"):
        ctas.sql(spark, "REPLACE TABLE t USING parquet AS SELECT 1 AS a")
    assert folders() == []


def test_a_reader_sees_nothing_or_everything(spark: Any) -> None:
    reader, over, seen = spark.newSession(), threading.Event(), Counter()

    def read() -> None:
        while not over.is_set():
            try:
                reader.catalog.refreshTable("t")
                seen[reader.table("t").count()] += 1
            except AnalysisException:
                seen[None] += 1

    thread = InheritableThread(target=read)
    thread.start()
    sizes = [3, 10, 20, 30, 40]
    for size in sizes:
        before = sum(seen.values())
        ctas.sql(
            spark,
            f"CREATE OR REPLACE TABLE t USING parquet PARTITIONED BY (p) AS "
            f"SELECT id, id % 3 AS p FROM range(0, {size}, 1, 4)",
        )
        wait_until(lambda before=before: sum(seen.values()) > before + 2, "it was read")
    over.set()
    thread.join()
    assert set(seen) <= {None, *sizes}
    assert len(seen) > 2


@pytest.mark.parametrize("how", ["group", "tag"])
def test_cancelling(spark: Any, folders: Folders, how: str) -> None:
    context = spark.sparkContext
    told: list[str] = []
    raised: list[BaseException] = []

    class Hook(ctas.JobStatusHook):
        def on_canceled(self, job_id: str) -> None:
            told.append("cancelled")

    def run() -> None:
        context.setJobGroup("a group", "slow", interruptOnCancel=True)
        context.addJobTag("a-tag")
        try:
            text = f"CREATE TABLE t USING parquet AS SELECT id, {SLOW} AS a FROM range(0, 10, 1, 2)"
            ctas.sql(spark, text, hooks=[Hook()])
        except Exception as error:
            raised.append(error)

    thread = InheritableThread(target=run)
    thread.start()
    wait_for_slow_task(spark, thread)
    context.cancelJobGroup("a group") if how == "group" else context.cancelJobsWithTag("a-tag")
    thread.join(60)
    assert "cancelled" in str(raised[0])
    assert told == ["cancelled"]
    last = ctas.transactions_of(spark).journal.all()[-1]
    assert (last.state, last.reason) == (ctas.State.ABORTED, "cancelled")
    assert folders() == []


def test_a_task_that_goes_on_after_it_was_cancelled_leaves_no_files(spark: Any, folders: Folders) -> None:
    """It opens the file of another partition when it wakes up, long after its job has ended."""
    context = spark.sparkContext
    raised: list[BaseException] = []
    text = (
        "CREATE TABLE t USING parquet PARTITIONED BY (p) AS SELECT id, "
        f"coalesce({SLOW}, '') AS a, id AS p FROM range(0, 10, 1, 1)"
    )

    def run() -> None:
        context.setJobGroup("not interrupted", "slow", interruptOnCancel=False)
        try:
            ctas.sql(spark, text)
        except Exception as error:
            raised.append(error)

    thread = InheritableThread(target=run)
    thread.start()
    wait_for_slow_task(spark, thread)
    context.cancelJobGroup("not interrupted")
    thread.join(60)
    assert "cancelled" in str(raised[0])
    wait_until(lambda: not running_tasks(spark), "no task runs")
    assert folders() == []


def wait_for_slow_task(spark: Any, statement: threading.Thread) -> None:
    system = spark._jvm.java.lang.System
    wait_until(lambda: system.getProperty("ctas.test") or not statement.is_alive(), "its slow task runs")
    assert system.clearProperty("ctas.test") == "slow"


def running_tasks(spark: Any) -> int:
    """Return how many tasks run, as the scheduler has it; Spark's status store may be 10 s late."""
    running = spark.sparkContext._jsc.sc().taskScheduler().runningTasksByExecutors()
    return int(running.apply("driver"))

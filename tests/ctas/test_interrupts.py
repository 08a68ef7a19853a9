"""What Ctrl-C leaves of a statement: Python no longer waits for the call of the JVM that is under way."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spark_events import ctas
from spark_events.ctas.execution import StatementExecution
from spark_events.ctas.tables.file_tables import FilesPublisher
from spark_events.ctas.two_phase import Written
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark


@pytest.fixture
def interrupt_when() -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Have Ctrl-C come once a condition holds. Python's own handler is in place of PySpark's."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threads = []

    def interrupt(condition: Callable[[], bool]) -> None:
        def wait() -> None:
            wait_until(condition, "it can be interrupted")
            os.kill(os.getpid(), signal.SIGINT)

        threads.append(threading.Thread(target=wait))
        threads[-1].start()

    yield interrupt
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGINT, before)


class Cancelled(ctas.JobStatusHook):
    """Asks something when the statement has been rolled back."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask
        self.answers: list[Any] = []

    def on_canceled(self, job_id: str) -> None:
        self.answers.append(self._ask())


def states(spark: Any, begun: str) -> list[str]:
    return [each.state.value for each, _ in ctas.transactions_of(spark).listed() if each.path.name == begun]


def test_its_job_is_cancelled(
    spark: Any,
    folders: Callable[[], list[str]],
    tmp_path: Path,
    interrupt_when: Callable[[Callable[[], bool]], None],
) -> None:
    """It would write the table to its end; its files are gone, and stay so."""
    runs = tmp_path / "runs"

    def wait(number: int) -> int:
        import pathlib
        import time

        pathlib.Path(runs).touch()
        time.sleep(600)
        return number

    spark.udf.register("wait", wait, "int")
    interrupt_when(runs.exists)
    with pytest.raises(KeyboardInterrupt):
        ctas.sql(spark, "CREATE TABLE interrupted USING parquet AS SELECT wait(1) n")
    assert states(spark, "interrupted") == ["ABORTED"]
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert folders() == []


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let statements wait shortly for what they have begun."""
    begin = StatementExecution.__enter__

    def with_little_patience(execution: StatementExecution) -> StatementExecution:
        execution._stragglers_ms = 100
        return begin(execution)

    monkeypatch.setattr(StatementExecution, "__enter__", with_little_patience)


class Busy(NamedTuple):
    """A call of the JVM: whether it has begun, and what ends it."""

    has_begun: threading.Event
    end: Callable[[], object]


@pytest.fixture
def busy(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Busy]:
    """Let the write be a call of the JVM that nothing else ends."""
    semaphore = spark._jvm.java.util.concurrent.Semaphore(0)
    running = threading.Event()

    def write(*given: object) -> Written:
        running.set()
        semaphore.acquireUninterruptibly()
        return Written()

    monkeypatch.setattr(FilesPublisher, "write", write)
    yield Busy(running, semaphore.release)
    semaphore.release()


def test_a_call_under_way_has_ended_before_the_table_is_rolled_back(
    spark: Any, busy: Busy, interrupt_when: Callable[[Callable[[], bool]], None]
) -> None:
    """It may be planning, or about to publish the table."""
    interrupt_when(busy.has_begun.is_set)
    ended = threading.Event()

    def end_it() -> None:
        ended.set()
        busy.end()

    threading.Timer(1.0, end_it).start()
    hook = Cancelled(ended.is_set)
    with pytest.raises(KeyboardInterrupt):
        ctas.sql(spark, "CREATE TABLE interrupted USING parquet AS SELECT 1 n", hooks=[hook])
    assert hook.answers == [True]
    assert states(spark, "interrupted")[-1] == "ABORTED"


@pytest.mark.usefixtures("little_patience")
def test_a_call_that_does_not_end_keeps_the_transaction_open(
    spark: Any,
    busy: Busy,
    interrupt_when: Callable[[Callable[[], bool]], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What it may still publish is not said to be rolled back."""
    interrupt_when(busy.has_begun.is_set)
    with caplog.at_level(logging.ERROR), pytest.raises(KeyboardInterrupt):
        ctas.sql(spark, "CREATE TABLE interrupted USING parquet AS SELECT 1 n")
    assert "Spark is still busy with it; its transaction stays open" in caplog.text
    assert states(spark, "interrupted")[-1] == "INTENT"
    transactions = ctas.transactions_of(spark)
    (left,) = (each for each, _ in transactions.listed() if not each.state.terminal)
    transactions.table_of(left.to_json()).abort("by this test")


@pytest.mark.usefixtures("little_patience")
def test_a_statement_that_fails_cancels_no_job_beside_it(spark: Any, tmp_path: Path) -> None:
    """As where the function of a micro-batch runs two statements in threads: they have the same root execution."""
    context = spark.sparkContext
    runs, may_end = tmp_path / "runs", tmp_path / "may end"

    def wait(number: int) -> int:
        import pathlib
        import time

        pathlib.Path(runs).touch()
        while not pathlib.Path(may_end).exists():
            time.sleep(0.05)
        return number

    def count() -> None:
        context.setLocalProperty("spark.sql.execution.root.id", "777")
        counted.append(context.parallelize([1], 1).map(wait).count())

    counted: list[int] = []
    other = threading.Thread(target=count)

    class Beside(ctas.JobStatusHook):
        def on_created(self, job_id: str) -> None:
            other.start()
            wait_until(runs.exists, "its job runs")

    context.setLocalProperty("spark.sql.execution.root.id", "777")
    text = "CREATE TABLE t USING parquet AS SELECT 1 n"
    try:
        with pytest.raises(ctas.CheckFailedError):
            ctas.sql(spark, text, checks=[ctas.row_count(2)], hooks=[Beside()])
    finally:
        context.setLocalProperty("spark.sql.execution.root.id", None)
        may_end.touch()
        other.join()
    assert counted == [1]


def test_an_exit_in_the_middle_of_a_call(spark: Any, busy: Busy) -> None:
    """As a program's handler of SIGTERM raises it; the answer of that call is not taken for that of another."""

    def leave(number: int, frame: object) -> None:
        sys.exit(7)

    before = signal.signal(signal.SIGUSR1, leave)
    ended = threading.Event()

    def send() -> None:
        busy.has_begun.wait(60)
        os.kill(os.getpid(), signal.SIGUSR1)
        threading.Timer(1.0, end_it).start()

    def end_it() -> None:
        ended.set()
        busy.end()

    sending = threading.Thread(target=send)
    sending.start()
    hook = Cancelled(ended.is_set)
    with pytest.raises(SystemExit):
        ctas.sql(spark, "CREATE TABLE interrupted USING parquet AS SELECT 1 n", hooks=[hook])
    sending.join()
    signal.signal(signal.SIGUSR1, before)
    assert hook.answers == [True]
    assert states(spark, "interrupted")[-1] == "ABORTED"
    assert spark.range(5).count() == 5

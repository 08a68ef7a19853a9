"""Calls at their times: on one thread for all, which ends with the last one."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from spark_events import ctas
from spark_events.ctas.transactions.calls_later import CallsLater
from tests.support.waiting import wait_until

NAME = "tests-calls-later"


def threads(name: str = NAME) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_calls_come_in_the_order_of_their_times_on_one_thread() -> None:
    later = CallsLater(NAME)
    called: list[str] = []
    is_free = threading.Event()
    later.after(0, is_free.wait)
    for delay_s, name in ((0.02, "last"), (0.01, "second"), (0, "first"), (0.01, "third")):
        later.after(delay_s, lambda name=name: called.append(name))
    assert len(threads()) == 1
    is_free.set()
    wait_until(lambda: not threads(), "the thread ends with the last call")
    assert called == ["first", "second", "third", "last"]
    later.after(0, lambda: called.append("again"))
    wait_until(lambda: called[-1] == "again", "there is a thread again")


def test_one_that_comes_sooner_does_not_wait_for_the_others() -> None:
    later = CallsLater(NAME)
    called = threading.Event()
    later.after(3_600, print)
    later.after(0, called.set)
    assert called.wait(30)
    later._waiting.clear()
    later.after(0, print)
    wait_until(lambda: not threads(), "the thread ends")


def test_the_process_ends_without_it() -> None:
    code = "from spark_events.ctas.transactions.calls_later import CallsLater; CallsLater('x').after(3600, print)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=280)


@pytest.mark.spark
def test_one_thread_for_all_tables_that_were_replaced(spark: Any) -> None:
    for number in range(4):
        ctas.sql(spark, f"CREATE OR REPLACE TABLE t USING parquet AS SELECT {number} AS a")
    assert len(threads("spark-events-ctas-collect")) == 1

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from spark_events.sql_runner.analysis.code_text import syntax

CODE = "x = spark.sql('select 1').where((a + b) * c == 3)\n" * 40


class Waiting:
    """Garbage whose end lets other threads run, as that of an object of Java's does."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0.0005)


@pytest.fixture
def garbage_is_collected_often() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(20, 2, 2)
    yield
    gc.set_threshold(*before)


@pytest.mark.extended
@pytest.mark.usefixtures("garbage_is_collected_often")
def test_several_threads_read_code() -> None:
    """Queries are deployed in parallel; Python 3.11 counts the depth of all their trees in one place."""

    def read(_: int) -> str:
        for _ in range(5):
            Waiting()
        return syntax(CODE)

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(read, range(400)))) == 1

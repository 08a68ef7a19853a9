"""A query's ``start`` that raises: what the program gets, whatever becomes of the record."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spark_events.sources.failed_starts import FailedStarts

pytest.importorskip("pyspark")
from pyspark.sql.streaming.readwriter import DataStreamWriter


class Option:
    """Scala's map of the writer's options, and what it has."""

    def __init__(self, name: str | None) -> None:
        self.getClass = self.getDeclaredField = self.setAccessible = lambda *_: self
        self.get = lambda *_: self if name is None or _ != () else name
        self.isDefined = lambda: name is not None

    def start(self) -> Any:
        """Raise, as Java does through py4j."""
        raise ValueError("no such mode")


def writer(name: str | None = "orders") -> Any:
    made = object.__new__(DataStreamWriter)
    made._jwrite = Option(name)
    return made


@contextmanager
def noticing(take: Callable[[dict[str, Any]], None], is_ours: bool = True) -> Iterator[None]:
    noticed = FailedStarts(take, lambda _: is_ours)
    noticed.begin_classic()
    try:
        yield
    finally:
        noticed.end()


def test_what_is_taken() -> None:
    """The name, and the exception as from the program's first line on; the program gets the same exception."""
    taken: list[dict[str, Any]] = []
    with noticing(taken.append), pytest.raises(ValueError, match="no such mode"):
        writer().start()
    (record,) = taken
    assert record["name"] == "orders"
    assert record["errorClass"] is None
    assert record["exception"].startswith("Traceback (most recent call last):\n")
    assert record["exception"].endswith("ValueError: no such mode\n")
    assert f'"{__file__}"' in record["exception"]
    assert "failed_starts.py" not in record["exception"].replace(__file__, "")


def test_a_query_without_a_name_is_named_by_its_place() -> None:
    """Each run of the program gives the same name."""
    taken: list[dict[str, Any]] = []
    with noticing(taken.append), pytest.raises(ValueError, match="no such mode"):
        writer(name=None).start()
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    assert taken[0]["name"] == f"unnamed (test_failed_starts.py:{line})"


def test_nothing_that_goes_wrong_reaches_the_program() -> None:
    """Neither what taking it raises, nor a writer that knows nothing."""

    def take(record: dict[str, Any]) -> None:
        raise RuntimeError("a bug of ours")

    with noticing(take), pytest.raises(ValueError, match="no such mode") as caught:
        writer().start()
    assert caught.value.__context__ is None
    taken: list[dict[str, Any]] = []
    with noticing(taken.append), pytest.raises(AttributeError, match="_jwrite"):
        object.__new__(DataStreamWriter).start()
    assert taken[0]["name"].startswith("unnamed (")


def test_another_sessions_and_nobodys() -> None:
    """A writer of a session that is not followed, and one after the end."""
    of_pyspark = DataStreamWriter.start
    taken: list[dict[str, Any]] = []
    with noticing(taken.append, is_ours=False):
        assert DataStreamWriter.start is not of_pyspark
        assert inspect.signature(DataStreamWriter.start) == inspect.signature(of_pyspark)
        with pytest.raises(ValueError, match="no such mode"):
            writer().start()
    assert DataStreamWriter.start is of_pyspark
    assert taken == []

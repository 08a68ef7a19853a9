"""Attachments that measure each UDF, and overlap."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_events.sources.driver.tasks.users_functions import MeasuredUdfs
from spark_events.task import measured
from spark_events.task.measured_functions import is_measured

udf = pytest.importorskip("pyspark.sql.udf")
LongType = pytest.importorskip("pyspark.sql.types").LongType


def test_it_ends_with_the_last_attachment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever begins or ends first; PySpark's own method is back then."""
    sent: list[Any] = []

    def create(of: Any, func: Any) -> None:
        sent.append(func)

    monkeypatch.setattr(udf.UserDefinedFunction, "_create_judf", create)
    first, second = MeasuredUdfs(), MeasuredUdfs()
    first.begin()
    second.begin()
    first.end()
    by_row = SimpleNamespace(evalType=100)
    udf.UserDefinedFunction._create_judf(by_row, abs)
    second.end()
    second.end()
    udf.UserDefinedFunction._create_judf(by_row, abs)
    assert [is_measured(func) for func in sent] == [True, False]
    assert udf.UserDefinedFunction._create_judf is create


def test_measured_above_udf() -> None:
    """The function that workers run is measured, and the result is still a UDF, of the same name and type."""

    def price(text: str) -> int:
        return int(text)

    made = measured(udf.UserDefinedFunction(price, LongType())._wrapped())

    assert is_measured(made.func)
    assert made._unwrapped.func is made.func
    assert (made.returnType, made.evalType, made.__name__) == (LongType(), 100, "price")

"""Attachments that measure each UDF, and overlap."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_events.sources.driver.measured_udfs import MeasuredUdfs
from spark_events.task.instruments import is_measured

udf = pytest.importorskip("pyspark.sql.udf")


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

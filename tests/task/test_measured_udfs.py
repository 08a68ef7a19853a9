"""Attachments that measure each UDF, and overlap."""

from __future__ import annotations

import functools
import inspect
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from spark_events import task
from spark_events.sources.driver.tasks.udfs import MeasuredUdfs
from spark_events.task import current, measured
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


class Lookup:
    """A function that keeps what cannot be pickled, and leaves it out."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __call__(self, row: int) -> int:
        return row + 1


def test_an_object_is_pickled_its_own_way() -> None:
    """Workers call what its ``__getstate__`` or ``__reduce__`` sends."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")

    arrived = cloudpickle.loads(cloudpickle.dumps(measured(Lookup())))

    assert arrived(1) == 2
    assert vars(arrived.__wrapped__) == {}


def priced(text: str, lock: Any = threading.Lock()) -> int:  # noqa: B008
    """A function that workers import, whose default cannot be pickled."""
    return int(text)


def test_the_default_of_a_parameter_is_not_pickled() -> None:
    """A function of a module is pickled by its name."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")

    made = measured(priced)
    assert cloudpickle.loads(cloudpickle.dumps(made))("5") == 5
    assert len(inspect.getfullargspec(made).defaults or ()) == 1


def test_what_a_function_has_of_its_own_stays() -> None:
    def price(text: str) -> int:
        return int(text)

    price.version = 2  # type: ignore[attr-defined]
    assert measured(price).version == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "function", [priced, functools.partial(priced, "5"), Lookup(), Lookup().__call__, len]
)
def test_a_udf_and_its_column_are_named_as_before(function: Any) -> None:
    udf = pytest.importorskip("pyspark.sql.functions").udf
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")

    made = measured(function)
    assert udf(made).__name__ == udf(function).__name__
    if function is not len:
        arrived = cloudpickle.loads(cloudpickle.dumps(made))
        assert arrived.__name__ == made.__name__


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (lambda group: group, ["group"]),
        (lambda key, group: group, ["key", "group"]),
        (lambda key, left, right: left, ["key", "left", "right"]),
        (Lookup(), ["row"]),
        (Lookup().__call__, ["row"]),
    ],
)
def test_parameters_are_counted_as_before(function: Any, parameters: list[str]) -> None:
    """As PySpark does, for functions that may get the key of a group or not."""
    assert inspect.getfullargspec(measured(function)).args == parameters


def test_a_udtf_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    udtf = pytest.importorskip("pyspark.sql.udtf")
    monkeypatch.setattr(current, "_said", set())

    class Twice:
        def eval(self, row: int) -> Any:
            yield row, row

    made = udtf.UserDefinedTableFunction(Twice, "first INT, second INT")
    assert measured(made) is made
    assert measured(Twice) is Twice
    assert task.span("twice")(Twice) is Twice
    assert "put it above the method eval" in caplog.text

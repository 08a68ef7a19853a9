"""Decorators of functions whose results run later: generators, coroutines and asynchronous generators."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from spark_events import task
from tests.support.task_worker import Worker

Decorator = Callable[[Any], Any]
IN_SPAN = task.span("outer")


def both(function: Any) -> Any:
    return task.measured(IN_SPAN(function))


def both_otherwise(function: Any) -> Any:
    return IN_SPAN(task.measured(function))


@pytest.mark.parametrize("decorate", [IN_SPAN, task.measured, both, both_otherwise])
def test_what_is_raised_in_a_generator_arrives_there(decorate: Decorator) -> None:
    """``asynccontextmanager`` raises there what the body of a ``with`` raises: a transaction is rolled back."""
    log: list[str] = []

    @contextlib.asynccontextmanager
    @decorate
    async def transaction() -> AsyncGenerator[str, None]:
        try:
            yield "open"
        except KeyError as error:
            log.append("rolled back")
            if error.args == ("raise",):
                raise
            if error.args == ("replace",):
                raise ValueError("replaced") from error
        else:
            log.append("committed")

    async def use(kind: str) -> object:
        try:
            async with transaction() as given:
                assert given == "open"
                if kind:
                    raise KeyError(kind)
        except Exception as error:
            return type(error)
        return None

    ends = {kind: asyncio.run(use(kind)) for kind in ("", "swallow", "raise", "replace")}
    assert ends == {"": None, "swallow": None, "raise": KeyError, "replace": ValueError}
    assert log == ["committed", *["rolled back"] * 3]


def rows() -> Generator[int, None, None]:
    with task.span("inner"):
        yield 1


async def wait() -> int:
    with task.span("inner"):
        return 1


async def rows_later() -> AsyncGenerator[int, None]:
    with task.span("inner"):
        yield 1


async def first_of(steps: AsyncGenerator[int, None]) -> list[int]:
    return [each async for each in steps]


@pytest.mark.parametrize("decorate", [both, both_otherwise])
def test_a_span_lasts_as_long_as_what_it_is_above(worker: Worker, decorate: Decorator) -> None:
    """Above ``measured`` as below it: what runs later is within the span."""
    assert list(decorate(rows)()) == [1]
    assert asyncio.run(decorate(wait)()) == 1
    assert asyncio.run(first_of(decorate(rows_later)())) == [1]
    spans = worker.end_task()["spans"]
    assert [span["name"] for span in spans] == ["outer", "inner"] * 3
    for outer, inner in zip(spans[::2], spans[1::2], strict=True):
        assert inner["parent"] == outer["id"]
        assert outer["end_ns"] >= inner["end_ns"]


def test_a_generator_that_a_function_reads_itself() -> None:
    """Its function is no generator function because it stands above one, whatever it is named after."""
    made = task.measured(rows)

    @IN_SPAN
    @functools.wraps(made)
    def listed() -> list[int]:
        return list(made())

    assert listed() == [1]
    assert not inspect.isgeneratorfunction(listed)

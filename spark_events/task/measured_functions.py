"""Functions that measure their calls: what ``@measured`` makes of a user's function, or of a UDF."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakSet

from spark_events.task.async_generators import GeneratorRun, running
from spark_events.task.decorated import decorated, named_like
from spark_events.task.instruments import TaskHistogram, metrics
from spark_events.task.values import name_of

_TIMED_ONE_IN = 100
_MEASURED = "__spark_events_measured__"
_WRAPPERS: WeakSet[Callable[..., Any]] = WeakSet()
P = ParamSpec("P")
R = TypeVar("R")


def measured(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that measures how often it is called, and how long every hundredth call takes.

    The counters ``udf_calls`` and ``udf_exceptions``, and the histogram ``udf_processing_time`` (in s), have
    the function's name as the label ``udf``. It may stand below ``@udf`` or above it. As in FLIP-485, most
    calls are not timed, because that would cost more than many functions. Of a generator, the time is that of
    all its steps, in which it may wait for its input; of a coroutine, it is that until its end, with the time
    in which others run. A UDTF is returned as it is, with a warning: its method
    ``eval`` can be measured.

    Example::

        @udf("double")
        @task.measured
        def to_euros(amount: float, currency: str) -> float:
            return amount * RATES[currency]
    """
    return decorated(function, "task.measured", _measured)


def _measured(function: Callable[P, R]) -> Callable[P, R]:
    name = _name_of_function(function)
    calls, times = metrics.counter("udf_calls", udf=name), metrics.histogram("udf_processing_time", udf=name)
    exceptions = metrics.counter("udf_exceptions", udf=name)
    until_timed = 0
    called = 0  # in this task: each gets a function of its own

    def wrapper(*arguments: P.args, **named: P.kwargs) -> R:
        nonlocal until_timed, called
        calls.inc()
        called += 1
        until_timed -= 1
        began = 0.0
        if until_timed <= 0:
            until_timed, began = _TIMED_ONE_IN, time.perf_counter()
        try:
            returned = function(*arguments, **named)
        except Exception as error:
            note(error, called)
            raise
        if (run := _RUNS.get(type(returned))) is not None:  # it has not begun to run
            return cast(R, run(returned, times if began else None, functools.partial(note, call=called)))
        if began:
            times.update(time.perf_counter() - began)
        return returned

    def note(error: Exception, call: int) -> None:
        exceptions.inc()
        with suppress(Exception):  # a class of the user's may have slots, say
            error.__spark_events_call__ = name, call  # type: ignore[attr-defined]

    named_like(function, wrapper)
    setattr(wrapper, _MEASURED, True)
    _WRAPPERS.add(wrapper)
    return wrapper


def _measured_run(
    generator: Generator[Any, Any, Any], times: TaskHistogram | None, note: Callable[[Exception], None]
) -> Any:
    """Run a generator as ``yield from`` does.

    Args:
        times: takes how long all of its steps took together, in s; None does not measure that.
        note: called with what it raises.
    """
    try:
        if times is None:
            return (yield from generator)
    except Exception as error:  # what most runs need, as UDTFs have one for each row
        note(error)
        raise
    stopwatch = _Stopwatch()
    with _noted(stopwatch, times, note):
        return (yield from _Timed(generator, stopwatch))


async def _measured_wait(
    coroutine: Coroutine[Any, Any, Any], times: TaskHistogram | None, note: Callable[[Exception], None]
) -> Any:
    """Run a coroutine as ``await`` does.

    Args:
        times: takes how long it took until its end, in s; None does not measure that.
        note: called with what it raises.
    """
    began = time.perf_counter()
    try:
        returned = await coroutine
    except Exception as error:
        note(error)
        raise
    if times is not None:
        times.update(time.perf_counter() - began)
    return returned


def _measured_steps(
    generator: AsyncGenerator[Any, Any], times: TaskHistogram | None, note: Callable[[Exception], None]
) -> Any:
    """Run an asynchronous generator.

    Args:
        times: takes how long all of its steps took together, in s; None does not measure that.
        note: called with what it raises.
    """
    stopwatch = _Stopwatch()
    return running(lambda: GeneratorRun(generator, _noted(stopwatch, times, note), stopwatch))()


_RUNS: dict[type, Callable[..., Any]] = {
    GeneratorType: _measured_run,
    CoroutineType: _measured_wait,
    AsyncGeneratorType: _measured_steps,
}


class _Stopwatch:
    """Adds up how long what is within it took.

    Attributes:
        spent_s: how long, in s.
    """

    def __init__(self) -> None:
        self.spent_s = self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *raised: object) -> None:
        self.spent_s += time.perf_counter() - self._began


@contextmanager
def _noted(
    stopwatch: _Stopwatch, times: TaskHistogram | None, note: Callable[[Exception], None]
) -> Iterator[None]:
    """Note what is raised within, and otherwise the time of a stopwatch; the arguments are those above."""
    try:
        yield
    except Exception as error:
        note(error)
        raise
    except GeneratorExit:  # nobody wants the rest
        if times is not None:
            times.update(stopwatch.spent_s)
        raise
    if times is not None:
        times.update(stopwatch.spent_s)


class _Timed(Generator[Any, Any, Any]):
    """A generator whose steps a stopwatch measures, without what happens between them."""

    def __init__(self, generator: Generator[Any, Any, Any], stopwatch: _Stopwatch) -> None:
        self._generator = generator
        self._stopwatch = stopwatch

    def send(self, value: Any) -> Any:
        return self._step(self._generator.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._generator.throw, *error)

    def _step(self, resume: Callable[..., Any], *arguments: Any) -> Any:
        with self._stopwatch:
            return resume(*arguments)


def _name_of_function(function: Callable[..., Any]) -> str:
    try:
        return name_of(function.__name__)
    except Exception:  # a partial has none
        return type(function).__name__


def below(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function whose calls ``measured`` measures, if this is what it made of it, or else this one.

    That one says whether a call returns a generator or a coroutine.
    """
    while type(function) is FunctionType and function in _WRAPPERS:
        function = function.__wrapped__  # type: ignore[attr-defined]
    return function


def is_measured(function: Callable[..., Any]) -> bool:
    """Return whether a function is one that ``measured`` has returned."""
    return bool(getattr(function, _MEASURED, False))

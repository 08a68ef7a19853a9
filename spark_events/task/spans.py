"""Spans of a task, and its place in the application's trace."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast, overload

from spark_events.task.async_generators import GeneratorRun, running
from spark_events.task.current import attributes_for, current_report, leave_out, say_once
from spark_events.task.decorated import decorated, named_like
from spark_events.task.measured_functions import below
from spark_events.task.report import MOST_SPANS, TaskReport
from spark_events.task.traces import enter_trace, leave_trace, new_span_id
from spark_events.task.values import NOT_GIVEN, Value, error_of, name_of, taken

P = ParamSpec("P")
R = TypeVar("R")


class TaskSpan:
    """A span that is open, to which attributes can be added."""

    def __init__(self, attributes: dict[str, Value]) -> None:
        self._attributes = attributes

    def set_attribute(self, key: str, value: Any) -> None:
        """Set an attribute; all but numbers, booleans and texts become texts."""
        try:
            merged = attributes_for("task.span", {**self._attributes, name_of(key): value})
            self._attributes.clear()
            self._attributes.update(merged)
        except Exception as error:  # another thread's, say
            say_once("task.span", f"an attribute failed with {type(error).__name__}")


class SpanOfTask:
    """A span that is begun by ``with``, or by each call of a function that it decorates.

    It is no ``contextlib.contextmanager``: Spark could not send a function that one of these decorates.
    """

    def __init__(self, name: str, others: tuple[Any, ...], attributes: dict[str, Any]) -> None:
        self._name, self._others, self._attributes = name, others, attributes
        self._opened: list[_Opened | None] = []

    def __enter__(self) -> TaskSpan:
        leave_out("task.span", self._others)
        attributes = dict(self._attributes)
        opened = _open(taken(self._name, "name", attributes), attributes)
        self._opened.append(opened)
        report = opened.report if opened else None
        # Without those that earlier tasks of the worker have left open.
        of_task = (pair for pair in _begun.get() if pair[1] is None or pair[1].report is report)
        _begun.set((*of_task, (self, opened)))
        return TaskSpan({} if opened is None else opened.kept["attributes"])

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        opened = self._end()
        if opened is None:
            return
        if error is not None and type(error) is not GeneratorExit:  # of which nobody wants the rest
            opened.kept["error"] = error_of(error)
        opened.kept["end_ns"] = time.time_ns()
        opened.report.open.close(opened.kept["id"])
        leave_trace(opened.entered)

    def _end(self) -> _Opened | None:
        """Take what this has begun last, in this thread or coroutine: others may use it, too."""
        begun = _begun.get()
        for place in reversed(range(len(begun))):
            if begun[place][0] is self:
                _begun.set((*begun[:place], *begun[place + 1 :]))
                opened = begun[place][1]
                with suppress(ValueError):
                    self._opened.remove(opened)
                return opened
        # What another thread has begun, as of a generator that this one closes.
        return self._opened.pop() if self._opened else None

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each of its calls has a span, or each run of its generators or coroutines."""
        leave_out("task.span", self._others)
        if not callable(function) and type(function) not in (staticmethod, classmethod):
            say_once("task.span", f"it decorates functions, not what is given ({type(function).__name__})")
            return function
        plain = attributes_for("task.span", self._attributes)  # what else there is may be nothing to be sent
        return decorated(function, "task.span", functools.partial(_with_spans, self._name, plain))


def _is(kind: Callable[[Any], bool], function: Callable[..., Any]) -> bool:
    try:
        return kind(function)
    except Exception:  # a proxy may not be asked for its class
        return False


def _with_spans(name: Any, attributes: dict[str, Any], function: Callable[..., Any]) -> Callable[..., Any]:
    wrapper: Callable[..., Any]
    made = below(function)
    if _is(inspect.isgeneratorfunction, made):

        def wrapper(*arguments: Any, **named: Any) -> Any:
            with SpanOfTask(name, (), attributes):
                return (yield from function(*arguments, **named))

    elif _is(inspect.iscoroutinefunction, made):

        async def wrapper(*arguments: Any, **named: Any) -> Any:
            with SpanOfTask(name, (), attributes):
                return await function(*arguments, **named)

    elif _is(inspect.isasyncgenfunction, made):

        def start(*arguments: Any, **named: Any) -> GeneratorRun:
            return GeneratorRun(
                function(*arguments, **named), SpanOfTask(name, (), attributes), nullcontext()
            )

        wrapper = running(start)

    else:

        def wrapper(*arguments: Any, **named: Any) -> Any:
            with SpanOfTask(name, (), attributes):
                return function(*arguments, **named)

    return named_like(function, wrapper)  # type: ignore[no-any-return]


@overload
def span(name: str = ..., /, *others: Any, **attributes: Any) -> SpanOfTask: ...
@overload
def span(name: Callable[P, R], /) -> Callable[P, R]: ...
def span(name: Any = NOT_GIVEN, /, *others: Any, **attributes: Any) -> Any:
    """Measure a part of a task, as a span below that of its stage, or of the span around it.

    It may decorate a function as well: then each call has a span, which without a name has the function's.

    Args:
        name: of the span; it may also be given by name.
        others: are left out.
        attributes: numbers, booleans and texts; all else becomes text.

    Example::

        with task.span("lookup", service="rates"):
            rates = fetch_rates()
    """
    if type(name) in (FunctionType, staticmethod, classmethod):  # ``@task.span`` without a name decorates
        own = name_of(getattr(name, "__name__", ""))
        return SpanOfTask(own, others, attributes)(cast(Any, name))
    return SpanOfTask(name, others, attributes)


class _Opened(NamedTuple):
    """The report that a span is of, the span, and the token to leave its trace by."""

    report: TaskReport
    kept: dict[str, Any]
    entered: Any


_begun: ContextVar[tuple[tuple[SpanOfTask, _Opened | None], ...]] = ContextVar("begun_spans", default=())


def _open(name: str, attributes: dict[str, Any]) -> _Opened | None:
    """Open a span.

    None outside a task, beyond the limit, or if it fails; it never raises.
    """
    try:
        report = current_report()
        if report is None:
            return None
        name = name_of(name)
        if not report.has_room("spans", name, len(report.spans), MOST_SPANS):
            return None
        kept: dict[str, Any] = {
            "name": name,
            "attributes": attributes_for("task.span", attributes),
            "start_ns": time.time_ns(),
            "id": new_span_id(),
            "parent": report.open.innermost,
        }
        report.spans.append(kept)
        report.open.open(kept["id"])
        return _Opened(report, kept, enter_trace(report.place))
    except Exception as error:
        say_once("task.span", f"it failed with {type(error).__name__}")
        return None


def traceparent() -> str | None:
    """Return the place of the task in the application's trace, as the header ``traceparent`` of W3C.

    It is the innermost open ``span``, or else the task's stage. Send it with requests to other services, and
    what those do appears in the trace. None outside a task, or if no spans are reported.

    Example::

        requests.get(url, headers={"traceparent": task.traceparent() or ""})
    """
    try:
        report = current_report()
        place = report.place() if report else None
        return place.traceparent if place else None
    except Exception as error:
        say_once("task.traceparent", f"it failed with {type(error).__name__}")
        return None

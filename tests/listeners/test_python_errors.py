"""What Python raised, read from what Python prints of it, against what Python itself knows of it."""

from __future__ import annotations

import builtins
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_events.api import CodePlace
from spark_events.listeners.failures.failure_events import in_one_line
from spark_events.listeners.failures.failures import parse_failure
from spark_events.listeners.failures.python_errors import innermost_error

GROUP = getattr(builtins, "ExceptionGroup", None)  # from Python 3.11 on
LOST = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "1.0 (TID 1) (localhost executor driver): org.apache.spark.api.python.PythonException: "
)
JAVA_FRAMES = (
    "\n\tat org.apache.spark.api.python.BasePythonRunner.x(Y.scala:1)\n\nDriver stacktrace:\n\tat a.B.c(B:1)"
)
IN_A_TASK = f"{LOST}%s{JAVA_FRAMES}\nCaused by: org.apache.spark.api.python.PythonException: %s{JAVA_FRAMES}"
LINK = "During handling of the above exception, another exception occurred:"
JAVA_TEXT = (
    "An error occurred while calling o1.count.\n: java.lang.IllegalStateException: no\n\tat a.B.c(B.java:1)"
)


class ÄrgerError(Exception):
    """A class whose name begins with no ASCII letter."""


class Shop:
    """Has a class of its own."""

    class OrderError(ValueError):
        """It is named after both."""


def of_function(*arguments: object) -> BaseException:
    """Return an exception of a class that a function defines."""

    class OrderError(Exception):
        pass

    return OrderError(*arguments)


def of_syntax(*_: object) -> BaseException:
    """Return what the compiler raises."""
    try:
        compile("total = = 1", "query.py", "exec")
    except SyntaxError as error:
        return error
    raise AssertionError


@dataclass(frozen=True)
class Recipe:
    """How an exception comes about."""

    make: Callable[..., BaseException]
    message: str
    cause: Recipe | None = None
    context: Recipe | None = None
    notes: tuple[str, ...] = ()
    members: tuple[Recipe, ...] = ()
    raised: bool = True


def occur(recipe: Recipe) -> BaseException:
    """Make the exception, and raise it, except as the member of a group that nobody has raised."""
    if recipe.members and GROUP:
        error = GROUP(recipe.message, [occur(member) for member in recipe.members])
    else:
        error = recipe.make(recipe.message) if recipe.message else recipe.make()
    for note in recipe.notes:
        error.add_note(note)
    if not recipe.raised:
        return error
    try:
        raise_it(error, recipe)
    except BaseException as caught:
        return caught
    raise AssertionError


def raise_it(error: BaseException, recipe: Recipe) -> None:
    """Raise it while another is handled, from another, or alone."""
    if recipe.context is not None:
        try:
            raise occur(recipe.context)
        except BaseException:
            raise error  # noqa: B904 - no cause
    if recipe.cause is not None:
        raise error from occur(recipe.cause)
    raise error


def printed(error: BaseException) -> str:
    try:
        raise error
    except BaseException:
        return traceback.format_exc()


def known(error: BaseException) -> tuple[str, str]:
    """Return the type as Python names it, and the message's first line, with the first of a group's members."""
    of_type = type(error)
    name = (
        of_type.__qualname__
        if of_type.__module__ == "builtins"
        else f"{of_type.__module__}.{of_type.__qualname__}"
    )
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    said = next((line.strip() for line in text.split("\n") if line.strip()), "")
    if GROUP and isinstance(error, GROUP):
        first, message = known(error.exceptions[0])
        return name, f"{said}: {first}: {message}" if message else f"{said}: {first}"
    return name, said


CLASSES = st.sampled_from(
    [ValueError, OSError, AssertionError, ÄrgerError, Shop.OrderError, of_function, of_syntax]
)
LINES = st.sampled_from(
    [
        "order 4711 is bad",
        "Hint: call support",
        "größer als 3: nein",
        "  indented",
        LINK,
        '  File "a.py", line 1, in f',
    ]
)
SAID = st.one_of(
    st.just(""),
    st.lists(LINES, min_size=1, max_size=3).map("\n".join),
    st.lists(LINES, min_size=1, max_size=2).map(lambda lines: "\n".join(["", *lines])),
    st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=20),
)


def _runs_on(message: str) -> bool:
    """Return whether a note would look like a part of the message: one that is blank, or ends with a quotation."""
    return "Traceback" in message or bool(message and not message.strip())


def errors(
    said: st.SearchStrategy[str], depth: int, raised: st.SearchStrategy[bool]
) -> st.SearchStrategy[Recipe]:
    """Return exceptions of all kinds that Python has, linked to others, or groups of them."""
    notes = st.lists(LINES, max_size=2 if GROUP else 0).map(tuple)
    inner = st.none() | errors(said, depth - 1, raised) if depth else st.none()
    single = st.builds(Recipe, CLASSES, said, inner, inner, notes, raised=raised)
    single = single.filter(lambda recipe: not recipe.notes or not _runs_on(recipe.message))
    if depth == 0 or not GROUP:
        return single
    members = st.lists(errors(said, depth - 1, raised), min_size=1, max_size=3).map(tuple)
    words = st.lists(LINES, min_size=1, max_size=2).map("\n".join)
    return single | st.builds(Recipe, st.just(ValueError), words, inner, inner, notes, members, raised)


def quoting(recipe: Recipe) -> str:
    return f"child failed: \n{printed(occur(recipe))}"


# A quotation that begins without a traceback cannot be told from an exception that is linked to one.
QUOTING = SAID | errors(SAID, 1, raised=st.just(True)).map(quoting)
OUTERMOST = errors(QUOTING, 2, raised=st.booleans()).map(lambda recipe: replace(recipe, raised=True))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(OUTERMOST)
def test_it_is_told_as_python_knows_it(recipe: Recipe) -> None:
    """Groups, links, notes, classes of functions, names in any script, messages that quote tracebacks."""
    error = occur(recipe)
    for text in (printed(error), IN_A_TASK % (printed(error), printed(error))):
        told = innermost_error(text)
        assert told is not None, text
        assert (told.type, told.message) == known(error), text
        assert parse_failure(text).exception_type == told.type


def app(source: str) -> str:
    """Return what Python prints of the exception that a program of the user's ends with."""
    try:
        exec(compile(source, "/jobs/app.py", "exec"), {"__name__": "__main__"})
    except BaseException as error:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__.tb_next))  # type: ignore[union-attr]
    raise AssertionError


TASK_GROUP = """
import asyncio
async def load():
    raise ValueError("no rows")
async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(load())
asyncio.run(main())
"""
LOCAL = """
def price(order):
    class OrderError(Exception): pass
    raise OrderError(f"order {order} is bad\\nHint: call support")
price(4711)
"""
QUOTED = """
CHILD = '''Traceback (most recent call last):
  File "child.py", line 3, in <module>
KeyError: 'inner'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "child.py", line 5, in <module>
IndexError: 7'''
raise RuntimeError(f"child failed:\\n{CHILD}")
"""
POOL = """
from concurrent.futures.process import _ExceptionWithTraceback
try:
    try: {}["customer"]
    except KeyError as error: first = error
    raise LookupError("no customer") from first
except LookupError as error: rebuild, (bare, text) = _ExceptionWithTraceback(error, error.__traceback__).__reduce__()
def result(): raise rebuild(bare, text)
result()
"""


@pytest.mark.parametrize(
    ("source", "said", "line"),
    [
        pytest.param(
            TASK_GROUP,
            "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception): ValueError: no rows",
            4,
            marks=pytest.mark.skipif(not GROUP, reason="Python 3.10 has no groups"),
        ),
        (LOCAL, "price.<locals>.OrderError: order 4711 is bad", 4),
        (QUOTED, "RuntimeError: child failed:", 11),
        (POOL, "LookupError: no customer", 8),
        (
            f"raise RuntimeError({JAVA_TEXT!r} + chr(10) + {printed(KeyError('x'))!r})",
            f"RuntimeError: {JAVA_TEXT[:41]}",
            1,
        ),
    ],
    ids=["a group of tasks", "a class of a function", "a quoted traceback", "another process", "Java's text"],
)
def test_what_a_program_ends_with(source: str, said: str, line: int) -> None:
    """The one line that people read of it, and the place in the program."""
    failure = parse_failure(app(source))

    assert in_one_line(failure) == said
    assert failure.code is not None
    assert (failure.code.file_path, failure.code.line_number) == ("/jobs/app.py", line)


WRAPPED = """Traceback (most recent call last):
  File "/v/lib/site-packages/pyspark/util.py", line 131, in wrapper
    return f(*args, **kwargs)
  File "/jobs/app.py", line 61, in first
    return next(iter([]))
StopIteration

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/v/lib/site-packages/pyspark/worker.py", line 3100, in main
    process()
  File "/v/lib/site-packages/pyspark/util.py", line 134, in wrapper
    raise PySparkRuntimeError(
pyspark.errors.exceptions.base.PySparkRuntimeError: Caught StopIteration thrown from user's code
"""


def test_what_pyspark_wraps_has_the_place_of_what_is_in_it() -> None:
    error = innermost_error(WRAPPED)
    assert error is not None
    assert error.type == "pyspark.errors.exceptions.base.PySparkRuntimeError"
    assert error.place == CodePlace("/jobs/app.py", 61, "first")


def test_a_traceback_that_is_cut() -> None:
    """The one before it is complete."""
    text = (
        f"{LOST}{printed(ValueError('no'))}{JAVA_FRAMES}\nCaused by: x.PythonException: {printed(KeyError())}"
    )
    for end in range(text.rindex("Caused by") + 30, text.rindex("KeyError")):
        told = innermost_error(text[:end] + "… (17 more characters)")
        assert told is not None
        assert (told.type, told.message) == ("ValueError", "no")

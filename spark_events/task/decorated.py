"""What a decorator makes of the functions that users give Spark, so that Spark takes them as before."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FunctionType
from typing import Any, TypeVar

from spark_events.task.current import say_once

_TABLE_FUNCTION = "UserDefinedTableFunction"
_NO_TABLES = "it does nothing above a UDTF, whose rows come after its call: put it above the method eval"
F = TypeVar("F")


def decorated(function: F, decorator: str, wrap: Callable[[Any], Any]) -> F:
    """Return what a decorator makes of a function, a UDF of Spark's, or a static or a class method.

    Args:
        function: what it stands above. A UDTF, or its class, is returned as it is, with a warning: its rows
            come after its call, from its method ``eval``.
        decorator: its name, for the log.
        wrap: makes another function of one.
    """
    # By ``type``: a proxy may not be asked for its class.
    makes_tables = issubclass(type(function), type) and hasattr(function, "eval")
    if makes_tables or type(function).__name__ == _TABLE_FUNCTION:
        say_once(decorator, _NO_TABLES)
        return function
    if type(function) in (staticmethod, classmethod):
        method: Any = function
        return type(method)(wrap(method.__func__))  # type: ignore[no-any-return]
    udf = _udf_of(function)
    return wrap(function) if udf is None else _with_function(udf, wrap(udf.func))  # type: ignore[no-any-return]


def named_like(function: Callable[..., Any], wrapper: Callable[..., Any]) -> Any:
    """Give a wrapper the names and the parameters of the function that it calls, and return it."""
    # What is in another callable object its own pickling may leave out, such as a lock.
    copied = functools.WRAPPER_UPDATES if isinstance(function, FunctionType) else ()
    named = _readable(function, functools.WRAPPER_ASSIGNMENTS)
    functools.update_wrapper(wrapper, function, named, copied)
    if "__name__" not in named:
        wrapper.__name__ = type(function).__name__  # as PySpark names a UDF, and its column
    with suppress(Exception):  # not every function in C has one
        # applyInPandas counts the parameters, and looks no further than at this function.
        wrapper.__signature__ = _shape_of(function)  # type: ignore[attr-defined]
    return wrapper


def _readable(function: object, names: Sequence[str]) -> list[str]:
    """Return which attributes an object has; a partial has no name, and a user's class may raise anything."""
    there = []
    for name in names:
        with suppress(Exception):
            getattr(function, name)
            there.append(name)
    return there


def _shape_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the parameters of a function, without their defaults: these may be nothing that can be sent."""
    signature = inspect.signature(function)
    shaped = [
        each if each.default is each.empty else each.replace(default=None)
        for each in signature.parameters.values()
    ]
    return signature.replace(parameters=shaped)


def _udf_of(function: Any) -> Any:
    """Return the UDF of Spark's that this is, with its wrapper or without; None if it is none."""
    try:
        udf = getattr(function, "_unwrapped", function)
        return udf if hasattr(udf, "evalType") and callable(getattr(udf, "func", None)) else None
    except Exception:  # of the user's own type
        return None


def _with_function(udf: Any, function: Callable[..., Any]) -> Any:
    """Return a UDF like this one of Spark's that has another function, which workers run."""
    ours = copy.copy(udf)
    ours.func = function
    ours._judf_placeholder = None  # what may be there is made of the other function
    return ours._wrapped() if hasattr(ours, "_wrapped") else ours

"""Puts functions of ours in the place of Python's own, so that both can still be pickled."""

from __future__ import annotations

import copyreg
import functools
import importlib
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType
from typing import Any

_names: dict[BuiltinFunctionType, tuple[str, str]] = {}
"""The functions of Python's that were replaced, and where."""


def replace_function(module: ModuleType, name: str, function: Callable[..., Any]) -> None:
    """Put a function in the place of one of a module.

    It is pickled by the name that it has there, so another process unpickles its own. So is the one that was
    replaced, which the program may have imported before by ``from sys import exit``.
    """
    original = getattr(module, name)
    functools.update_wrapper(function, original)
    function.__module__, function.__name__, function.__qualname__ = module.__name__, name, name
    # ``os._exit`` is a function of ``posix``, where pickle still finds it.
    if isinstance(original, BuiltinFunctionType) and original.__module__ == module.__name__:
        _names[original] = module.__name__, name
        if BuiltinFunctionType not in copyreg.dispatch_table:
            copyreg.pickle(BuiltinFunctionType, _reduced)
    setattr(module, name, function)


class _Module:
    """Is pickled as the import of a module, which cannot be pickled itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return importlib.import_module, (self._name,)


def _reduced(function: BuiltinFunctionType) -> str | tuple[Any, ...]:
    """Return how a function in C is pickled: as ever, but for those that were replaced.

    Pickle refuses a function whose name leads to another.
    """
    if not isinstance(function.__self__, ModuleType) or function not in _names:
        return function.__reduce__()
    module, name = _names[function]
    return getattr, (_Module(module), name)

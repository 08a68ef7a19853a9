"""Makes a dataclass of values from JSON or YAML, each of which must have the type of its field."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
_MOST_SHOWN = 40


def with_types(kind: type[T], values: object) -> T:
    """Return an instance of a dataclass.

    Args:
        kind: the dataclass; its fields are texts, numbers, booleans, None, dicts, tuples and dataclasses.
        values: its fields by name; a tuple may be a list, and a dataclass a mapping.

    Raises:
        TypeError: they are no mapping, or a value is missing, unknown, or of another type.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"{_shown(values)} is not a mapping")
    hints = get_type_hints(kind)
    return kind(
        **{
            str(name): _checked(str(name), hints[name], value) if name in hints else value
            for name, value in values.items()
        }
    )


def _checked(name: str, hint: Any, value: object) -> Any:
    """Return a value as its field takes it, or raise."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (hint,) = (argument for argument in arguments if argument is not type(None))
        return _checked(name, hint, value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return value if isinstance(value, hint) else with_types(hint, value)
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(_checked(name, arguments[0], each) for each in value)
    if origin is dict and isinstance(value, dict):
        return {key: _checked(name, arguments[1], each) for key, each in value.items()}
    if hint is Any or (isinstance(hint, type) and _is_a(value, hint)):
        return value
    expected = getattr(hint, "__name__", str(hint))
    raise TypeError(f"{name}: {_shown(value)} is not of type {expected}")


def _is_a(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"

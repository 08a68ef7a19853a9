"""The beginnings of texts of values that may be huge, without the time and the memory of their whole texts.

Python writes its own containers and bytes in one call, during which no other thread runs: a limit on how long
a task waits for such a text would not hold.
"""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, KeysView, Mapping, Sequence, Set, ValuesView
from functools import lru_cache
from itertools import islice
from typing import Any

_TEXTS = (str, bytes, bytearray)
_SEVERAL = (Sequence, Set, Mapping, KeysView, ValuesView, ItemsView)
_BRACKETS: dict[type, tuple[str, str, str]] = {
    list: ("[", "]", "[]"),
    tuple: ("(", ")", "()"),
    set: ("{", "}", "set()"),
    frozenset: ("frozenset({", "})", "frozenset()"),
    dict: ("{", "}", "{}"),
}
"""Around the elements of a container, and the text of an empty one."""
CONTAINERS = (*_BRACKETS, *_TEXTS)
"""Python's own, of which the beginning of their text is their text's beginning."""
_DEEPEST = 20
_MOST_ELEMENTS = 20
_LONG = 65_536
"""An object that has a longer text or container is not asked for its text: its class may write all of it."""
MOST_BITS = 8_192
"""Of a number whose digits are written."""


def beginning_of(value: Any, longest: int) -> str:
    """Return at most so many first characters of what ``repr`` returns, and no more is computed.

    Objects of other classes than Python's own are asked for all of their text, unless they are or have
    something long. Of a text or bytes that are cut, the quotes may differ.
    """
    pieces, length = [], 0
    for piece in _pieces(value, longest, _DEEPEST):
        pieces.append(piece)
        length += len(piece)
        if length >= longest:
            break
    return "".join(pieces)[:longest]


def _pieces(value: Any, longest: int, deeper: int) -> Iterator[str]:
    of_type = type(value)
    if of_type in _BRACKETS:
        yield from _elements(value, longest, deeper)
    elif of_type in _TEXTS:
        yield repr(value[:longest])
    elif of_type is int and value.bit_length() > MOST_BITS:
        yield f"<int of {value.bit_length()} bits>"  # its digits take long, and Python refuses most
    else:
        yield _of_object(value)


def _elements(value: Any, longest: int, deeper: int) -> Iterator[str]:
    begin, end, empty = _BRACKETS[type(value)]
    if not value:
        yield empty
        return
    yield begin
    if not deeper:
        yield "..."  # it may contain itself
    else:
        entries = value.items() if type(value) is dict else zip(value)
        # Copied in one call of C: another thread may be changing it.
        for position, entry in enumerate(list(islice(entries, longest))):
            if position:
                yield ", "
            for place, item in enumerate(entry):
                if place:
                    yield ": "
                yield from _pieces(item, longest, deeper - 1)
        if type(value) is tuple and len(value) == 1:
            yield ","
    yield end


def _of_object(value: Any) -> str:
    try:
        return said_of_long(value, _MOST_ELEMENTS) or repr(value)
    except Exception as error:  # it is the user's own method
        return f"<{type(value).__name__}: its repr raised {type(error).__name__}>"


def said_of_long(value: Any, most_elements: int = _LONG) -> str:
    """Return what to say of an object whose own text may be too long; nothing of any other.

    Args:
        value: the object, of any class but Python's own containers.
        most_elements: how many elements it may have.

    Raises:
        Exception: the user's own.
    """
    if not _may_be_long(type(value)):  # type: ignore[arg-type] # mypy does not know that types are hashable
        return ""
    name = type(value).__name__
    if isinstance(value, _TEXTS):
        return f"<{name} of {len(value)}>" if len(value) > _LONG else ""
    if isinstance(value, _SEVERAL) and not isinstance(value, range) and len(value) > most_elements:
        return f"<{name} of {len(value)}>"
    if any(isinstance(part, (*_TEXTS, *_SEVERAL)) and len(part) > _LONG for part in _parts(value)):
        return f"<{name} with long values>"
    return ""


@lru_cache(256)
def _may_be_long(of_type: type) -> bool:
    """Return whether objects of a type have elements or attributes; numbers and times, say, have none."""
    has_attributes = of_type.__dictoffset__ != 0 or bool(getattr(of_type, "__slots__", ()))
    return has_attributes or issubclass(of_type, (*_TEXTS, *_SEVERAL, BaseException))


def _parts(value: Any) -> Collection[Any]:
    """Return what the text of an object may have: its elements, or else its attributes."""
    if isinstance(value, BaseException):
        return value.args
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, _SEVERAL):
        return list(value)
    attributes = getattr(value, "__dict__", None)
    names = getattr(type(value), "__slots__", ())
    slots = [getattr(value, name, None) for name in ([names] if isinstance(names, str) else names)]
    return [*slots, *(attributes.values() if type(attributes) is dict else ())]

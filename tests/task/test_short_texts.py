"""The beginnings of texts: of whatever value, and without the work that the whole text takes."""

from __future__ import annotations

import tracemalloc
from collections import Counter, deque, namedtuple
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from spark_events.task.short_texts import beginning_of
from spark_events.task.values import text_of
from tests.support.hostile_values import Raising

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)
_HASHED = st.integers() | st.text(max_size=5)
_VALUES = st.recursive(
    _PLAIN | st.frozensets(_HASHED),
    lambda inner: (
        st.lists(inner) | st.tuples(inner) | st.tuples(inner, inner) | st.dictionaries(_HASHED, inner)
        | st.sets(_HASHED) | st.just(bytearray(b"x"))
    ),
    max_leaves=30,
)  # fmt: skip


@given(_VALUES, st.integers(1, 300))
def test_what_python_writes(value: Any, longest: int) -> None:
    """The same as ``repr`` writes; a text that is cut may have other quotes."""
    assert beginning_of(value, 100_000) == repr(value)
    assert len(beginning_of(value, longest)) == min(longest, len(repr(value)))


class Untouched(list[int]):
    """Tells whether its elements are asked for their texts."""

    def __repr__(self) -> str:
        raise AssertionError


class Told:
    """Counts how often it is asked for its text."""

    asked = 0

    def __repr__(self) -> str:
        Told.asked += 1
        return "told"


@pytest.mark.parametrize("of", [list, tuple, set, frozenset, lambda some: dict.fromkeys(some, 1)])
def test_only_the_first_elements_are_written(of: Any) -> None:
    Told.asked = 0
    assert beginning_of(of(Told() for _ in range(10_000)), 200).count("told") >= 20
    assert Told.asked <= 100


Payload = namedtuple("Payload", "body")


@dataclass
class Order:
    body: object


@dataclass(slots=True)
class Slotted:
    body: object


LONG = b"x" * 10**5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Row(body=LONG), "<Row with long values>"),
        (Payload(LONG), "<Payload with long values>"),
        (Order(LONG), "<Order with long values>"),
        (Slotted(set(range(10**5))), "<Slotted with long values>"),
        (ValueError(LONG), "<ValueError with long values>"),
        (MappingProxyType({"a": LONG}), "<mappingproxy with long values>"),
        (Order(b"short"), "Order(body=b'short')"),
        (Row(body=b"short"), "Row(body=b'short')"),
        (Counter(range(1_000)), "<Counter of 1000>"),
        (dict.fromkeys(range(1_000)).keys(), "<dict_keys of 1000>"),
        (deque(range(1_000)), "<deque of 1000>"),
        (range(1_000), "range(0, 1000)"),
        (1 << 10_000, "<int of 10001 bits>"),
        ([Raising(), 1], "[<Raising: its repr raised RuntimeError>, 1]"),
        ([Untouched(range(1_000))], "[<Untouched of 1000>]"),
    ],
    ids=lambda value: value if type(value) is str else "",
)
def test_objects_and_what_they_have(value: Any, text: str) -> None:
    assert beginning_of(value, 200) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Counter(range(100_000)), "<Counter of 100000>"),
        (deque(range(100_000)), "<deque of 100000>"),
        (dict.fromkeys(range(100_000)).values(), "<dict_values of 100000>"),
        (Row(body=LONG), "<Row with long values>"),
        (Counter("aab"), "Counter({'a': 2, 'b': 1})"),
        (ValueError("no", 5), "('no', 5)"),
        (ValueError("no"), "no"),
        (ValueError(), ""),
        (KeyError("no"), "'no'"),
        (OSError(2, "No such file"), "[Errno 2] No such file"),
        (1.5, "1.5"),
        (True, "True"),
        (None, "None"),
    ],
    ids=lambda value: value if type(value) is str else "",
)
def test_texts_of_attributes(value: Any, text: str) -> None:
    """The same as of ``str``, unless that is too long; a container may have more elements than in a variable."""
    assert text_of(value) == text
    assert text == str(value) or text.startswith("<")


def test_the_text_of_an_error_with_a_huge_argument() -> None:
    """Only its first elements are looked at."""
    Told.asked = 0
    assert text_of(ValueError([Told()] * 10**5)).startswith("[told, told")
    assert Told.asked < 2_000


class Moody:
    """Can be hashed once, and changes what it is in when it is asked for its text."""

    def __init__(self, container: Any) -> None:
        self._container, self._hashed = container, False

    def __hash__(self) -> int:
        if self._hashed:
            raise TypeError("not again")
        self._hashed = True
        return 1

    def __repr__(self) -> str:
        if isinstance(self._container, dict):
            self._container["more"] = 1
        else:
            self._container.add("more")
        return "moody"


@pytest.mark.parametrize("of", [dict, set])
def test_what_changes_meanwhile(of: Any) -> None:
    """As another thread may do; and nothing is looked up by keys."""
    container: Any = of()
    if of is dict:
        container |= {Moody(container): 7, "last": 8}
        assert text_of(container) == "{moody: 7, 'last': 8}"
    else:
        container |= {Moody(container)}
        assert text_of(container) == "{moody}"


def test_what_contains_itself() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert beginning_of(endless, 200).startswith("[[[")


@pytest.mark.parametrize("of", [bytes, bytearray, str])
def test_long_texts_are_not_copied(of: type) -> None:
    """Neither by local variables nor by the attributes of an event."""
    value = "x" * 10**7 if of is str else of(10**7)
    tracemalloc.start()
    try:
        texts = beginning_of([value], 200), text_of(value), text_of({"a": value})
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all(texts)
    assert most < 10**6

"""Values that nobody should report, as a strategy of Hypothesis: what a user's code may hand over all the same."""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
from typing import Any

from hypothesis import strategies as st


class Raising:
    """An object all of whose methods raise."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("of the user's own")

    __str__ = __repr__ = __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __bool__ = __float__ = _raise
    __int__ = __index__ = __add__ = __radd__ = __sub__ = __len__ = __iter__ = __getattr__ = _raise
    __hash__ = _raise  # type: ignore[assignment]


class Proxy:
    """A proxy without an object, as web frameworks have them: not even its class can be asked for."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        raise RuntimeError("working outside of a request")

    def __str__(self) -> str:
        raise RuntimeError("working outside of a request")


class Parts(list[int]):
    """A list that nobody can go through."""

    def __iter__(self) -> Any:
        raise RuntimeError("of the user's own")


class Labels(dict[str, int]):
    """A mapping that nobody can go through."""

    def items(self) -> Any:
        raise RuntimeError("of the user's own")


def _endless() -> list[Any]:
    itself: list[Any] = []
    itself.append(itself)
    return itself


class Text(str):
    """A text that is none of Python's own."""

    def __str__(self) -> str:
        return self


class Number(int):
    """A number that is none of Python's own."""

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("of the user's own")

    __le__ = __ge__ = __gt__ = __lt__


class NoNumber(float):
    """One that cannot be turned into one of Python's own."""

    def __float__(self) -> float:
        raise RuntimeError("of the user's own")


def _of_libraries() -> list[Any]:
    numpy = __import__("pytest").importorskip("numpy")
    return [
        numpy.array([1, 2]),
        numpy.array([]),
        numpy.array([[1]]),
        numpy.array(["a"]),
        numpy.int8(-3),
        numpy.uint64(2**64 - 1),
        numpy.float64("nan"),
        numpy.datetime64("NaT"),
        numpy.ma.masked,
    ]


ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        "",
        "n/a",
        "12",
        "\ud800",
        "\x1b[31m\n",
        "x" * 100_000,
        b"12",
        bytearray(b"1"),
        10**400,
        -(10**400),
    ),
    *(10**5_000, 2**63, -1, -0.5, 0, 1e308, math.nan, math.inf, -math.inf, 1j, decimal.Decimal("NaN")),
    *(
        decimal.Decimal("1.5"),
        decimal.Decimal("1e9999"),
        fractions.Fraction(1, 3),
        Raising(),
        Raising,
        Proxy(),
        Parts([1]),
        Labels(a=1),
        _endless(),
        Text("t"),
    ),
    *(
        Number(5),
        NoNumber(1),
        object(),
        [],
        {},
        {1: 2},
        [[]],
        ("a",),
        {"a"},
        range(3),
        memoryview(b"12"),
        len,
        Ellipsis,
    ),
    *(
        datetime.datetime(2026, 1, 1),
        datetime.timedelta(1),
        NotImplemented,
        Exception("e"),
        "bogus",
        "info",
        99,
    ),
)


def odd_values() -> st.SearchStrategy[Any]:
    """Values of every kind, those of libraries included."""
    values = [*ODD, *_of_libraries()]  # by their numbers: Hypothesis compares what it takes samples from
    return st.one_of(
        st.integers(0, len(values) - 1).map(lambda index: values[index]),
        st.integers(),
        st.floats(),
        st.text(),
        st.binary(max_size=10),
        st.lists(st.none(), max_size=2),
    )

"""Tells, from its structure, whether a regular expression may never end on some text.

Python's ``re`` tries all ways in which a pattern can match, and holds the interpreter's lock meanwhile. What
repeats, and can match one text in two ways, has twice as many with each repetition: ``(a+)+``, ``(a|aa)*``.
What repeats several times in a row over the same character has a power of the length: ``a*a*a*a*``.

Each character of the pattern is a *position*; those that may follow each other are joined by an edge for
each way from one to the other (Glushkov's automaton). A repetition is harmless if from each position, a
character of the text leads along one edge at most. A pattern that fails this test may still be harmless.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

try:
    from re import _parser as _sre  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as _sre

_ENDLESS = 4  # times; what repeats less often is no reason for many ways
_MOST_IN_A_ROW = 3
_MOST_POSITIONS = 400
_MOST_DEEP = 40
_MOST_OF_RANGE = 10_000
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_AROUND = ("ASSERT", "ASSERT_NOT")
_OTHERS = "\u00e9\u00c9\u03b1\u00a0\u0663\u2014\u4e2d"
"""Letters, a space, a digit and others beyond ASCII, which stand for all of their kind."""


class _TooLargeError(Exception):
    """The pattern has more positions than are looked at."""


@dataclass(slots=True)
class _Part:
    """A part of a pattern: whether it matches the empty text, and where its matches begin and end."""

    nullable: bool
    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)


def may_never_end(pattern: re.Pattern[str]) -> str:
    """Return why a pattern may take practically forever on some text; empty if it does not."""
    parsed = _sre.parse(pattern.pattern, pattern.flags)
    if not any(_name(op) in _REPEATS for op, _ in _all(parsed)):
        return ""
    try:
        return _Cost(parsed, pattern.flags).reason(list(parsed))
    except _TooLargeError:
        return "it is too large to tell how long it takes"


def repeats(pattern: re.Pattern[str]) -> int:
    """Return how many of a pattern's parts may repeat often."""
    parsed = _sre.parse(pattern.pattern, pattern.flags)
    return sum(_name(op) in _REPEATS and int(value[1]) >= _ENDLESS for op, value in _all(parsed))


class _Cost:
    def __init__(self, parsed: Any, flags: int) -> None:
        # Where a flag holds for a part only, it counts for all: then more characters are alike.
        self._flags = flags
        for op, value in _all(parsed):
            self._flags |= value[1] if _name(op) == "SUBPATTERN" else 0
        self._known: dict[tuple[str, int], frozenset[str]] = {}
        named = {chr(value) for op, value in _all(parsed) if _name(op) in ("LITERAL", "NOT_LITERAL")}
        named.update(char for op, value in _all(parsed) if _name(op) == "RANGE" for char in _of_range(*value))
        cased = {each for char in named for each in (char.lower(), char.upper()) if len(each) == 1}
        self._alphabet = sorted({*map(chr, range(128)), *_OTHERS, *named, *cased})
        self._sets: list[frozenset[str]] = []
        self._edges: dict[int, list[int]] = defaultdict(list)

    def reason(self, items: list[Any], deep: int = 0) -> str:
        """Return why a sequence may never end; empty if it does."""
        if deep > _MOST_DEEP:
            raise _TooLargeError
        for op, value in items:
            if _name(op) in _REPEATS and (why := self._of_repeat(*value)):
                return why
            for part in _children(op, value):
                if why := self.reason(list(part), deep + 1):
                    return why
        if not deep and any(self._row(items, char)[1] > _MOST_IN_A_ROW for char in self._unlike(items)):
            return f"more than {_MOST_IN_A_ROW} repetitions in a row match the same text"
        return ""

    # -- two ways in a repetition ------------------------------------------------------------------------

    def _of_repeat(self, least: Any, most: Any, body: Any) -> str:
        if int(most) < _ENDLESS:
            return ""
        self._sets, self._edges = [], defaultdict(list)
        part = self._part(list(body))
        if part.nullable and int(least) >= _ENDLESS:
            return "a repetition repeats something that may be empty"
        self._join(part.last, part.first)
        if any(self._is_ambiguous(following) for following in self._edges.values()):
            return "a repetition can match the same text in several ways"
        return ""

    def _is_ambiguous(self, following: list[int]) -> bool:
        seen: set[str] = set()
        for position in following:
            if not seen.isdisjoint(self._sets[position]):
                return True
            seen |= self._sets[position]
        return False

    def _join(self, before: Iterable[int], after: list[int]) -> None:
        for position in before:
            self._edges[position].extend(after)

    def _part(self, items: list[Any]) -> _Part:
        whole = _Part(True)
        for op, value in items:
            whole = self._then(whole, self._item(op, value))
        return whole

    def _then(self, left: _Part, right: _Part) -> _Part:
        self._join(left.last, right.first)
        return _Part(
            left.nullable and right.nullable,
            left.first + right.first if left.nullable else left.first,
            right.last + left.last if right.nullable else right.last,
        )

    def _item(self, op: Any, value: Any) -> _Part:
        name = _name(op)
        if name in _REPEATS:
            return self._repeated(int(value[0]), int(value[1]), list(value[2]))
        if name in ("AT", "GROUPREF_EXISTS", *_AROUND, "FAILURE"):
            # They match no text, but for the two branches of a condition.
            return self._either(_children(op, value)) if name == "GROUPREF_EXISTS" else _Part(True)
        if name in ("BRANCH", "SUBPATTERN", "ATOMIC_GROUP"):
            return self._either(_children(op, value))
        if name == "GROUPREF":
            position = self._position(frozenset(self._alphabet))
            self._join([position], [position])
            return _Part(True, [position], [position])
        position = self._position(self._matched(op, value))
        return _Part(False, [position], [position])

    def _either(self, branches: Iterable[Any]) -> _Part:
        parts = [self._part(list(branch)) for branch in branches]
        return _Part(
            any(part.nullable for part in parts),
            [position for part in parts for position in part.first],
            [position for part in parts for position in part.last],
        )

    def _repeated(self, least: int, most: int, body: list[Any]) -> _Part:
        """Return a repetition: as that many copies if it is exact or short, otherwise as one that goes on."""
        if most >= _ENDLESS and most != least:
            part = self._part(body)
            self._join(part.last, part.first)
            return _Part(part.nullable or least == 0, part.first, part.last)
        copies = _Part(True)
        for number in range(most, 0, -1):  # each is followed by the ones before it: a(a(a)?)?
            part = self._part(body)
            copies = self._then(part, copies)
            if number > least:
                copies.nullable = True
        return copies

    def _position(self, chars: frozenset[str]) -> int:
        if len(self._sets) >= _MOST_POSITIONS:
            raise _TooLargeError
        self._sets.append(chars)
        return len(self._sets) - 1

    # -- repetitions in a row ----------------------------------------------------------------------------

    def _row(self, items: list[Any], char: str) -> tuple[bool, int, int, int]:
        """Return of the repetitions that one character can go through, one after the other.

        Returns:
            Whether the whole sequence can match nothing but this character, and how many repetitions there
            are at most: anywhere, from its beginning, and to its end.
        """
        passes, best, begin, end = True, 0, 0, 0
        for op, value in items:
            through, inside, head, tail = self._row_of(op, value, char)
            best = max(best, inside, end + head)
            begin = begin + head if passes else begin
            end = end + tail if through else tail
            passes = passes and through
        return passes, best, begin, end

    def _row_of(self, op: Any, value: Any, char: str) -> tuple[bool, int, int, int]:
        name = _name(op)
        if name in _REPEATS:
            least, most = int(value[0]), int(value[1])
            through, best, head, tail = self._row(list(value[2]), char)
            if most >= _ENDLESS and most != least and through:
                return True, max(best, 1), 1, 1
            if through:
                return True, best * most, head * most, tail * most
            return least == 0, max(best, tail + head if most > 1 else 0), head, tail
        if name in _AROUND or name == "AT":
            return True, 0, 0, 0
        if name == "GROUPREF":
            return True, 1, 1, 1
        if children := list(_children(op, value)):
            rows = [self._row(list(child), char) for child in children]
            most_of = [max(row[number] for row in rows) for number in (1, 2, 3)]
            return any(row[0] for row in rows), most_of[0], most_of[1], most_of[2]
        return char in self._matched(op, value), 0, 0, 0

    # -- characters --------------------------------------------------------------------------------------

    def _unlike(self, items: list[Any]) -> list[str]:
        """Return one character of each kind that the pattern treats alike."""
        leaves = [self._matched(op, value) for op, value in _all(items) if _name(op) in _LEAVES]
        return list({tuple(char in leaf for leaf in leaves): char for char in self._alphabet}.values())

    def _matched(self, op: Any, value: Any) -> frozenset[str]:
        """Return the characters that one item of a pattern matches."""
        key = (_name(op), id(value))
        if key not in self._known:
            self._known[key] = self._computed(op, value)
        return self._known[key]

    def _computed(self, op: Any, value: Any) -> frozenset[str]:
        name = _name(op)
        if name == "ANY":
            is_all = self._flags & re.DOTALL
            return frozenset(char for char in self._alphabet if is_all or char != "\n")
        if name == "IN":
            negated = bool(value) and _name(value[0][0]) == "NEGATE"
            parts = [self._matched(*part) for part in value if _name(part[0]) != "NEGATE"]
            chars: frozenset[str] = frozenset().union(*parts)
            return frozenset(self._alphabet) - chars if negated else chars
        if name == "RANGE":
            return self._cased(char for char in self._alphabet if value[0] <= ord(char) <= value[1])
        if name == "CATEGORY":
            of_kind = re.compile(_CATEGORIES[_name(value)], self._flags & re.ASCII)
            return frozenset(char for char in self._alphabet if of_kind.match(char))
        if name == "LITERAL":
            return self._cased((chr(value),))
        if name == "NOT_LITERAL":
            return frozenset(self._alphabet) - self._cased((chr(value),))
        return frozenset(self._alphabet)

    def _cased(self, chars: Iterable[str]) -> frozenset[str]:
        chars = frozenset(chars)
        if not self._flags & re.IGNORECASE:
            return chars
        folded = {char.casefold() for char in chars}
        return chars | {char for char in self._alphabet if char.casefold() in folded}


_LEAVES = ("ANY", "IN", "LITERAL", "NOT_LITERAL")
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _of_range(lowest: int, highest: int) -> Iterator[str]:
    """Yield characters that stand for all of a range: where two of them meet, and each kind in it."""
    yield chr(lowest)
    yield chr(highest)
    if highest < 128:
        return  # all of them are looked at
    some = [chr(number) for number in range(lowest, min(highest, lowest + _MOST_OF_RANGE) + 1)]
    for kind in map(re.compile, _CATEGORIES.values()):
        yield from itertools.islice(filter(kind.match, some), 1)


def _name(op: Any) -> str:
    return str(op).rpartition(".")[2]


def _children(op: Any, value: Any) -> Iterator[Any]:
    """Yield the sequences that an item of a pattern consists of."""
    name = _name(op)
    if name in _REPEATS:
        yield value[2]
    elif name == "BRANCH":
        yield from value[1]
    elif name == "SUBPATTERN":
        yield value[3]
    elif name == "ATOMIC_GROUP":
        yield value
    elif name in _AROUND:
        yield value[1]
    elif name == "GROUPREF_EXISTS":
        yield value[1]
        yield value[2] or []


def _all(items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield all items of a pattern, those of sets included."""
    for op, value in items:
        yield op, value
        if _name(op) == "IN":
            yield from ((each, what) for each, what in value)
        for child in _children(op, value):
            yield from _all(child)

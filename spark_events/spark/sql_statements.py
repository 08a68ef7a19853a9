"""Splits the text of an SQL file into its statements, as ``spark-sql`` does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*)
    | (?P<open>/\*)
    | (?P<quoted>'(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | `[^`]*`)
    | (?P<end>;)
    | (?P<other>[^-/'"`;]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKET = re.compile(r"/\*|\*/")


class SqlStatement(NamedTuple):
    """A statement of a file.

    Attributes:
        text: without comments before and after it.
        line: of its first character.
    """

    text: str
    line: int


def split_statements(text: str) -> Iterator[SqlStatement]:
    """Yield the statements of a text, which semicolons outside quotes and comments separate."""
    position, start, last = 0, -1, 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None  # any character is a token
        end = _end_of_comment(text, position) if token["open"] else token.end()
        is_blank = bool(token["open"] or token["comment"] or token["end"] or not token[0].strip())
        if not is_blank:
            start = position + len(token[0]) - len(token[0].lstrip()) if start < 0 else start
            last = end
        if token["end"] and start >= 0:
            yield _statement(text, start, last)
            start = -1
        position = end
    if start >= 0:
        yield _statement(text, start, last)


def _statement(text: str, start: int, end: int) -> SqlStatement:
    return SqlStatement(text[start:end].strip(), text.count("\n", 0, start) + 1)


def _end_of_comment(text: str, start: int) -> int:
    """Return where a comment in brackets ends; such comments may be in each other."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return bracket.end()
    return len(text)

"""Splits the text of an SQL file into its statements, as ``spark-sql`` does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

COMMENT, UNENDED, END, OTHER = "comment", "unended comment", "end of a statement", "other"
QUOTE = "\0"
"""Stands for each character of a quoted text in what ``without_texts`` returns."""
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


class SqlToken(NamedTuple):
    """A part of a text.

    Attributes:
        kind: ``COMMENT``, ``UNENDED`` of one whose bracket is never closed, ``END`` or ``OTHER``.
        start, end: where it is.
    """

    kind: str
    start: int
    end: int


class SqlStatement(NamedTuple):
    """A statement of a file.

    Attributes:
        text: without comments before and after it.
        line: of its first character.
    """

    text: str
    line: int


def sql_tokens(text: str) -> Iterator[SqlToken]:
    """Yield the parts of a text, by the tokens of Spark's lexer in which a semicolon ends no statement."""
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None  # any character is a token
        kind, end = OTHER, token.end()
        if token["open"]:
            closed = _end_of_comment(text, position)
            kind, end = (UNENDED, len(text)) if closed is None else (COMMENT, closed)
        elif token["comment"]:
            kind = COMMENT
        elif token["end"]:
            kind = END
        yield SqlToken(kind, position, end)
        position = end


def split_statements(text: str) -> Iterator[SqlStatement]:
    """Yield the statements of a text, which semicolons outside quotes and comments separate."""
    start, last = -1, 0
    for token in sql_tokens(text):
        words = text[token.start : token.end]
        # Spark refuses what a comment hides that never ends: it is no statement less.
        if token.kind in (OTHER, UNENDED) and words.strip():
            start = token.start + len(words) - len(words.lstrip()) if start < 0 else start
            last = token.end
        if token.kind == END and start >= 0:
            yield _statement(text, start, last)
            start = -1
    if start >= 0:
        yield _statement(text, start, last)


def without_texts(text: str) -> str:
    """Return a statement of the same length, whose comments are blanks and whose quoted texts no words."""
    parts = []
    for token in sql_tokens(text):
        words = text[token.start : token.end]
        if token.kind == COMMENT:
            words = " " * len(words)
        elif words[0] in "'\"`" and len(words) > 1:
            words = QUOTE * len(words)
        parts.append(words)
    return "".join(parts)


def _statement(text: str, start: int, end: int) -> SqlStatement:
    return SqlStatement(text[start:end].strip(), text.count("\n", 0, start) + 1)


def _end_of_comment(text: str, start: int) -> int | None:
    """Return where a comment in brackets ends; such comments may be in each other. None if it never does."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return bracket.end()
    return None

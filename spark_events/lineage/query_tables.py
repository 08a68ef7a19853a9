"""The tables that a query reads which Spark hands to another database, as it is written in that one's SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<passed_over> \s+ | --[^\n]* | /\*.*?(?:\*/|\Z)
        | [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z) | '(?:[^']|'')*(?:'|\Z) | \$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z) )
    | (?P<quoted> "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] )
    | (?P<word> [^\W\d][\w$#@]* )
    | (?P<other> \d[\w.]* | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ENDS_FROM = (
    *(
        "SELECT",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "FETCH",
        "UNION",
        "INTERSECT",
        "EXCEPT",
    ),
    *("MINUS", "WINDOW", "QUALIFY", "CONNECT", "START", "FOR", "SET", "RETURNING"),
)
_JOINS = ("JOIN", "STRAIGHT_JOIN", "APPLY")
_BEFORE_A_TABLE = ("LATERAL", "ONLY")
_HINTS = ("NOLOCK", "READPAST", "READUNCOMMITTED", "UPDLOCK", "ROWLOCK", "HOLDLOCK", "TABLOCK", "INDEX")
"""What SQL Server takes in parentheses behind a table."""
_NO_TABLE = ("DUAL",)


@dataclass(slots=True)
class _Token:
    text: str
    is_name: bool = False
    is_quoted: bool = False

    @property
    def keyword(self) -> str:
        return "" if self.is_quoted else self.text.upper()


@dataclass(slots=True)
class _Level:
    """What is known within a pair of parentheses, or outside of all.

    Attributes:
        selects: whether there was a SELECT: the FROM of ``extract(year FROM d)`` has none.
        in_from: whether a comma, or JOIN, goes before a table.
        wants_table, wants_cte: whether the next name is that of a table, or that of a WITH.
        has_ctes: whether a comma goes before one more WITH query.
    """

    selects: bool = False
    in_from: bool = False
    wants_table: bool = False
    wants_cte: bool = False
    has_ctes: bool = False


def tables_of_query(text: str) -> list[str]:
    """Return the tables that a query names behind FROM and JOIN, each once, in their order.

    Args:
        text: in the SQL of any database; comments, texts, functions and WITH queries are no tables.

    Returns:
        Their names without quotes, qualified as they are written.
    """
    tokens = list(_tokens(text))
    tables: dict[str, None] = {}
    ctes: set[str] = set()
    levels = [_Level()]
    place = 0
    while place < len(tokens):
        token, level = tokens[place], levels[-1]
        place += 1
        if token.text == "(" and not token.is_quoted:
            levels.append(_Level(in_from=level.wants_table, wants_table=level.wants_table))
            level.wants_table = False
        elif token.text == ")" and not token.is_quoted:
            if len(levels) > 1:
                levels.pop()
        elif level.wants_cte and token.is_name and token.keyword != "RECURSIVE":
            ctes.add(token.text.lower())
            level.wants_cte = False
        elif level.wants_table and token.is_name and not _is_keyword(token):
            name, place = _name_at(tokens, place - 1)
            level.wants_table = False
            if not _is_function(tokens, place) and name.upper() not in _NO_TABLE:
                tables[name] = None
        else:
            _go_on(level, token, tokens[place - 2] if place > 1 else None)
    return [name for name in tables if name.lower() not in ctes]


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if quoted := match["quoted"]:
            end = quoted[-1]
            yield _Token(quoted[1:-1].replace(end * 2, end), is_name=True, is_quoted=True)
        elif not match["passed_over"]:
            yield _Token(match.group(), is_name=match["word"] is not None)


def _go_on(level: _Level, token: _Token, before: _Token | None) -> None:
    """Take a keyword, or anything that says nothing of tables."""
    keyword = token.keyword
    if keyword == "SELECT":
        level.selects, level.has_ctes = True, False
    if keyword in _ENDS_FROM:
        level.in_from = level.wants_table = False
    elif keyword == "FROM":
        # ``a IS DISTINCT FROM b`` compares.
        if level.selects and not (before and before.keyword == "DISTINCT"):
            level.in_from = level.wants_table = True
    elif keyword in _JOINS:
        level.wants_table = level.in_from
    elif keyword == ",":
        level.wants_table, level.wants_cte = level.in_from, level.has_ctes
    elif keyword == "WITH" and level.in_from <= level.wants_table:  # else it gives hints for a table
        level.wants_cte = level.has_ctes = True
        level.in_from = level.wants_table = False


def _is_keyword(token: _Token) -> bool:
    return token.keyword in (*_ENDS_FROM, *_JOINS, *_BEFORE_A_TABLE, "WITH")


def _name_at(tokens: Sequence[_Token], place: int) -> tuple[str, int]:
    """Return a qualified name, ``db..t`` as well, and the place behind it."""
    parts = [tokens[place].text]
    place += 1
    while place < len(tokens) and tokens[place].text == ".":
        place += 1
        if place < len(tokens) and tokens[place].is_name:
            parts.append(tokens[place].text)
            place += 1
        else:
            parts.append("")
    return ".".join(parts), place


def _is_function(tokens: Sequence[_Token], place: int) -> bool:
    """Return whether arguments follow, and not hints."""
    has_arguments = place < len(tokens) and tokens[place].text == "(" and not tokens[place].is_quoted
    return has_arguments and not (place + 1 < len(tokens) and tokens[place + 1].keyword in _HINTS)

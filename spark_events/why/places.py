"""What has an issue, or took long, in words: what people know it by first, then Spark's number of it."""

from __future__ import annotations

import re

_LONG = 70
_PATH = re.compile(r"(?<![^\s,])(?:[a-z][\w+.-]*:)?/[^\s,]*(/[^\s,/]+/[^\s,/]+)/?(?=[\s,]|$)", re.ASCII)
_NUMBERED = re.compile(
    r"(stage [\d.]+|SQL execution \d+|\d+ (?:stages|SQL executions)) \((.+)\)(?:, (\S+:\d+))?"
)
_UNNAMED = re.compile(r"query '?([0-9a-f]{8})-[-0-9a-f]{27}'? \((.+)\)")
_OF_TABLES = re.compile(r"(\w+)( of .+?)?( into .+)?")
_CALL_SITE = re.compile(r"\w+ at \S+:\d+")
_FORMATS = {"parquet", "csv", "json", "orc", "text"}
_WRITERS = _FORMATS | {"save", "saveAsTable", "insertInto", "jdbc", "append", "sql", "query"}
"""Methods of PySpark that write, by which Spark names an action; ``sql`` and others if it says into what."""
_VERBS = {"showString": "show", "sql": "query"}
"""What people call others."""


def in_words(about: str) -> str:
    """Return what has an issue, for a sentence.

    Args:
        about: such as ``stage 3.0 (parquet of file:/orders into file:/daily)``, or ``query 'orders'``;
            for a query without a name, its id and what it reads and writes.
    """
    if unnamed := _UNNAMED.fullmatch(about):
        return f"the query {with_ends_of_paths(unnamed[2])} ({unnamed[1]}…)"
    numbered = _NUMBERED.fullmatch(about)
    if numbered is None:
        return with_ends_of_paths(about)
    number, name, place = numbered.groups()
    return f"{with_article(with_ends_of_paths(name))} ({', '.join(filter(None, (number, place)))})"


def name_in(about: str) -> str:
    """Return the name of the action in what has an issue, without number and place; empty if it has none."""
    numbered = _NUMBERED.fullmatch(about)
    return numbered[2] if numbered is not None else ""


def with_article(name: str) -> str:
    """Return the name of an action: with an article where its tables or its place are known."""
    if _CALL_SITE.fullmatch(name):
        return f"the {name}"
    tables = _OF_TABLES.fullmatch(name)
    if tables is None or not (tables[2] or tables[3]):
        return name
    verb, of, into = tables[1], tables[2] or "", tables[3] or ""
    if into and verb in _WRITERS:
        return f"the write{into}{of.replace(' of ', ' from ', 1)}"
    return f"the {_VERBS.get(verb, verb)}{of}{into}"


def with_ends_of_paths(name: str) -> str:
    """Return a name in which paths begin with ``…`` if it is long: what tells them apart is at their ends."""
    return name if len(name) <= _LONG else _PATH.sub(r"…\1", name)

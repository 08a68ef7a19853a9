"""Takes SQL scripts apart, Spark 4's ``BEGIN … END``: which statements may run, whatever decides that."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.spark.sql_statements import SqlStatement, split_statements, without_texts

_LABEL = r"(?:[A-Za-z_]\w*\s*:\s*)?"
SCRIPT = re.compile(rf"{_LABEL}BEGIN\b(?!\s+TRANSACTION\b)", re.IGNORECASE)
"""How one begins."""
OPENS = re.compile(r"\bBEGIN\b|(?<!\bEND )\bCASE\b", re.IGNORECASE)
CLOSES = re.compile(r"\bEND\b(?!\s+(?:IF|WHILE|LOOP|REPEAT|FOR)\b)", re.IGNORECASE)
"""What opens a block that has an END of its own, and what closes it, which ``END IF`` and the like do not."""
_CONTROL = re.compile(
    rf"""\s*(?:
        {_LABEL}(?:BEGIN(?:\s+NOT\s+ATOMIC)?|LOOP|REPEAT)\b
        | {_LABEL}(?:WHILE|FOR)\b.*?\bDO\b
        | (?:IF\b(?!\s+(?:NOT\s+)?EXISTS\b)|ELSEIF\b|CASE\b|WHEN\b).*?\bTHEN\b
        | DECLARE\s+(?:EXIT|CONTINUE)\s+HANDLER\s+FOR\b.*?(?=\bBEGIN\b)
        | ELSE\b
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""What is before a statement of a script, and decides whether it runs."""
_NO_STATEMENT = re.compile(
    r"\s*(?:END\b|UNTIL\b|LEAVE\b|ITERATE\b|SIGNAL\b|RESIGNAL\b|DECLARE\s+\w+\s+CONDITION\b|$)", re.IGNORECASE
)


def statements_of_file(text: str) -> Iterator[SqlStatement]:
    """Yield the statements of a file, those of scripts one by one, in the order of its text."""
    depth = 0
    for part in split_statements(text):
        words = " ".join(without_texts(part.text).split())
        if depth or SCRIPT.match(words):
            depth = max(0, depth + len(OPENS.findall(words)) - len(CLOSES.findall(words)))
            yield from _within(part)
        else:
            yield part


def _within(part: SqlStatement) -> Iterator[SqlStatement]:
    """Yield the statement that a part of a script is, unless it only decides which others run."""
    words, begin = without_texts(part.text), 0
    while (control := _CONTROL.match(words, begin)) is not None:
        begin = control.end()
    if not _NO_STATEMENT.match(words, begin):
        begin += len(words[begin:]) - len(words[begin:].lstrip())
        yield SqlStatement(part.text[begin:].strip(), part.line + part.text.count("\n", 0, begin))

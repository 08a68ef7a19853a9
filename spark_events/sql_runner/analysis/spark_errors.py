"""What Spark raises, in one line."""

from __future__ import annotations

import re

_MORE = re.compile(r"(JVM stacktrace:|SQLSTATE: \w+).*", re.DOTALL)
_CAUSE = re.compile(r"\nCaused by: ([^\n]+)")
_POSITION = re.compile(r"; line (\d+) pos (\d+)|\(line (\d+), pos (\d+)\)")
_MOST = 600


def one_line(error: BaseException) -> str:
    """Return what an error says and its first cause, without the plan and the stack that Spark adds."""
    whole = str(error)
    text = _MORE.sub("", whole).split("\n== SQL", 1)[0]
    text = re.split(r";\n|\nPlan:|\n\tat ", text, maxsplit=1)[0]
    text = " ".join(_POSITION.sub("", text).split()).rstrip("; ")
    name = type(error).__name__
    text = (text if text.startswith("[") else f"{name}: {text}" if text else name)[:_MOST]
    causes = _CAUSE.findall(whole)
    return f"{text}; caused by {causes[-1][:_MOST]}" if causes else text


def position(error: BaseException) -> tuple[int, int] | None:
    """Return the line, from 1, and the column, from 0, of the query that an error is about."""
    found = _POSITION.search(str(error))
    if not found:
        return None
    line, column = (part for part in found.groups() if part is not None)
    return int(line), int(column)

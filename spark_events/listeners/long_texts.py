"""Bounds texts that come from users: a long text is cut in the middle, and notes how much is left out.

The driver bridge does the same in the JVM (``RecordTexts.java``), so that an application has the same events
live and from its event log.
"""

from __future__ import annotations

import re
from typing import Any

LONGEST = 65_536
"""Characters of a text in a record of Spark's."""
LONGEST_NAME = 1_024
"""Characters of the name of an application or a query, which each of its events carries."""
LONGEST_TITLE = 200
"""Characters of what Spark calls a stage, a job or an SQL execution, often a statement's text."""
_LEFT_OUT = re.compile(r"… \((\d+) characters left out\) …")
_LONGEST_MARK = 64


def head_length(longest: int = LONGEST) -> int:
    """Return how many of the ``longest`` characters are from a text's beginning; the rest is from its end."""
    return longest // 4 * 3


def joined(head: str, left_out: int, tail: str) -> str:
    """Return a text from its head and tail, with a note on how much is left out between them."""
    return f"{head}… ({left_out} characters left out) …{tail}" if left_out else head + tail


def cut(text: str, longest: int = LONGEST) -> str:
    """Return at most ``longest`` characters of a text, three quarters of them from its beginning.

    The end matters, too: the root cause of an exception comes last.
    """
    head = head_length(longest)
    if len(text) <= longest:
        return text
    if len(text) <= longest + _LONGEST_MARK and _LEFT_OUT.match(text, head):
        return text  # already cut
    return joined(text[:head], _count(text[head : head - longest]), text[head - longest :])


def cut_texts(value: Any, levels: int = 64) -> Any:
    """Return a JSON value with its texts cut, down to ``levels`` levels; anything deeper stays as it is."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, dict) and levels:
        return {cut(key): cut_texts(part, levels - 1) for key, part in value.items()}
    if isinstance(value, list) and levels:
        return [cut_texts(part, levels - 1) for part in value]
    return value


def whole_characters(text: str) -> str:
    """Return a text in which lone surrogates are U+FFFD and surrogate pairs are whole characters."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shorten(text: str, longest: int) -> str:
    """Return at most the first ``longest`` characters; note how many are missing, here or due to ``cut``."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({_count(text[longest:])} more characters)"


def _count(text: str) -> int:
    """Return the length of the text, including characters that were left out before."""
    before = _LEFT_OUT.search(text)
    return len(text) + (int(before.group(1)) - len(before.group()) if before else 0)

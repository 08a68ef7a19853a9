"""Names that a loop makes, or that differ from row to row."""

from __future__ import annotations

import re

_WORD, _DIGIT = re.compile(r"[0-9A-Za-z]+"), re.compile(r"[0-9]")


def without_numbers(name: str) -> str:
    """Return what is the same in all names that a loop makes, such as ``rows_of_file_17``."""
    return _WORD.sub(lambda word: "#" if _DIGIT.search(word[0]) else word[0], name)

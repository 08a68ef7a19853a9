"""Makes users' texts safe to print."""

from __future__ import annotations

import re

# Control characters, line and paragraph separators, bidirectional controls, lone surrogates.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def cut(text: str, most: int) -> str:
    """Return a text whose end is left out, and which says so, if it is longer than that many characters.

    Secrets have to be hidden before: half of one would not be found.
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def printable(text: str, but: str = "") -> str:
    """Return a text with its control characters escaped.

    Args:
        text: a name or a message, whoever it comes from.
        but: characters that stay, such as the ends of lines.
    """

    def escaped(match: re.Match[str]) -> str:
        character = match.group()
        if character in but:
            return character
        code = ord(character)
        return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")

    return _UNPRINTABLE.sub(escaped, text)

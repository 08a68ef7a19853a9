"""Texts for people: durations, times and shares, names that are safe to print, URLs without secrets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import datetime, timezone

_MOST_NAMES = 10
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000))


def duration(ms: float | None) -> str:
    """Return ``850 ms``, ``4.5 s``, ``2 min 3 s`` or ``3 d 4 h``; an empty text for None."""
    if ms is None:
        return ""
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1_000:.1f} s"
    seconds = round(ms / 1_000)
    for index, (unit, size_ms) in enumerate(_UNITS):
        whole, rest = divmod(seconds, size_ms // 1_000)
        if whole:
            smaller, its_ms = _UNITS[index + 1] if index + 1 < len(_UNITS) else ("s", 1_000)
            more = rest // (its_ms // 1_000)
            return f"{whole} {unit} {more} {smaller}" if more else f"{whole} {unit}"
    return f"{seconds} s"


def micros(us: float) -> str:
    """Return a time in µs for people, in ms from one on."""
    return f"{us:,.0f} µs" if us < 1_000 else f"{us / 1_000:,.1f} ms"


def size(size_bytes: float | None) -> str:
    """Return ``512 bytes``, ``1.5 MiB`` or ``2 GiB``; an empty text for None."""
    if size_bytes is None:
        return ""
    number, unit = float(size_bytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1 << 10:
            break
        number, unit = number / (1 << 10), larger
    rounded = round(number, 1)
    return f"{rounded:.0f} {unit}" if rounded.is_integer() else f"{rounded} {unit}"


def cost(ms: float | None, size_bytes: float | None) -> str:
    """Return what something cost: its time, or else its bytes."""
    return size(size_bytes) if ms is None else duration(ms)


def moment(ms: int | None) -> str:
    """Return ``2026-11-21 04:38:42`` in UTC; an empty text for None."""
    if ms is None:
        return ""
    try:
        return datetime.fromtimestamp(ms / 1_000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # beyond the year 9999
        return f"{ms} ms"


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: ``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some_names(names: Iterable[str]) -> str:
    """Return names for a message: in order, not more than a reader takes in."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _MOST_NAMES:,} more" if len(ordered) > _MOST_NAMES else ""
    return (", ".join(ordered[:_MOST_NAMES]) or "none") + more


def percent(share: float | None) -> str:
    """Return ``99.95 %``, never rounded up to 100; an empty text for None."""
    if share is None:
        return ""
    return "100 %" if share == 100 else f"{math.floor(share * 100) / 100:.2f} %"


# Control characters, line and paragraph separators, bidirectional controls, lone surrogates.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def cut(text: str, most: int) -> str:
    """Return a text whose end is left out, and which says so, if it is longer than that many characters.

    Secrets have to be hidden before: half of one would not be found.
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 has a text; it does not have that of a file's name in another encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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


_HIDDEN = "******"
_WORD = re.compile(r"[^\s'\"]+")
_SHORTEST = 3
"""Shorter ones would be hidden in all words."""


def url_without_secrets(url: str) -> str:
    """Return a URL, or what should have been one, as it may be shown."""
    url = re.sub(r"//.*@", f"//{_HIDDEN}@", url, flags=re.DOTALL)  # a password may have slashes
    return re.sub(r"([?#]).+", rf"\1{_HIDDEN}", url, flags=re.DOTALL)


def path_without_secrets(path: str) -> str:
    """Return a path, or a URL in its place, as it may be shown; a local path may have any character."""
    return url_without_secrets(path) if "://" in path else path


def text_without_url_secrets(text: str) -> str:
    """Return a message in which URLs, wherever they are, are shown without what may be secret in them."""
    return _WORD.sub(_shown_word, text)


def text_without_secrets_of(url: str, text: str) -> str:
    """Return what a library says of a URL, without the user, the password and the query of that URL.

    Libraries show parts of a URL, which cannot be told from other words.
    """
    _, _, rest = url.partition("://")
    user, _, _ = rest.rpartition("@")
    parts = (f"{user}@" if user else "", user.partition(":")[2], rest.partition("?")[2])
    for part in parts:
        if len(part.rstrip("@")) >= _SHORTEST:
            text = text.replace(part, f"{_HIDDEN}@" if part.endswith("@") else _HIDDEN)
    return text_without_url_secrets(text)


def _shown_word(match: re.Match[str]) -> str:
    scheme, colon, rest = match.group().partition(":/")
    user, at, place = rest.lstrip("/").rpartition("@")
    if not colon:
        return match.group()
    slashes = "/" * (len(rest) - len(rest.lstrip("/")))
    path, mark, query = place.partition("?")
    return f"{scheme}{colon}{slashes}{_HIDDEN if user else ''}{at}{path}{mark}{_HIDDEN if query else ''}"


def text_without_queries(text: str) -> str:
    """Return what a library says of a request, without the queries of URLs and paths in it."""
    return re.sub(r"([?#])[^\s'\"]+", rf"\1{_HIDDEN}", re.sub(r"//[^\s'\"]*@", f"//{_HIDDEN}@", text))

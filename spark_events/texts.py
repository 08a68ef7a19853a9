"""Durations, times, shares and names as people read them."""

from __future__ import annotations

import math
from datetime import datetime, timezone

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape
from rich.measure import Measurement

from spark_events.api import printable

_WIDEST = 1_000_000_000
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000))


def plain(text: str) -> str:
    """Return a name of users for a rich console: one printable line, and no markup."""
    return escape(printable(text))


def plain_lines(text: str) -> str:
    """Return a message of users for a rich console: printable, and no markup; lines stay lines."""
    return escape(printable(text, but="\n"))


class AsWide:
    """Something for a rich console that is as wide as it is, on any terminal; printed with ``crop=False``.

    Args:
        what: a table, a tree.
    """

    def __init__(self, what: RenderableType) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widest = options.update(width=_WIDEST, max_width=_WIDEST)
        needed = Measurement.get(console, widest, self._what).maximum
        yield from console.render(self._what, options.update(width=needed, max_width=needed))


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


def moment(ms: int | None) -> str:
    """Return ``2026-11-21 04:38:42`` in UTC; an empty text for None."""
    if ms is None:
        return ""
    try:
        return datetime.fromtimestamp(ms / 1_000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # beyond the year 9999
        return f"{ms} ms"


def percent(share: float | None) -> str:
    """Return ``99.95 %``, never rounded up to 100; an empty text for None."""
    if share is None:
        return ""
    return "100 %" if share == 100 else f"{math.floor(share * 100) / 100:.2f} %"


def job_name(row: dict[str, str]) -> str:
    """Return a row's name: the query's, with its application's, or the application's."""
    return f"{row['app_name']} / {row['query_name']}" if row["query_name"] else row["app_name"]

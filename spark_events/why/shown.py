"""How the page writes shares, severities and evidence."""

from __future__ import annotations

import re
from typing import Any

from spark_events.api.toolkit.formatting import duration, size

SEVERITIES = {"ERROR": "severe", "WARN": "warning", "INFO": "note"}
"""The words for severities, for those to whom their colors are the same."""
COLORS = {
    account: color
    for color, accounts in {
        "driver": ("driver alone", "driver within a query", "driver in a micro-batch"),
        "waiting": ("waiting for executors", "waiting for data or a trigger", "waiting for shuffle data"),
        "idle": ("idle cores", "tasks that measured nothing"),
        "starting": ("scheduling and starting tasks", "starting Python workers"),
        "wasted": ("wasted attempts", "garbage collection"),
        "python": ("Python functions",),
        "work": ("reading, computing and writing", "writing shuffle data"),
    }.items()
    for account in accounts
}
"""The color of each account of time, a class of the page: related ones share one."""
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[._]")
_UNITS = {"Ms": duration, "Bytes": size}
_GIB, _LEAST_HOURS = 1 << 30, 0.1


def whole_percent(share: float) -> str:
    """Return ``7 %``, and ``< 1 %`` for less; never rounded up to 100."""
    if share < 1:
        return "< 1 %"
    return f"{99 if 99 < share < 100 else round(share)} %"


def held(byte_seconds: float) -> str:
    """Return ``2.5 GiB·h``, or ``40 GiB·s`` where that is less than a tenth of it."""
    gib_hours = byte_seconds / _GIB / 3_600
    if gib_hours >= _LEAST_HOURS:
        return f"{gib_hours:,.1f} GiB·h"
    gib_seconds = byte_seconds / _GIB
    return f"{gib_seconds:.1f} GiB·s" if gib_seconds < 10 else f"{gib_seconds:.0f} GiB·s"


def shown_evidence(name: str, value: Any) -> tuple[str, str]:
    """Return an attribute as words, and its value with its unit: ``("median duration", "22.0 s")``."""
    unit = next((unit for unit in _UNITS if name.endswith(unit)), None)
    if unit is not None and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _in_words(name.removesuffix(unit) or name), _UNITS[unit](value)
    return _in_words(name), f"{value:,}" if type(value) is int else str(value)


def _in_words(name: str) -> str:
    return " ".join(_WORDS.sub(" ", name).split()).lower() or name

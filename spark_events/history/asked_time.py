"""A time as people ask for it: as ISO 8601 has it, or so long ago."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import datetime, timezone

from spark_events.api import ConfigError
from spark_events.api.errors import UsageError
from spark_events.api.option_types import DURATION

_LAST_MS = 253_402_214_400_000
"""The last day of the year 9999: Python knows no later one."""
_ZULU = re.compile(r"[zZ]$")


def time_of(name: str, text: str) -> int:
    """Return the time that a text means, in ms since the epoch, between 1970 and 9999: no event is beyond.

    Args:
        name: of the option or argument that has it, for the error.
        text: a time or a day, in UTC unless it names another offset; or how long ago it was, such as ``2h``;
            or ``now``.

    Raises:
        UsageError: it is not a time.
    """
    now_ms = time.time_ns() // 1_000_000
    if text == "now":
        return now_ms
    with suppress(ConfigError):
        return max(0, now_ms - DURATION.read(name, text))
    try:
        moment = datetime.fromisoformat(_ZULU.sub("+00:00", text))  # Python 3.10 does not know Z
    except ValueError:
        raise UsageError(
            f"{name} {text}: expected a time such as 2026-11-25 or 2026-11-25T14:30 (UTC), a duration such "
            "as 2h, which means that long ago, or now"
        ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return min(max(0, int(aware.timestamp() * 1_000)), _LAST_MS)

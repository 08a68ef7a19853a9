"""After how long without data Spark says that a streaming query is idle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import option_types as types

_KEY = "spark.sql.streaming.noDataProgressEventInterval"
_DEFAULT_MS = 10_000


class IdleInterval:
    """The application's interval, by its configuration; a query's session may have another one.

    Attributes:
        ms: the interval.
    """

    def __init__(self) -> None:
        self.ms = _DEFAULT_MS

    def on_environment(self, record: Mapping[str, Any], time_ms: int) -> None:
        """Handle EnvironmentUpdate."""
        text = dict(record.get("Spark Properties") or {}).get(_KEY)
        if text is not None:
            self.ms = _ms(str(text))


def _ms(text: str) -> int:
    """Return an interval as Spark writes it: a number of ms, or with a unit; if unreadable, the default."""
    try:
        return int(text) if text.strip().isdecimal() else types.DURATION.parse(text)
    except ValueError:
        return _DEFAULT_MS

"""After how long Spark says that a streaming query has nothing to do."""

from __future__ import annotations

from spark_events.api import option_types as types
from spark_events.listeners.record_fields import SPARK_PROPERTIES
from spark_events.listeners.record_types import EnvironmentUpdateRecord

_IDLE_INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"
_USUAL_INTERVAL_MS = 10_000


class IdleInterval:
    """The application's interval, by its configuration; a query's session may have another one.

    Attributes:
        ms: the interval.
    """

    def __init__(self) -> None:
        self.ms = _USUAL_INTERVAL_MS

    def on_environment(self, record: EnvironmentUpdateRecord, time_ms: int) -> None:
        """Handle EnvironmentUpdate."""
        text = dict(record.get(SPARK_PROPERTIES) or {}).get(_IDLE_INTERVAL)
        if text is not None:
            self.ms = _interval_ms(str(text))


def _interval_ms(text: str) -> int:
    """Return an interval as Spark writes it: a number of ms, or with a unit; if unreadable, the default."""
    try:
        return int(text) if text.strip().isdecimal() else types.DURATION.parse(text)
    except ValueError:
        return _USUAL_INTERVAL_MS

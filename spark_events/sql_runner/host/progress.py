"""What a status tells of a query's progress: rows a second, and how far it is behind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spark_events.listeners.queries.query_metrics import backlog
from spark_events.listeners.spark_records import parse_timestamp_ms
from spark_events.sql_runner.store.clock import StoreClock


class SeenProgress:
    """The progress of a query's triggers, each told once, and at a time of the store.

    A clock that was set between a trigger and the look at it is wrong by more than it is now: no trigger is
    told earlier than the one before, or later than the look.

    Args:
        clock: the store's; the query has begun at its time now.
    """

    def __init__(self, clock: StoreClock) -> None:
        self._clock = clock
        self._last_ms = clock.now_ms()
        self._last_timestamp = ""

    def new(self, progress: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a ``QueryStatus`` that a progress gives; none if it is the one before.

        Args:
            progress: PySpark's ``StreamingQuery.lastProgress``, which an idle query makes every ten seconds.
        """
        timestamp = str(progress.get("timestamp"))
        if timestamp == self._last_timestamp:
            return {}
        self._last_timestamp = timestamp
        at_ms = _time_ms(timestamp)
        if at_ms is not None:
            at_ms = min(max(at_ms - self._clock.ahead_ms, self._last_ms), self._clock.now_ms())
            self._last_ms = at_ms
        return figures(progress, at_ms)


def figures(progress: Mapping[str, Any], at_ms: int | None) -> dict[str, Any]:
    """Return the fields of a ``QueryStatus`` that Spark's progress of a trigger gives.

    Args:
        progress: PySpark's ``StreamingQuery.lastProgress``.
        at_ms: when the trigger began, in ms since the epoch; None if that is not known.
    """
    rate = progress.get("inputRowsPerSecond")
    behind = [rows for source in progress.get("sources") or () if (rows := backlog(source)) is not None]
    watermark_ms = _time_ms((progress.get("eventTime") or {}).get("watermark"))
    return {
        "progress_ms": at_ms,
        # Spark has no rate for the first trigger.
        "input_rate": float(rate) if rate is not None and math.isfinite(rate) else 0.0,
        "behind": round(sum(behind)) if behind else None,
        # Spark says 1970 until the first row has come.
        "watermark_lag_ms": at_ms - watermark_ms if at_ms is not None and watermark_ms else None,
    }


def _time_ms(text: Any) -> int | None:
    with suppress(ValueError):
        return parse_timestamp_ms(str(text))
    return None

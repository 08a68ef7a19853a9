"""What a status tells of a query's progress: rows a second, and how far it is behind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spark_events.listeners.queries.query_metrics import backlog
from spark_events.listeners.spark_records import parse_timestamp_ms


def figures(progress: Mapping[str, Any], ahead_ms: int = 0) -> dict[str, Any]:
    """Return the fields of a ``QueryStatus`` that Spark's progress of a trigger gives.

    Args:
        progress: PySpark's ``StreamingQuery.lastProgress``; of an idle query, one comes every ten seconds.
        ahead_ms: how far this machine's clock is ahead of the store's, in ms.
    """
    rate = progress.get("inputRowsPerSecond")
    behind = [rows for source in progress.get("sources") or () if (rows := backlog(source)) is not None]
    at_ms = _time_ms(progress.get("timestamp"))
    at_ms = None if at_ms is None else at_ms - ahead_ms
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

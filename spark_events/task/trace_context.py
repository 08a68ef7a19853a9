"""A task's place in the application's trace, for all that it calls by OpenTelemetry."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spark_events.task.trace_ids import TracePlace


def enter_trace(place_of_task: Callable[[], TracePlace | None]) -> Any:
    """Let OpenTelemetry begin new spans below the task's place, if the task uses OpenTelemetry.

    Args:
        place_of_task: gives the place, which is computed only then.

    Returns:
        A token to leave it by; None if there is no OpenTelemetry.
    """
    if "opentelemetry.context" not in sys.modules:
        return None
    try:
        place = place_of_task()
        return _attach(place) if place is not None else None
    except Exception:  # a part of it is not installed, or broken
        return None


def _attach(place: TracePlace) -> Any:
    from opentelemetry import context, trace

    of_place = trace.SpanContext(
        int(place.trace_id, 16), int(place.span_id, 16), True, trace.TraceFlags(int(place.sampled))
    )
    return context.attach(trace.set_span_in_context(trace.NonRecordingSpan(of_place)))


def leave_trace(token: Any) -> None:
    """Leave the place that a token of ``enter_trace`` is for."""
    if token is not None:
        with suppress(Exception):  # it may have been left already, or by another thread
            from opentelemetry import context

            context.detach(token)

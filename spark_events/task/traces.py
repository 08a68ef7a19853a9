"""The ids of spans and traces, so computed that tasks and the driver agree, and a task's place in a trace."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple


class TracePlace(NamedTuple):
    """A place in a trace, below which there may be spans.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        sampled: whether the trace is reported.
    """

    trace_id: str
    span_id: str
    sampled: bool

    @property
    def traceparent(self) -> str:
        """The place as W3C Trace Context writes it."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def digest(size: int, *parts: str) -> str:
    """Return ``size`` bytes in hexadecimal digits that depend on nothing but the parts."""
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=size).hexdigest()


def new_span_id() -> str:
    """Return a random id: 16 hexadecimal digits."""
    return os.urandom(8).hex()


def is_sampled(trace_id: str, ratio: float) -> bool:
    """Return whether a trace is among the share that is reported, as OpenTelemetry's sampler does."""
    return int(trace_id[16:], 16) < round(ratio * 2**64)


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

"""The ids of spans and traces, which are computed from what happened, so that tasks and the driver agree."""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple


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

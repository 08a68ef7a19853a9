"""The link to an outer trace, such as an Airflow task's: W3C Trace Context's ``traceparent``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spark_events.api import OptionType

ENVIRONMENT = "TRACEPARENT"
"""The environment variable that is read where ``spark.traces.parent`` is not set."""
_FORM = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)


@dataclass(frozen=True, slots=True)
class TraceParent:
    """A span outside the application, which the application is part of.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        sampled: whether that trace is recorded.
    """

    trace_id: str
    span_id: str
    sampled: bool


def parse_traceparent(text: str) -> TraceParent:
    """Read a ``traceparent`` header.

    Raises:
        ValueError: it is not a valid one; the message says why.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["more"]):
        raise ValueError("wrong form")
    if not int(match["trace"], 16) or not int(match["span"], 16):
        raise ValueError("an id of only zeros is invalid")
    return TraceParent(match["trace"], match["span"], bool(int(match["flags"], 16) & 1))


TRACEPARENT = OptionType(
    "traceparent", "a W3C traceparent, 00-<32 hex digits>-<16 hex digits>-<2 hex digits>", parse_traceparent
)

"""What is sent at once."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Batch:
    """Records in order, all of one context.

    Attributes:
        first: the sequence number of the first.
        context: what they have in common.
        time_ms: when the first was stored, in ms since the epoch; 0 where that is not known.
        segment: the number of the segment that they are in; 0 in memory.
        records: what is sent.
        ends: the offset behind each of them in the segment; empty in memory.
    """

    first: int
    context: bytes
    time_ms: int = 0
    segment: int = 0
    records: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

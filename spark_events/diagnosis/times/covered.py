"""For how long something ran, where several things may have run at the same time."""

from __future__ import annotations

from collections.abc import Iterable


def covered_ms(spans: Iterable[tuple[int, int]]) -> int:
    """Return for how long at least one of some spans lasted, in ms.

    Args:
        spans: when each began and ended, in ms since the epoch, in any order.
    """
    whole_ms = until_ms = 0
    for begun_ms, ended_ms in sorted(spans):
        whole_ms += max(0, ended_ms - max(begun_ms, until_ms))
        until_ms = max(until_ms, ended_ms)
    return whole_ms

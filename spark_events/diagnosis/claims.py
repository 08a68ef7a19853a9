"""The time that issues have cost so far: no moment of a run is lost twice."""

from __future__ import annotations

from bisect import bisect_left, insort

_MOST_SPANS = 1_000


class Claims:
    """The moments that some issue has cost already.

    What two issues cost at the same time would be saved only once, so it belongs to the one that was told
    first.
    """

    def __init__(self) -> None:
        self._others_ms = 0
        # From when to when, in ms since the epoch; in order, and apart from each other.
        self._taken: list[tuple[int, int]] = []

    @property
    def total_ms(self) -> int:
        """All that was claimed."""
        return self._others_ms + sum(until - since for since, until in self._taken)

    def claim_some(self, whole_ms: int, lost_ms: int) -> int:
        """Claim time of which nobody knows when it was, and return how much was left, in ms.

        Args:
            whole_ms: how long all of it has taken.
            lost_ms: how much is wanted.
        """
        claimed_ms = min(lost_ms, max(0, whole_ms - self.total_ms))
        self._others_ms += claimed_ms
        return claimed_ms

    def claim(self, from_ms: int, until_ms: int, lost_ms: int) -> int:
        """Claim the latest moments of a time that are free, and return how many there were, in ms.

        Args:
            from_ms, until_ms: the time, in ms since the epoch.
            lost_ms: how many are wanted.
        """
        first = max(0, bisect_left(self._taken, (from_ms, from_ms)) - 1)
        before = [span for span in self._taken[first:] if span[0] < until_ms and span[1] > from_ms]
        claimed: list[tuple[int, int]] = []
        left_ms, end_ms = lost_ms, until_ms
        for since, until in [*reversed(before), (from_ms, from_ms)]:
            begin_ms = max(until, from_ms, end_ms - left_ms)
            if begin_ms < end_ms and left_ms > 0:
                claimed.append((begin_ms, end_ms))
                left_ms -= end_ms - begin_ms
            end_ms = min(end_ms, since)
        for span in claimed:
            insort(self._taken, span)
        self._join()
        return lost_ms - left_ms

    def _join(self) -> None:
        """Join spans that touch; of too many, the oldest, too."""
        joined: list[tuple[int, int]] = []
        for since, until in self._taken:
            if joined and since <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(until, joined[-1][1])
            else:
                joined.append((since, until))
        while len(joined) > _MOST_SPANS:
            joined[:2] = [(joined[0][0], joined[1][1])]
        self._taken = joined

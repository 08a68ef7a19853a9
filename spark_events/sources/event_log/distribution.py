"""How values are distributed, in bounded memory; live, the bridge does the same (Distribution.java)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

_EXACT = 64
_MOST_DISTINCT = 8_192


class Distribution:
    """How values of 0 and more are distributed.

    A quantile below 64 is exact; above, it is the middle of a step, of which there are 32 for each power of
    two, so it is at most 1.6 % off. All arithmetic is in integers, and gives what the bridge gives.

    Attributes:
        count: how many values there are.
        total: their sum.
        highest: the highest of them; 0 if there are none.
    """

    __slots__ = ("_times", "count", "highest", "total")

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()
        self.count = self.total = self.highest = 0

    def add(self, values: Sequence[int]) -> None:
        """Add values; negative ones are left out."""
        lowest = min(values, default=-1)
        if lowest < 0:
            values = [value for value in values if value >= 0]
        if not values:
            return
        highest = max(values)
        if lowest == highest:  # often all are 0
            self._times[highest] += len(values)
        else:
            self._times.update(values)
        self.count += len(values)
        self.total += sum(values)
        self.highest = max(self.highest, highest)
        if len(self._times) > _MOST_DISTINCT:
            steps: Counter[int] = Counter()
            for value, times in self._times.items():
                steps[_middle(value)] += times
            self._times = steps

    def quantiles(self, *percents: int) -> list[int]:
        """Return for each percentage the value that so many percent of all do not exceed."""
        values = sorted(self._times)
        passed = list(accumulate(map(self._times.__getitem__, values)))
        if not values:
            return [0] * len(percents)
        ranks = (max(1, (percent * self.count + 99) // 100) for percent in percents)
        return [min(_middle(values[bisect_left(passed, rank)]), self.highest) for rank in ranks]

    def summary(self) -> list[int]:
        """Return the median, the 95th percentile, the highest value and the sum."""
        return [*self.quantiles(50, 95), self.highest, self.total]


def _middle(value: int) -> int:
    """Return the middle of the step that a value is in."""
    if value < _EXACT:
        return value
    shift = value.bit_length() - 6
    return (value >> shift << shift) + (1 << (shift - 1))

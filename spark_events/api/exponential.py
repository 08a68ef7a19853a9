"""Buckets whose bounds grow by a constant factor, as OpenTelemetry's exponential histograms have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

_FINEST = 20
_COARSEST = -10
_MOST = 160


@dataclass(frozen=True, slots=True)
class ExponentialSnapshot:
    """The state of an exponential histogram.

    Attributes:
        scale: the bounds are powers of ``2 ** (2 ** -scale)``.
        zeros: how many values were 0.
        positive: counts by index; index ``i`` holds values above base ** i, up to base ** (i + 1).
        negative: the same of negative values, by their absolute value.
    """

    scale: int
    zeros: int
    positive: Mapping[int, int] = field(default_factory=dict)
    negative: Mapping[int, int] = field(default_factory=dict)

    def plus(self, other: ExponentialSnapshot) -> ExponentialSnapshot:
        """Return the values of both, in the finest buckets of which 160 per sign hold them."""
        scale = min(self.scale, other.scale)
        while scale > _COARSEST and max(_span(self, other, scale)) > _MOST:
            scale -= 1
        return self._combined(other, 1, scale)

    def minus(self, earlier: ExponentialSnapshot) -> ExponentialSnapshot:
        """Return the difference to an earlier snapshot of the same histogram."""
        return self._combined(earlier, -1, min(self.scale, earlier.scale))

    def _combined(self, other: ExponentialSnapshot, sign: int, scale: int) -> ExponentialSnapshot:
        first, second = at_scale(self, scale), at_scale(other, scale)

        def of(mine: Mapping[int, int], theirs: Mapping[int, int]) -> dict[int, int]:
            sums = {index: mine.get(index, 0) + sign * theirs.get(index, 0) for index in {*mine, *theirs}}
            return {index: count for index, count in sums.items() if count}

        return ExponentialSnapshot(
            scale,
            first.zeros + sign * second.zeros,
            of(first.positive, second.positive),
            of(first.negative, second.negative),
        )


class ExponentialBuckets:
    """Counts values in at most 160 buckets per sign; a wider range of values makes the buckets coarser.

    Not safe to use from several threads.
    """

    def __init__(self) -> None:
        self._scale = _FINEST
        self._zeros = 0
        self._signs: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def update(self, value: float) -> None:
        """Add one value; NaN and infinities, which have no bucket, are ignored."""
        if not math.isfinite(value):
            return
        if value == 0:
            self._zeros += 1
            return
        counts = self._signs[value < 0]
        index = bucket_index(abs(value), self._scale)
        low, high = min(counts, default=index), max(counts, default=index)
        while max(high, index) - min(low, index) >= _MOST and self._scale > _COARSEST:
            self._scale -= 1
            index, low, high = index >> 1, low >> 1, high >> 1
            for counts_of_sign in self._signs:
                _halve(counts_of_sign)
        counts[index] = counts.get(index, 0) + 1

    def snapshot(self) -> ExponentialSnapshot:
        """Return the counts as they are now."""
        positive, negative = self._signs
        return ExponentialSnapshot(self._scale, self._zeros, dict(positive), dict(negative))


def bucket_index(value: float, scale: int) -> int:
    """Return the index of the bucket of a positive value: base ** index < value <= base ** (index + 1)."""
    fraction, exponent = math.frexp(value)
    if fraction == 0.5:  # a power of 2, for which logarithms may be slightly off
        return ((exponent - 1) << scale) - 1 if scale > 0 else ((exponent - 2) >> -scale)
    if scale > 0:
        return math.ceil(math.ldexp(math.log2(fraction), scale) + (exponent << scale)) - 1
    return (exponent - 1) >> -scale


def at_scale(snapshot: ExponentialSnapshot, scale: int) -> ExponentialSnapshot:
    """Return a snapshot with coarser buckets.

    Args:
        snapshot: of the same scale, or a finer one.
        scale: the scale that is wanted.
    """
    positive, negative = dict(snapshot.positive), dict(snapshot.negative)
    for _ in range(snapshot.scale - scale):
        _halve(positive)
        _halve(negative)
    return ExponentialSnapshot(scale, snapshot.zeros, positive, negative)


def _span(first: ExponentialSnapshot, second: ExponentialSnapshot, scale: int) -> tuple[int, int]:
    """Return how many buckets of a scale there are from the lowest to the highest value, by sign."""

    def of(*signs: tuple[Mapping[int, int], int]) -> int:
        indexes = [index >> (finer - scale) for counts, finer in signs for index in counts]
        return max(indexes) - min(indexes) + 1 if indexes else 0

    return (
        of((first.positive, first.scale), (second.positive, second.scale)),
        of((first.negative, first.scale), (second.negative, second.scale)),
    )


def _halve(counts: dict[int, int]) -> None:
    """Merge each pair of neighboring buckets into one."""
    old = dict(counts)
    counts.clear()
    for index, count in old.items():
        counts[index >> 1] = counts.get(index >> 1, 0) + count

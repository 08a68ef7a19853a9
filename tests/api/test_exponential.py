"""Exponential buckets, held against the definition of their bounds and OpenTelemetry's own."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics._internal.exponential_histogram.mapping.exponent_mapping import ExponentMapping
from opentelemetry.sdk.metrics._internal.exponential_histogram.mapping.logarithm_mapping import (
    LogarithmMapping,
)

from spark_events.api import Histogram, at_scale
from spark_events.api.exponential import ExponentialBuckets, bucket_index

VALUES = st.floats(min_value=1e-9, max_value=1e15, allow_nan=False)


@given(VALUES, st.integers(-10, 20))
def test_indexes_are_opentelemetrys(value: float, scale: int) -> None:
    """The SDK's mapping gives the same index, but for the hair by which its logarithm may miss a bound."""
    mapping = LogarithmMapping(scale) if scale > 0 else ExponentMapping(scale)

    assert abs(bucket_index(value, scale) - mapping.map_to_index(value)) <= (1 if scale > 12 else 0)


@given(st.integers(-40, 40), st.integers(-10, 20))
def test_a_power_of_two_is_the_upper_bound_of_its_bucket(exponent: int, scale: int) -> None:
    """Exactly: bounds are exclusive below and inclusive above."""
    index = bucket_index(2.0**exponent, scale)
    width = Fraction(2) ** -scale

    assert index * width < exponent <= (index + 1) * width


@given(st.lists(VALUES | VALUES.map(float.__neg__) | st.just(0.0), max_size=400))
def test_nothing_is_lost_and_buckets_are_few(values: list[float]) -> None:
    """However far the values are apart, each is counted, in a bucket whose bounds it lies between."""
    buckets = ExponentialBuckets()
    for value in values:
        buckets.update(value)
    seen = buckets.snapshot()

    assert seen.zeros == values.count(0.0)
    assert sum(seen.positive.values()) == sum(value > 0 for value in values)
    assert sum(seen.negative.values()) == sum(value < 0 for value in values)
    for counts in (seen.positive, seen.negative):
        assert max(counts, default=0) - min(counts, default=0) < 160
    exact = {math.floor(math.log2(v) * 2.0**seen.scale) for v in values if v > 0}
    assert all(any(abs(index - near) <= 1 for near in exact) for index in seen.positive)


@given(*[st.lists(VALUES | VALUES.map(float.__neg__), max_size=200)] * 2)
def test_a_sum_has_few_buckets_as_well(first: list[float], second: list[float]) -> None:
    """However far apart the values of two histograms are, which each has narrow buckets for its own."""
    snapshots = []
    for values in (first, second):
        buckets = ExponentialBuckets()
        for value in values:
            buckets.update(value)
        snapshots.append(buckets.snapshot())
    both = snapshots[0].plus(snapshots[1])

    for counts, sign in ((both.positive, 1), (both.negative, -1)):
        assert max(counts, default=0) - min(counts, default=0) < 160
        assert sum(counts.values()) == sum(value * sign > 0 for value in (*first, *second))


def test_a_histogram_has_both_kinds_of_bucket() -> None:
    """NaN has no exponential bucket, and breaks nothing."""
    histogram = Histogram([1, 10])
    for value in (0.5, 4, 4, float("nan")):
        histogram.update(value)
    seen = histogram.snapshot()

    assert sum(seen.exponential.positive.values()) == 3
    coarse = at_scale(seen.exponential, 0)
    assert (coarse.scale, dict(coarse.positive)) == (0, {-2: 1, 1: 2})


def test_as_many_buckets_as_there_may_be() -> None:
    """160 at the finest scale that holds them; the next value makes all of them coarser."""
    buckets = ExponentialBuckets()
    widths = []
    for step in range(400):
        buckets.update(1.5 * 2 ** (step / 2**20))
        indexes = buckets.snapshot().positive.keys()
        widths.append(max(indexes) - min(indexes) + 1)

    assert max(widths) == 160
    assert buckets.snapshot().scale == 18

"""The bound on series: what is above it goes into one, and nothing of that is forgotten."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from spark_events.api import Counter, Gauge, Histogram, Meter, Metric
from spark_events.runtime.registry import Registry
from spark_events.runtime.scope import ScopeGroup
from spark_events.runtime.setup import read_all_setups
from tests.support.plugins import CollectingMetricsFactory
from tests.support.waiting import wait_until

KEY = "spark.metrics.reporter.x."
OVERFLOW = {"otel.metric.overflow": "true"}


def limited(**options: str) -> Registry:
    conf = {KEY + "factory.class": "tests.support.plugins:CollectingMetricsFactory"}
    conf |= {KEY + name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    setups, errors = read_all_setups(conf)
    assert not errors
    registry = Registry(setups)
    registry.start()
    return registry


def reported(registry: Registry, name: str) -> list[tuple[Metric, dict[str, str]]]:
    wait_until(lambda: registry.workers[0].depth == 0, "all are announced")
    assert CollectingMetricsFactory.last is not None
    found = CollectingMetricsFactory.last.metrics.items()
    return [entry for key, entry in found if key.endswith(f".{name}")]


def place(registry: Registry, number: int) -> ScopeGroup:
    return registry.root.child("query", (f"q{number}",), {"query_name": f"q{number}"})


def test_counters_above_the_limit_go_into_one(caplog: pytest.LogCaptureFixture) -> None:
    """Their sum only grows, also when one of them leaves; there is one warning."""
    registry = limited(max_series_per_metric="8")
    counters = [place(registry, n).register("rows", Counter()) for n in range(15)]
    for counter in counters:
        counter.inc(5)
    found = reported(registry, "rows")
    (overflow,) = [metric for metric, variables in found if variables == OVERFLOW]
    assert len(found) == 9
    assert isinstance(overflow, Counter)
    assert overflow.count == 7 * 5
    place(registry, 14).close()
    counters[13].inc()
    assert overflow.count == 7 * 5 + 1
    place(registry, 0).close()
    place(registry, 15).register("rows", Counter())
    assert len(reported(registry, "rows")) == 9  # the new one has the place of the first
    registry.close(5_000)

    assert caplog.text.count("share one with otel.metric.overflow=true") == 1


def test_meters_and_histograms_as_well() -> None:
    """The sums of counts, rates and buckets, of those that are there and those that have left."""
    registry = limited(max_series_per_metric="8")
    for number in range(11):
        place(registry, number).register("speed", Meter()).mark(2)
        histogram = place(registry, number).register("time", Histogram([1, 10]))
        histogram.update(5)
        histogram.update(0.5)
    place(registry, 10).close()
    (meter,) = [m for m, variables in reported(registry, "speed") if variables == OVERFLOW]
    (time,) = [m for m, variables in reported(registry, "time") if variables == OVERFLOW]
    registry.close(5_000)

    assert isinstance(meter, Meter)
    assert isinstance(time, Histogram)
    assert (meter.count, meter.rate) == (6, 4.0)
    seen = time.snapshot()
    assert (seen.counts, seen.sum, seen.count) == ((3, 3, 0), 16.5, 6)
    assert sum(seen.exponential.positive.values()) == 6


def test_gauges_above_the_limit_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """There is no sum of gauges; how many are left out is a metric of the framework."""
    registry = limited(max_series_per_metric="8")
    for number in range(15):
        place(registry, number).register("age", Gauge(lambda: 1))
    found, (above,) = reported(registry, "age"), reported(registry, "seriesAboveLimit")
    registry.close(5_000)

    assert len(found) == 8
    assert isinstance(above[0], Gauge)
    assert above[0].value == 7
    assert "further series of spark.query.age are left out" in caplog.text


def test_all_metrics_together_have_a_limit() -> None:
    """Also where no metric has many series."""
    registry = limited(max_series="30")
    for number in range(100):
        place(registry, 0).register(f"rows{number}", Gauge(lambda: 1))
    wait_until(lambda: registry.workers[0].depth == 0, "all are announced")
    assert CollectingMetricsFactory.last is not None
    count = len(CollectingMetricsFactory.last.metrics)
    registry.close(5_000)

    assert count == 30


def test_many_series_at_once_are_all_announced() -> None:
    """A queue that is shorter than what comes at once loses no series."""
    registry = limited(max_series="40000", max_series_per_metric="30000", queue__max_items="1")
    for number in range(30_000):
        place(registry, number).register("rows", Counter())
    found = reported(registry, "rows")
    registry.close(5_000)

    assert len(found) == 30_000


def test_groups_that_are_closed_leave_nothing() -> None:
    """However many metric groups come and go, with a reporter that is told of each."""
    registry = limited()

    def come_and_go(count: int) -> int:
        for number in range(count):
            group = registry.root.add_group("table", f"t{number}")
            group.register("rows", Counter())
            group.close()
        wait_until(lambda: not registry.undelivered, "the reporter was told")
        gc.collect()
        # Threads that other tests have left may allocate, too.
        own = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/spark_events/*")])
        return sum(trace.size for trace in own.traces)

    tracemalloc.start()
    after_some = come_and_go(1_000)
    after_many = come_and_go(20_000)
    tracemalloc.stop()
    registry.close(5_000)

    assert after_many - after_some < 200_000


def test_ever_new_names_have_no_series_each(caplog: pytest.LogCaptureFixture) -> None:
    """Nor a warning each: it is what the limit is for."""
    registry = limited(max_series="50")
    for number in range(1_000):
        registry.root.register(f"rows_{number}", Counter()).inc()
    wait_until(lambda: registry.workers[0].depth == 0, "all are announced")
    assert CollectingMetricsFactory.last is not None
    assert len(CollectingMetricsFactory.last.metrics) == 50 + 100
    assert registry._series_of(registry.workers[0])[0] == 50
    registry.root.close()
    registry.close(5_000)
    assert caplog.text.count("has reached") == 101
    assert "ever new names, such as spark.rows_" in caplog.text


def test_histograms_with_other_buckets_are_counted_as_well() -> None:
    """Each value gets the bucket that has the upper bound of its own; none is below a bound it may be above."""
    registry = limited(max_series_per_metric="8")
    for number in range(8):
        place(registry, number).register("time", Histogram([1, 10]))
    for number, bounds in enumerate(([1, 10], [5], [100, 1_000])):
        histogram = place(registry, 8 + number).register("time", Histogram(bounds))
        for value in (0.5, 5, 50):
            histogram.update(value)
    place(registry, 9).close()
    (time,) = [m for m, variables in reported(registry, "time") if variables == OVERFLOW]
    registry.close(5_000)

    assert isinstance(time, Histogram)
    seen = time.snapshot()
    assert (seen.counts, seen.count, seen.sum) == ((1, 3, 5), 9, 3 * 55.5)
    assert sum(seen.exponential.positive.values()) == 9


def test_a_metric_of_another_type_is_no_part_of_the_sum() -> None:
    registry = limited(max_series_per_metric="8")
    for number in range(9):
        place(registry, number).register("size", Histogram([1])).update(0.5)
    place(registry, 9).register("size", Counter()).inc()
    (size,) = [m for m, variables in reported(registry, "size") if variables == OVERFLOW]
    registry.close(5_000)

    assert isinstance(size, Histogram)
    assert size.snapshot().count == 1

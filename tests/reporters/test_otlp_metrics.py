"""Metrics over OTLP: names, units, kinds, temporality, and what a collector that is away costs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from spark_events_otlp.factory import OtlpMetricReporterFactory
from spark_events_otlp.metric_reporter import OtlpMetricReporter
from spark_events_prometheus.reporter import SeriesReporter

from spark_events.api import (
    ApplicationInfo,
    Counter,
    Gauge,
    Histogram,
    Meter,
    Metric,
    PartlyRefused,
    Refused,
    ReporterConfig,
    RetryLater,
)
from spark_events.api.wrong_values import counts
from spark_events.runtime.registry import Registry
from spark_events.runtime.scope import ScopeGroup
from tests.support.collector import Collector, attributes_of
from tests.support.otlp_backend import Answer, Backend
from tests.support.waiting import http_get, wait_until

PREFIX = "spark.metrics.reporter.otel."


def reporter(endpoint: str, protocol: str = "http", **options: str) -> OtlpMetricReporter:
    values = {"exporter.endpoint": endpoint, "exporter.protocol": protocol}
    values |= {name.replace("_", "."): value for name, value in options.items()}
    config = ReporterConfig(PREFIX, values, ApplicationInfo("orders-app", "app-1"))
    return OtlpMetricReporterFactory().create(config)


def group(*logical: str, **variables: str) -> ScopeGroup:
    return ScopeGroup(Registry(()), ("spark", *logical), (), variables, {})


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    yield made
    made.close()


def points(backend: Backend, name: str) -> list[Any]:
    """Return the points of a metric, of all requests that were taken, in order."""
    metrics = [
        metric
        for request in backend.taken_metrics
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
    ]
    return [point for metric in metrics for point in getattr(metric, metric.WhichOneof("data")).data_points]


@pytest.mark.collector
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_the_collector_has_what_prometheus_would(collector: Collector, protocol: str) -> None:
    """By way of a collector, Prometheus finds the same names, labels and values as without one."""
    of_query = group("query", app_name=f"by-{protocol}", query_name="orders")
    histogram = Histogram([100, 1_000], "ms", "How long it took.")
    for value in (50, 500, 5_000):
        histogram.update(value)
    counter, meter = Counter("{row}", "Rows."), Meter(unit="By", description="Bytes.")
    counter.inc(7)
    meter.mark(12)
    metrics: dict[str, Metric] = {
        "inputRows": counter,
        "inputBytes": meter,
        "checkpointDuration": histogram,
        "lastCheckpointAge": Gauge(lambda: 1_500, "ms"),
        "stateMemory": Gauge(lambda: 2**40, "By"),
        "inputRate": Gauge(lambda: 2.5, "{row}/s"),
        "load": Gauge(lambda: 0.25, "1"),
        "numRestarts": Gauge(lambda: 3),
        "unknown": Gauge(lambda: None, "ms"),
    }
    sent, served = reporter(getattr(collector, protocol), protocol), SeriesReporter()
    for name, metric in metrics.items():
        for each in (sent, served):
            each.notify_of_added_metric(metric, name, of_query)
    sent.report()

    def scraped() -> dict[str, float]:
        page = http_get(f"{collector.prometheus}/metrics")
        return _samples([line for line in page.splitlines() if f"by-{protocol}" in line])

    direct = [line for line in served.render().decode().splitlines() if "app_name" in line]
    wait_until(lambda: len(scraped()) >= len(direct), "the collector serves them")
    found = scraped()
    sent.close()
    assert found == _samples(direct)

    def mine() -> list[dict[str, Any]]:
        return [m for m in collector.metrics() if m["resource"].get("service.name") == "orders-app"]

    units = {m["name"]: m.get("unit") for m in wait_until(mine, "the collector's file has them")}
    assert units["spark.query.last_checkpoint_age"] == "s"
    assert units["spark.query.state_memory"] == "By"
    assert units["spark.query.input_rows"] == "{row}"
    assert units["spark.query.input_rate"] == "{row}/s"


def _samples(lines: list[str]) -> dict[str, float]:
    """Return the samples of text lines, without the labels that a collector adds."""
    found = {}
    for line in lines:
        sample, value = line.rsplit(" ", 1)
        name, labels = re.fullmatch(r"(\w+)\{(.*)\}", sample).groups()  # type: ignore[union-attr]
        pairs = [pair for pair in re.findall(r'(\w+)="([^"]*)"', labels) if not _added(pair[0])]
        shown = ",".join(f"{key}={float(v) if key == 'le' else v}" for key, v in sorted(pairs))
        found[f"{name}{{{shown}}}"] = float(value)
    return found


def _added(label: str) -> bool:
    return label in ("job", "instance", "exported_job", "exported_instance") or label.startswith("otel_scope")


def test_cumulative_sums_say_since_when(backend: Backend) -> None:
    """The start of a sum is when it came; values only grow; the resource says whose they are."""
    sending = reporter(backend.http)
    counter = Counter()
    sending.notify_of_added_metric(counter, "rows", group("query", query_name="q"))
    for _ in range(2):
        counter.inc(5)
        sending.report()
    sending.close()
    first, second = points(backend, "spark.query.rows")

    assert (first.as_int, second.as_int) == (5, 10)
    assert first.start_time_unix_nano == second.start_time_unix_nano < first.time_unix_nano
    assert attributes_of({"attributes": [_pair(a) for a in first.attributes]}) == {"query_name": "q"}
    (message,) = [m for m in _metrics(backend, 0) if m.name == "spark.query.rows"]
    assert message.sum.is_monotonic
    assert message.sum.aggregation_temporality == 2  # cumulative
    resource = backend.taken_metrics[0].resource_metrics[0].resource
    assert {"service.name": "orders-app", "service.instance.id": "app-1"}.items() <= {
        a.key: a.value.string_value for a in resource.attributes
    }.items()


def _metrics(backend: Backend, number: int) -> list[Any]:
    return list(backend.taken_metrics[number].resource_metrics[0].scope_metrics[0].metrics)


def _pair(attribute: Any) -> dict[str, Any]:
    return {"key": attribute.key, "value": {"stringValue": attribute.value.string_value}}


@pytest.mark.parametrize("histogram", ["explicit", "exponential"])
def test_a_delta_that_was_not_taken_is_in_the_next(backend: Backend, histogram: str) -> None:
    """Over an outage the deltas add up to what was counted, and their times are without a gap."""
    sending = reporter(backend.http, exporter_temporality="delta", exporter_histogram=histogram)
    counter, times = Counter("ms"), Histogram([100, 1_000], "ms")
    for name, metric in (("busy", counter), ("took", times)):
        sending.notify_of_added_metric(metric, name, group("query"))
    for code in (200, 503, 503, 200, 200):
        counter.inc(1_000)
        times.update(400)
        times.update(0.0001 * code)
        backend.behave = lambda request, code=code: Answer(code)  # type: ignore[misc]
        if code == 200:
            sending.report()
        else:
            with pytest.raises(RetryLater):
                sending.report()
    sending.close()

    sums = points(backend, "spark.query.busy")
    assert [point.as_double for point in sums] == [1.0, 3.0, 1.0]
    assert [point.start_time_unix_nano for point in sums[1:]] == [p.time_unix_nano for p in sums[:-1]]
    took = points(backend, "spark.query.took")
    assert [point.count for point in took] == [2, 6, 2]
    assert sum(point.sum for point in took) == pytest.approx(2.0, rel=1e-3)
    if histogram == "explicit":
        assert [list(point.bucket_counts) for point in took] == [[1, 1, 0], [3, 3, 0], [1, 1, 0]]
        assert list(took[0].explicit_bounds) == [0.1, 1.0]
    else:
        for point in took:
            assert sum(point.positive.bucket_counts) == point.count
            base = 2.0 ** (2.0**-point.scale)
            top = base ** (point.positive.offset + len(point.positive.bucket_counts))
            assert 0.4 <= top * (1 + 1e-9) < 0.4 * base * base


def test_a_removed_series_stops(backend: Backend) -> None:
    """What it counted last is reported once more; a gauge is gone at once."""
    sending = reporter(backend.http, exporter_temporality="delta")
    counter, gauge = Counter(), Gauge(lambda: 1)
    sending.notify_of_added_metric(counter, "rows", group("job"))
    sending.notify_of_added_metric(gauge, "age", group("job"))
    counter.inc(2)
    sending.report()
    counter.inc(3)
    sending.notify_of_removed_metric(counter, "rows", group("job"))
    sending.notify_of_removed_metric(gauge, "age", group("job"))
    for _ in range(3):
        sending.report()
    sending.close()

    assert [point.as_int for point in points(backend, "spark.job.rows")] == [2, 3]
    assert len(points(backend, "spark.job.age")) == 1


def test_many_points_go_in_several_requests(backend: Backend) -> None:
    """No request has more than batch.size points, and all of them arrive once."""
    sending = reporter(backend.http, batch_size="100")
    for number in range(1_000):
        sending.notify_of_added_metric(Counter(), "rows", group("query", query_name=str(number)))
    sending.report()
    sending.close()

    names = [p.attributes[0].value.string_value for p in points(backend, "spark.query.rows")]
    assert sorted(names, key=int) == [str(number) for number in range(1_000)]
    assert len(backend.taken_metrics) == 11


def test_values_that_are_none_cost_nothing(backend: Backend) -> None:
    """NaN, infinity, no value, one that raises and a text: the others are reported, and errors counted."""
    sending = reporter(backend.http)
    values: dict[str, Any] = {
        "nan": float("nan"),
        "inf": float("inf"),
        "none": None,
        "text": "x",
        "good": 2.5,
    }
    for name, value in values.items():
        sending.notify_of_added_metric(Gauge(lambda value=value: value), name, group())
    sending.notify_of_added_metric(Gauge(lambda: 1 / 0), "raising", group())
    sending.notify_of_added_metric(Gauge(lambda: sys.exit(3)), "exiting", group())
    sending.notify_of_added_metric(Gauge(lambda: 1, "\ud800"), "odd", group(name="\ud800"))
    for _ in range(2):
        sending.report()
    sending.close()

    assert [m.name for m in _metrics(backend, 1)] == ["spark.reporter.read_errors", "spark.good", "spark.odd"]
    assert [p.as_int for p in points(backend, "spark.reporter.read_errors")] == [0, 3]


def test_what_is_refused_costs_its_request_alone(backend: Backend) -> None:
    """The other requests of the same report are sent, and the error says who refused."""
    sending = reporter(backend.http, batch_size="1")
    for name in ("one", "two", "three"):
        sending.notify_of_added_metric(Counter(), name, group())
    backend.behave = lambda request: Answer(400 if len(backend.requests) == 1 else 200)
    with pytest.raises(Refused, match="answered 400"):
        sending.report()
    assert len(backend.taken_metrics) == 3
    backend.behave = lambda request: Answer(rejected=2)
    with pytest.raises(PartlyRefused, match="as told"):
        sending.report()
    sending.close()


def test_of_two_alike_the_first_stays(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    """Series with the same attributes would be one to every backend."""
    sending = reporter(backend.http)
    first, second, before = Counter(), Counter(), counts()["series"]
    for metric in (first, second):
        sending.notify_of_added_metric(metric, "rows", group())
    first.inc(4)
    sending.notify_of_removed_metric(second, "rows", group())
    for _ in range(2):
        sending.report()
    sending.close()

    assert [point.as_int for point in points(backend, "spark.rows")] == [4, 4]
    assert "a duplicate series spark.rows{} is not reported" in caplog.text
    assert counts()["series"] - before == 1


@pytest.mark.parametrize(
    ("variable", "value", "delta", "exponential"),
    [
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "DELTA", True, False),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative", False, False),
        (
            "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
            "base2_exponential_bucket_histogram",
            False,
            True,
        ),
    ],
)
def test_opentelemetrys_variables(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, delta: bool, exponential: bool
) -> None:
    """They are read where the option is not given."""
    monkeypatch.setenv(variable, value)
    made = reporter("http://127.0.0.1:1")

    assert (made._form.delta, made._form.exponential) == (delta, exponential)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        (
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
            "banana",
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'banana' is ignored; expected cumulative, delta or "
            "lowmemory; cumulative is used",
        ),
        (
            "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
            "no_exponential",
            "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION: 'no_exponential' is ignored; expected "
            "explicit_bucket_histogram or base2_exponential_bucket_histogram; explicit_bucket_histogram is used",
        ),
    ],
)
def test_unknown_values_of_opentelemetrys_variables(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variable: str,
    value: str,
    said: str,
) -> None:
    """They are ignored with a warning, as its specification asks; not even that where the option is given."""
    monkeypatch.setenv(variable, value)
    made = reporter("http://127.0.0.1:1")

    assert (made._form.delta, made._form.exponential) == (False, False)
    assert [record.getMessage() for record in caplog.records] == [said]
    caplog.clear()
    reporter("http://127.0.0.1:1", **{"exporter.temporality": "delta", "exporter.histogram": "exponential"})
    assert not caplog.records

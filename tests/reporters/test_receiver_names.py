"""The metrics under the names of the collector's apachesparkreceiver, as reporters hand them on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse
from spark_events_otlp.factory import OtlpMetricReporterFactory
from spark_events_prometheus.reporter import SeriesReporter

from spark_events.api import (
    ApplicationInfo,
    EventBuilder,
    Gauge,
    Metric,
    MetricGroup,
    MetricReporter,
    ReporterConfig,
    SpanBuilder,
)
from spark_events.listeners.spark_receiver.names import (
    OF_EXECUTORS,
    OF_JOBS,
    OF_STAGES,
    OF_THE_DRIVER,
)
from spark_events.listeners.spark_receiver.series import ReceiverSeries
from spark_events.runtime.registry import Registry
from spark_events.runtime.scope import ScopeGroup
from tests.support.otlp_backend import Backend
from tests.support.receiver_table import METRICS, prometheus_name

GIVEN = {"driver": OF_THE_DRIVER, "executor": OF_EXECUTORS, "stage": OF_STAGES, "job": OF_JOBS}


class Into:
    """Hands the metrics of groups to a reporter."""

    def __init__(self, reporter: MetricReporter) -> None:
        self._reporter = reporter

    def add_metric(self, group: MetricGroup, name: str, metric: Metric) -> None:
        self._reporter.notify_of_added_metric(metric, name, group)

    def add_event(self, group: MetricGroup, event: EventBuilder) -> None: ...

    def add_span(self, group: MetricGroup, span: SpanBuilder) -> None: ...

    def remove_metric(self, group: MetricGroup, name: str, metric: Metric) -> None: ...


def show_all(reporter: MetricReporter) -> None:
    """Give a reporter all metrics of the receiver; each figure is 1,500."""
    for kind, metrics in GIVEN.items():
        of_kind = ReceiverSeries(metrics)
        of_kind.take({metric.source: 1_500 for metric in metrics}, "active" if kind == "stage" else "")
        of_kind.show(ScopeGroup(Into(reporter), ("spark", kind), (), {}, {}))


def own_gauge() -> tuple[ScopeGroup, str, Gauge]:
    """Return a metric of the framework's, which has a name of the receiver's and another unit."""
    return (
        ScopeGroup(Registry(()), ("spark", "stage"), (), {"app_name": "a"}, {}),
        "jvmGcTime",
        Gauge(lambda: 7, "s"),
    )


@pytest.mark.parametrize("parser", [parse, parse_openmetrics])
def test_prometheus_has_the_collectors_names(parser: Callable[[str], Iterable[Any]]) -> None:
    """A ms stays a ms, and its name says so; both formats are valid beside the framework's own metrics."""
    reporter = SeriesReporter()
    show_all(reporter)
    group, name, gauge = own_gauge()
    reporter.notify_of_added_metric(gauge, name, group)
    reporter.notify_of_added_metric(Gauge(lambda: 9, "By"), "diskSpilledBytes", group)
    samples = [
        sample
        for family in parser(reporter.render(parser is parse_openmetrics).decode())
        for sample in family.samples
        if "read_errors" not in sample.name
    ]
    theirs = {sample.name for sample in samples if "app_name" not in sample.labels}
    assert theirs == {prometheus_name(each) for each in METRICS}
    values = {sample.name: sample.value for sample in samples}
    assert values["spark_executor_time_milliseconds_total"] == 1_500
    assert values["spark_driver_jvm_cpu_time_nanoseconds_total"] == 1_500
    assert values["spark_stage_disk_spilled_bytes_total"] == 1_500
    assert values["spark_stage_disk_spilled_bytes"] == 9


def test_otlp_has_the_receivers_names_and_units() -> None:
    """A name that the framework has as well, with another unit, is a message of its own."""
    backend = Backend()
    options = {"exporter.endpoint": backend.http, "exporter.protocol": "http"}
    reporter = OtlpMetricReporterFactory().create(ReporterConfig("x.", options, ApplicationInfo("a", "a-1")))
    reporter.open()
    show_all(reporter)
    group, name, gauge = own_gauge()
    reporter.notify_of_added_metric(gauge, name, group)
    reporter.report()
    reporter.close()
    backend.close()
    sent = [
        metric
        for request in backend.taken_metrics
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name != "spark.reporter.read_errors"
    ]
    of_us = [metric for metric in sent if metric.unit == "s"]
    assert [(metric.name, metric.gauge.data_points[0].as_int) for metric in of_us] == [
        ("spark.stage.jvm_gc_time", 7)
    ]
    assert {
        metric.name: (metric.unit, metric.sum.is_monotonic) for metric in sent if metric not in of_us
    } == {name: (unit, monotonic) for name, (unit, monotonic, _) in METRICS.items()}
    (gc,) = (metric for metric in sent if metric.name == "spark.stage.jvm_gc_time" and metric.unit == "ms")
    assert gc.sum.data_points[0].as_int == 1_500

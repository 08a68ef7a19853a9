"""Our own reporters stand what a stranger's have to, by the same kit; and the kit finds what is wrong."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from spark_events_console.factory import ConsoleEventReporterFactory
from spark_events_file_log.factory import (
    FileLogEventReporterFactory,
    FileLogJobListenerFactory,
    FileLogSpanReporterFactory,
)
from spark_events_openlineage.factory import OpenLineageListenerFactory
from spark_events_otlp.factory import (
    OtlpEventReporterFactory,
    OtlpMetricReporterFactory,
    OtlpSpanReporterFactory,
)
from spark_events_prometheus.factory import PrometheusReporterFactory, PushgatewayReporterFactory

from spark_events.api import Event, EventReporter, EventReporterFactory, ReporterConfig, SendingReporter
from spark_events.api.listener_testing import JobListenerConformance
from spark_events.api.testing import (
    EventReporterConformance,
    MetricReporterConformance,
    SpanReporterConformance,
)

pytestmark = pytest.mark.usefixtures("own_temporary_folder")
AWAY = {"exporter.endpoint": "http://127.0.0.1:1", "exporter.timeout": "2s"}
AWAY_OVER_HTTP = {**AWAY, "exporter.protocol": "http"}


class TestConsole(EventReporterConformance):
    factory = ConsoleEventReporterFactory


class TestFileLogEvents(EventReporterConformance):
    factory = FileLogEventReporterFactory

    def make_options(self) -> Mapping[str, str]:
        return {"path": tempfile.mkdtemp()}


class TestFileLogSpans(SpanReporterConformance):
    factory = FileLogSpanReporterFactory

    def make_options(self) -> Mapping[str, str]:
        return {"path": tempfile.mkdtemp()}


class TestFileLogJobs(JobListenerConformance):
    factory = FileLogJobListenerFactory

    def make_options(self) -> Mapping[str, str]:
        return {"path": tempfile.mkdtemp()}


class TestOpenLineage(JobListenerConformance):
    factory = OpenLineageListenerFactory
    options = {"transport.type": "http", "transport.url": "http://127.0.0.1:1"}  # noqa: RUF012


class TestOpenLineageInAFile(JobListenerConformance):
    factory = OpenLineageListenerFactory

    def make_options(self) -> Mapping[str, str]:
        return {"transport.type": "file", "transport.path": f"{tempfile.mkdtemp()}/events"}


class TestOtlpEvents(EventReporterConformance):
    factory = OtlpEventReporterFactory
    options = AWAY


class TestOtlpEventsOverHttp(EventReporterConformance):
    factory = OtlpEventReporterFactory
    options = AWAY_OVER_HTTP


class TestOtlpSpans(SpanReporterConformance):
    factory = OtlpSpanReporterFactory
    options = AWAY_OVER_HTTP


class TestOtlpMetrics(MetricReporterConformance):
    factory = OtlpMetricReporterFactory
    options = AWAY_OVER_HTTP


class TestPrometheus(MetricReporterConformance):
    factory = PrometheusReporterFactory
    options = {"port": "0"}  # noqa: RUF012 - as in the docs

    def report(self, reporter: Any) -> None:
        reporter.render()


class TestPushgateway(MetricReporterConformance):
    factory = PushgatewayReporterFactory
    options = {"hostUrl": "http://127.0.0.1:1"}  # noqa: RUF012 - as in the docs


class _Webhook(EventReporter, SendingReporter):
    """Posts what it is given, whatever that is."""

    posted: ClassVar[list[int]] = []

    def open(self) -> None:
        pass

    def notify_of_added_event(self, event: Event) -> None:
        self.outbox.put(event.name.encode("utf-8", "replace"))

    def send(self, records: Sequence[bytes], context: bytes) -> None:
        self.posted.append(len(records))


class _WebhookFactory(EventReporterFactory):
    def create(self, config: ReporterConfig) -> EventReporter:
        return _Webhook()


def test_the_kit_posts_nothing_empty() -> None:
    """The runtime does not either, and no destination expects it."""

    class Kit(EventReporterConformance):
        factory = _WebhookFactory

    Kit().test_a_life_without_anything_to_report()
    assert _Webhook.posted == []
    Kit().test_a_life()
    assert _Webhook.posted == [3]


class _Base(EventReporter):
    go_on = threading.Event()

    def __init__(self, wrong: str) -> None:
        self._wrong = wrong
        self._closed = False

    def open(self) -> None:
        if self._wrong == "leaves a thread":
            threading.Thread(target=self.go_on.wait).start()

    def notify_of_added_event(self, event: Event) -> None:
        if self._wrong == "takes texts alone":
            ",".join(event.attributes.values())  # type: ignore[arg-type]
        if self._wrong == "takes UTF-8 alone":
            event.name.encode()

    def flush(self) -> None:
        if self._wrong == "raises in flush":
            raise OSError("no disk")

    def close(self) -> None:
        if self._closed and self._wrong == "closes once":
            raise RuntimeError("closed already")
        self._closed = True


def wrong(what: str) -> type[EventReporterConformance]:
    class Factory(EventReporterFactory):
        def create(self, config: ReporterConfig) -> EventReporter:
            return _Base(what)

    return type("Wrong", (EventReporterConformance,), {"factory": Factory})


@pytest.mark.parametrize(
    ("what", "test"),
    [
        ("closes once", "test_closing_what_was_never_opened"),
        ("leaves a thread", "test_it_ends_its_threads"),
        ("takes texts alone", "test_a_life"),
        ("takes UTF-8 alone", "test_odd_items"),
        ("raises in flush", "test_a_life"),
    ],
)
def test_the_kit_finds_what_is_wrong(what: str, test: str) -> None:
    """A reporter with one fault fails the test of that fault; one without passes."""
    _Base.go_on.clear()
    with pytest.raises((AssertionError, RuntimeError, TypeError, UnicodeEncodeError, OSError)):
        getattr(wrong(what)(), test)()
    _Base.go_on.set()
    getattr(wrong("nothing")(), test)()


@pytest.mark.parametrize(
    ("factory", "package", "extra"),
    [
        ("spark_events_prometheus.factory:PrometheusReporterFactory", "prometheus_client", "prometheus"),
        ("spark_events_prometheus.factory:PushgatewayReporterFactory", "prometheus_client", "prometheus"),
        ("spark_events_otlp.factory:OtlpEventReporterFactory", "grpc", "otlp"),
        ("spark_events_otlp.factory:OtlpSpanReporterFactory", "opentelemetry", "otlp"),
        ("spark_events_otlp.factory:OtlpMetricReporterFactory", "opentelemetry", "otlp"),
    ],
)
def test_a_missing_package_names_its_extra(factory: str, package: str, extra: str) -> None:
    """One sentence says what to install; the factory itself, and its options, are there without it."""
    module, name = factory.split(":")
    code = f"""
import sys
sys.modules[{package!r}] = None
from spark_events.api import MissingExtraError, ReporterConfig
from {module} import {name} as Factory
assert Factory().options
try:
    Factory().create(ReporterConfig(values={{"hostUrl": "http://h"}}))
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert f"pip install 'spark-events[{extra}]'" in done.stdout, done.stderr
    assert package in done.stdout

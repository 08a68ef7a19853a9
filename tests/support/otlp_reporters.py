"""OTLP reporters as the runtime would use them."""

from __future__ import annotations

from spark_events_otlp.factory import OtlpEventReporterFactory

from spark_events.api import (
    ApplicationInfo,
    Event,
    ReporterConfig,
    SendingReporter,
)


def config(endpoint: str, protocol: str = "grpc", **options: str) -> ReporterConfig:
    values = {"exporter.endpoint": endpoint, "exporter.protocol": protocol}
    values |= {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return ReporterConfig("spark.events.reporter.otel.", values, ApplicationInfo("my-app", "app-1", "2"))


def outbox_of(reporter: SendingReporter) -> list[bytes]:
    """Give a reporter an outbox that a test can look into."""
    records: list[bytes] = []
    reporter.outbox = Keeping(records)
    return records


class Keeping:
    def __init__(self, records: list[bytes]) -> None:
        self.put = records.append


def send_one(conf: ReporterConfig, event: Event | None = None) -> None:
    """Send one event, as the runtime would."""
    send(conf, 1, event)


def send(conf: ReporterConfig, count: int, event: Event | None = None) -> None:
    """Send an event so many times in one request, as the runtime would."""
    reporter = OtlpEventReporterFactory().create(conf)
    records = outbox_of(reporter)
    for _ in range(count):
        reporter.notify_of_added_event(event or Event("id", "MyEvent", "scope", 1))
    try:
        reporter.send(records, reporter.context)
    finally:
        reporter.close()

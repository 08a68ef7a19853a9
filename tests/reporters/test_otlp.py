"""The OTLP reporters against the real collector, and against answers that it cannot be made to give."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from spark_events_otlp.factory import OtlpEventReporterFactory, OtlpSpanReporterFactory

from spark_events.api import (
    ApplicationInfo,
    ConfigError,
    Event,
    ReporterConfig,
    RetryLater,
    Severity,
    Span,
    SparkEventsError,
)
from tests.support import Collector, free_port, wait_until


def config(endpoint: str, protocol: str = "grpc", **options: str) -> ReporterConfig:
    values = {"exporter.endpoint": endpoint, "exporter.protocol": protocol}
    values |= {key.replace("__", "."): value for key, value in options.items()}
    return ReporterConfig("spark.events.reporter.otel.", values, ApplicationInfo("my-app", "app-1", "2"))


@pytest.mark.collector
@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_log_record(collector: Collector, protocol: str, compression: str) -> None:
    """An event is a log record with its name, times, severity, scope, attributes and resource."""
    name = f"MyEvent-{protocol}-{compression}"
    conf = config(
        getattr(collector, protocol),
        protocol,
        exporter__compression=compression,
        resource__attributes="team:payments",
        service__version="1.2",
    )
    attributes = {"n": 2**40, "f": 0.5, "b": True, "s": "ü\ud800", "big": 2**70}
    reporter = OtlpEventReporterFactory().create(conf)
    reporter.open()
    event = Event("id", name, "my.scope", 1_700_000_000_123, Severity.ERROR, "text", attributes, {"v": "w"})
    reporter.notify_of_added_event(event)
    reporter.flush()
    reporter.close()

    def mine() -> list[dict[str, object]]:
        return [record for record in collector.log_records() if record.get("eventName") == name]

    (record,) = wait_until(mine, "the record is written")
    expected = {"n": 2**40, "f": 0.5, "b": True, "s": "ü?", "big": str(2**70), "event.id": "id", "v": "w"}
    assert record["attributes"] == expected
    assert record["timeUnixNano"] == "1700000000123000000"
    assert record["severityNumber"] == 17
    assert record["severityText"] == "ERROR"
    assert record["body"] == {"stringValue": "text"}
    assert record["scope"] == "my.scope"
    resource = record["resource"]
    assert isinstance(resource, dict)
    assert (
        resource.items()
        >= {
            "service.name": "my-app",
            "service.version": "1.2",
            "service.instance.id": "app-1/2",
            "team": "payments",
            "telemetry.sdk.language": "python",
        }.items()
    )


@pytest.mark.collector
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_span(collector: Collector, protocol: str) -> None:
    """A span keeps its ids, its parent, its times and its status."""
    reporter = OtlpSpanReporterFactory().create(config(getattr(collector, protocol), protocol))
    name = f"MySpan-{protocol}"
    span = Span.builder("my.scope", name).set_times_ms(5, 9).set_ids("ab" * 16, "cd" * 8, "ef" * 8)
    reporter.notify_of_added_span(span.set_error("broken").set_attribute("n", 1).build({}))
    reporter.flush()
    reporter.close()
    (found,) = wait_until(lambda: [s for s in collector.spans() if s["name"] == name], "the span is written")

    assert (found["traceId"], found["spanId"], found["parentSpanId"]) == ("ab" * 16, "cd" * 8, "ef" * 8)
    assert (found["startTimeUnixNano"], found["endTimeUnixNano"]) == ("5000000", "9000000")
    assert found["status"] == {"message": "broken", "code": 2}


@pytest.mark.collector
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_probe(collector: Collector, protocol: str) -> None:
    """A probe says what answered, and raises where nobody does."""
    factory = OtlpEventReporterFactory()

    assert factory.probe(config(getattr(collector, protocol), protocol)).endswith("answered")
    with pytest.raises(RetryLater):
        factory.probe(config(f"http://127.0.0.1:{free_port()}", protocol))


@pytest.fixture
def answering() -> Iterator[Callable[[int, bytes, dict[str, str]], tuple[str, list[bytes]]]]:
    """Serve one fixed answer over HTTP; a real collector gives none of these when asked to."""
    servers: list[HTTPServer] = []

    def start(code: int, body: bytes, headers: dict[str, str]) -> tuple[str, list[bytes]]:
        bodies: list[bytes] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(code)
                for key, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", bodies

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("code", [429, 502, 503, 504])
def test_try_again(answering, code: int) -> None:  # type: ignore[no-untyped-def]
    """What asks for a later try keeps the records, and says for how long to wait."""
    endpoint, bodies = answering(code, b"", {"Retry-After": "7"})
    reporter = OtlpEventReporterFactory().create(config(endpoint, "http"))
    reporter.notify_of_added_event(Event("id", "MyEvent", "scope", 1))
    for _ in range(2):
        with pytest.raises(RetryLater, match=str(code)) as caught:
            reporter.flush()
        assert caught.value.after_ms == 7_000
    reporter.close()

    assert len(bodies) == 2
    assert bodies[0] == bodies[1]
    assert ExportLogsServiceRequest.FromString(bodies[0]).resource_logs


@pytest.mark.parametrize("code", [400, 401, 404, 500])
def test_never(answering, code: int) -> None:  # type: ignore[no-untyped-def]
    """What will never be taken is an error once, and does not stand in the way of the next."""
    endpoint, bodies = answering(code, b"", {})
    reporter = OtlpEventReporterFactory().create(config(endpoint, "http"))
    reporter.notify_of_added_event(Event("id", "MyEvent", "scope", 1))
    with pytest.raises(SparkEventsError, match=str(code)) as caught:
        reporter.flush()
    reporter.flush()
    reporter.close()

    assert not isinstance(caught.value, RetryLater)
    assert len(bodies) == 1


def test_partial_success_is_read(answering) -> None:  # type: ignore[no-untyped-def]
    """A 200 that refuses records is no success."""
    answer = ExportLogsServiceResponse()
    answer.partial_success.rejected_log_records = 3
    answer.partial_success.error_message = "too old"
    endpoint, _ = answering(200, answer.SerializeToString(), {})
    reporter = OtlpEventReporterFactory().create(config(endpoint, "http"))
    reporter.notify_of_added_event(Event("id", "MyEvent", "scope", 1))
    with pytest.raises(SparkEventsError, match=r"refused 3 record\(s\): too old"):
        reporter.flush()
    reporter.close()


@pytest.mark.parametrize("endpoint", ["localhost:4317", "ftp://x", "http://", "http://x:99999", "nonsense"])
def test_wrong_endpoint(endpoint: str) -> None:
    """An endpoint that is no URL is refused with an example."""
    with pytest.raises(
        ConfigError, match=r"exporter\.endpoint: .* expected a URL such as http://localhost:4317"
    ):
        OtlpEventReporterFactory().create(config(endpoint))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_missing_certificate_fails_closed(protocol: str) -> None:
    """A certificate that is not there does not mean the system's authorities."""
    with pytest.raises(ConfigError, match=r"exporter\.certificate: '/nowhere\.pem' is not allowed"):
        OtlpEventReporterFactory().create(config("https://x", protocol, exporter__certificate="/nowhere.pem"))


def test_headers_are_sent_and_not_shown(answering, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """A header's value comes from the environment, goes to the wire, and is in no error."""
    monkeypatch.setenv("TOKEN", "s3cr3t")
    endpoint, _ = answering(401, b"", {})
    reporter = OtlpEventReporterFactory().create(
        config(endpoint, "http", exporter__headers="x-token:env:TOKEN")
    )
    reporter.notify_of_added_event(Event("id", "MyEvent", "scope", 1))
    with pytest.raises(SparkEventsError) as caught:
        reporter.flush()

    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in repr(vars(reporter._transport))


def test_service_name_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SERVICE_NAME names the service, unless the configuration does."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from-env")
    from spark_events_otlp.resource import resource_from

    def name(**options: str) -> str:
        message = resource_from(config("http://x", **options))
        return next(a.value.string_value for a in message.attributes if a.key == "service.name")

    assert name() == "from-env"
    assert name(service__name="configured") == "configured"

"""The OTLP reporters against the real collector, and against answers that it cannot be made to give."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ScopeLogs
from spark_events_otlp.connection import transport_from
from spark_events_otlp.encode import span_message
from spark_events_otlp.factory import OtlpEventReporterFactory, OtlpSpanReporterFactory
from spark_events_otlp.grpc_import import grpc
from spark_events_otlp.signals import LOGS, field

from spark_events.api import (
    ApplicationInfo,
    ConfigError,
    Event,
    PartlyRefused,
    Refused,
    ReporterConfig,
    RetryLater,
    Severity,
    Span,
)
from spark_events.api.toolkit.http_once import retry_after_ms
from tests.support.collector import Collector
from tests.support.otlp_backend import Answer, Backend
from tests.support.otlp_reporters import config, outbox_of, send, send_one
from tests.support.raw_http import DRIPS, dripping, raw_http
from tests.support.raw_http2 import raw_http2
from tests.support.waiting import free_port, wait_until


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
    event = Event("id", name, "my.scope", 1_700_000_000_123, Severity.ERROR, "text", attributes, {"v": "w"})
    send_one(conf, event)

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
    records = outbox_of(reporter)
    reporter.notify_of_added_span(span.set_error("broken").set_attribute("n", 1).build({}))
    reporter.send(records, reporter.context)
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


def test_nobody_listens() -> None:
    """That is no answer."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RetryLater) as caught:
        OtlpEventReporterFactory().probe(config(url, "grpc"))

    assert str(caught.value) == f"{url} (grpc): connection refused; is a collector running there?"


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Answers as it is told; a real collector gives none of these answers when asked to."""
    running = Backend()
    yield running
    running.close()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("code", [429, 503])
def test_try_again(backend: Backend, code: int, protocol: str) -> None:
    """What asks for a later try is tried again, forever, and after the pause that it asks for."""
    backend.behave = lambda request: Answer(code, retry_after_s=7)
    with pytest.raises(RetryLater) as caught:
        send_one(config(getattr(backend, protocol), protocol))

    assert caught.value.after_ms == 7_000
    assert caught.value.tries is None


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_never(backend: Backend, protocol: str) -> None:
    """A bad request is refused for good."""
    backend.behave = lambda request: Answer(400)
    with pytest.raises(Refused, match=r"400|INVALID_ARGUMENT"):
        send_one(config(getattr(backend, protocol), protocol))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_unclear(backend: Backend, protocol: str) -> None:
    """An internal error is tried again, but not forever: the record itself may be the cause."""
    backend.behave = lambda request: Answer(500)
    with pytest.raises(RetryLater) as caught:
        send_one(config(getattr(backend, protocol), protocol))

    assert caught.value.tries


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_who_is_not_let_in_keeps_its_records(backend: Backend, protocol: str) -> None:
    """A token that is out of date is not a fault of the records: they wait for a new one."""
    backend.behave = lambda request: Answer(401)
    with pytest.raises(RetryLater, match=r"see exporter\.headers") as caught:
        send_one(config(getattr(backend, protocol), protocol))

    assert caught.value.tries is None


@pytest.mark.parametrize(
    "answer",
    [
        Answer(302, headers={"Location": "/login"}),
        Answer(200, body=b"<html>log in first</html>"),
        Answer(200, headers={"Content-Type": "text/html"}),
        Answer(404),
    ],
    ids=["redirect", "page", "empty-page", "not-found"],
)
def test_something_that_is_no_collector(backend: Backend, answer: Answer) -> None:
    """A login page with 200 is not an acknowledgement, and a redirect is not followed."""
    backend.behave = lambda request: answer
    with pytest.raises(RetryLater, match=r"see exporter\.endpoint"):
        send_one(config(backend.http, "http"))

    assert len(backend.requests) == 1


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_partial_success_is_read(backend: Backend, protocol: str) -> None:
    """A success that refuses records says how many; more than were sent cannot be."""
    backend.behave = lambda request: Answer(rejected=3)
    with pytest.raises(PartlyRefused, match="as told") as caught:
        send(config(getattr(backend, protocol), protocol), 4)
    with pytest.raises(PartlyRefused, match="as told") as more:
        send(config(getattr(backend, protocol), protocol), 2)

    assert caught.value.count == 3
    assert more.value.count == 2


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_success_that_refuses_less_than_nothing(backend: Backend, protocol: str) -> None:
    backend.behave = lambda request: Answer(rejected=-5)
    send_one(config(getattr(backend, protocol), protocol))

    assert len(backend.taken) == 1


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_long_reason_is_cut(backend: Backend, protocol: str) -> None:
    """It would be in the log, and beside each record of the request."""
    backend.behave = lambda request: Answer(rejected=1, reason="A" * 900_000)
    with pytest.raises(PartlyRefused) as caught:
        send_one(config(getattr(backend, protocol), protocol))

    assert 1_000 < len(str(caught.value)) < 1_100


def test_retry_after_as_a_date() -> None:
    """Retry-After may be a date; nonsense is as if it were not there."""
    soon = formatdate(time.time() + 60, usegmt=True)

    assert 50_000 < (retry_after_ms({"Retry-After": soon}) or 0) <= 60_000
    assert retry_after_ms({"Retry-After": "Sat, 01 Jan 2000 00:00:00 GMT"}) == 0
    assert retry_after_ms({"Retry-After": "soon"}) is None
    assert retry_after_ms({}) is None


@pytest.mark.parametrize(
    ("protocol", "packed", "compression"),
    [
        ("grpc", True, "none"),
        ("grpc", True, "gzip"),
        ("grpc", False, "none"),
        ("grpc", False, "gzip"),
        ("http", False, "none"),
    ],
)
def test_an_answer_that_is_too_large_is_one(
    backend: Backend, protocol: str, packed: bool, compression: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Who answers has taken the records, so they are neither refused nor sent again.

    Where both are packed, gRPC does not say which of them is too large: sent as it is, the request tells.
    """
    backend.behave = lambda request: Answer(rejected=1, reason="A" * 5_000_000, packed=packed)
    send_one(config(getattr(backend, protocol), protocol, exporter__compression=compression))

    assert len(backend.taken) == 1 + (packed and compression == "gzip")
    assert "its answer is too large to be read" in caplog.text


class Garbage(grpc.GenericRpcHandler):
    def service(self, details: object) -> object:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\xff" * 100)


def test_what_speaks_grpc_and_is_no_collector(caplog: pytest.LogCaptureFixture) -> None:
    """It is tried again, as over HTTP, and leaves no traceback for each answer."""
    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Garbage()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with pytest.raises(RetryLater, match="but not with OTLP") as caught:
        send_one(config(f"http://127.0.0.1:{port}", "grpc"))
    server.stop(0).wait()

    assert caught.value.tries is None
    assert not caplog.text


OF_GRPC = [(":status", "200"), ("content-type", "application/grpc")]


@pytest.mark.parametrize(
    ("fields", "body", "reset"),
    [
        ([(":status", "302"), ("location", "https://login.example.org/")], b"", -1),
        ([(":status", "200"), ("content-type", "text/html")], b"<html>log in first</html>", -1),
        ([(":status", "405")], b"", -1),
        (OF_GRPC, b"", 2),
        ([*OF_GRPC, ("grpc-status", "abc")], None, -1),
        ([*OF_GRPC, ("x", "y")], None, -1),
        ([*OF_GRPC, ("grpc-status", "0")], None, -1),
    ],
    ids=[
        "a redirect",
        "a page",
        "a method",
        "a reset",
        "an odd status",
        "no status",
        "success, and no message",
    ],
)
def test_what_answers_for_a_collector_costs_no_records(
    fields: list[tuple[str, str]], body: bytes | None, reset: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A proxy has not seen the records, as over HTTP."""
    with (
        raw_http2(fields, body, reset) as url,
        pytest.raises(RetryLater, match=r"see exporter\.endpoint") as caught,
    ):
        send_one(config(url, "grpc"))

    assert caught.value.tries is None
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(("status", "smaller"), [("413", True), ("500", False)])
def test_a_proxy_that_breaks_on_a_request(status: str, smaller: bool) -> None:
    with raw_http2([(":status", status)]) as url, pytest.raises(RetryLater) as caught:
        send_one(config(url, "grpc"))

    assert caught.value.tries
    assert caught.value.smaller == smaller


class Relay(grpc.GenericRpcHandler):
    """Says what a call of its own has failed of."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self._code, self._details = code, details

    def service(self, details: object) -> object:
        def relayed(request: bytes, context: grpc.ServicerContext) -> bytes:
            context.abort(self._code, self._details)
            raise AssertionError("abort() raises")

        return grpc.unary_unary_rpc_method_handler(relayed)


@pytest.mark.parametrize(
    ("code", "details", "expected"),
    [
        ("RESOURCE_EXHAUSTED", "CLIENT: Received message larger than max (5000000 vs. 4194304)", Refused),
        ("UNAVAILABLE", "CLIENT: Sent message larger than max (5000000 vs. 4194304)", RetryLater),
        ("INTERNAL", "Decompressed message larger than max", RetryLater),
        ("RESOURCE_EXHAUSTED", "the queue is larger than max, try later", RetryLater),
    ],
)
def test_what_a_gateway_relays_is_no_success(code: str, details: str, expected: type[Exception]) -> None:
    """It has nearly the words of gRPC here, where an answer is too large to be read."""
    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Relay(grpc.StatusCode[code], details)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with pytest.raises(expected):
        send_one(config(f"http://127.0.0.1:{port}", "grpc"))
    server.stop(0).wait()


@pytest.mark.parametrize("place", [b"http://portal/?u=J\xfcrgen", b"http://[::1"])
def test_a_redirect_to_an_odd_place(place: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """It is read, even where it is not followed."""
    head = b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % place
    with raw_http([head]) as (url, _), pytest.raises(RetryLater, match=r"see exporter\.endpoint") as caught:
        send_one(config(url, "http"))

    assert caught.value.tries is None
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_request_that_is_too_large_is_refused(compression: str) -> None:
    """It is the same error as of an answer, but for the side that it happens on."""
    server = grpc.server(futures.ThreadPoolExecutor(1), options=[("grpc.max_receive_message_length", 1_000)])
    add_LogsServiceServicer_to_server(LogsServiceServicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with pytest.raises(Refused, match="larger than max"):
        send(config(f"http://127.0.0.1:{port}", "grpc", exporter__compression=compression), 20)
    server.stop(0).wait()


@pytest.mark.parametrize("what", DRIPS)
def test_an_answer_that_drips(what: str) -> None:
    """``exporter.timeout`` is that of the whole answer; then fewer records are sent at once."""
    with dripping(what) as url, pytest.raises(RetryLater, match=r"was not there within 0\.3 s") as caught:
        send_one(config(url, "http", exporter__timeout="300ms"))

    assert caught.value.smaller


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_reader_that_hangs(backend: Backend, protocol: str) -> None:
    """After exporter.timeout the request is given up, and a smaller one may do."""
    backend.behave = lambda request: Answer(delay_s=1.5)
    with pytest.raises(RetryLater) as caught:
        send_one(config(getattr(backend, protocol), protocol, exporter__timeout="200ms"))

    assert caught.value.smaller


def test_order_and_scopes_are_kept(backend: Backend) -> None:
    """Records of several scopes go out in the order in which they came."""
    reporter = OtlpEventReporterFactory().create(config(backend.grpc))
    records = outbox_of(reporter)
    for number, scope in enumerate("aabba"):
        reporter.notify_of_added_event(Event(str(number), "MyEvent", scope, 1))
    reporter.send(records, reporter.context)
    reporter.close()

    assert backend.taken == ["0", "1", "2", "3", "4"]
    assert reporter.readable(records[2])["scope"] == "b"
    assert reporter.readable(records[2])["eventName"] == "MyEvent"


def test_an_attribute_wins_over_a_variable_of_its_name() -> None:
    """Each key is there once."""
    reporter = OtlpEventReporterFactory().create(config("http://localhost:4317"))
    records = outbox_of(reporter)
    attributes = {"a": "attribute", "n": 1, "long": "x" * 100}
    variables = {"a": "variable", "b": "variable"}
    reporter.notify_of_added_event(Event("1", "MyEvent", "s", 1, attributes=attributes, variables=variables))
    reporter.notify_of_added_event(Event("2", "MyEvent", "s", 1, attributes={"n": True}, variables=variables))
    reporter.close()
    found = [
        {pair["key"]: next(iter(pair["value"].values())) for pair in reporter.readable(record)["attributes"]}
        for record in records
    ]

    assert [len(reporter.readable(record)["attributes"]) for record in records] == [5, 4]
    assert found[0] == {"event.id": "1", "a": "attribute", "b": "variable", "n": "1", "long": "x" * 100}
    assert found[1] == {"event.id": "2", "a": "variable", "b": "variable", "n": True}


@pytest.mark.parametrize("ids", [("ab", "cd"), ("0" * 32, "x" * 16), ("0" * 32, "1" * 16, "2")])
def test_a_span_with_wrong_ids_is_not_sent(ids: tuple[str, ...]) -> None:
    """A collector would refuse all that is sent with it."""
    with pytest.raises(ValueError, match="hexadecimal"):
        span_message(Span.builder("s", "S").set_ids(*ids).build({}))


def test_a_record_that_is_no_message(backend: Backend) -> None:
    """What a destination cannot even parse is not tried forever."""
    reporter = OtlpEventReporterFactory().create(config(backend.grpc))
    with pytest.raises(RetryLater) as caught:
        reporter.send([b"scope\0\xff\xff"], b"")
    reporter.close()

    assert caught.value.tries


@given(st.integers(0, 300_000))
def test_a_field_around_a_message(size: int) -> None:
    """It is what protobuf writes itself, of whatever size."""
    message = LogRecord(event_name="x" * size)

    assert field(2, message.SerializeToString()) == ScopeLogs(log_records=[message]).SerializeToString()


@pytest.mark.parametrize("endpoint", ["localhost:4317", "ftp://x", "http://", "http://x:99999", "nonsense"])
def test_wrong_endpoint(endpoint: str) -> None:
    """An endpoint that is not a URL is refused with an example."""
    with pytest.raises(
        ConfigError, match=r"exporter\.endpoint: .* expected a URL such as http://localhost:4317"
    ):
        OtlpEventReporterFactory().create(config(endpoint))


@pytest.mark.parametrize("endpoint", ["localhost:4317?token=s3cr3t", "http://u:s3/cr3t@h?a=s3cr3t"])
def test_a_wrong_endpoint_with_a_secret(endpoint: str) -> None:
    """Neither a user nor a query is shown."""
    with pytest.raises(ConfigError, match=r"\*{6}") as caught:
        OtlpEventReporterFactory().create(config(endpoint))

    assert "s3" not in str(caught.value)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_query_is_sent_and_not_shown(backend: Backend, protocol: str) -> None:
    """A token in a URL goes to the wire, behind the signal's path, and is in no error."""
    url = f"{getattr(backend, protocol)}?token=s3cr3t"
    reporter = OtlpEventReporterFactory().create(config(url, protocol))
    records = outbox_of(reporter)
    reporter.notify_of_added_event(Event("id", "MyEvent", "scope", 1))
    reporter.send(records, b"")
    assert len(backend.requests) == 1
    backend.behave = lambda request: Answer(401)
    with pytest.raises(RetryLater) as caught:
        reporter.send(records, b"")
    reporter.close()

    assert "s3cr3t" not in f"{caught.value} {reporter.destination}"
    assert "answered" in str(caught.value)


def test_a_query_is_not_shown_while_nobody_answers() -> None:
    reporter = OtlpEventReporterFactory().create(config("http://127.0.0.1:1/?token=s3cr3t", "http"))
    with pytest.raises(RetryLater, match="cannot be reached") as caught:
        reporter.send([b""], b"")

    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_missing_certificate_fails_closed(protocol: str) -> None:
    """A certificate that is not there does not mean the system's authorities."""
    with pytest.raises(ConfigError, match=r"exporter\.certificate: '/nowhere\.pem' is not valid"):
        OtlpEventReporterFactory().create(config("https://x", protocol, exporter__certificate="/nowhere.pem"))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_headers_are_sent_and_not_shown(
    backend: Backend, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header's value comes from the environment or a file, goes to the wire, and is in no error."""
    monkeypatch.setenv("TOKEN", "s3cr3t")
    file = tmp_path / "token"
    file.write_text("old\n")
    headers = f"X-Token:env:TOKEN,x-renewed:file:{file}"
    conf = config(getattr(backend, protocol), protocol, exporter__headers=headers)
    reporter = OtlpEventReporterFactory().create(conf)
    file.write_text("new\n")
    records = outbox_of(reporter)
    reporter.notify_of_added_event(Event("id", "MyEvent", "scope", 1))
    backend.behave = lambda request: Answer(401)
    with pytest.raises(RetryLater) as caught:
        reporter.send(records, b"")
    reporter.close()

    assert backend.requests[0].headers["x-token"] == "s3cr3t"
    assert backend.requests[0].headers["x-renewed"] == "new"
    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in repr(vars(vars(reporter)["_transport"]))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("value", ["s3cr3t\nof two lines", "sécret"])
def test_a_header_that_cannot_be_sent_costs_no_records(
    backend: Backend, protocol: str, value: str, tmp_path: Path
) -> None:
    """As no other wrong token does: they are sent once its file is mended. Nothing is said of a destination."""
    file = tmp_path / "token"
    file.write_text(value)
    conf = config(getattr(backend, protocol), protocol, exporter__headers=f"x-token:file:{file}")
    reporter = OtlpEventReporterFactory().create(conf)
    records = outbox_of(reporter)
    reporter.notify_of_added_event(Event("id", "MyEvent", "scope", 1))
    with pytest.raises(
        RetryLater, match=r"exporter\.headers: the value of 'x-token' has a line feed"
    ) as caught:
        reporter.send(records, b"")
    file.write_text("right")
    reporter.send(records, b"")
    reporter.close()

    assert caught.value.tries is None
    assert "answered" not in str(caught.value)
    assert "cr" not in str(caught.value)
    assert [request.headers["x-token"] for request in backend.requests] == ["right"]


def test_headers_of_the_environment(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_EXPORTER_OTLP_HEADERS counts where no headers are configured, and that of logs before it."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-a=1")
    send_one(config(backend.grpc))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "x-b=two%20words")
    send_one(config(backend.grpc))

    assert backend.requests[0].headers["x-a"] == "1"
    assert backend.requests[1].headers["x-b"] == "two words"


@pytest.mark.parametrize(
    ("variables", "options", "sent_to"),
    [
        ({}, {}, "grpc http://localhost:4317"),
        ({"PROTOCOL": "http/protobuf"}, {}, "http http://localhost:4318/v1/logs"),
        (
            {"ENDPOINT": "http://c:4318", "PROTOCOL": "HTTP/protobuf"},
            {},
            "http http://c:4318/v1/logs",
        ),
        (
            {"ENDPOINT": "http://c:4318/x", "LOGS_PROTOCOL": "http/protobuf"},
            {},
            "http http://c:4318/x/v1/logs",
        ),
        ({"LOGS_ENDPOINT": "http://c/own", "PROTOCOL": "http/protobuf"}, {}, "http http://c/own"),
        (
            {"ENDPOINT": "http://c:4317", "PROTOCOL": "http/protobuf"},
            {"protocol": "grpc"},
            "grpc http://c:4317",
        ),
        ({"PROTOCOL": "http/protobuf"}, {"endpoint": "http://mine:4317"}, "grpc http://mine:4317"),
        (
            {"LOGS_ENDPOINT": "http://c/own"},
            {"endpoint": "http://mine", "protocol": "http"},
            "http http://mine/v1/logs",
        ),
        ({"PROTOCOL": "http/json"}, {}, "grpc http://localhost:4317"),
    ],
)
def test_where_the_environment_sends(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variables: dict[str, str],
    options: dict[str, str],
    sent_to: str,
) -> None:
    """By OpenTelemetry's specification; its protocol goes with its endpoint."""
    for name, value in variables.items():
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    values = {f"exporter.{name}": value for name, value in options.items()}
    conf = ReporterConfig("spark.events.reporter.otel.", values, ApplicationInfo("my-app", "app-1"))

    transport = transport_from(conf, LOGS)

    kind = "http" if type(transport).__name__ == "HttpTransport" else "grpc"
    assert f"{kind} {vars(transport)['_endpoint'].url}" == sent_to
    transport.close()
    assert ("'http/json' is ignored" in caplog.text) == (variables.get("PROTOCOL") == "http/json")


def test_a_password_in_the_endpoint() -> None:
    """It would be shown in every message about the endpoint; the message does not show it."""
    with pytest.raises(ConfigError, match=r"exporter\.headers") as caught:
        OtlpEventReporterFactory().create(config("http://me:s3cr3t@collector:4317"))

    assert "s3cr3t" not in str(caught.value)


def test_service_name_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SERVICE_NAME names the service, unless the configuration does."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from-env")
    from spark_events_otlp.reporter import resource_from

    def name(**options: str) -> str:
        message = resource_from(config("http://x", **options))
        return next(a.value.string_value for a in message.attributes if a.key == "service.name")

    assert name() == "from-env"
    assert name(service__name="configured") == "configured"


FORKS = """
import subprocess, sys, threading
from spark_events_otlp.grpc_import import grpc

calls = [grpc.insecure_channel(sys.argv[1]).unary_unary("/nobody") for _ in range(4)]
over = threading.Event()

def call(one):
    while not over.is_set():
        try:
            one(b"", timeout=0.05)
        except grpc.RpcError:
            pass

threads = [threading.Thread(target=call, args=(one,)) for one in calls]
for thread in threads:
    thread.start()
for _ in range(100):
    subprocess.run(["/bin/true"], preexec_fn=lambda: None, check=True)
over.set()
for thread in threads:
    thread.join()
"""


def test_a_driver_starts_processes_beside_grpc() -> None:
    """PySpark starts its JVM by fork and exec: gRPC's handlers of fork would stop it, and say so."""
    command = [sys.executable, "-c", FORKS, f"127.0.0.1:{free_port()}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


NO_TLS = """
import socket, sys, threading
from spark_events_otlp.grpc_import import grpc

server = socket.create_server(("127.0.0.1", 0))

def answer():
    while True:
        connection, _ = server.accept()
        connection.recv(1_000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
        connection.close()

threading.Thread(target=answer, daemon=True).start()
channel = grpc.secure_channel(f"127.0.0.1:{server.getsockname()[1]}", grpc.ssl_channel_credentials())
try:
    channel.unary_unary("/nobody")(b"", timeout=20)
except grpc.RpcError as error:
    print(error.code().name)
"""


def test_what_grpc_itself_would_log() -> None:
    """A line for each handshake that fails, about one a second: our own warning says it once."""
    command = [sys.executable, "-c", NO_TLS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "UNAVAILABLE\n", "")

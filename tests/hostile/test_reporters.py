"""Every built-in reporter, with each hostile text and time: what it writes can be read by what it is for."""

from __future__ import annotations

import io
import json
import math
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from prometheus_client.parser import text_string_to_metric_families
from spark_events_console.reporter import ConsoleEventReporter, render
from spark_events_otlp.encode import log_record, span_message, split_scope

from spark_events.api import Counter, Event, Gauge, Histogram, JobStatus, Span
from spark_events.jobs.plan_records import STATEMENT_CREATED, STATEMENT_ENDED
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from tests.support.hostile_texts import NUMBERS, TEXTS, TIMES_MS, steering
from tests.support.told_jobs import Told
from tests.support.waiting import wait_until

MOMENT_MS = 1_795_132_800_000


def event_of(text: str, time_ms: int = MOMENT_MS) -> Any:
    builder = Event.builder(text, text or "Name").set_id(text).set_body(text).set_time_ms(time_ms)
    return builder.set_attribute(text, text).set_attribute("newJobStatus", JobStatus.FAILED.value)


def span_of(text: str, time_ms: int = MOMENT_MS) -> Any:
    builder = Span.builder(text, text or "Name").set_times_ms(time_ms, time_ms).set_error(text)
    return builder.set_attribute(text, text).add_event(text, time_ms, {text: text})


def registry_of(**conf: str) -> Registry:
    setups, errors = read_all_setups(
        {f"spark.{key.replace('__', '.').replace('_', '-')}": value for key, value in conf.items()}
    )
    assert not errors
    registry = Registry(setups)
    registry.start()
    assert registry.wait_opened(10_000) == []
    return registry


@pytest.mark.parametrize("name", TEXTS)
def test_file_log(tmp_path: Path, name: str) -> None:
    """A line of JSON for each, whatever is in it."""
    conf = {}
    for kind in ("events", "traces"):
        conf |= {
            f"{kind}__reporter__f__factory.class": "file_log",
            f"{kind}__reporter__f__path": str(tmp_path),
        }
    registry = registry_of(**conf)
    group = registry.root.add_group("application", TEXTS[name])
    group.add_event(event_of(TEXTS[name]))
    group.add_span(span_of(TEXTS[name]))
    registry.close(10_000)

    lines = [line for path in tmp_path.iterdir() for line in path.read_bytes().split(b"\n") if line]
    found = [json.loads(line) for line in lines]
    assert len(found) == 2
    whole = TEXTS[name].encode("utf-8", "replace").decode()
    assert {each["attributes"]["application"] for each in found} == {whole}


@pytest.mark.parametrize("time_ms", TIMES_MS)
def test_otlp_sends_no_time_that_cannot_be(time_ms: int) -> None:
    """0 is OTLP's word for a time that is not known; a receiver may keep ns in a signed number."""
    _, record = split_scope(log_record(event_of("x", time_ms).build({})))
    _, span = split_scope(span_message(span_of("x", time_ms).build({})))

    log, message = LogRecord.FromString(record), SpanMessage.FromString(span)
    times = [log.time_unix_nano, message.start_time_unix_nano, message.events[0].time_unix_nano]
    known = 0 <= time_ms <= (2**63 - 1) // 1_000_000
    assert times[1:] == [time_ms * 1_000_000 if known else 0] * 2
    assert times[0] == (time_ms * 1_000_000 if known else times[0])
    assert all(time < 2**63 for time in times)


@pytest.mark.parametrize("name", TEXTS)
def test_otlp(name: str) -> None:
    """A message that protobuf reads, with each text as UTF-8 can carry it."""
    _, record = split_scope(log_record(event_of(TEXTS[name]).build({"app_name": TEXTS[name]})))
    _, span = split_scope(span_message(span_of(TEXTS[name]).build({"app_name": TEXTS[name]})))

    whole = TEXTS[name].encode("utf-8", "replace").decode()
    for message in (LogRecord.FromString(record), SpanMessage.FromString(span)):
        attributes = {pair.key: pair.value.string_value for pair in message.attributes}
        assert attributes["app_name"] == whole


def test_prometheus() -> None:
    """One exposition with all texts as labels, names and descriptions, and all numbers as values."""
    conf = {"metrics__reporter__p__factory.class": "prometheus", "metrics__reporter__p__port": "0"}
    registry = registry_of(**conf)
    for number, text in enumerate(TEXTS.values()):
        group = registry.root.add_group("application", text).add_group(f"table {text}"[:200], text)
        group.register(f"{text or 'x'}"[:200], Gauge(lambda: 1, description=text))
        group.register(f"count{number}", Counter("1", text)).inc()
        group.register(f"took{number}", Histogram((1, 2), "ms", text)).update(1)
    odd = registry.root.add_group("odd")
    for number, value in enumerate(NUMBERS):
        odd.register(f"value{number}", Gauge(lambda value=value: value))  # type: ignore[misc]
    odd.register("the_last", Gauge(lambda: 1))
    (worker,) = registry.workers

    def exposition() -> str:
        text: str = urllib.request.urlopen(worker.destination, timeout=30).read().decode()
        return text if "the_last" in text else ""

    try:
        shown = wait_until(exposition, "the reporter has been told of all of them")
    finally:
        registry.close(10_000)

    families = list(text_string_to_metric_families(shown))
    labels = {sample.labels.get("application") for family in families for sample in family.samples}
    short = {text.encode("utf-8", "replace").decode() for text in TEXTS.values() if 0 < len(text) < 1_000}
    assert short <= labels
    assert len(shown) < 100_000
    values = [sample.value for family in families for sample in family.samples]
    assert all(isinstance(value, float) for value in values)
    assert any(math.isinf(value) for value in values)


@pytest.mark.parametrize("name", TEXTS)
def test_console(name: str) -> None:
    """One line, which steers no terminal."""
    line = render(event_of(TEXTS[name]).set_attribute("exception.type", TEXTS[name]).build({})).plain

    assert not steering(line)
    assert "\n" not in line


def test_console_shows_the_first_line_that_says_anything() -> None:
    """An event of your own may have a body of several lines, the first of them blank."""
    event = event_of("\n  loaded 3 files\nfrom x").build({})
    assert render(event).plain.rstrip().endswith(" loaded 3 files")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_console_on_a_stream_that_lacks_characters(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event is shown all the same; the stream, which is the application's, stays as it is."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, stream, io.TextIOWrapper(written, "ascii", write_through=True))
    ConsoleEventReporter(stream == "stderr").notify_of_added_event(event_of("grün \u2192 1").build({}))

    assert b" gr\\xfcn \\u2192 1" in written.getvalue()


@pytest.mark.parametrize("time_ms", TIMES_MS)
def test_console_with_a_time_that_cannot_be(time_ms: int) -> None:
    assert "Name" in render(event_of("Name", time_ms).build({})).plain


@pytest.mark.parametrize("name", [name for name in TEXTS if TEXTS[name].strip()])
@pytest.mark.parametrize("reporter", ["file_log", "openlineage"])
def test_lineage(tmp_path: Path, reporter: str, name: str) -> None:
    """The events of a job whose tables, columns, statement and exception are called so."""
    text = TEXTS[name]
    keys = {"transport.type": "file", "transport.path": str(tmp_path / "events.jsonl")}
    if reporter == "file_log":
        keys = {"path": str(tmp_path)}
    told = Told(s=reporter, **{f"__{reporter}__{key}": value for key, value in keys.items()})
    table = {"catalog": "spark_catalog", "database": text, "table": text}
    lineage = {
        "sources": [{"identity": {"paths": [f"/{text}"], "format": "parquet"}, "streaming": False}],
        "columns": [[0, text, "int"]],
        "sinks": [
            {
                "identity": {"paths": [f"/out/{text}"], "format": "parquet", "table": table},
                "modify": "INSERT",
                "columns": [[text, "int", 0]],
            }
        ],
        "groups": [{"0": 1}],
        "indirect": {},
    }
    told.record(STATEMENT_CREATED, executionId=1, lineage=lineage, sql=text)
    told.record(STATEMENT_ENDED, executionId=1, failure={"text": f"java.lang.X: {text}"})
    told.close()

    lines = [line for path in tmp_path.iterdir() for line in path.read_bytes().split(b"\n") if line]
    found = [json.loads(line) for line in lines]
    assert len(found) >= 3

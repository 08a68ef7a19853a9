"""Every source of records, with each hostile text: the ends arrive, and are bounded."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_events.listeners.long_texts import LONGEST, LONGEST_NAME, cut, whole_characters
from spark_events.sources.connect import _listener
from spark_events.sources.driver.bridge import DriverBridge
from spark_events.sources.event_log.reading.lines import LineSplitter
from spark_events.sources.record_json import load
from tests.support import spark_records as r
from tests.support.event_log_reading import Read, read_bytes
from tests.support.hostile_logs import application, log_of
from tests.support.hostile_texts import NUMBERS, TEXTS, TIMES_MS, nested
from tests.support.java_source import compile_java

MB = 1 << 20
FACTORY = """
package tests;

import org.apache.spark.scheduler.JobFailed;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import scala.Option;

/** Makes events whose texts py4j could not carry: it has no halves of surrogate pairs. */
public class HostileEvents {
    private final String text;

    public HostileEvents(String encoded, int times) {
        StringBuilder built = new StringBuilder();
        String[] units = encoded.split(" ");
        for (int n = 0; n < times; n++) {
            for (int i = 0; i < units.length; i++) {
                if (units[i].length() > 0) {
                    built.append((char) Integer.parseInt(units[i]));
                }
            }
        }
        text = built.toString();
    }

    public Object jobEnd(int job) {
        return new SparkListenerJobEnd(job, 1000L, new JobFailed(new RuntimeException(text)));
    }

    public Object jobEndOfManyFrames(int job, int frames) {
        StackTraceElement[] trace = new StackTraceElement[frames];
        for (int i = 0; i < frames; i++) {
            trace[i] = new StackTraceElement("com.shop.Recursion", "again", "Recursion.scala", i);
        }
        RuntimeException error = new RuntimeException(text);
        error.setStackTrace(trace);
        return new SparkListenerJobEnd(job, 1000L, new JobFailed(error));
    }

    public Object queryEnd(String id) {
        java.util.UUID uuid = java.util.UUID.fromString(id);
        return new StreamingQueryListener.QueryTerminatedEvent(uuid, uuid, Option.apply(text), Option.apply(text));
    }
}
"""


@pytest.fixture(scope="module")
def bridge(spark: Any) -> Iterator[DriverBridge]:
    found = DriverBridge(spark.sparkContext, 16 * MB, 1_000)
    found.subscribe()
    yield found
    spark.sparkContext._jsc.sc().listenerBus().removeListener(found.java)


def utf16(text: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    return " ".join(str(units[i] | units[i + 1] << 8) for i in range(0, len(units), 2))


def events_of(spark: Any, text: str, times: int) -> Any:
    made = compile_java(spark._jvm, FACTORY, "tests.HostileEvents")
    gateway = spark.sparkContext._gateway
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 2)
    arguments[0], arguments[1] = utf16(text), times
    return made.getConstructors()[0].newInstance(arguments)


@pytest.mark.spark
def test_a_stack_trace_of_very_many_frames(spark: Any, bridge: DriverBridge) -> None:
    """A record of very many parts loses most of them, and says what it is about."""
    spark.sparkContext._jsc.sc().listenerBus().post(
        events_of(spark, "deep", 1).jobEndOfManyFrames(4712, 100_000)
    )
    bridge.await_bus(60_000)
    (job,) = [record for _, record in bridge.drain(1_000, 0) if record.get("Job ID") == 4712]

    exception = job["Job Result"]["Exception"]
    assert exception["Message"] == "deep"
    assert [frame["Line Number"] for frame in exception["Stack Trace"]] == list(range(100))


@pytest.mark.spark
@pytest.mark.parametrize("times", [1, 300_000], ids=["once", "very often"])
@pytest.mark.parametrize("name", TEXTS)
def test_the_driver_bridge(spark: Any, bridge: DriverBridge, name: str, times: int) -> None:
    """A failed job and a failed query end, whatever their exceptions say, and each record is small."""
    text = TEXTS[name]
    times = min(times, 3 * MB // max(1, len(text)))
    events = events_of(spark, text, times)
    bus = spark.sparkContext._jsc.sc().listenerBus()
    run = "00000000-0000-0000-0000-000000000001"
    failed, dropped = bridge.failed, bridge.dropped
    bus.post(events.jobEnd(4711))
    bus.post(events.queryEnd(run))
    bridge.await_bus(60_000)
    records = [record for _, record in bridge.drain(1_000, 0)]

    assert (bridge.failed, bridge.dropped) == (failed, dropped)
    (job,) = [record for record in records if record.get("Job ID") == 4711]
    (query,) = [record for record in records if record.get("runId") == run]
    assert job["Job Result"]["Result"] == "JobFailed"
    assert (
        max(len(json.dumps(record, ensure_ascii=False)) for record in (job, query)) < 14 * LONGEST
    )  # a control character takes six
    if name != "half a pair":
        assert query["exception"] == cut(text * times)
        assert job["Job Result"]["Exception"]["Message"] == cut(text * times)


def last_statuses(found: Read) -> dict[str, Any]:
    return {
        str(event.attributes["job_kind"]): event.attributes["newJobStatus"]
        for event in found.events
        if event.name == "JobStatusChangeEvent"
    }


@pytest.mark.parametrize("name", TEXTS)
def test_an_event_log(tmp_path: Path, name: str) -> None:
    """As names, groups, descriptions and messages at once: nothing is skipped, and all has its end."""
    text = TEXTS[name]
    found = read_bytes(log_of(*application(text)), tmp_path)

    assert not found.log.counts.lost()
    assert last_statuses(found) == {"application": "FINISHED", "query": "FAILED", "job": "FAILED"}
    assert {event.variables["app_name"] for event in found.events} == {
        cut(whole_characters(text), LONGEST_NAME)
    }


@pytest.mark.parametrize(
    "key", ["Timestamp", "Job ID", "Stage IDs", "Properties", "Stage Infos", "Job Result"]
)
@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_a_number_that_is_none(tmp_path: Path, key: str, value: Any) -> None:
    """A record with it costs itself at the most: what it says is skipped and counted, all else has its end."""
    records = [*application("x")]
    odd = [{**record, key: value} for record in records[1:-1] if key in record]
    lines = json.dumps([*records[:1], *odd, *records[1:]])
    found = read_bytes(log_of(*json.loads(lines)), tmp_path)

    ended = last_statuses(found)
    assert (ended["application"], ended["query"]) == ("FINISHED", "FAILED")
    assert all(0 <= event.time_ms < 2**43 * 1_000 for event in found.events)


@pytest.mark.parametrize("time_ms", TIMES_MS)
def test_a_time_that_cannot_be(tmp_path: Path, time_ms: int) -> None:
    """It is not taken for one."""
    records = [*application("x")]
    odd = {**r.job_start(0, 2), "Submission Time": time_ms}
    found = read_bytes(log_of(*records[:3], odd, *records[3:]), tmp_path)

    latest = (2**63 - 1) // 1_000_000
    assert all(0 <= event.time_ms <= latest for event in found.events)
    assert last_statuses(found)["application"] == "FINISHED"


def test_nesting(tmp_path: Path) -> None:
    """Deeper than any parser goes: the line is skipped, the others are read."""
    records = [*application("x")]
    deep = f'{{"Event":"SparkListenerJobStart","Job ID":5,"x":{"[" * 5_000}{"]" * 5_000}}}\n'.encode()
    shallow = log_of({**r.job_start(1, 6), "x": nested(500), "long": "y" * LONGEST})
    found = read_bytes(log_of(*records[:1]) + deep + shallow + log_of(*records[1:]), tmp_path)

    assert sum(found.log.counts.lost().values()) == 1
    assert last_statuses(found)["application"] == "FINISHED"


@pytest.mark.parametrize("size", [pytest.param(7, marks=pytest.mark.thorough), 65_535, 65_537, 1 << 20])
@pytest.mark.parametrize("name", [name for name in TEXTS if TEXTS[name] and name != "half a pair"])
def test_a_line_of_megabytes_in_any_pieces(name: str, size: int) -> None:
    """Its texts are cut as those of a shorter line are, whatever is in them, and wherever it is cut in two."""
    text = TEXTS[name] * (1 + (2 * MB if size > 7 else MB // 2) // len(TEXTS[name]))
    line = json.dumps({"Event": "a", "text": text, "b": [1, {"c": TEXTS[name]}]}).encode()
    lines: list[bytes] = []
    splitter = LineSplitter(lines.extend, lambda: lines.append(b"too long"), longest=1 << 19)
    for start in range(0, len(line), size):
        splitter.feed(line[start : start + size])
    splitter.feed(b"\n")

    found = load(lines[0])
    assert found == {"Event": "a", "text": cut(text), "b": [1, {"c": cut(TEXTS[name])}]}


@pytest.mark.extended
def test_a_line_of_100_mb_takes_little_memory() -> None:
    """The end of a job whose exception says so much is read all the same."""
    head, tail = json.dumps(r.job_end(1, 1, "HERE")).split("HERE")
    lines: list[bytes] = []
    splitter = LineSplitter(lines.extend, lambda: lines.append(b"too long"))
    piece = (json.dumps('x\u0001"\U0001f4a5')[1:-1] * 30_000).encode()
    tracemalloc.start()
    splitter.feed(head.encode())
    for _ in range(100 * MB // len(piece)):
        splitter.feed(piece)
    splitter.feed(tail.encode() + b"\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    message = load(lines[0])["Job Result"]["Exception"]["Message"]
    assert len(message) < LONGEST + 100
    assert peak < 80 * MB


@pytest.mark.parametrize("name", TEXTS)
def test_connect(name: str) -> None:
    """What the client-side listener is told, by PySpark's own class and a made-up event."""
    records: list[tuple[str, dict[str, Any]]] = []
    listener = _listener(lambda event, fields: records.append((event, fields)))
    text = TEXTS[name]
    listener.onQueryStarted(SimpleNamespace(id="q", runId="run-1", name=text, timestamp=r.iso(0)))
    listener.onQueryTerminated(
        SimpleNamespace(id="q", runId="run-1", exception=text or "x", errorClassOnException=text)
    )
    feed = r.Feed()(r.application_start(SparkEventsQueriesOnly=True))
    for event, fields in records:
        feed.listeners.on_record({"Event": event, **fields}, r.T0)

    assert r.new_statuses(feed.end(), "query") == ["CREATED", "FAILED"]

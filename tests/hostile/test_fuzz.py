"""Each parser against what nobody would write: it reads, skips or refuses it, soon, and in little memory.

A sample runs with all tests, the same each time; ``make soak`` runs many more, others each time.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import resource
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark_events_otlp.over_grpc import retry_info_ms
from spark_events_otlp.over_http import HttpTransport
from spark_events_otlp.signals import LOGS
from spark_events_otlp.transport import Endpoint

from spark_events.api import ConfigError, Refused, RetryLater
from spark_events.api import option_types as types
from spark_events.api.toolkit.http_once import retry_after_ms
from spark_events.lineage.job_logs import read_job_logs
from spark_events.listeners.failures.failures import parse_failure
from spark_events.listeners.long_texts import cut_texts
from spark_events.sources.event_log.reading.lines import LineSplitter
from spark_events.sources.record_json import load
from spark_events.spark.conf import read_properties
from spark_events.spark.sql_errors import error_summary
from spark_events.sql_runner.analysis.definitions import split_statements
from spark_events.sql_runner.manifest.manifest import parse_manifest
from spark_events.sql_runner.manifest.yaml_text import read_yaml
from tests.support.event_log_reading import read_bytes
from tests.support.hostile_logs import application, log_of
from tests.support.hostile_texts import NUMBERS, TEXTS
from tests.support.story_told import told

AT_MOST = timedelta(seconds=5)
"""What is read in ms and takes longer has met its bad case: a pattern that tries everything, say."""
MOST_MB = 400
"""By how much the process may grow over all examples of a parser."""

scalars = st.one_of(
    st.sampled_from([*TEXTS.values(), *NUMBERS]), st.integers(), st.floats(), st.text(max_size=40)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)


def json_of(value: Any) -> bytes:
    return json.dumps(value, default=str).encode()


@st.composite
def mangled(draw: st.DrawFn, seeds: list[bytes], often: int = 2_000) -> bytes:
    """A text that is right, of which parts were cut out, doubled, repeated often or replaced."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 30)))
        part = data[start:end]
        times = draw(st.sampled_from([0, 0, 2, 3, often]))
        new = draw(st.one_of(st.just(part * times), st.binary(max_size=6), st.just(b" " * times)))
        data = data[:start] + new + data[end:]
    return data


@st.composite
def changed(draw: st.DrawFn, records: list[dict[str, Any]]) -> dict[str, Any]:
    """A record that is right, of which a value somewhere is another."""
    record: Any = json.loads(json.dumps(draw(st.sampled_from(records))))
    place = record
    for _ in range(draw(st.integers(0, 3))):
        inner = [each for each in (place.values() if isinstance(place, dict) else place) if each]
        inner = [each for each in inner if isinstance(each, dict | list)]
        if not inner:
            break
        place = draw(st.sampled_from(inner))
    key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else list(range(len(place)))))
    place[key] = draw(values)
    return record


RECORDS = list(application("shop"))
LOG = log_of(*RECORDS)


def event_log(line: bytes) -> None:
    """A line more in an event log: the others are read as they were."""
    with tempfile.TemporaryDirectory() as folder:
        lines = LOG.splitlines(keepends=True)
        found = read_bytes(
            b"".join([*lines[:3], line.replace(b"\n", b" ") + b"\n", *lines[3:]]), Path(folder)
        )
    assert found.log.application is not None
    assert found.events


def long_line(value: Any) -> None:
    """A line with its texts cut while it is read is the line with its texts cut."""
    line = json.dumps({"value": value}, allow_nan=False, default=str).encode()
    for size in (7, 1_000):
        lines: list[bytes] = []
        splitter = LineSplitter(lines.extend, lambda: None, longest=16)
        for start in range(0, len(line), size):
            splitter.feed(line[start : start + size])
        splitter.feed(b"\n")
        assert not lines or load(lines[0]) == cut_texts(load(line))


FLOW = {
    "jobId": "app-1/1",
    "jobName": "insert",
    "newStatus": "FINISHED",
    "timeUnixNano": "1795132800000000000",
    "application": {"name": "shop"},
    "lineage": {
        "sources": [{"datasets": [{"namespace": "file", "name": "/in", "table": "raw"}]}],
        "sinks": [{"datasets": [{"namespace": "file", "name": "/out"}]}],
        "relations": [{"source": 0, "sink": 0, "columns": {"b": [{"column": "a"}]}}],
    },
}


def lineage(line: bytes) -> None:
    """A line more in a file of lineage, packed, and torn at its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lineage.000001.jsonl.gz")
        whole = gzip.compress(json_of(FLOW) + b"\n" + line.replace(b"\n", b" ") + b"\n")
        for end in (len(whole), len(whole) // 2):
            path.write_bytes(whole[:end])
            flow = read_job_logs([path])
        assert flow.torn or end == 0


MANIFEST = b"""name: q
target-table: &t shop.out
description: |
  several
  lines
sparkProperties:
  spark.a: 1
  spark.b: *t
trigger: {processing-time: 10s}
sql: SELECT * FROM a
"""


def manifest(text: bytes) -> None:
    """Right, or wrong with its place."""
    problems: list[str] = []
    try:
        parse_manifest(read_yaml(text.decode(errors="replace"), "m.yaml"))
    except ConfigError as error:
        problems = list(error.problems)
    assert all(problem.startswith("m.yaml:") for problem in problems)


SQL = b"""-- a comment; with one
CREATE TABLE a (`x;y` INT) /* b; */ USING parquet; SELECT ';', "a\\";" /*+ HINT(a) */ FROM a;
SET spark.a = 1;"""


def sql(text: bytes) -> None:
    """No statement has more than the text, and none is empty."""
    whole = text.decode(errors="replace")
    statements = split_statements(whole)
    assert all(statements)
    assert sum(map(len, statements)) <= len(whole)


FAILURES = [
    b"org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 8.0 failed 1 times, most "
    b"recent failure:\nLost task 1.0 in stage 8.0 (TID 418) (host executor driver): java.lang.RuntimeException: boom"
    b"\n\tat a.B.c(B.scala:1)\nCaused by: java.io.IOException: [X.Y] no SQLSTATE: 42000\n",
    b'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no\n',
]


def failure(text: bytes) -> None:
    """Whatever an exception says, some words are found in it."""
    whole = text.decode(errors="replace")
    assert len(parse_failure(whole * 20).message) < 40_000
    assert len(error_summary(RuntimeError(whole * 20))) < 2_000


HTTP = HttpTransport(Endpoint("http://127.0.0.1:1/v1/logs", {}, 1.0, False, None), LOGS)  # type: ignore[arg-type]


def otlp_answer(answer: tuple[int, bytes, str]) -> None:
    """The sender goes on, tries again, or gives the records up."""
    code, body, header = answer
    given = requests.Response()
    given.status_code = code
    given.headers["Retry-After"] = header
    given.headers["Content-Type"] = "application/x-protobuf"
    assert (retry_after_ms(given.headers) or 0) >= 0
    given.raw = io.BytesIO(body)
    error = HTTP._error_of(given)
    assert isinstance(error, RetryLater | Refused)
    assert len(str(error)) < 2_000
    with contextlib.suppress(RetryLater):
        HTTP._parsed(given)

    class Failed:
        def trailing_metadata(self) -> list[tuple[str, bytes]]:
            return [("grpc-status-details-bin", body)]

    assert (retry_info_ms(Failed()) or 0) >= 0


def properties(text: bytes) -> None:
    """Keys and values, or an error that names the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spark-defaults.conf")
        path.write_bytes(text)
        found: dict[str, str] = {}
        with contextlib.suppress(ConfigError):
            found = read_properties(path)
    assert all(key.startswith("spark.") for key in found)


def option(text: bytes) -> None:
    """A value of whatever type is parsed, or is none."""
    for kind in (types.DURATION, types.SIZE, types.INT, types.LIST, types.MAP, types.BOOL, types.RATIO):
        try:
            kind.parse(text.decode(errors="replace"))
        except ValueError:
            continue


_RETRY = Status()
_RETRY.details.add().Pack(RetryInfo())
answers = st.tuples(
    st.integers(100, 999),
    st.one_of(
        st.binary(max_size=60), mangled([_RETRY.SerializeToString(), LOGS.response().SerializeToString()])
    ),
    st.one_of(
        st.sampled_from(
            ["²", "9" * 5_000, "-1", "1e9", "Sat, 22 Nov 99999 00:00:00 GMT", "Wed, 21 Oct 2015 07:28:00"]
        ),
        st.text(max_size=40),
    ),
)
PARSERS: dict[str, tuple[Callable[[Any], None], st.SearchStrategy[Any]]] = {
    "event log": (
        event_log,
        st.one_of(mangled(LOG.splitlines()), changed(RECORDS).map(json_of), values.map(json_of)),
    ),
    "long lines": (
        long_line,
        st.one_of(scalars, values).filter(lambda value: not re.search("nan|inf", repr(value))),
    ),
    "lineage": (lineage, st.one_of(mangled([json_of(FLOW)]), changed([FLOW]).map(json_of))),
    "manifests": (manifest, st.one_of(mangled([MANIFEST]), values.map(json_of))),
    "SQL": (sql, mangled([SQL])),
    "failures": (
        failure,
        st.one_of(
            mangled(FAILURES),
            st.sampled_from(list(TEXTS.values())).map(lambda text: text.encode("utf-8", "replace")),
        ),
    ),
    "OTLP answers": (otlp_answer, answers),
    # Of lines that go on and on, the library that reads them takes the square of their number.
    "properties": (properties, mangled([b"spark.a  b\nspark.c: d\\\n  e\n# f\nspark.g=\\u0041\n"], often=4)),
    "options": (option, mangled([b"10 min 5s", b"16m", b"a:b,c:'d'", b"true", b"0.5"])),
}


def fuzz(name: str, examples: int, derandomize: bool) -> None:
    parse, strategy = PARSERS[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check = settings(
        max_examples=examples,
        deadline=AT_MOST,
        derandomize=derandomize,
        database=None,
        suppress_health_check=list(HealthCheck),
    )(given(strategy)(parse))
    check()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MOST_MB


@pytest.mark.parametrize("name", PARSERS)
def test_a_sample(name: str) -> None:
    fuzz(name, 80, derandomize=True)


STORED = [json.loads(line) for line in told().lines()]
stored = st.one_of(mangled([line.encode() for line in told().lines()]), changed(STORED).map(json_of))


def fuzz_stored_events(examples: int, derandomize: bool) -> None:
    """They are read in one go: a history of the others comes of it, and each line is accounted for."""
    from spark_events.history.history import read_history
    from spark_events.history.reading.on_duckdb import DuckDb
    from spark_events.history.report import collect

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=derandomize,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(stored, min_size=100, max_size=200))
    def check(lines: list[bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            whole = [re.sub(rb"[\r\n]", b" ", line) for line in lines]
            Path(folder, "a.events.000001.jsonl").write_bytes(b"\n".join([*whole, *map(json_of, STORED)]))
            database = DuckDb()
            try:
                history, reading = read_history(database, [folder])
                report = collect(history, history.tables(), [reading])
            finally:
                database.close()
        assert sum(reading.problems.values()) + len(STORED) <= reading.records
        assert "shop" in {row["app_name"] for row in report.tables.uptime}

    check()


def test_a_sample_of_stored_events() -> None:
    fuzz_stored_events(6, derandomize=True)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_many_stored_events() -> None:
    fuzz_stored_events(1_000, derandomize=False)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", PARSERS)
def test_many(name: str) -> None:
    fuzz(name, 5_000, derandomize=False)

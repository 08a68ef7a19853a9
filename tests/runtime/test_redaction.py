"""Secrets: in no event, no log line, no message."""

from __future__ import annotations

import base64
import html
import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
import spark_events_file_log.reporter
import spark_events_openlineage.branches
import spark_events_otlp.metric_reporter
import spark_events_otlp.transport
import spark_events_prometheus.exposition
import spark_events_prometheus.linger
import spark_events_prometheus.reporter
import spark_events_prometheus.server
from spark_events_otlp.options import HEADERS

from spark_events.api import ApplicationInfo, Event, Span
from spark_events.configuration.check import check
from spark_events.listeners.settings import ListenerSettings
from spark_events.runtime.log_once import logger
from spark_events.runtime.redaction import REDACTED, Redactor, redact_logs
from spark_events.runtime.registry import Registry
from spark_events.sources.attaching.own_signals import OwnSignals
from spark_events.sources.configuration import read_configuration
from tests.support.plugins import Collecting
from tests.support.waiting import free_port

OTEL = "spark.events.reporter.otel."
SECRET = "s3cr3t-value"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    Collecting.instances.clear()
    yield
    redact_logs(Redactor())


@pytest.mark.parametrize(
    "conf",
    [
        {OTEL + "exporter.headers": f"authorization:Bearer {SECRET}"},
        {OTEL + "exporter.headers": "authorization:env:MY_TOKEN"},
        {OTEL + "exporter.headers": "authorization:file:{folder}/token"},
        {"spark.my.password": SECRET},
        {"spark.my.pin": SECRET, "spark.redaction.regex": "pin"},
        {"spark.redaction.string.regex": "s3cr3t-[a-z]+"},
    ],
    ids=["clear", "environment", "file", "spark", "spark-own-regex", "text"],
)
def test_no_secret_in_an_event(conf: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known to be secret is in no attribute, no body and no log line, its traceback included."""
    monkeypatch.setenv("MY_TOKEN", SECRET)
    (tmp_path / "token").write_text(f"{SECRET}\n")
    base = {
        OTEL + "factory.class": "otlp",
        "spark.events.reporter.c.factory.class": "tests.support.plugins:CollectingFactory",
    }
    found = read_configuration({**base, **{k: v.format(folder=tmp_path) for k, v in conf.items()}})
    assert not found.problems
    registry = Registry([setup for setup in found.setups if setup.name == "c"], found.redactor)
    registry.start()
    text = f"cannot log in with {SECRET} as me"
    event = Event.builder("test", "MyEvent").set_body(text).set_attribute("exception.message", text)
    registry.root.add_event(event.set_attribute("n", 1).set_attribute("kept", "true"))
    registry.close(5_000)
    (seen,) = Collecting.instances[0].events
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    redact_logs(found.redactor)
    logger.addHandler(handler)
    try:
        raise RuntimeError(text)
    except RuntimeError:
        logger.exception("it failed: %s", text)
    finally:
        logger.removeHandler(handler)
    written = logging.Formatter().format(records[0])

    assert SECRET not in f"{seen} {written}"
    assert seen.body == "cannot log in with ****** as me"
    assert seen.attributes == {"exception.message": seen.body, "n": 1, "kept": "true"}
    assert "RuntimeError: cannot log in with ****** as me" in written


LOGGERS = (
    logger,
    *map(
        attrgetter("logger"),
        (
            spark_events_file_log.reporter,
            spark_events_openlineage.branches,
            spark_events_otlp.metric_reporter,
            spark_events_otlp.transport,
            spark_events_prometheus.exposition,
            spark_events_prometheus.linger,
            spark_events_prometheus.reporter,
            spark_events_prometheus.server,
        ),
    ),
)


@pytest.mark.parametrize("own", LOGGERS, ids=attrgetter("name"))
def test_no_secret_in_a_log_line_of_a_reporter(own: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    """What a destination says is in the log lines of its reporter."""
    redact_logs(Redactor([SECRET]))
    own.warning("refused: %s", f"no such key: {SECRET}\x1b[2J")

    assert caplog.messages == ["refused: no such key: ******\\x1b[2J"]


@pytest.mark.parametrize("own", LOGGERS, ids=attrgetter("name"))
def test_a_handler_that_raises(own: logging.Logger) -> None:
    """It may be the application's own: a reporter goes on as if its message had been handed on."""
    handler = logging.Handler()
    handler.emit = _raise  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        own.warning("a message")
    finally:
        logging.getLogger().removeHandler(handler)


def _raise(record: logging.LogRecord) -> None:
    raise RuntimeError("a handler of the application")


def test_spans_as_well() -> None:
    """A span's error, attributes and events are texts like any other; so are texts in a list."""
    builder = Span.builder("test", "MySpan").set_error(SECRET).set_attribute("a", (SECRET, 1, "kept"))
    span = builder.add_event("exception", 1, {"exception.message": f"not {SECRET}", "n": 1}).build({})
    clean = Redactor([SECRET]).item(span)

    assert (clean.error, clean.attributes) == ("******", {"a": ("******", 1, "kept")})
    assert clean.events[0].attributes == {"exception.message": "not ******", "n": 1}


def test_names_as_well() -> None:
    """Of secret values alone: what else a pattern matches may be a part of our own names."""
    redactor = Redactor([SECRET], re.compile("Event"))
    event = redactor.item(Event.builder("scope", f"GET {SECRET} Event").set_body("Event").build({}))
    span = redactor.item(Span.builder("scope", f"GET {SECRET}").build({}))
    assert (event.name, event.body, span.name) == ("GET ****** Event", "******", "GET ******")


def test_own_metrics_as_well() -> None:
    """Their labels may be addresses with a token."""
    made = Registry((), Redactor([SECRET]))
    own = OwnSignals(made, ApplicationInfo("shop", "app-1"), ListenerSettings())
    own.counter(f"calls {SECRET}", {"endpoint": f"https://{SECRET}@api"}).inc()
    (group,) = own._series._children.values()
    assert list(group._metrics) == ["calls ******"]
    assert group.variables["endpoint"] == "https://******@api"


def test_parts_of_parts_as_well() -> None:
    event = Event.builder("scope", "E").set_attribute("key", [f"a {SECRET}", [f"b {SECRET}", 1]]).build({})
    assert Redactor([SECRET]).item(event).attributes == {"key": ("a ******", ("b ******", 1))}


@pytest.mark.parametrize("user", ["a", "ab", "abc", ""])
@pytest.mark.parametrize("secret", ["hunter", "hunter3", "hunter3s", SECRET])
def test_in_base64_as_well(user: str, secret: str) -> None:
    """As in the header of basic authentication, which an answer may repeat."""
    header = base64.b64encode(f"{user}:{secret}".encode()).decode()
    shown = Redactor([secret]).text(f"answered 400: Basic {header} is wrong")

    assert shown.startswith("answered 400: Basic ")
    assert shown.endswith(" is wrong")
    rest = "".join(shown.split()[3:-2]).replace(REDACTED, "").rstrip("=")
    assert len(rest) <= len(base64.b64encode(user.encode()).rstrip(b"=")) + 3


@pytest.mark.parametrize(
    "escape",
    [
        quote,
        quote_plus,
        lambda secret: quote(secret, safe=""),
        lambda secret: quote(secret, safe="").replace("%2F", "%2f"),
        json.dumps,
        lambda secret: json.dumps(secret, ensure_ascii=False),
        lambda secret: json.dumps({"a": json.loads(json.dumps(secret))}),
        lambda secret: repr(ValueError(secret)),
        lambda secret: repr(secret.encode()),
        lambda secret: json.dumps(json.dumps(secret)),
        lambda secret: quote(quote(secret)),
        html.escape,
        lambda secret: html.escape(secret, quote=False),
        lambda secret: "".join(f"&#{ord(each)};" if each in "'<&" else each for each in secret),  # as Go
        lambda secret: secret.replace("/", "\\/"),  # as PHP
        lambda secret: "".join(
            f"\\u{ord(each):04x}" if each in "=&<'" else each for each in secret
        ),  # as Gson
    ],
)
@pytest.mark.parametrize(
    "secret", ["s3cr3t/p@ss w", "k3y/Zahl+==", 'pa"ss\\word9', "it's&<passé>", "pass\nword"]
)
def test_in_what_escapes_it(secret: str, escape: Callable[[str], str]) -> None:
    """As an HTTP client shows its URL, a log in JSON, or Python an exception."""
    shown = Redactor([secret]).text(f"GET <{escape(secret)}> failed")

    assert REDACTED in shown
    for part in re.split(r"\W+", secret):
        assert len(part) < 4 or part not in shown


def test_a_text_of_what_escapes_begin_with() -> None:
    """It costs as much as its length, and not the square of that."""
    redactor = Redactor(["=/:+secret", "\\\\secret", "%secret&"])
    for text in ("\\" * 100_000, "%25" * 50_000, "&#0" * 50_000, "&#" + "0" * 100_000):
        assert redactor.text(text) == text


@pytest.mark.parametrize("again", ["reveal", "get"])
def test_a_secret_that_is_renewed(tmp_path: Path, again: str) -> None:
    """Its file has another one: that is hidden before a reporter uses it, and so is the old one still."""
    file = tmp_path / "token"
    file.write_text("first-token-111")
    key = "spark.events.reporter.o."
    conf = {key + "factory.class": "otlp", key + "exporter.headers": f"authorization:file:{file}"}
    found = read_configuration(conf)
    (setup,) = found.setups
    secret = setup.config.get(HEADERS)["authorization"]
    for token in ("second-token-222", "third-token-333"):
        file.write_text(token)
        sent = (secret if again == "reveal" else setup.config.get(HEADERS)["authorization"]).reveal()
        assert sent == token
        assert found.redactor.text(f"401: {sent}, not first-token-111") == "401: ******, not ******"


def test_a_secret_that_is_too_short_is_said() -> None:
    key = "spark.metrics.reporter.p."
    conf = {key + "factory.class": "prometheus", key + "auth.username": "u", key + "auth.password": "abc12"}
    (said,) = (text for text in read_configuration(conf).warnings if "fewer than" in text)

    assert said.startswith(f"{key}auth.password has a secret of fewer than 6 characters")
    assert "abc12" not in said


def test_names_and_keys_of_what_a_program_makes_of_its_data() -> None:
    span = (
        Span.builder("test", "MySpan")
        .add_event(f"got {SECRET}", 1, {SECRET: 1})
        .set_attribute(SECRET, SECRET)
    )
    clean = Redactor([SECRET]).item(span.build({}))

    assert clean.attributes == {"******": "******"}
    assert (clean.events[0].name, clean.events[0].attributes) == ("got ******", {"******": 1})


def test_what_is_no_secret_stays() -> None:
    """``true`` under a key that matches is no secret, and an item without secrets is not copied."""
    found = read_configuration({"spark.my.token.enabled": "true", "spark.my.token.retries": "3000000"})
    event = Event.builder("test", "MyEvent").set_body("true 3000000 short").build({})

    assert found.redactor.item(event) is event
    assert Redactor(["abc"]).text("abc") == "abc"


def test_wrong_regex() -> None:
    """A pattern that Python does not know is an error that names the key; the default is used."""
    found = read_configuration({"spark.redaction.regex": "(", "spark.my.password": SECRET})

    assert re.match(r"spark\.redaction\.regex: '\(' is not valid; expected a regular", found.problems[0])
    assert found.redactor.text(SECRET) == "******"


# What would freeze the driver, on texts of a few dozen characters: Python's ``re`` holds the interpreter's lock.
ENDLESS = (
    r"(a+)+$",
    r"name=([\u0430-\u044f]+ ?)+;",
    r"name=([가-힣]+ ?)+;",
    r"(?i)name=([\u0431-\u0433]+|[\u0412]+)+;",
    r"([\u1000-\u2fff]+|[\u2028-\u3fff]x?)+;",
    r"([\u0250-\u0500]+|\w)+;",
    r"(a*)*b",
    r"(a|aa)+$",
    r"(\w+\s?)*$",
    r"(a?){30}a{30}",
    r"(a{1,10}){10}b",
    r"(?=(a+)+$)b",
    r"(.|\s)+z",
    r"(?s:(.|\n)+)x",
    r"a*a*a*a*a*b",
)
ORDINARY = (
    "",
    "(?i)secret|password|token|access[.]?key",
    r"(?i)(password|token)\s*[=:]\s*[^\s,]+",
    r"[\w.+-]+@[\w-]+\.[\w.-]+",
    r"(?:[a-z0-9-]+\.)+[a-z]{2,}",
    r"name=[\u0430-\u044f\u0451]+;",
    r"(?:\d{1,3}\.){3}\d{1,3}",
    r"-----BEGIN [A-Z ]+-----[\s\S]+?-----END [A-Z ]+-----",
    r"(?:[0-9a-f]{2}[:-]?){6}",
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?!!",
    r".*password.*=.*",
    r'"(?:[^"\\]|\\.)*"',
    r"\b(?:\d[ -]*?){13,16}\b",
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    r"^\s*(key|pw)\s*=\s*(.*)\s*$",
)


@pytest.mark.parametrize("pattern", [*ENDLESS, r"\p{Alpha}+", "("])
def test_a_pattern_of_keys_that_cannot_be_used(pattern: str, caplog: pytest.LogCaptureFixture) -> None:
    """Spark's default takes its place: if all values were secret, events could not name their application."""
    conf = {"spark.redaction.regex": pattern, "spark.app.name": "orders-etl", "spark.my.password": SECRET}
    found = read_configuration(conf)
    found.log_problems()

    assert found.redactor.text(f"orders-etl has {SECRET}") == "orders-etl has ******"
    assert caplog.messages[0].startswith(f"spark.redaction.regex: {pattern!r} is not valid; expected")
    assert caplog.messages[0].endswith("; until then, Spark's default holds")


@pytest.mark.parametrize("pattern", [*ENDLESS, r"\p{Alpha}+", "("])
def test_a_pattern_of_texts_that_cannot_be_used_hides_everything(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    key = "spark.redaction.string.regex"
    found = read_configuration({key: pattern, "spark.my.pin": SECRET, "spark.events.close.timeout": "x"})
    redact_logs(found.redactor)
    found.log_problems()

    assert found.redactor.text(f"{SECRET} {'a' * 40}!").startswith("******")
    assert SECRET not in found.redactor.text(f"not with {SECRET}")
    assert found.problems[0].startswith(
        f"{key}: {pattern!r} is not valid; expected a regular expression that"
    )
    assert caplog.messages[0].endswith("; until then, all texts are hidden")
    assert sum(key in message for message in caplog.messages) == 1


@pytest.mark.parametrize("pattern", ORDINARY)
def test_patterns_that_stay(pattern: str) -> None:
    found = read_configuration({"spark.redaction.string.regex": pattern, "spark.redaction.regex": pattern})

    assert not found.problems
    assert found.redactor.text("not this!") == "not this!"


def test_a_pattern_sees_so_much_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows is hidden."""
    monkeypatch.setattr("spark_events.runtime.redaction.LONGEST_TEXT", 10)
    redactor = Redactor([], re.compile("x"))

    assert redactor.text("0x23456789") == "0******23456789"
    assert redactor.text("0x23456789x") == "0******23456789******"


@pytest.mark.parametrize("before", [100, 8_188, 16_380])
def test_a_text_that_is_slow_from_somewhere_on(before: int) -> None:
    """Wherever a pattern begins to match, some window has that together with what follows."""
    redactor = Redactor([], re.compile(r"key=.*,.*,.*;"))
    assert redactor.text(f"{'x' * before}key={',' * 20_000}") == "******"


def test_a_pattern_that_is_slow_on_a_text(caplog: pytest.LogCaptureFixture) -> None:
    """It hides that text, and after some of them all: three repetitions take the cube of a text's length."""
    redactor = Redactor([], re.compile(r".*,.*,.*;"))
    redact_logs(redactor)

    assert redactor.text("a,b,c; d") == "****** d"
    assert [redactor.text("," * 20_000) for _ in range(3)] == ["******"] * 3
    assert redactor.text("short") == "******"
    (said,) = caplog.messages
    assert said.startswith("spark.redaction.string.regex: '.*,.*,.*;' takes too long for texts of this")


@pytest.mark.parametrize(
    ("conf", "warned"),
    [
        ({OTEL + "exporter.headers": f"authorization:{SECRET}"}, True),
        ({OTEL + "exporter.headers": "authorization:env:HOME"}, False),
        ({OTEL + "exporter.headers": f"a:{SECRET}", "spark.redaction.regex": "headers"}, False),
        ({}, False),
    ],
)
def test_secret_in_the_clear(conf: dict[str, str], warned: bool) -> None:
    """A secret that Spark would show gets a warning that names the safe ways, and does not repeat it."""
    result = check({OTEL + "factory.class": "otlp", **conf}, connect=False)

    assert not result.problems
    assert len(result.warnings) == warned
    if warned:
        assert result.warnings[0].startswith(OTEL + "exporter.headers has a secret in plain text")
        assert "env:NAME or file:/path" in result.warnings[0]
        assert SECRET not in result.warnings[0]


def test_no_secret_in_a_problem() -> None:
    """A key that Spark redacts is redacted in messages about its value."""
    conf = {
        "spark.events.reporter.x.factory.class": "console",
        "spark.events.reporter.x.queue.max-items": SECRET,
    }
    assert SECRET in read_configuration(conf).problems[0]

    assert SECRET not in read_configuration({**conf, "spark.redaction.regex": "queue"}).problems[0]


def test_no_secret_on_disk(tmp_path: Path) -> None:
    """What waits in the journal is redacted already; the header's own value is nowhere either."""
    conf = {
        OTEL + "factory.class": "otlp",
        OTEL + "exporter.endpoint": f"http://127.0.0.1:{free_port()}",
        OTEL + "exporter.headers": f"authorization:Bearer {SECRET}",
        OTEL + "journal.dir": str(tmp_path),
    }
    found = read_configuration(conf)
    registry = Registry(found.setups, found.redactor)
    registry.start()
    registry.root.add_event(Event.builder("test", "MyEvent").set_body(f"no access with {SECRET}"))
    registry.close(1_000)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    assert any(b"no access with ******" in data for data in files.values())
    assert not any(SECRET.encode() in data for data in files.values())


@pytest.mark.parametrize("name", ["", ".otlp", ".file_log", ".prometheus"])
def test_no_line_is_forged(name: str) -> None:
    """By a message or an error that says what another process has answered, whether or not any is configured."""
    answer = "refused\n26/11/24 ERROR SparkContext: forged\r\x1b[31mRED"
    stream = io.StringIO()
    handler, tried = logging.StreamHandler(stream), logging.getLogger(f"spark_events{name}")
    tried.addHandler(handler)
    try:
        tried.error("%s", answer)
        try:
            raise RuntimeError(answer)
        except RuntimeError as error:
            tried.error("x", exc_info=error)
    finally:
        tried.removeHandler(handler)
    lines = stream.getvalue().splitlines()
    assert [line[:8] for line in lines if not line.startswith("    ")] == ["refused\\", "x"]
    assert "\x1b" not in stream.getvalue()
    assert "\r" not in stream.getvalue()

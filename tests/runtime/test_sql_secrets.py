"""Secrets in statements: masked by the names of their options, wherever a statement is told."""

from __future__ import annotations

import time

import pytest

from spark_events.api import Event, Span, SpanEvent
from spark_events.runtime.redaction import Redactor
from spark_events.sources.configuration import read_configuration


class Text(str):
    """One of a library's own."""


URL = "jdbc:derby:memory:shop;create=true;user=admin;password=S3CRET"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            f"CREATE VIEW v USING jdbc OPTIONS(url '{URL}', driver 'd', dbtable '\"S\".\"x\"', password 'S3CRET')",
            "CREATE VIEW v USING jdbc OPTIONS(url '******', driver 'd', dbtable '\"S\".\"x\"', password '******')",
        ),
        ("OPTIONS('password' = 'S3CRET', a '')", "OPTIONS('password' = '******', a '')"),
        ('options ("db.password"="S3CRET", a 1)', "options (\"db.password\"='******', a 1)"),
        ("OPTIONS (`password` 'S3CRET')", "OPTIONS (`password` '******')"),
        ("OPTIONS (a '', password'S3CRET')", "OPTIONS (a '', password'******')"),
        ("OPTIONS (password 123456)", "OPTIONS (password '******')"),
        ("OPTIONS (-- don't\n password 'S3CRET')", "OPTIONS (-- don't\n password '******')"),
        ("TBLPROPERTIES ('access.key' = r'S3' 'CRET')", "TBLPROPERTIES ('access.key' = '******')"),
        ("OPTIONS (password 'it''s \\' S3CRET')", "OPTIONS (password '******')"),
        ("OPTIONS (password 'S3CR", "OPTIONS (password '******'"),
        ("SELECT * FROM read(password => 'S3CRET')", "SELECT * FROM read(password => '******')"),
        ("near 'x': expected password = 'S3CRET'", "near 'x': expected password = '******'"),
        ("SET spark.my.password = S3 CRET", "SET spark.my.password = ******"),
    ],
)
def test_options(text: str, masked: str) -> None:
    """Wherever it is in an event or a span."""
    redactor = Redactor()
    assert redactor.text(text) == masked
    event = Event("1", "n", "s", 1, body=text, attributes={"a": "x", "b": text, "c": ("y", text)})
    clean = redactor.item(event)
    assert (clean.body, clean.attributes) == (masked, {"a": "x", "b": masked, "c": ("y", masked)})
    for value in (text, Text(text)):
        alone = redactor.item(Event("1", "n", "s", 1, attributes={"b": value}))
        assert alone.attributes == {"b": masked}
    span = Span("n", "s", 1, 2, "1", "2", error=text, events=(SpanEvent("e", 1, {"b": text}),))
    clean_span = redactor.item(span)
    assert (clean_span.error, clean_span.events[0].attributes) == (masked, {"b": masked})


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        (URL, "jdbc:derby:memory:shop;create=true;user=admin;password=******"),
        ("jdbc:mysql://me:S3@CRET@host:3306/db?a=1", "jdbc:mysql://******@host:3306/db?a=1"),
        ("jdbc:oracle:thin:me/S3CRET@//host/x", "jdbc:oracle:thin:******@//host/x"),
        ("jdbc:sqlserver://h;password={S;3};a=b", "jdbc:sqlserver://h;password=******;a=b"),
        ("jdbc:mysql://(host=h)(password=S3CRET)/d", "jdbc:mysql://(host=h)(password=******"),
        ("JDBC:postgresql://h/d?password=S3&ssl=true", "JDBC:postgresql://h/d?password=******&ssl=true"),
        ("jdbc:sqlserver://h;user=u; password=S3;a=b", "jdbc:sqlserver://h;user=u; password=******;a=b"),
        ("jdbc:sqlserver://h;password={S}}3};a=b", "jdbc:sqlserver://h;password=******;a=b"),
        ('jdbc:oracle:thin:me/"S3CRET"@h:1521:x', "jdbc:oracle:thin:******@h:1521:x"),
        ('jdbc:mysql://h/d?password=a"S3`CRET&x=1', "jdbc:mysql://h/d?password=******&x=1"),
        ("jdbc:h2:tcp://h/x;keyPass=S3", "jdbc:h2:tcp://h/x;keyPass=******"),
        ("jdbc:redshift://h/d?UID=me&PWD=S3CRET", "jdbc:redshift://h/d?UID=me&PWD=******"),
        (
            "jdbc:snowflake://h/?private_key_file_pwd=S3&db=d",
            "jdbc:snowflake://h/?private_key_file_pwd=******&db=d",
        ),
        (
            "jdbc:databricks://h;AuthMech=3;UID=token;PWD=S3",
            "jdbc:databricks://h;AuthMech=3;UID=token;PWD=******",
        ),
    ],
)
def test_urls_of_databases(url: str, masked: str) -> None:
    assert Redactor().text(f"cannot connect to '{url}'") == f"cannot connect to '{masked}'"
    assert Redactor().text(f"cannot connect to {url}") == f"cannot connect to {masked}"


def test_urls_of_databases_without_quotes_may_have_some() -> None:
    assert Redactor().text("no jdbc:mysql://h?password=it'sS3 ok") == "no jdbc:mysql://h?password=****** ok"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE kind = 'password' AND name = 'joe'",
        "SELECT * FROM t WHERE url = 'http://host/page'",
        "SELECT token, 'x' FROM a JOIN b ON a.token = b.token",
        "UPDATE t SET token = other WHERE id = 1",
        "SET spark.sql.shuffle.partitions = 2",
        "jdbc:oracle:thin:@host:1521:x",
        "jdbc:postgresql://host/db?user=me@company&ssl=true",
        "jdbc:snowflake://h/?passenger=1&pwdless=true, pwd = 3",
        "jdbc:hive2://h/d?compass=north&bypass=true",
        "jdbc:sqlite:/data/joe@home/x.db: database is locked",
        "jdbc:h2:file:/srv/a@b/x",
        "jdbc:postgresql://h/d; next = 3",
        '{"url":"jdbc:postgresql://h/d","mail":"me@x","password":"known"}',
        "the token 12 of 'x'",
        "[PARSE_SYNTAX_ERROR] Syntax error at or near token 'FORM'",
        "Unrecognized token 'abc': was expecting (JSON String, Number, Array)",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_the_names_are_those_of_the_configuration() -> None:
    conf = {"spark.redaction.regex": "pin", "spark.sql.redaction.options.regex": "user"}
    text = "OPTIONS (pin '1', user 'me', password 'known', url 'u')"
    masked = "OPTIONS (pin '******', user '******', password 'known', url 'u')"
    assert read_configuration(conf).redactor.text(text) == masked


def test_a_pattern_of_options_that_cannot_be_used(caplog: pytest.LogCaptureFixture) -> None:
    found = read_configuration({"spark.sql.redaction.options.regex": "("})
    found.log_problems()
    assert caplog.messages[0].startswith("spark.sql.redaction.options.regex: '(' is not valid")
    assert caplog.messages[0].endswith("; until then, Spark's default holds")
    assert found.redactor.text("OPTIONS (url 'u')") == "OPTIONS (url '******')"


@pytest.mark.parametrize(
    "part",
    [
        "'",
        "a'",
        "a ",
        "OPTIONS(",
        "password ",
        "w",
        " ",
        "x='a",
        "''=",
        "jdbc:a",
        "jdbc:",
        ";password={",
        "(&a",
    ],
)
@pytest.mark.parametrize("begin", ["", "OPTIONS(", "jdbc:x;", "SET a"])
def test_no_text_takes_long(begin: str, part: str) -> None:
    """Python holds the interpreter's lock meanwhile: a pattern that takes the square of a length needs minutes."""

    def seconds(length: int) -> float:
        text = begin + part * (length // len(part)) + "'"
        begun = time.thread_time()
        Redactor().text(text)
        return time.thread_time() - begun

    assert min(seconds(64_000) for _ in range(3)) < 2

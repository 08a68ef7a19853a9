"""Every command and page that shows texts of users: nothing of theirs steers a terminal, or is taken as markup."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from spark_events.cli.ctas import show_transactions
from spark_events.cli.main import app
from spark_events.cli.sql import views
from spark_events.cli.terminal.console import print_error, print_json, print_warnings
from spark_events.cli.why.tables import print_explanation
from spark_events.diagnosis.times.cores_model import Estimate
from spark_events.diagnosis.times.ledger import COMPUTING
from spark_events.history.page.page import _label, _round_down, _round_up
from spark_events.history.report import Report
from spark_events.history.table import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMES, Row, Table
from spark_events.history.tables.all_tables import TABLES, Tables
from spark_events.runtime.log_once import logger
from spark_events.runtime.redaction import Redactor, redact_logs
from spark_events.sql_runner.deploy.decision import Action, Decision
from spark_events.sql_runner.deploy.deployer import DeployResult
from spark_events.sql_runner.deploy.planner import PlannedQuery
from spark_events.sql_runner.deploy.query_row import QueryRow
from spark_events.sql_runner.store.history import Deployment
from spark_events.why.explanation import Explanation
from spark_events.why.found_issue import FoundIssue
from spark_events.why.written import page as why_page
from tests.support.forked_commands import run_forked
from tests.support.hostile_logs import application, log_of
from tests.support.hostile_texts import TEXTS, TIMES_MS, steering

HOUR = 3_600_000
T0 = 1_795_132_800_000
each_text = pytest.mark.parametrize("name", TEXTS)


def shown(show: Callable[[Console], Any], width: int = 100) -> str:
    """Return what is printed on a terminal that can do nothing."""
    out = io.StringIO()
    show(Console(file=out, width=width, highlight=False, emoji=False, color_system=None))
    return out.getvalue()


def run(*arguments: str) -> str:
    """Return what a command prints, whatever its exit code is; an exception fails the test."""
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        from spark_events.api import ConfigError

        assert isinstance(result.exception, ConfigError), repr(result.exception)
    return result.output


def report_of(text: str, time_ms: int = T0) -> Report:
    """Return a report in which each text that events bring is this one."""
    whose = {"app_name": text, "query_name": text}
    until_ms = time_ms + HOUR
    uptime = {
        **whose,
        "kind": "query",
        "status": "RUNNING",
        "state": "up",
        "status_since_ms": time_ms,
        **dict.fromkeys(("up_ms", "down_ms", "unknown_ms", "starting_ms", "stopped_ms"), 1_000),
        "longest_outage_ms": 1_000,
        "uptime_percent": 50.0,
        "failures": 1,
        "outages": 1,
        "restarts": 1,
        "mtbf_ms": None,
        "mttr_ms": 7,
        "last_heard_ms": until_ms,
        "silent_ms": 0,
        "heartbeat_ms": 60_000,
    }
    run = {
        "app_name": f"{text} nightly",
        **dict.fromkeys(("runs", "ok", "failed", "canceled", "running", "unknown"), 1),
        **dict.fromkeys(("last_start_ms", "last_end_ms", "last_ok_end_ms"), time_ms),
        **dict.fromkeys(("last_duration_ms", "usual_ms"), None),
        "last_status": "FINISHED",
    }
    sla = {
        **whose,
        "sla_ms": 60_000,
        **dict.fromkeys(("completed", "failed", "late_by_duration", "late_by_gap", "met"), 1),
        "stopped_late": 0,
        "overdue": True,
        "met_percent": 10.0,
        "worst_duration_ms": 5,
        "worst_gap_ms": 6,
        "mean_duration_ms": 5.0,
    }
    failure = {
        **whose,
        **dict.fromkeys(("kind", "error", "exception", "labels", "message"), text),
        "date": "2026-11-20",
        "count": 2,
        "first_ms": time_ms,
        "last_ms": until_ms,
    }
    interval = {**whose, "kind": "query", "status": "RUNNING", "state": "up"}
    duration = {**whose, "time_ms": time_ms, "duration_ms": 5, "gap_ms": None}
    return Report(
        since_ms=time_ms,
        until_ms=until_ms,
        sla_ms=60_000,
        sla_by_query={text: 1_000},
        tables=Tables(
            {table.name: [_row_of(table, text, time_ms)] for table in TABLES}
            | {
                "uptime": [uptime],
                "uptime_per_day": [{**uptime, "date": "2026-11-20"}, {**uptime, "date": "2026-11-21"}],
                "runs": [run],
                "checkpoint_sla": [sla],
                "checkpoint_sla_per_day": [{**sla, "date": "2026-11-20"}],
                "failures": [failure],
            }
        ),
        intervals=[{**interval, "start_ms": time_ms, "end_ms": until_ms}],
        durations=[duration],
        notes=[text],
        records=1,
    )


def test_how_long_ago_something_was_is_said_of_reports_that_end_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of others, "now" would be their last event; what does not fit on a terminal is named."""
    from spark_events.cli.reports.tables import print_report

    monkeypatch.setenv("COLUMNS", "80")  # as a terminal, it has a width

    report = report_of("x")
    now = replace(report, until_now=True)
    narrow = shown(lambda out: print_report(report, out), width=80)

    assert " ago" not in narrow
    assert "columns left out: Uptime (outages, restarts, MTTR, longest outage" in narrow
    assert "use a wider terminal or --json" in narrow
    assert " ago" in shown(lambda out: print_report(now, out), width=80)
    assert "columns left out" not in shown(lambda out: print_report(report, out), width=140)


def test_names_and_axes_of_a_page() -> None:
    """The end of a long name is seen, which is the query's; axes end at round times."""
    assert _label("shop / orders") == "shop / orders"
    assert _label("spark-events-demo / orders_per_customer") == "spark-even…orders_per_customer"
    assert [_round_up(ms) for ms in (8_100, 800, 70)] == [10_000, 1_000, 100]
    assert [_round_down(ms) for ms in (8_100, 800, 3)] == [5_000, 500, 2]


def _row_of(table: Table, text: str, time_ms: int) -> Row:
    """Return a row of any table: what its columns may have, and the time where it shows a moment."""
    values = {STRING: text, DATE: "2026-11-20", BIGINT: 7, DOUBLE: 50.0, BOOLEAN: False}
    moments = {shown.value for shown in table.shown if shown.how in TIMES}
    return {
        column.name: time_ms if column.name in moments else values[column.type] for column in table.columns
    }


def explanation_of(text: str) -> Explanation:
    """Return what made an application slow, all of whose texts are this one."""
    of_text = dict.fromkeys(("kind", "severity", "about", "sentence", "advice"), text)
    issue = FoundIssue(**of_text, lost_ms=None, lost_bytes=1, evidence={"description": text, text: text})
    return Explanation(
        text,
        text,
        0,
        1_000,
        False,
        [issue],
        {COMPUTING: 1_000},
        critical_path_ms=500,
        estimates=[Estimate(None, 500)],
    )


@each_text
def test_why_on_a_terminal(name: str) -> None:
    assert not steering(shown(lambda out: print_explanation(explanation_of(TEXTS[name]), out)))


@each_text
def test_why_as_a_page(name: str) -> None:
    """No markup of users is in it, and no control character."""
    html = why_page([explanation_of(TEXTS[name])])
    assert not steering(html)
    assert "<script" not in html


@each_text
def test_report_on_a_terminal(name: str) -> None:
    from spark_events.cli.reports.tables import print_report

    text = shown(lambda out: print_report(report_of(TEXTS[name]), out))

    assert not steering(text)
    assert len(text) < 2_000_000


def test_numbers_of_any_size_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Other programs' files may have them."""
    print_json({"rows": 10**30, "name": "\u6f22"})
    assert json.loads(capsys.readouterr().out) == {"rows": 10**30, "name": "\u6f22"}


def test_words_between_colons_are_no_emoji() -> None:
    """A line's number, a path and a name stay what they are."""
    done = run_forked("show", "/data/in:x:out")
    assert "/data/in:x:out" in done.stderr
    found = FoundIssue(
        "skew", "WARN", "stage 1 (:a: at x:100:)", ":v: and etl:x:daily", ":b:", 9_000, None, {}
    )
    text = shown(lambda out: print_explanation(Explanation("etl:x:daily", "", 0, 90_000, True, [found]), out))
    for said in ("etl:x:daily", ":a: at x:100:", ":v: and etl:x:daily", ":b:"):
        assert said in text


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
@pytest.mark.parametrize("size", ["²", "x", "0", "-5", ""])
def test_sizes_of_a_terminal_that_are_none(name: str, size: str) -> None:
    done = run_forked("paths", env={**os.environ, name: size})
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("tell", [print_error, lambda text: print_warnings([text])])
def test_a_name_with_line_feeds_makes_no_other_messages(
    tell: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    """What follows is indented, as the further lines of a message are."""
    tell("a\nerror all is lost\n  indented\n\nwarning x")
    first, *others = capfd.readouterr().err.splitlines()
    assert first.endswith(" a")
    assert others == ["  error all is lost", "  indented", "", "  warning x"]


def test_a_message_of_many_lines_on_a_terminal() -> None:
    """As Kubernetes writes its reasons: its lines stay, without those that are empty."""
    from spark_events.cli.reports.tables import print_report

    text = "The executor exited.\n\n\nIts containers:\n\n\t exit code: 137\n"
    lines = [line.strip() for line in shown(lambda out: print_report(report_of(text), out)).splitlines()]

    first = next(number for number, line in enumerate(lines) if line.endswith("The executor exited."))
    assert [line.split("  ")[-1].strip() for line in lines[first + 1 : first + 3]] == [
        "Its containers:",
        "exit code: 137",
    ]


@each_text
def test_report_as_a_page(name: str) -> None:
    """No markup of users is in it, and no control character."""
    from spark_events.history.page.page import page

    html = page(report_of(TEXTS[name]))
    assert not steering(html)
    assert "<script" not in html
    assert len(html) < 60 * len(TEXTS[name]) + 100_000


@pytest.mark.parametrize("time_ms", TIMES_MS)
def test_report_of_a_time_that_cannot_be(time_ms: int) -> None:
    """A store of an earlier version may have one."""
    from spark_events.cli.reports.tables import print_report
    from spark_events.history.page.page import page

    assert len(page(report_of("x", time_ms))) < 100_000
    assert "x" in shown(lambda out: print_report(report_of("x", time_ms), out))


@pytest.mark.parametrize(("days", "rows", "drawn"), [(800, 100, 50), (2, 10_000, 1)])
def test_a_page_of_very_many_rows(days: int, rows: int, drawn: int) -> None:
    """Its tables have so many, and it says that there are more."""
    from spark_events.history.page.page import page

    report = report_of("x")
    one, of_day, failure = report.tables.uptime[0], report.tables.uptime_per_day[0], report.tables.failures[0]
    report.tables["uptime"] = [one] * rows
    report.tables["failures"] = [failure] * rows
    report.tables["uptime_per_day"] = [
        {**of_day, "date": f"{2000 + n:04}"} for n in range(days) for _ in range(rows)
    ]
    html = page(report)

    assert len(html) < 6_000_000
    assert html.count("<details") == drawn
    assert html.count("more: see --json") == 2 * (rows > 2_000)
    assert "Only the most recent days are shown" in html


@each_text
def test_lineage(tmp_path: Path, name: str) -> None:
    """All forms of it."""
    text = TEXTS[name]
    dataset = {"namespace": text, "name": text, "table": text or "t"}
    event = {
        "jobId": text,
        "jobName": text,
        "newStatus": text,
        "timeUnixNano": str(T0 * 1_000_000),
        "application": {"name": text},
        "lineage": {
            "sources": [{"datasets": [{**dataset, "namespace": "in"}]}],
            "sinks": [{"datasets": [dataset]}],
            "relations": [{"source": 0, "sink": 0, "columns": {text: [{"column": text}]}}],
        },
    }
    path = tmp_path / "a.lineage.000001.jsonl"
    path.write_text(json.dumps(event) + "\n")
    forms = (
        [],
        ["--format", "mermaid"],
        ["--format", "dot"],
        ["--of", text, "--columns"],
        ["--of", f"{text}.{text}"],
    )
    for arguments in forms:
        assert not steering(run("lineage", str(path), *arguments))


@each_text
def test_replay(tmp_path: Path, name: str) -> None:
    """Its summary has names and messages."""
    path = tmp_path / "app-1"
    path.write_bytes(log_of(*application(TEXTS[name])))
    said = run("replay", str(path))

    assert "1 application" in said
    assert not steering(said)


@each_text
def test_check(tmp_path: Path, name: str) -> None:
    """Keys and values of a configuration, and paths."""
    text = TEXTS[name].replace("\0", "")
    key = "spark.events.reporter.f"
    conf = ("--conf", f"{key}.factory.class=file_log", "--conf", f"{key}.path={tmp_path}/{text[:200]}")
    odd = ("--conf", f"{key}.{text}={text}", "--conf", f"spark.events.checkpoint.sla={text}")
    assert not steering(run("check", "--connect", *conf, *odd))


@each_text
def test_ctas_list(name: str) -> None:
    """One transaction a line, at any width."""
    txid = "20261122T003327-b40c087a"
    said = shown(lambda out: show_transactions([[txid, *[TEXTS[name]] * 6]] * 2, out), width=20)

    assert not steering(said)
    assert [line.split(" ")[0] for line in said.splitlines()[1:]] == [txid] * 2


@each_text
def test_sql_views(name: str) -> None:
    """Status, plan, result and history."""
    text = TEXTS[name]
    row = QueryRow(text, text, True, 1, text, T0, 5, T0, 1, text)
    current: Any = None
    planned = PlannedQuery(text, Decision(Action.FAIL, 1, text), current)
    deployment = Deployment(T0, text, 1, text, text, text, text)

    def show(out: Console) -> None:
        views.show_status([row, row], out)
        views.show_plan([planned], out)
        views.show_result(DeployResult(text, Action.FAIL, 1, text, True, text), out)
        views.show_history([deployment], out)

    assert not steering(shown(show))


@each_text
def test_logs(name: str) -> None:
    """A line of a log is one line, and what it says of users steers nothing; nor does a traceback."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    redact_logs(Redactor())
    logger.addHandler(handler)
    try:
        logger.error("query %s failed", TEXTS[name])
        assert len(lines.getvalue().splitlines()) == 1
        try:
            raise RuntimeError(TEXTS[name])
        except RuntimeError:
            logger.exception("it failed")
    finally:
        logger.removeHandler(handler)

    assert not steering(lines.getvalue().replace("\t", ""))

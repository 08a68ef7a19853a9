"""All that a report of stored events says: on terminals, as JSON, as Parquet, as a page and as a live page."""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path

import orjson
from rich.console import Console

from spark_events.cli.reports.tables import print_report
from spark_events.history.options import ReportOptions, Sla
from spark_events.history.page.live_page import LivePage, View
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.run import files_of, make_report
from tests.support.event_log_reading import report_whole
from tests.support.history_story import DAY, HOUR, MARKUP, MIN, Story, fleet, write
from tests.support.stored_logs import recorded_logs
from tests.support.story_told import told

_WAIT_MS = 60_000
SLA = Sla(60 * MIN, {"orders": 30_000, "nobody's": 1_000})
VIEWS = {
    "a query": View("shop", "orders"),
    "an application": View("nightly"),
    "an hour": View(span_ms=HOUR),
}


def busy() -> list[Story]:
    """A week of batch jobs, one of which gets slow, one of which is lost; with all that can be reported."""
    stories = list(fleet())
    for name, minutes in (("hourly", (10, 11, 10, 9, 12, 10, 60)), ("weekly [b]", (1, 1, 1))):
        story = Story(name)
        for number, lasts in enumerate(minutes):
            at = number * 2 * HOUR
            story.driver(f"{name}-{number}").application(at, "CREATED", "RUNNING")
            story.heartbeats(at, at + lasts * MIN)
            story.application(at + lasts * MIN, "FAILED" if name != "hourly" and number == 2 else "FINISHED")
        stories.append(story)
    hourly = stories[2].driver("hourly-6")
    for number, more in enumerate(
        ({"lostMs": 7 * MIN}, {"lostBytes": 5 << 20}, {"lostMs": 7 * MIN, "live": "true"})
    ):
        issue = {"issue": f"skew{number}", "subject": "stage 4.0", "summary": MARKUP, "advice": "[b]salt[/b]"}
        at = 12 * HOUR + number * MIN
        hourly.event(at, "PerformanceIssueEvent", **{"job_kind": "stage", **issue, **more})
    for number in range(45):
        counter = {"counter": f"rows {number:02}", "count": 1_000 * number, "labels": "shop=berlin"}
        hourly.event(12 * HOUR + number, "TaskCounterEvent", **counter)
    for number in range(3):  # that end at once
        executor = {"job_kind": "executor", "executor_id": str(number), "reason": "heartbeat_timeout"}
        hourly.event(12 * HOUR + MIN, "ExecutorLostEvent", **executor)
    stories.append(fleet()[1])  # once more
    hourly.event(12 * HOUR, "RecordsDroppedEvent", cause="queue_full", count=1_234)
    hourly.event(12 * HOUR, "MyOwnEvent", what="ever").event(-400 * 365 * DAY, "HeartbeatEvent", intervalMs=1)
    hourly.job_failure(12 * HOUR, "PYTHON_EXCEPTION", MARKUP).checkpoint(12 * HOUR, -5, name="odd")
    # A driver that was killed, and one that may have been.
    killed = Story("clicks").application(0, "CREATED", "RUNNING").query(0, "RUNNING", name="c")
    quiet = (
        Story("quiet")
        .application(30 * HOUR, "CREATED", "RUNNING")
        .heartbeats(30 * HOUR, 30 * HOUR + 55 * MIN)
    )
    stories += [killed.heartbeats(0, HOUR), quiet]
    return stories


def told_reports(folder: Path) -> dict[str, Path]:
    """Return folders of stored events, by name: made-up ones, and those of recorded event logs."""
    made = {"story": (told(),), "busy": busy()}
    folders = {name: write(folder / name, *stories) for name, stories in made.items()}
    (folder / "logs").mkdir()
    logs = recorded_logs(folder / "logs")
    for name in ("lifecycle", "slow"):
        folders[name] = folder / name
        _replay(logs[name], folders[name])
    return folders


def _replay(log: Path, folder: Path) -> None:
    """Write what an event log gives as the file log does."""
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(folder),
        "spark.events.issue.min-duration": "1ms",
    }
    report_whole(log, conf, _WAIT_MS)


def told_by_report(folder: Path, out: Path) -> dict[str, str]:
    """Return what reports of some stored events say, by its form.

    Args:
        folder: of the events.
        out: a new folder, for files.
    """
    out.mkdir()
    options = ReportOptions(
        (str(folder),), SLA, html=out / "page.html", json=out / "report.json", parquet=str(out / "tables")
    )
    database = DuckDb()
    try:
        report = make_report(database, options)
    finally:
        database.close()
    for path, contents in files_of(report, options).items():
        path.write_bytes(contents)
    live = LivePage(ReportOptions((str(folder),), SLA), 5.0, lambda: 0)
    texts = {
        "wide": _on_a_terminal(report, 140),
        "narrow": _on_a_terminal(report, 80),
        "json": _json((out / "report.json").read_bytes()),
        "parquet": _parquet(out / "tables"),
        "page": _html((out / "page.html").read_text()),
    }
    for name, view in VIEWS.items():
        texts[f"live {name}"] = _html(live.html(view))
    return {name: text.replace(str(folder), "FOLDER") for name, text in texts.items()}


def _on_a_terminal(report: object, width: int) -> str:
    """Return what is printed, with styles."""
    out = io.StringIO()
    print_report(
        report, Console(file=out, width=width, force_terminal=True, color_system="standard", highlight=False)
    )  # type: ignore[arg-type]
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _json(content: bytes) -> str:
    """Return a line of each row; the order of the keys of the whole object means nothing."""
    lines = []
    for key, value in sorted(orjson.loads(content).items()):
        if isinstance(value, list):
            lines += [f"{key} {json.dumps(each)}" for each in value]
        lines.append(f"{key} {len(value)}" if isinstance(value, list) else f"{key} {json.dumps(value)}")
    return "\n".join(lines)


def _parquet(folder: Path) -> str:
    """Return the columns and the rows of each table."""
    from pyarrow import parquet

    lines = []
    for table in sorted(folder.iterdir()):
        rows = parquet.read_table(table)
        lines += [f"{table.name} {field.name} {field.type}" for field in rows.schema]
        lines += sorted(f"{table.name} {list(row.values())}" for row in rows.to_pylist())
    return "\n".join(lines)


def _html(page: str) -> str:
    """Return a page without the white space that no browser shows, an element of a table or drawing a line."""
    text = re.sub(r"\s+", " ", re.sub(r"(?s)<style>.*?</style>", _digest, page))
    text = re.sub(
        r" ?(</?(?:table|tr|svg|h1|h2|h3|div|details|summary|p|nav|body|rect|circle)\b)", r"\n\1", text
    )
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _digest(text: re.Match[str]) -> str:
    return f"<style {hashlib.sha256(text[0].encode()).hexdigest()[:12]}>"

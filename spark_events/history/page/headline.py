"""The sentence that a page opens with: what is wrong at its end, and what went wrong before."""

from __future__ import annotations

from spark_events.api.toolkit.formatting import duration
from spark_events.history.figures.job_runs import LOST
from spark_events.history.figures.timeline import DOWN, LAST_FAILED, NOT_HEARD, STOPPED
from spark_events.history.report import Report
from spark_events.history.table import job_name


def wrong_now(report: Report) -> list[tuple[str, list[str]]]:
    """Return what is wrong at the end, the worst first: in words, and the names; each name once."""
    uptime = report.tables.uptime
    silent = [row for row in uptime if row["state"] == NOT_HEARD]
    lost = [row for row in uptime if row["status"] == LOST]
    down = [row for row in uptime if row["state"] == DOWN and row["status"] != LOST]
    known = {job_name(row) for row in (*lost, *silent, *down)}
    overdue = [row for row in report.tables.checkpoint_sla if row["overdue"] and job_name(row) not in known]
    failed = [row for row in uptime if row["state"] == LAST_FAILED and row["status"] != LOST]
    return [
        (words, [job_name(row) for row in rows])
        for words, rows in (
            ("lost", lost),
            ("not heard of", silent),
            ("down", down),
            ("with an overdue micro-batch", overdue),
            ("failed", failed),
        )
        if rows
    ]


def nothing_wrong(report: Report) -> str:
    """Return what to say where nothing is wrong: whether anything still runs."""
    ended = all(row["state"] == STOPPED for row in report.tables.uptime)
    return "Nothing is down; everything has ended." if ended else "Nothing is down."


def outages(report: Report) -> str:
    """Return how many outages there were, and the longest."""
    rows = [row for row in report.tables.uptime if row["outages"]]
    down = [row for row in report.tables.uptime if row["longest_outage_ms"]]
    if not rows and not down:
        return "No outages."
    number = sum(row["outages"] for row in rows)
    longest = max(rows or down, key=lambda row: row["longest_outage_ms"] or 0)
    shown = f"{duration(longest['longest_outage_ms'])} ({job_name(longest)})"
    if not number:
        return f"No outage began; of this time, one from before takes {shown}."
    return f"1 outage of {shown}." if number == 1 else f"{number:,} outages, the longest {shown}."

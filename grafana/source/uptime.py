"""Uptime: how long was each query up, how often did it fail, and why."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import units

from grafana.source.panels import (
    AMBER,
    GREEN,
    LEGEND,
    RED,
    Target,
    bars,
    dashboard,
    lines,
    number,
    states,
)
from grafana.source.queries import FAILURES, QUERY_STATUS, RESTARTS, STATUS_NAMES, UP, latest

_SHARE = f"avg_over_time({UP}[$__range])"


def uptime() -> builders.Dashboard:
    """Return the dashboard."""
    target = (
        builders.TextBoxVariable("target")
        .label("Target in %")
        .description("The share of the time that a query has to be up.")
        .default_value("99.9")
    )
    board = dashboard(
        "spark-events-uptime",
        "Spark query uptime",
        "Uptime against a target, restarts and failures of streaming queries. A query is down from its "
        "failure, or its driver's, until it is RUNNING again; before its first start and after a stop on "
        "purpose it is neither.",
    ).with_variable(target)
    for panel in _numbers():
        board.with_panel(panel.height(6).span(6))
    board.with_panel(
        states(
            "Status",
            "In which status each query is; gone: its driver died.",
            Target(QUERY_STATUS),
            STATUS_NAMES,
        )
        .height(9)
        .span(24)
    )
    board.with_panel(
        lines(
            "Uptime against target",
            "The share of the last hour, at each time, that each query was up.",
            [Target(f"100 * avg_over_time({UP}[1h])"), Target("vector($target)", "target")],
            units.Percent,
            dashed="target",
            highest=100,
        )
        .height(8)
        .span(12)
    )
    by_class = f"sum by (error, failure_type) {FAILURES} > 0"
    board.with_panel(
        bars(
            "Failures by class",
            "Of queries and what works for them, in the time that is shown: Spark's error condition, or the "
            "exception's class; USER, SYSTEM or UNKNOWN.",
            Target(by_class, "{{error}} ({{failure_type}})"),
        )
        .height(8)
        .span(12)
    )
    board.with_panel(
        lines(
            "Up for",
            "How long each query has been RUNNING without a break.",
            [Target(latest("spark_query_uptime_seconds"))],
            units.Seconds,
        )
        .height(8)
        .span(12)
    )
    hourly = RESTARTS.replace("$__range", "1h")
    board.with_panel(
        lines("Restarts within an hour", "Runs but the first, of the hour before.", [Target(hourly)])
        .height(8)
        .span(12)
    )
    return board


def _numbers() -> list[builders.Panel]:
    last_s = latest("spark_last_failure_timestamp_seconds")
    return [
        number(
            "Uptime",
            "The share of the time shown that it was up, of that in which it was up or down.",
            Target(f"100 * {_SHARE}"),
            [(None, RED), (99, AMBER), (99.9, GREEN)],
            units.Percent,
            3,
        ),
        number(
            "Downtime",
            "In the time that is shown.",
            Target(f"sum_over_time((1 - {UP})[$__range:$__interval]) * $__interval_ms / 1000"),
            [(None, GREEN), (60, AMBER), (600, RED)],
            units.Seconds,
        ),
        number(
            "Restarts",
            "Runs but the first, in the time that is shown, in whichever driver.",
            Target(RESTARTS),
            [(None, GREEN), (1, AMBER), (5, RED)],
            decimals=0,
        ),
        number(
            "Time since the last failure",
            "Of the query, or of a job that worked for it.",
            Target(f"time() - {last_s}", LEGEND),
            [(None, RED), (3_600, AMBER), (86_400, GREEN)],
            units.Seconds,
        ),
    ]

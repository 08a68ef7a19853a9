"""Uptime: how long was each query up, how often did it fail, and why."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import units

from grafana.source.panels import (
    AMBER,
    GREEN,
    LEGEND,
    RED,
    PromQuery,
    bars,
    dashboard,
    lines,
    number,
    objective,
    place,
    states,
)
from grafana.source.queries import FAILURES, QUERY_STATUS, RESTARTS, STATUS_NAMES, UP, latest

_SHARE = f"avg_over_time({UP}[$__range])"


def uptime() -> builders.Dashboard:
    """Return the dashboard."""
    target = objective("Target in %", "The share of the time that a query has to be up.", "99.9")
    board = dashboard(
        "spark-events-uptime",
        "Spark query uptime",
        "Uptime against a target, restarts and failures of streaming queries. A query is down from its "
        "failure, or its driver's, until it is RUNNING again; before its first start and after a stop on "
        "purpose it is neither.",
    ).with_variable(target)
    status = states(
        "Status",
        "The status of each query over time; gone means that its driver died.",
        PromQuery(QUERY_STATUS),
        STATUS_NAMES,
    )
    place(board, _numbers(), height=6, width=6)
    place(board, [status], height=9, width=24)
    place(board, _over_time(), height=8, width=12)
    return board


def _over_time() -> list[builders.Panel]:
    hourly_restarts = RESTARTS.replace("$__range", "1h")
    return [
        lines(
            "Uptime against target",
            "The share of the preceding hour that each query was up.",
            [PromQuery(f"100 * avg_over_time({UP}[1h])"), PromQuery("vector($target)", "target")],
            units.Percent,
            dashed="target",
            highest=100,
        ),
        bars(
            "Failures by class",
            "Failures of queries and their jobs in the time range, by Spark's error condition or the "
            "exception's "
            "class, and by type: USER, SYSTEM or UNKNOWN.",
            PromQuery(f"round(sum by (error, failure_type) {FAILURES}) > 0", "{{error}} ({{failure_type}})"),
        ),
        lines(
            "Time since last restart",
            "How long each query has been RUNNING without interruption.",
            [PromQuery(latest("spark_query_uptime_seconds"))],
            units.Seconds,
        ),
        lines(
            "Restarts (1 h)",
            "Restarts of each query in the last hour.",
            [PromQuery(hourly_restarts)],
        ),
    ]


def _numbers() -> list[builders.Panel]:
    last_s = latest("spark_last_failure_timestamp_seconds")
    return [
        number(
            "Uptime",
            "The share of the time range that each query was up, not counting the time in which it was "
            "stopped on purpose.",
            PromQuery(f"100 * {_SHARE}"),
            [(None, RED), (99, AMBER), (99.9, GREEN)],
            units.Percent,
            3,
        ),
        number(
            "Downtime",
            "How long each query was down in the time range.",
            PromQuery(f"sum_over_time((1 - {UP})[$__range:$__interval]) * $__interval_ms / 1000"),
            [(None, GREEN), (60, AMBER), (600, RED)],
            units.Seconds,
        ),
        number(
            "Restarts",
            "Restarts of each query in the time range, also by a new driver.",
            PromQuery(RESTARTS),
            [(None, GREEN), (1, AMBER), (5, RED)],
            decimals=0,
        ),
        number(
            "Time since the last failure",
            "Time since the query, or a job of it, last failed.",
            PromQuery(f"time() - {last_s}", LEGEND),
            [(None, RED), (3_600, AMBER), (86_400, GREEN)],
            units.Seconds,
        ),
    ]

"""The overview: is anything down, late or lost?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import units

from grafana.source.panels import APP, GREEN, QUERY, RED, Target, dashboard, lines, number, rows, states
from grafana.source.queries import (
    APPLICATION_STATUS,
    BY_QUERY,
    FAILURES,
    OVERDUE,
    RESTARTS,
    STATUS_NAMES,
    UP,
    latest,
)

_NONE_IS_GOOD = [(None, GREEN), (1, RED)]
_NEUTRAL = [(None, "text")]


def fleet() -> builders.Dashboard:
    """Return the dashboard."""
    board = dashboard(
        "spark-events-fleet", "Spark fleet", "All applications and streaming queries at a glance."
    )
    for panel in _counts():
        board.with_panel(panel.height(4).span(4))
    board.with_panel(_queries().height(10).span(24))
    board.with_panel(
        states(
            "Applications",
            "In which status each application is.",
            Target(APPLICATION_STATUS, "{{app_name}}"),
            STATUS_NAMES,
        )
        .height(8)
        .span(12)
    )
    board.with_panel(
        lines(
            "Tasks that run",
            "Of all stages of each application.",
            [Target(f"sum by (app_name) (spark_application_active_tasks{{{APP}}})", "{{app_name}}")],
        )
        .height(8)
        .span(12)
    )
    board.with_row(builders.Row("The reporters themselves"))
    for panel in _reporters():
        board.with_panel(panel.height(8).span(8))
    return board


def _counts() -> list[builders.Panel]:
    running = f'app_status:spark_application_status:max{{{APP}, status="RUNNING"}} == 1'
    return [
        number("Applications running", "Whose drivers are up.", _count(running), _NEUTRAL),
        number("Queries running", "Streaming queries that are RUNNING.", _count(f"{UP} == 1"), _NEUTRAL),
        number(
            "Queries down",
            "Neither RUNNING nor stopped on purpose; also those whose driver is gone, for a day.",
            _count(f"{UP} == 0"),
            _NONE_IS_GOOD,
        ),
        number(
            "Checkpoints overdue",
            "Queries that owe a checkpoint for longer than spark.events.checkpoint.sla.",
            _count(OVERDUE),
            _NONE_IS_GOOD,
        ),
        number(
            "Failures",
            "Of applications, queries, jobs and stage attempts, in the time that is shown.",
            Target(f"sum {FAILURES} or vector(0)", ""),
            _NONE_IS_GOOD,
            decimals=0,
        ),
        number(
            "Records dropped",
            "By reporters and by the driver bridge, in the time that is shown: so much is missing.",
            Target(
                f"(sum(increase(spark_reporter_dropped_total{{{APP}}}[$__range])) or vector(0))"
                f" + (sum(increase(spark_bridge_dropped_total{{{APP}}}[$__range])) or vector(0))",
                "",
            ),
            _NONE_IS_GOOD,
            decimals=0,
        ),
    ]


def _count(expr: str) -> Target:
    return Target(f"count({expr}) or vector(0)", "")


def _queries() -> builders.Panel:
    status = (
        f"max by (app_name, query_name, status) (app_query_status:spark_query_status:max{{{QUERY}}} == 1)"
    )
    gone = f'label_replace({UP} == 0, "status", "gone", "", "") unless on (app_name, query_name) {status}'
    columns = [
        ("", f"{status} or {gone}"),
        ("up for, h", f"{latest('spark_query_uptime_seconds')} / 3600"),
        ("restarts", RESTARTS),
        ("last checkpoint, age in s", latest("spark_query_last_checkpoint_age_seconds")),
        ("last checkpoint, duration in s", latest("spark_query_last_checkpoint_duration_seconds")),
        ("input rows/s", latest("spark_query_input_rate_per_second")),
        ("backlog", f"sum {BY_QUERY} (spark_query_source_backlog{{{QUERY}}})"),
    ]
    return rows(
        "Streaming queries",
        "Each query by the names that outlive its restarts; restarts in the time that is shown. With status "
        "gone, its driver died.",
        columns,
        ["app_name", "query_name", "status"],
        dict(STATUS_NAMES.values()),
    )


def _reporters() -> list[builders.Panel]:
    by = "app_name, reporter, reporter_kind"
    legend = "{{app_name}}: {{reporter}} ({{reporter_kind}})"
    reported = f"sum by ({by}) (rate(spark_reporter_reported_total{{{APP}}}[$__rate_interval]))"
    return [
        lines(
            "Reported",
            "Events, spans and reports of metrics that were taken.",
            [Target(reported, legend)],
            "cps",
        ),
        lines(
            "Waiting",
            "Records in the queues of reporters, and in the driver bridge's.",
            [
                Target(f"max by ({by}) (spark_reporter_queue_depth{{{APP}}})", legend),
                Target(f"max by (app_name) (spark_bridge_queue_depth{{{APP}}})", "{{app_name}}: bridge"),
            ],
        ),
        lines(
            "Listeners behind Spark",
            "How long after Spark's record its event is made.",
            [Target(f"max by (app_name) (spark_bridge_listener_lag_seconds{{{APP}}})", "{{app_name}}")],
            units.Seconds,
        ),
    ]

"""The overview: is anything down, late or lost?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import units

from grafana.source.panels import (
    APP,
    NEUTRAL,
    NONE_IS_GOOD,
    QUERY,
    PromQuery,
    count,
    dashboard,
    lines,
    number,
    place,
    rows,
    states,
)
from grafana.source.queries import (
    APPLICATION_STATUS,
    BY_QUERY,
    FAILURES,
    OVERDUE,
    RESTARTS,
    STATUS_NAMES,
    UP,
    counted,
    latest,
)


def fleet() -> builders.Dashboard:
    """Return the dashboard."""
    board = dashboard(
        "spark-events-fleet", "Spark fleet", "All applications and streaming queries at a glance."
    )
    place(board, _counts(), height=4, width=4)
    place(board, [_queries()], height=10, width=24)
    place(board, _applications(), height=8, width=12)
    board.with_row(builders.Row("The reporters themselves"))
    place(board, _reporters(), height=8, width=8)
    return board


def _counts() -> list[builders.Panel]:
    running = f'app_status:spark_application_status:max{{{APP}, status="RUNNING"}} == 1'
    return [
        number("Applications running", "Applications whose drivers are up.", count(running), NEUTRAL),
        number("Queries running", "Streaming queries that are RUNNING.", count(f"{UP} == 1"), NEUTRAL),
        number(
            "Queries down",
            "Queries that are neither RUNNING nor stopped on purpose, including those whose driver "
            "disappeared within a day.",
            count(f"{UP} == 0"),
            NONE_IS_GOOD,
        ),
        number(
            "Commits overdue",
            "Queries that have had work to commit for longer than spark.events.checkpoint.sla.",
            count(OVERDUE),
            NONE_IS_GOOD,
        ),
        number(
            "Failures",
            "Failures of applications, queries, jobs and stage attempts in the time range.",
            PromQuery(f"round(sum {FAILURES}) or vector(0)", ""),
            NONE_IS_GOOD,
            decimals=0,
        ),
        number(
            "Records dropped",
            "Records that reporters and the driver bridge dropped in the time range, and that are missing "
            "therefore.",
            PromQuery(
                f"(sum {counted(f'spark_reporter_dropped_total{{{APP}}}')} or vector(0))"
                f" + (sum {counted(f'spark_bridge_dropped_total{{{APP}}}')} or vector(0))",
                "",
            ),
            NONE_IS_GOOD,
            decimals=0,
        ),
    ]


def _queries() -> builders.Panel:
    status = (
        f"max by (app_name, query_name, status) (app_query_status:spark_query_status:max{{{QUERY}}} == 1)"
    )
    gone = f'label_replace({UP} == 0, "status", "gone", "", "") unless on (app_name, query_name) {status}'
    columns = [
        ("", f"{status} or {gone}", ""),
        ("up for", latest("spark_query_uptime_seconds"), units.Seconds),
        ("restarts", RESTARTS, units.Short),
        ("last commit, age", latest("spark_query_last_checkpoint_age_seconds"), units.Seconds),
        ("last micro-batch, duration", latest("spark_query_last_checkpoint_duration_seconds"), units.Seconds),
        ("input rows/s", latest("spark_query_input_rate_per_second"), units.Short),
        ("backlog", f"sum {BY_QUERY} (spark_query_source_backlog{{{QUERY}}})", units.Short),
    ]
    return rows(
        "Streaming queries",
        "Each query, with its restarts in the time range; status gone means that its driver died. The "
        "name leads to "
        "its uptime.",
        columns,
        {"app_name": "application", "query_name": "query", "status": "status"},
        dict(STATUS_NAMES.values()),
    )


def _applications() -> list[builders.Panel]:
    tasks = f"sum by (app_name) (spark_application_active_tasks{{{APP}}})"
    return [
        states(
            "Applications",
            "The status of each application over time.",
            PromQuery(APPLICATION_STATUS, "{{app_name}}"),
            STATUS_NAMES,
        ),
        lines("Running tasks", "Running tasks of each application.", [PromQuery(tasks, "{{app_name}}")]),
    ]


def _reporters() -> list[builders.Panel]:
    by = "app_name, reporter, reporter_kind"
    legend = "{{app_name}}: {{reporter}} ({{reporter_kind}})"
    reported = f"sum by ({by}) (rate(spark_reporter_reported_total{{{APP}}}[$__rate_interval]))"
    return [
        lines(
            "Reporter throughput",
            "Events, spans and metric reports per second that each reporter took.",
            [PromQuery(reported, legend)],
            "cps",
        ),
        lines(
            "Queue depth",
            "Records waiting in the queues of the reporters and of the driver bridge.",
            [
                PromQuery(f"max by ({by}) (spark_reporter_queue_depth{{{APP}}})", legend),
                PromQuery(f"max by (app_name) (spark_bridge_queue_depth{{{APP}}})", "{{app_name}}: bridge"),
            ],
        ),
        lines(
            "Listener lag",
            "Time between Spark's record and its event.",
            [PromQuery(f"max by (app_name) (spark_bridge_listener_lag_seconds{{{APP}}})", "{{app_name}}")],
            units.Seconds,
        ),
    ]

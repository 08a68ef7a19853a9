"""Checkpoint SLA: does each micro-batch commit in time, and how much of the error budget is left."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import units

from grafana.source.panels import (
    AMBER,
    GREEN,
    NONE_IS_GOOD,
    QUERY,
    RED,
    PromQuery,
    dashboard,
    lines,
    number,
    objective,
    place,
)
from grafana.source.queries import BY_QUERY, OVERDUE, SHARE_MET, SLA_MET, SLA_MISSED, latest

_SLA = latest("spark_query_checkpoint_sla_seconds")
_BUDGET = "(1 - $target / 100)"


def checkpoint_sla() -> builders.Dashboard:
    """Return the dashboard."""
    target = objective(
        "Objective in %",
        "The share of the micro-batches that must meet the SLA; the alerts assume 99.",
        "99",
    )
    board = dashboard(
        "spark-events-checkpoint-sla",
        "Spark checkpoint SLA",
        "Micro-batches of streaming queries against spark.events.checkpoint.sla: how long a query that has "
        "work may "
        "go without committing.",
    ).with_variable(target)
    place(board, _numbers(), height=6, width=6)
    place(board, (*_times(), *_budget(), *_batches()), height=8, width=12)
    return board


def _numbers() -> list[builders.Panel]:
    return [
        number(
            "Met deadline",
            "The share of the micro-batches in the time range that met the SLA.",
            PromQuery(f"100 * {SHARE_MET}"),
            [(None, RED), (95, AMBER), (99, GREEN)],
            units.Percent,
            2,
        ),
        number(
            "Missed deadlines",
            "Micro-batches in the time range that missed the SLA.",
            PromQuery(f"round({SLA_MISSED})"),
            NONE_IS_GOOD,
            decimals=0,
        ),
        number(
            "Overdue now",
            "How long each query whose commit is overdue has had work to commit.",
            PromQuery(f"{OVERDUE} or 0 * {latest('spark_query_last_checkpoint_age_seconds')}"),
            NONE_IS_GOOD,
            units.Seconds,
        ),
        number(
            "Budget left",
            "The share of the misses allowed by the objective that is left in the time range; below 0, "
            "there were more.",
            PromQuery(f"100 * (1 - ({SLA_MISSED} / ({SLA_MET} + {SLA_MISSED})) / {_BUDGET})"),
            [(None, RED), (0, AMBER), (50, GREEN)],
            units.Percent,
            1,
        ),
    ]


def _times() -> list[builders.Panel]:
    buckets = f"rate(spark_query_checkpoint_duration_seconds_bucket{{{QUERY}}}[$__rate_interval])"
    p95 = f"histogram_quantile(0.95, sum by (app_name, query_name, le) ({buckets}))"
    sla = PromQuery(_SLA, "SLA {{app_name}} / {{query_name}}")

    def against_sla(title: str, description: str, metric: str) -> builders.Panel:
        queries = [PromQuery(latest(metric)), sla]
        return lines(title, description, queries, units.Seconds, dashed="SLA .*", logarithmic=True)

    return [
        against_sla(
            "Duration against the SLA",
            "The duration of the last micro-batch, from trigger to commit.",
            "spark_query_last_checkpoint_duration_seconds",
        ),
        against_sla(
            "Age of the last commit",
            "Time since the last commit; it grows while the query is down, hangs, or has nothing to do.",
            "spark_query_last_checkpoint_age_seconds",
        ),
        lines(
            "Duration, 95th percentile",
            "The 95th percentile of micro-batch durations, from the histogram's buckets.",
            [PromQuery(p95)],
            units.Seconds,
        ),
        lines(
            "Micro-batches committed and failed",
            "Micro-batches committed and failed per minute.",
            [
                PromQuery(
                    f"60 * sum {BY_QUERY} (rate(spark_query_number_of_{outcome}_checkpoints_total{{{QUERY}}}"
                    "[$__rate_interval]))",
                    f"{outcome}: {{{{app_name}}}} / {{{{query_name}}}}",
                )
                for outcome in ("completed", "failed")
            ],
        ),
    ]


def _budget() -> list[builders.Panel]:
    def burn(window: str) -> PromQuery:
        ratio = f"app_query:spark_query_checkpoint_sla_missed:ratio_rate{window}{{{QUERY}}}"
        return PromQuery(f"{ratio} / {_BUDGET}", f"{window}: {{{{app_name}}}} / {{{{query_name}}}}")

    return [
        lines(
            "Burn rate of the error budget, fast",
            "At 1, the budget lasts exactly for its period; the alert pages at 14.4 over 1 h and at 6 "
            "over 6 h.",
            [burn("1h"), burn("6h"), PromQuery("vector(14.4)", "page")],
            dashed="page",
        ),
        lines(
            "Burn rate of the error budget, slow",
            "The alert opens a ticket at 3 over 1 d and at 1 over 3 d.",
            [burn("1d"), burn("3d"), PromQuery("vector(3)", "ticket")],
            dashed="ticket",
        ),
    ]


def _batches() -> list[builders.Panel]:
    interval = PromQuery(
        latest("spark_query_trigger_interval_seconds"), "trigger {{app_name}} / {{query_name}}"
    )
    return [
        lines(
            "Batch duration against the trigger interval",
            "A query whose batches take longer than its trigger interval falls behind.",
            [PromQuery(latest("spark_query_batch_duration_seconds")), interval],
            units.Seconds,
            dashed="trigger .*",
        ),
        lines(
            "State size",
            "The size of all state at the last commit.",
            [PromQuery(latest("spark_query_last_checkpoint_full_size_bytes"))],
            units.BytesIEC,
        ),
        lines(
            "State rows",
            "Rows in the state of all operators.",
            [PromQuery(latest("spark_query_state_rows"))],
        ),
        lines(
            "Backlog",
            "What the sources hold that the query has not read yet, for sources whose offsets are numbers.",
            [PromQuery(f"sum {BY_QUERY} (spark_query_source_backlog{{{QUERY}}})")],
        ),
    ]

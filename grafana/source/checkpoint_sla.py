"""Checkpoint SLA: does each micro-batch commit in time, and how much of the error budget is left."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import units

from grafana.source.panels import AMBER, GREEN, QUERY, RED, Target, dashboard, lines, number
from grafana.source.queries import BY_QUERY, OVERDUE, SHARE_MET, SLA_MET, SLA_MISSED, latest

_SLA = latest("spark_query_checkpoint_sla_seconds")
_BUDGET = "(1 - $target / 100)"


def checkpoint_sla() -> builders.Dashboard:
    """Return the dashboard."""
    target = (
        builders.TextBoxVariable("target")
        .label("Objective in %")
        .description("The share of the checkpoints that have to come within the SLA; alerts are made for 99.")
        .default_value("99")
    )
    board = dashboard(
        "spark-events-checkpoint-sla",
        "Spark checkpoint SLA",
        "Checkpoints of streaming queries against spark.events.checkpoint.sla: the longest time that there "
        "may be from one to the next while the query has work.",
    ).with_variable(target)
    for panel in _numbers():
        board.with_panel(panel.height(6).span(6))
    for panel in (*_times(), *_budget(), *_batches()):
        board.with_panel(panel.height(8).span(12))
    return board


def _numbers() -> list[builders.Panel]:
    late = [(None, GREEN), (1, RED)]
    return [
        number(
            "In time",
            "The share of the checkpoints that came within the SLA, in the time that is shown.",
            Target(f"100 * {SHARE_MET}"),
            [(None, RED), (95, AMBER), (99, GREEN)],
            units.Percent,
            2,
        ),
        number(
            "Late",
            "Times that no checkpoint came within the SLA, in the time that is shown.",
            Target(f"round({SLA_MISSED})"),
            late,
            decimals=0,
        ),
        number(
            "Overdue now",
            "Queries that owe a checkpoint for longer than the SLA: how old the last one is.",
            Target(f"{OVERDUE} or 0 * {latest('spark_query_last_checkpoint_age_seconds')}"),
            late,
            units.Seconds,
        ),
        number(
            "Budget left",
            "Of the misses that the objective allows in the time that is shown; below 0 there were more.",
            Target(f"100 * (1 - ({SLA_MISSED} / ({SLA_MET} + {SLA_MISSED})) / {_BUDGET})"),
            [(None, RED), (0, AMBER), (50, GREEN)],
            units.Percent,
            1,
        ),
    ]


def _times() -> list[builders.Panel]:
    buckets = f"rate(spark_query_checkpoint_duration_seconds_bucket{{{QUERY}}}[$__rate_interval])"
    p95 = f"histogram_quantile(0.95, sum by (app_name, query_name, le) ({buckets}))"
    sla = Target(_SLA, "SLA {{app_name}} / {{query_name}}")
    return [
        lines(
            "Duration against the SLA",
            "From trigger to commit, of the last checkpoint at each time.",
            [Target(latest("spark_query_last_checkpoint_duration_seconds")), sla],
            units.Seconds,
            dashed="SLA .*",
            logarithmic=True,
        ),
        lines(
            "Age of the last checkpoint",
            "It grows while the query is down, hangs, or has nothing to do.",
            [Target(latest("spark_query_last_checkpoint_age_seconds")), sla],
            units.Seconds,
            dashed="SLA .*",
            logarithmic=True,
        ),
        lines(
            "Duration, 95th percentile",
            "Of the checkpoints around each time, from the histogram's buckets.",
            [Target(p95)],
            units.Seconds,
        ),
        lines(
            "Checkpoints completed and failed",
            "A minute.",
            [
                Target(
                    f"60 * sum {BY_QUERY} (rate(spark_query_number_of_{what}_checkpoints_total{{{QUERY}}}"
                    "[$__rate_interval]))",
                    f"{what}: {{{{app_name}}}} / {{{{query_name}}}}",
                )
                for what in ("completed", "failed")
            ],
        ),
    ]


def _budget() -> list[builders.Panel]:
    def burn(window: str) -> Target:
        ratio = f"app_query:spark_query_checkpoint_sla_missed:ratio_rate{window}{{{QUERY}}}"
        return Target(f"{ratio} / {_BUDGET}", f"{window}: {{{{app_name}}}} / {{{{query_name}}}}")

    return [
        lines(
            "Burn rate of the error budget, fast",
            "1 uses up the budget by the end of its time; the alert pages at 14.4 over 1 h and 6 over 6 h.",
            [burn("1h"), burn("6h"), Target("vector(14.4)", "page")],
            dashed="page",
        ),
        lines(
            "Burn rate of the error budget, slow",
            "The alert makes a ticket at 3 over 1 d and 1 over 3 d.",
            [burn("1d"), burn("3d"), Target("vector(3)", "ticket")],
            dashed="ticket",
        ),
    ]


def _batches() -> list[builders.Panel]:
    interval = Target(latest("spark_query_trigger_interval_seconds"), "trigger {{app_name}} / {{query_name}}")
    return [
        lines(
            "Batch duration against the trigger interval",
            "A query whose batches take longer than its trigger cannot follow.",
            [Target(latest("spark_query_batch_duration_seconds")), interval],
            units.Seconds,
            dashed="trigger .*",
        ),
        lines(
            "State",
            "Bytes of all state as of the last checkpoint.",
            [Target(latest("spark_query_last_checkpoint_full_size_bytes"))],
            units.BytesIEC,
        ),
        lines("Rows of state", "Of all operators.", [Target(latest("spark_query_state_rows"))]),
        lines(
            "Backlog",
            "What the sources have and the query did not read yet, where their offsets are numbers.",
            [Target(f"sum {BY_QUERY} (spark_query_source_backlog{{{QUERY}}})")],
        ),
    ]

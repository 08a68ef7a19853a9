"""PromQL that several panels share."""

from __future__ import annotations

from grafana.source.panels import AMBER, APP, BLUE, GRAY, GREEN, QUERY, RED

BY_QUERY = "by (app_name, query_name)"
UP = f"app_query:spark_query_up:max{{{QUERY}}}"
STATUS_NAMES = {
    0: ("gone", RED),
    1: ("CREATED", AMBER),
    2: ("RESTARTING", AMBER),
    3: ("RUNNING", GREEN),
    4: ("FAILED", RED),
    5: ("CANCELED", GRAY),
    6: ("FINISHED", BLUE),
}
"""The names and colors of the numbers of ``status``: ``gone`` is a query whose driver died."""
# A week, whatever time is shown: one that reports once a day is not to change sides.
BATCH = f"unless on (app_name) last_over_time(app:spark_application_streaming:group{{{APP}}}[7d])"
"""Leaves out the applications with a streaming query; what stands before it has their names."""


def latest(metric: str) -> str:
    """Return a gauge of a query, whatever driver it runs in."""
    return f"max {BY_QUERY} ({metric}{{{QUERY}}})"


def status_number(metric: str, by: str, selector: str) -> str:
    """Return the number of the status that something is in, of ``STATUS_NAMES``."""
    parts = [
        f'{number} * max by ({by}) ({metric}{{{selector}, status="{name}"}} == 1)'
        for number, (name, _) in STATUS_NAMES.items()
        if number
    ]
    return " or ".join(parts)


QUERY_STATUS = (
    status_number("app_query_status:spark_query_status:max", "app_name, query_name", QUERY) + f" or {UP} == 0"
)
APPLICATION_STATUS = status_number("app_status:spark_application_status:max", "app_name", APP)


def counted(counter: str, window: str = "$__range") -> str:
    """Return by how much each series of a counter grew within a window of time.

    Where a series has few samples, increase() makes two of one: it counts only what a driver began again.
    """
    within = f"{counter}[{window}]"
    grown = f"max_over_time({within}) - min_over_time({within})"
    return f"({grown} unless resets({within}) > 0 or increase({within}))"


# Each run has an id of its own, in whichever driver.
_RUNS = f"count by (app_name, query_name, run_id) (last_over_time(spark_query_info{{{QUERY}}}[$__range]))"
_OTHER_RUNS = f"count {BY_QUERY} ({_RUNS}) - 1"
# A run that ends before it is scraped is none of these, but its driver has counted it.
_COUNTED = f"round(sum {BY_QUERY} {counted(f'spark_query_num_restarts{{{QUERY}}}')})"
RESTARTS = f"({_COUNTED} > {_OTHER_RUNS} or {_OTHER_RUNS})"
# A counter that begins within the time shown, with the first failure of its kind, begins at 1: its first
# value comes to its growth.
_FAILURES = f"spark_failures_total{{{QUERY}}}"
_NEW = f"(min_over_time({_FAILURES}[$__range]) unless {_FAILURES} offset $__range)"
FAILURES = f"({counted(_FAILURES)} + {_NEW} or {counted(_FAILURES)})"
OVERDUE = f"app_query:spark_query_checkpoint_overdue:age_seconds{{{QUERY}}}"
SLA_MET = f"sum {BY_QUERY} {counted(f'spark_query_checkpoint_sla_met_total{{{QUERY}}}')}"
SLA_MISSED = f"sum {BY_QUERY} {counted(f'spark_query_checkpoint_sla_missed_total{{{QUERY}}}')}"
SHARE_MET = f"{SLA_MET} / ({SLA_MET} + {SLA_MISSED})"

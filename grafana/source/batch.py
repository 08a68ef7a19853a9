"""Batch applications: did each run, did it fail, was it slower than usual, and what did that cost."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import units

from grafana.source.executors import executors
from grafana.source.panels import (
    APP,
    NEUTRAL,
    NONE_IS_GOOD,
    PromQuery,
    bars,
    count,
    dashboard,
    lines,
    number,
    place,
    rows,
    states,
)
from grafana.source.queries import APPLICATION_STATUS, BATCH, FAILURES, STATUS_NAMES, counted

_BY_APP = "{{app_name}}"
_LOST = "spark_application_lost_time_seconds_total"
_STATUS = f"app_status:spark_application_status:max{{{APP}"
_RUN_TIME = f"app:spark_application_run_time:max{{{APP}}}"
_NO_NOTEBOOK = (
    f"unless on (app_name) (min_over_time(app:spark_application_interactive:min{{{APP}}}[7d]) == 1)"
)


def batch() -> builders.Dashboard:
    """Return the dashboard."""
    every = (
        builders.TextBoxVariable("every")
        .label("Finish at least every")
        .description(
            "The longest time between the ends of two successful runs, such as 26h for a nightly job."
        )
        .default_value("26h")
    )
    board = dashboard(
        "spark-events-batch",
        "Spark batch applications",
        "Applications without a streaming query: runs that failed, are missing or took longer than usual, "
        "the "
        "time that performance issues cost, and executors.",
    ).with_variable(every)
    place(board, _counts(), height=4, width=4)
    place(board, [_runs()], height=9, width=24)
    place(board, _over_time(), height=8, width=12)
    board.with_row(builders.Row("Performance issues"))
    place(board, _issues(), height=8, width=12)
    board.with_row(builders.Row("Executors"))
    place(board, executors(), height=8, width=8)
    return board


def _counts() -> list[builders.Panel]:
    def ever(status: str, window: str) -> str:
        return f'max by (app_name) (max_over_time({_STATUS}, status="{status}"}}[{window}])) == 1'

    known = f"group by (app_name) (last_over_time({_STATUS}}}[7d]))"
    missing = f"{known} unless on (app_name) ({ever('FINISHED', '$every')}) {BATCH} {_NO_NOTEBOOK}"
    running = f'max by (app_name) ({_STATUS}, status="RUNNING"}} == 1) {BATCH}'
    slower = _increase("spark_issues_total", "app_name", ', issue="regression"')
    lost = _increase(_LOST, "app_name")
    executors_lost = _increase("spark_application_executors_removed_total", "app_name")
    return [
        number("Running", "Batch applications that are running now.", count(running), NEUTRAL),
        number(
            "Failed",
            "Batch applications with a failed run in the time range.",
            count(f"{ever('FAILED', '$__range')} {BATCH}"),
            NONE_IS_GOOD,
        ),
        number(
            "Missing runs",
            "Batch applications seen within a week of which no run finished successfully within the time "
            "set above.",
            count(missing),
            NONE_IS_GOOD,
        ),
        number(
            "Slower than usual",
            "Runs and parts of runs that took much longer than earlier ones, in the time range; needs "
            "spark.events.issue.regression.dir.",
            PromQuery(f"round(sum({slower})) or vector(0)", ""),
            NONE_IS_GOOD,
            decimals=0,
        ),
        number(
            "Time lost",
            "Time that performance issues cost, in the time range.",
            PromQuery(f"sum({lost}) or vector(0)", ""),
            NEUTRAL,
            units.Seconds,
        ),
        number(
            "Executors lost",
            "Executors that went away in the time range, for any reason.",
            PromQuery(f"round(sum({executors_lost})) or vector(0)", ""),
            NEUTRAL,
            decimals=0,
        ),
    ]


def _increase(counter: str, by: str, selector: str = "", window: str = "$__range") -> str:
    return f"sum by ({by}) {counted(f'{counter}{{{APP}{selector}}}', window)} {BATCH}"


def _runs() -> builders.Panel:
    status = f"max by (app_name, status) (last_over_time({_STATUS}}}[$__range]) == 1) {BATCH}"
    finished = f'max_over_time(timestamp({_STATUS}, status="FINISHED"}} == 1)[$__range:1m])'
    columns = [
        ("", status, ""),
        ("last run took", f"last_over_time({_RUN_TIME}[$__range]) {BATCH}", units.Seconds),
        ("finished, time ago", f"time() - max by (app_name) ({finished}) {BATCH}", units.Seconds),
        ("failures", f"round(sum by (app_name) {FAILURES} {BATCH})", units.Short),
        ("time lost", _increase(_LOST, "app_name"), units.Seconds),
    ]
    return rows(
        "Last runs",
        "The last run of each batch application: its status and duration, how long ago a run finished, "
        "and the failures and lost time of all runs in the time range.",
        columns,
        {"app_name": "application", "status": "status"},
        dict(STATUS_NAMES.values()),
    )


def _over_time() -> list[builders.Panel]:
    return [
        states(
            "Runs",
            "The status of each batch application over time; a gap means that it was not running.",
            PromQuery(f"({APPLICATION_STATUS}) {BATCH}", _BY_APP),
            STATUS_NAMES,
        ),
        lines(
            "Run duration",
            "How long the current run has been running; a line ends at the duration of its run.",
            [PromQuery(f"{_RUN_TIME} {BATCH}", _BY_APP)],
            units.Seconds,
        ),
    ]


def _issues() -> list[builders.Panel]:
    issues = _increase("spark_issues_total", "app_name, issue")
    lost = _increase(_LOST, "app_name, issue", window="1h")
    return [
        bars(
            "Performance issues",
            "Performance issues found in the time range, by application and kind; regression means slower "
            "than usual. PerformanceIssueEvents have the evidence and the advice.",
            PromQuery(f"round({issues}) > 0", "{{app_name}}: {{issue}}"),
        ),
        lines(
            "Time lost (1 h)",
            "Time that performance issues cost in the last hour, by application and kind.",
            [PromQuery(f"({lost}) > 0", "{{app_name}}: {{issue}}")],
            units.Seconds,
        ),
    ]

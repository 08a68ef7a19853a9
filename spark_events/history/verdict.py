"""Whether a report is good enough: the rules of ``spark-events report --fail-on``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spark_events.api.errors import UsageError
from spark_events.api.toolkit.formatting import some_names
from spark_events.history.figures.timeline import BAD_STATES
from spark_events.history.report import Report
from spark_events.history.table import Row, job_name


def _down(report: Report) -> Iterable[Row]:
    return (row for row in report.tables.uptime if row["state"] in BAD_STATES)


def _failures(report: Report) -> Iterable[Row]:
    return report.tables.failures


def _late(report: Report) -> Iterable[Row]:
    for row in report.tables.checkpoint_sla:
        if row["overdue"] or row["stopped_late"] or row["met"] < row["completed"]:
            yield row


def _overdue(report: Report) -> Iterable[Row]:
    return (row for row in report.tables.checkpoint_sla if row["overdue"])


def _issues(report: Report) -> Iterable[Row]:
    return report.tables.issues


def _slower(report: Report) -> Iterable[Row]:
    return ({**row, "query_name": None} for row in report.tables.slower_runs)


RULES: dict[str, Callable[[Report], Iterable[Row]]] = {
    "down": _down,
    "failures": _failures,
    "sla": _late,
    "overdue": _overdue,
    "issues": _issues,
    "slower": _slower,
}
"""The rows that break each rule.

``down``: an application or query is down, silent or lost at the end, or its last run failed; ``failures``:
anything failed; ``sla``: a checkpoint was late, is, or was when its query was stopped; ``overdue``: one is
late at the end; ``issues``: there is a performance issue; ``slower``: a run took much longer than usual.
"""


def read_rules(texts: Sequence[str]) -> list[str]:
    """Return the rules that an option names, each by itself or several with commas between.

    Raises:
        UsageError: there is no such rule.
    """
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        if name not in RULES:
            wrong = name or f"{','.join(texts)}: a rule without a name"
            raise UsageError(f"--fail-on {wrong}: expected one of {', '.join(RULES)}")
    return list(dict.fromkeys(names))


def broken_rules(report: Report, rules: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of the applications and queries that break each of some rules, if any do."""
    broken = {rule: sorted({job_name(row) for row in RULES[rule](report)}) for rule in rules}
    return {rule: names for rule, names in broken.items() if names}


def check_comparable(report: Report, rules: Iterable[str], app: str) -> None:
    """Check that what a report is about can be held against its rules.

    Args:
        report: of an application.
        rules: which it may break.
        app: the name that was asked for, or the id of a run; empty for none.

    Raises:
        UsageError: a single run is to be compared with earlier ones, which the report leaves out.
    """
    names = {row["app_name"] for row in report.tables.uptime}
    if "slower" in rules and app and names and app not in names:
        raise UsageError(
            f"--fail-on slower: --app {app} is the id of one run, which leaves out the runs that it would be "
            f"compared with; give its name, {some_names(names)}"
        )

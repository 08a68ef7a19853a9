"""Events of a task."""

from __future__ import annotations

import time
from typing import Any

from spark_events.task.report import LONGEST_TEXT, MOST_EVENTS, attributes_of, current_report, name_of

SEVERITIES = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")


def event(name: str, body: str = "", severity: str = "INFO", **attributes: Any) -> None:
    """Report an event of this task.

    Args:
        name: such as ``RatesStale``.
        body: a sentence.
        severity: DEBUG, INFO, WARN, ERROR or FATAL.
        attributes: numbers, booleans and texts; all else becomes text.

    Raises:
        ValueError: the severity is none of these.
    """
    if severity not in SEVERITIES:
        raise ValueError(f"severity {severity!r} is not one of {', '.join(SEVERITIES)}")
    report = current_report()
    if report is None:
        return
    if len(report.events) >= MOST_EVENTS:
        report.drop("events")
        return
    report.events.append(
        {
            "name": name_of(name),
            "body": str(body)[:LONGEST_TEXT],
            "severity": severity,
            "attributes": attributes_of(attributes),
            "time_ns": time.time_ns(),
            "span": report.open[-1] if report.open else None,
        }
    )

"""Events of a task."""

from __future__ import annotations

import time
from typing import Any

from spark_events.task.current import current_report
from spark_events.task.mistakes import drop_value, say_once
from spark_events.task.report import MOST_EVENTS
from spark_events.task.values import attributes_of, name_of, text_of

SEVERITIES = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")


def event(name: str, body: str = "", severity: str = "INFO", **attributes: Any) -> None:
    """Report an event of this task.

    Args:
        name: such as ``RatesStale``.
        body: a sentence.
        severity: DEBUG, INFO, WARN, ERROR or FATAL.
        attributes: numbers, booleans and texts; all else becomes text.

    It never raises. An event whose severity is none of these is reported as INFO, and that is logged once.
    """
    try:
        _report(name, body, severity, attributes)
    except Exception as error:  # of the user's own types, or of an accident of ours
        say_once("task.event", f"it failed with {type(error).__name__}")


def _report(name: str, body: str, severity: str, attributes: dict[str, Any]) -> None:
    known = text_of(severity).upper()
    if known not in SEVERITIES:
        allowed = ", ".join(SEVERITIES)
        drop_value("task.event", severity, f"is {known[:20]!r} for a severity, which is not one of {allowed}")
        known = SEVERITIES[1]
    report = current_report()
    if report is None:
        return
    if len(report.events) >= MOST_EVENTS:
        report.drop("events")
        return
    report.events.append(
        {
            "name": name_of(name),
            "body": text_of(body),
            "severity": known,
            "attributes": attributes_of(attributes),
            "time_ns": time.time_ns(),
            "span": report.open[-1] if report.open else None,
        }
    )

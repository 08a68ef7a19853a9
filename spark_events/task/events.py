"""Events of a task, and its log records as events."""

from __future__ import annotations

import logging
import time
import traceback
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from spark_events.task.current import attributes_for, current_report, drop_value, leave_out, say_once
from spark_events.task.report import MOST_EVENTS
from spark_events.task.values import LONGEST_TEXT, NOT_GIVEN, name_of, taken, text_of

SEVERITIES = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_AS_IN_LOGGING = {"WARNING": "WARN", "CRITICAL": "FATAL"}


def event(
    name: str = NOT_GIVEN,
    body: str = NOT_GIVEN,
    severity: str = NOT_GIVEN,
    /,
    *others: Any,
    **attributes: Any,
) -> None:
    """Report an event of this task.

    Args:
        name: such as ``RatesStale``.
        body: a sentence; it may also be given by name, and so may the others.
        severity: DEBUG, INFO, WARN, ERROR or FATAL, in any case; INFO by default.
        others: are left out.
        attributes: numbers, booleans and texts; all else becomes text.

    It never raises. An event whose severity is none of these is reported as INFO, and that is logged once.

    Example::

        task.event("RatesStale", "using yesterday's rates", "warn", currency="EUR")
    """
    try:
        leave_out("task.event", others)
        known = taken(name, "name", attributes), taken(body, "body", attributes)
        _report(*known, taken(severity, "severity", attributes, SEVERITIES[1]), attributes)
    except Exception as error:  # of the user's own types, or of an accident of ours
        say_once("task.event", f"it failed with {type(error).__name__}")


def _report(name: str, body: str, severity: str, attributes: dict[str, Any]) -> None:
    known = text_of(severity).upper()
    known = _AS_IN_LOGGING.get(known, known)
    if known not in SEVERITIES:
        allowed = ", ".join(SEVERITIES)
        drop_value("task.event", severity, f"is {known[:20]!r} for a severity, which is not one of {allowed}")
        known = SEVERITIES[1]
    report = current_report()
    if report is None:
        return
    name = name_of(name)
    if not report.has_room("events", name, len(report.events), MOST_EVENTS):
        return
    report.events.append(
        {
            "name": name,
            "body": text_of(body),
            "severity": known,
            "attributes": attributes_for("task.event", attributes),
            "time_ns": time.time_ns(),
            "span": report.open.innermost,
        }
    )


LOG_EVENT = "LogRecord"


class TraceContextFilter(logging.Filter):
    """Puts the task's place on each log record, for a format such as ``%(trace_id)s %(message)s``.

    A record gets ``trace_id``, ``span_id`` (empty without spans), ``stage_id``, ``partition`` and
    ``task_attempt``; all are empty outside a task. No record is held back.

    Example::

        handler.addFilter(task.TraceContextFilter())
        handler.setFormatter(logging.Formatter("%(trace_id)s %(stage_id)s %(message)s"))
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add to a record, and let it pass."""
        report, place = current_report(), None
        with suppress(Exception):  # a log record without its place is better than none
            place = report.place() if report else None
        ids: dict[str, Any] = report.ids if report else {}
        record.trace_id = place.trace_id if place else ""
        record.span_id = place.span_id if place else ""
        record.stage_id = ids.get("stage", "")
        record.partition = ids.get("partition", "")
        record.task_attempt = ids.get("attempt", "")
        return True


_reported: WeakSet[logging.LogRecord] = WeakSet()


class EventHandler(logging.Handler):
    """Reports log records of a task as events named ``LogRecord``, which are OTLP log records of a collector.

    Args:
        level: what is less severe is left out; WARNING unless told otherwise.

    Example::

        logging.getLogger("shop").addHandler(task.EventHandler(logging.ERROR))
    """

    def __init__(self, level: int = logging.WARNING) -> None:
        super().__init__()
        try:
            self.setLevel(level)
        except Exception as error:  # nothing here may fail a task
            say_once("task.EventHandler", f"the level cannot be used: {error}; it is WARNING")
            self.setLevel(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Report one record, once: workers are reused, and each task may have added a handler."""
        try:
            if record in _reported:
                return
            _reported.add(record)
            more: dict[str, Any] = {"logger": record.name, "code.file.path": record.pathname}
            more |= {"code.line.number": record.lineno, "code.function.name": record.funcName or ""}
            if record.exc_info and record.exc_info[1] is not None:
                error = record.exc_info[1]
                more |= {"exception.type": type(error).__name__, "exception.message": text_of(error)}
                more["exception.stacktrace"] = "".join(traceback.format_exception(error))[-LONGEST_TEXT:]
            event(LOG_EVENT, record.getMessage(), _severity(record.levelno), **more)
        except Exception:
            self.handleError(record)


def _severity(level: int) -> str:
    steps = ((logging.CRITICAL, "FATAL"), (logging.ERROR, "ERROR"), (logging.WARNING, "WARN"))
    for least, severity in steps:
        if level >= least:
            return severity
    return "INFO" if level >= logging.INFO else "DEBUG"

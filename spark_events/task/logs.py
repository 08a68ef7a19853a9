"""Joins the logs of your code in tasks with its traces and events."""

from __future__ import annotations

import logging
import traceback
from contextlib import suppress
from typing import Any

from spark_events.task.current import current_report
from spark_events.task.events import event
from spark_events.task.mistakes import say_once
from spark_events.task.values import LONGEST_TEXT, text_of

LOG_EVENT = "LogRecord"


class TraceContextFilter(logging.Filter):
    """Puts the task's place on each log record, for a format such as ``%(trace_id)s %(message)s``.

    A record gets ``trace_id``, ``span_id`` (empty without spans), ``stage_id``, ``partition`` and
    ``task_attempt``; all are empty outside a task. No record is held back.
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


class EventHandler(logging.Handler):
    """Reports log records of a task as events named ``LogRecord``, which are OTLP log records of a collector.

    Args:
        level: what is less severe is left out; WARNING unless told otherwise.
    """

    def __init__(self, level: int = logging.WARNING) -> None:
        super().__init__()
        try:
            self.setLevel(level)
        except Exception as error:  # nothing here may fail a task
            say_once("task.EventHandler", f"the level cannot be used: {error}; it is WARNING")
            self.setLevel(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Report one record."""
        try:
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

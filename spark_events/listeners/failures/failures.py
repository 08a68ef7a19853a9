"""Extracts failures from Spark's records: who threw what, inside everything that Spark wraps around it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spark_events.api import CodePlace, Failure
from spark_events.listeners.failures.python_errors import innermost_error, is_of_library
from spark_events.listeners.long_texts import shorten

_LONGEST_TEXT = 32_768
# "Job aborted due to stage failure: Task 1 in stage 8.0 failed 1 times, most recent failure:
#  Lost task 1.0 in stage 8.0 (TID 418) (host executor driver): java.lang.RuntimeException: boom"
# These patterns are bounded: the text comes from users, and a long search blocks all Python of the driver.
_LOST_TASK = re.compile(
    r"Lost task [^\n]{0,100}?\(TID [^)\n]{0,40}\)(?: \([^)\n]{0,300}\)){0,5}: (?P<inner>.*)", re.DOTALL
)
_MOST_LOST_TASKS = 10
# "ResultStage 3 (collect at app.py:16) has failed the maximum allowable number of times: 4. Most recent
#  failure reason:", and what follows is on the next line.
_FAILED_TOO_OFTEN = re.compile(
    r"the maximum allowable number of times: \d{1,9}\. Most recent failure reason:\s{1,9}(?P<inner>.*)",
    re.DOTALL,
)
# Spark's file writer wraps what the first partition throws, and, in the others, what follows the first row.
_WRITE_FAILED = re.compile(
    r"(?:org\.apache\.spark\.SparkException: )?(?:\[TASK_WRITE_FAILED\] )?Task failed while writing rows"
    r".*?\nCaused by: (?P<inner>.*)",
    re.DOTALL,
)
_STREAM_FAILED = ".StreamingQueryException"
# "[STREAM_FAILED] Query [id = …, runId = …] terminated with exception:", and then what the query failed with.
_TERMINATED = re.compile(
    r"StreamingQueryException: [^\n]{0,200}? terminated with exception: (.*?)"
    r"(?=(?: SQLSTATE: XXKST)?\n=== Streaming Query ===|\Z)",
    re.DOTALL,
)
# They say that it failed, not why: that is in what caused them.
_SAYS_NOTHING = re.compile(
    r"[^\n]{0,200}\[(?:FAILED_READ_FILE|WRITING_JOB_ABORTED)\b"
    r"|[^\n]{0,200}: (?:Exception thrown in awaitResult|Encountered error while reading file)"
)
_JAVA_HEADER = re.compile(r"(?P<type>(?:[a-z_$][\w$]*\.)+[A-Z][\w$]*)(?:: (?P<message>.*))?", re.DOTALL)
CAUSED_BY = "\nCaused by: "
_MOST_CAUSES = 10
_ERROR_CLASS = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
# Spark 4 says where a DataFrame's expression is from: '"cast" was called from', and then the place on a line.
_EXPRESSION = re.compile(r'" was called from\n(?P<file>[^\n]{1,1000}):(?P<line>\d{1,9})(?:\n|$)')
_CALL_SITE = re.compile(r"[\w.<>]{1,100} at (?P<file>[^\n]{1,1000}):(?P<line>\d{1,9})")
# The last is in threads that a task has begun, too, such as one that a ForeachWriter in Python is fed by.
_OF_TASKS = ("Lost task", "Executor$TaskRunner", "\tat org.apache.spark.api.python.BasePythonRunner$")
_OF_PYTHON = (".py", "/", "\\", ">")
_UNKNOWN = "<unknown>"
"""The file of a call site for Spark where no caller is in sight, as in ``foreachBatch``."""
_SQL_STATE = re.compile(r"SQLSTATE: (?P<state>[0-9A-Z]{5})")
_CANCELLED = re.compile(r"(?:\[SPARK_JOB_CANCELLED\]|Job \d+ (?:was )?cancelled)")


def parse_failure(text: str, error_class: str | None = None) -> Failure:
    """Read a failure from the text of an exception, as Java's or Python's stack traces are written.

    Args:
        text: the exception with its stack trace.
        error_class: Spark's error condition, if the record names it.
    """
    raised = innermost_error(text)
    if raised and raised.type.endswith(_STREAM_FAILED) and (terminated := _TERMINATED.findall(text)):
        failure = parse_failure(terminated[-1])  # before it may be one that was being handled
        return replace(
            failure,
            exception_type=failure.exception_type or raised.type,
            stacktrace=shorten(text, _LONGEST_TEXT),
            code=failure.code or raised.place,
        )
    lost, passed_on = _lost_task(text), raised.passed_on if raised else None
    repeated = None if lost else _FAILED_TOO_OFTEN.search(passed_on or text)
    innermost = lost or repeated
    thrown, around = innermost.group("inner") if innermost else passed_on or text, text
    if wrapped := _WRITE_FAILED.match(thrown):
        thrown = around = wrapped.group("inner")
    heads = [part.split("\n", 1)[0] for part in (thrown, around)]
    condition = _ERROR_CLASS.search(heads[0]) or _ERROR_CLASS.search(heads[1])
    state = _SQL_STATE.search(thrown) or _SQL_STATE.search(around)
    exception_type: str | None
    if raised and not passed_on:
        exception_type, message, code = raised.type, raised.message, raised.place
        if exception_type.startswith("pyspark.errors."):  # raised by PySpark in the driver
            condition = _ERROR_CLASS.match(message) or condition
    else:
        exception_type, message = _java_error(thrown)
        # What called Java is further from it than the expression that failed there.
        code = users_expression(thrown) or (raised.place if raised else None)
    return Failure(
        message=shorten(_clean(message), _LONGEST_TEXT),
        exception_type=exception_type,
        stacktrace=shorten(text, _LONGEST_TEXT),
        error_class=error_class or (condition.group("name") if condition else None),
        sql_state=state.group("state") if state else None,
        code=code,
    )


def parse_json_exception(exception: Mapping[str, Any]) -> Failure:
    """Read a failure from the exception of a JobEnd record (``JsonProtocol.exceptionToJson``)."""
    message = str(exception.get("Message") or "")
    frames = "".join(f"\n\tat {_frame(frame)}" for frame in exception.get("Stack Trace") or ())
    return parse_failure(message + frames)


def was_cancelled(failure: Failure) -> bool:
    """Return whether a job ended because somebody cancelled it."""
    if failure.error_class == "SPARK_JOB_CANCELLED":
        return True
    return any(_CANCELLED.match(text) for text in (failure.stacktrace or "", failure.message))


def unless_cancelled(failure: Failure | None) -> Failure | None:
    """Return the error of a span: a failure, but not that of what somebody cancelled."""
    return None if failure is None or was_cancelled(failure) else failure


def users_expression(text: str) -> CodePlace | None:
    """Return where a DataFrame's expression is from that failed; None where Spark does not say."""
    match = _EXPRESSION.search(text)
    return _place(match) if match else None


def place_of_call_site(short: object) -> CodePlace | None:
    """Return the place in the user's Python code in Spark's short call site, ``collect at /jobs/app.py:16``.

    Args:
        short: the property ``callSite.short`` of a job; None is returned for a place in Java or Scala code.
    """
    match = _CALL_SITE.fullmatch(str(short or ""))
    return _place(match) if match else None


def thrown_by_task(failure: Failure) -> bool:
    """Return whether it was thrown by a task on an executor rather than by the driver."""
    text = failure.stacktrace or ""
    return any(part in text for part in _OF_TASKS)


def _place(match: re.Match[str]) -> CodePlace | None:
    path = match.group("file")
    if path == _UNKNOWN or is_of_library(path) or not any(part in path for part in _OF_PYTHON):
        return None
    return CodePlace(path, int(match.group("line")), "")


def _java_error(text: str) -> tuple[str | None, str]:
    exception_type, message = _java_head(text)
    cause = _cause(text) if _SAYS_NOTHING.match(text) or (exception_type and not message) else ""
    if not (message and cause):
        return exception_type, message or cause
    return exception_type, f"{_clean(message).removesuffix('Details:').rstrip('. :')}: {cause}"


def said_before_frames(text: str) -> str:
    """Return what Java says of an exception, before its frames and its causes."""
    said = text.split("\n\tat ", 1)[0].split(CAUSED_BY, 1)[0]
    return said.removesuffix("\nDriver stacktrace:").rstrip("\n")


def _java_head(text: str) -> tuple[str | None, str]:
    head = said_before_frames(text)
    match = _JAVA_HEADER.fullmatch(head)
    return (match.group("type"), match.group("message") or "") if match else (None, head)


def _cause(text: str) -> str:
    """Return what caused an exception that says nothing, such as a FetchFailedException."""
    for cause in text.split(CAUSED_BY, _MOST_CAUSES + 1)[1 : _MOST_CAUSES + 1]:
        exception_type, message = _java_head(cause)
        if message:
            return ": ".join(filter(None, ((exception_type or "").rsplit(".", 1)[-1], _clean(message))))
    return ""


def _lost_task(text: str) -> re.Match[str] | None:
    at = -1
    for _ in range(_MOST_LOST_TASKS):
        at = text.find("Lost task ", at + 1)
        if at < 0:
            break
        if match := _LOST_TASK.match(text, at):
            return match
    return None


def _clean(message: str) -> str:
    rest = message[match.end() :] if (match := _ERROR_CLASS.match(message)) else message
    kept, at = [], 0
    for state in _SQL_STATE.finditer(rest):
        kept.append(rest[at : state.start()].rstrip())
        at = state.end()
    return "".join((*kept, rest[at:])).strip()


def _frame(frame: Mapping[str, Any]) -> str:
    where = frame.get("File Name") or "Unknown Source"
    line = frame.get("Line Number", -1)
    place = f"{where}:{line}" if isinstance(line, int) and line >= 0 else where
    return f"{frame.get('Declaring Class')}.{frame.get('Method Name')}({place})"

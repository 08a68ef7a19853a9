"""Errors of Spark: their summary in one line, and the line of the query that they are about."""

from __future__ import annotations

import logging
import re

from spark_events.api import SparkEventsError

_MORE = re.compile(r"(JVM stacktrace:|SQLSTATE: \w+).*", re.DOTALL)
_CAUSE = re.compile(r"\nCaused by: ([^\n]+)")
_POSITION = re.compile(r"; line (\d+) pos \d+|\(line (\d+), pos \d+\)")
_MOST_CHARACTERS = 600
OF_PY4J = re.compile(r"An error occurred while calling \w+\.\w+\.\s+: ")
"""What Py4J puts before the error of a call."""
# What Spark and Py4J put around the reason of a failure: which query, task and call it was.
_AROUND = (
    re.compile(r"\n=== Streaming Query ===.*", re.DOTALL),
    re.compile(r"\[STREAM_FAILED\] Query \[id = [^\]]*\] terminated with exception: "),
    re.compile(
        r"Job aborted due to stage failure: Task \d+ in stage \S+ failed \d+ times, most recent failure: "
        r"Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): "
    ),
    OF_PY4J,
    re.compile(r"\bjava\.util\.concurrent\.ExecutionException: (?=\S)"),  # of a cache of relations in Spark 3
)


def error_summary(error: BaseException) -> str:
    """Return an error's message and cause in one line, without the plan and the stack that Spark adds."""
    whole = str(error)
    if isinstance(error, SparkEventsError):
        return whole
    for around in _AROUND:
        whole = around.sub("", whole)
    text = _MORE.sub("", whole).split("\n== SQL", 1)[0]
    text = re.split(r";\n|\nPlan:|\n\tat ", text, maxsplit=1)[0]
    text = " ".join(_POSITION.sub("", text).split()).rstrip("; ")
    name = type(error).__name__
    text = (text if text.startswith("[") else f"{name}: {text}" if text else name)[:_MOST_CHARACTERS]
    causes = [" ".join(cause.split())[:_MOST_CHARACTERS] for cause in _CAUSE.findall(whole)]
    return f"{text}; caused by {causes[-1]}" if causes and causes[-1] not in text else text


def query_line(error: BaseException) -> int | None:
    """Return the line of the query, from 1, that an error is about; None where it does not say."""
    match = _POSITION.search(str(error))
    return int(match[1] or match[2]) if match else None


def report_query_errors_alone() -> None:
    """Let PySpark log no query that cannot be analyzed: who reports it, with file and line, calls this."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

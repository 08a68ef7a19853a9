"""Sends the report of a task that fails: by a connection, for Spark carries nothing of it to the driver."""

from __future__ import annotations

import builtins
import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from spark_events.process.replaced_functions import replace_function
from spark_events.task.driver_link import DriverLink, driver_link
from spark_events.task.report import TaskReport, accumulators, cut_to_fit
from spark_events.task.short_texts import beginning_of
from spark_events.task.values import call_within, name_of, text_within

MOST_BYTES = 1 << 20
"""The longest report that the driver reads."""
_WAIT_S = 1.0
_MOST_LOCALS, _LONGEST_LOCAL, _MASK = 20, 200, "******"
_REPR_S = 0.5
"""How long a failing task waits for the text of its exception, and for those of its local variables."""
_COMPILED_PYARROW = "pyarrow/"
"""What the names of files begin with that are compiled into PyArrow."""
INSTALLED = re.compile(
    r"[/\\]lib(?:64)?[/\\]python3|[/\\](?:site|dist)-packages[/\\]"
    # What is compiled by Cython has names of where it was built, and what NumPy or attrs write has none.
    r"|\.p(?:yx|xi|xd)$|^<(?:__array_function__ |attrs generated |decorator-gen|lambdifygenerated)"
)
"""What the names of files are like that belong to Python itself and to libraries."""
_OURS = re.compile(re.escape(os.path.dirname(os.path.dirname(__file__))) + r"[/\\](?!demo[/\\])")
"""How the names of our own files begin; what the demo runs stands for a user's."""
_MOST_GROUPS = 100
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # from Python 3.11 on
_watching = False


def report_failures() -> None:
    """See to it that the report of a task is sent if it fails.

    In all versions, PySpark's workers handle what a task raises, and end by ``sys.exit`` while they do;
    daemons then leave without running exit handlers. So that call is where a failure can be seen.
    """
    global _watching
    if _watching:
        return
    _watching = True
    leave = sys.exit

    def send_and_leave(status: Any = None) -> None:
        # The user's own code may end so, too, and catch it.
        with suppress(Exception):  # a worker of PySpark's has to leave
            if _is_of(sys._getframe(1).f_code.co_filename, "pyspark"):
                _send_failed(sys.exc_info()[1])
        leave(status)

    replace_function(sys, "exit", send_and_leave)


def _send_failed(error: BaseException | None) -> None:
    link = driver_link()
    report = accumulators().get(link.accumulator) if link else None
    if link is None or not isinstance(report, TaskReport):
        return
    # A worker that waits for a task, and is told to end, ends like one that fails.
    if error is not None and not report.delivered and not _cut_short(error):
        del accumulators()[link.accumulator]
        _send(link, report, error)


def _cut_short(error: BaseException) -> bool:
    """Return whether Spark needs no more of a task, as after a LIMIT: PySpark then cannot write on."""
    if not isinstance(error, ConnectionError | EOFError):
        return False
    return all(
        _is_of(file, "pyspark", "py4j", "pyarrow")
        or file.startswith(_COMPILED_PYARROW)
        or file == socket.__file__
        for file in _files(error.__traceback__)
    )


def _is_of(file: str, *packages: str) -> bool:
    """Return whether a file is of some packages, wherever these are; or of the interpreter itself."""
    modules = (sys.modules.get(package) for package in packages)
    folders = [os.path.dirname(module.__file__) for module in modules if module and module.__file__]
    return file.startswith(("<frozen", *(folder + os.sep for folder in folders)))


def _files(traceback: TracebackType | None) -> Iterator[str]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename
        traceback = traceback.tb_next


def _send(link: DriverLink, report: TaskReport, error: BaseException) -> None:
    try:
        written = _written(report, error)
        with socket.create_connection((link.host, link.port), timeout=_WAIT_S) as connection:
            connection.sendall(f"{link.token}\n".encode() + written)
    except Exception as problem:  # the task fails anyway; why, Spark says
        said = f"spark-events: WARNING: the report of a failed task did not reach the driver: {problem!r}"
        sys.stderr.write(f"{said}\n")


def _written(report: TaskReport, error: BaseException) -> bytes:
    """Return the report as JSON; if it is longer than the driver reads, without metrics, spans or events."""
    now_ns = time.time_ns()
    values = report.values(failed_by=error)
    cut_to_fit(values)
    try:
        failure = _failure(error, report.link)
    except Exception as problem:  # the user's own class may do anything; the rest is worth sending
        said = f"<looking at it raised {type(problem).__name__}>"
        failure = {"type": name_of(type(error).__name__), "message": said}
    values["failed"] = {"time_ns": now_ns, "begun_ns": report.begun_ns, **failure}
    written = json.dumps(values).encode()
    for what, kind in (("metrics", "series"), ("spans", "spans"), ("events", "events")):
        if len(written) <= MOST_BYTES:
            break
        report.dropped[kind] = report.dropped.get(kind, 0) + len(values[what])
        values[what] = []
        written = json.dumps(values).encode()
    return written


def _failure(error: BaseException, link: DriverLink) -> dict[str, Any]:
    of_type = type(error)
    failure: dict[str, Any] = {
        "type": name_of(of_type.__qualname__ if of_type.__module__ == "builtins" else _full_name(of_type)),
        "message": text_within(error, _REPR_S),
    }
    # Not by getattr: to that, a class may answer whatever it likes.
    if (call := object.__getattribute__(error, "__dict__").get("__spark_events_call__")) is not None:
        failure["udf"], failure["call"] = call
    place = _innermost_of_group(error)
    if place is not None:
        frame, line = place
        code = frame.f_code
        failure |= {"file": code.co_filename, "line": line, "function": code.co_name}
        if link.local_variables:
            failure["locals"] = _shown_within(frame, link.masked, _REPR_S)
    return failure


def _full_name(of_type: type) -> str:
    return f"{of_type.__module__}.{of_type.__qualname__}"


def _innermost_of_group(error: BaseException) -> tuple[FrameType, int] | None:
    """Return the innermost frame of what was raised, or of the first exception of a group; and its line."""
    errors = [error]
    while isinstance(errors[-1], _GROUP) and errors[-1].exceptions and len(errors) < _MOST_GROUPS:
        errors.append(errors[-1].exceptions[0])
    places = (_innermost(each.__traceback__) for each in reversed(errors))
    return next((place for place in places if place is not None), None)


def _innermost(traceback: TracebackType | None) -> tuple[FrameType, int] | None:
    """Return the innermost frame and its line: of the user's own code, or else of a library's; or None."""
    own = installed = None
    while traceback is not None:
        path, place = traceback.tb_frame.f_code.co_filename, (traceback.tb_frame, traceback.tb_lineno)
        if not _is_of(path, "pyspark", "py4j") and not _OURS.match(path):
            if INSTALLED.search(path):
                installed = place
            else:
                own = place
        traceback = traceback.tb_next
    return own or installed


def _shown_within(frame: FrameType, masked: str, within_s: float) -> dict[str, str]:
    """Return the local variables as texts; those that the time is not enough for, without their values.

    The user's own ``__repr__`` may compute a lazy object.
    """
    values = dict(list(frame.f_locals.items())[:_MOST_LOCALS])
    shown: dict[str, str] = {}
    call_within(lambda: _show(values, masked, shown), within_s)
    late = f"<not shown: those before it took {within_s} s>"
    return {name: shown.get(name, late) for name in values}


def _show(values: dict[str, Any], masked: str, shown: dict[str, str]) -> None:
    for name, value in values.items():
        try:
            shown[name] = _MASK if re.search(masked, name) else beginning_of(value, _LONGEST_LOCAL)
        except BaseException as problem:
            shown[name] = f"<its repr raised {type(problem).__name__}>"

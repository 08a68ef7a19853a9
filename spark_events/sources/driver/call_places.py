"""Where in the user's Python code an action waits for the JVM, from the frames of the driver's threads."""

from __future__ import annotations

import sys
import threading
from functools import lru_cache
from types import FrameType
from typing import Any

from spark_events.api.event import now_ms
from spark_events.listeners.failures.python_errors import is_of_library
from spark_events.listeners.record_fields import PROPERTIES
from spark_events.listeners.spark_records import PYTHON_CALL
from spark_events.runtime.log_once import logger
from spark_events.task.local_properties import QUERY_ID

Record = dict[str, Any]
_OUR_THREADS = "spark-events"
_MOST_FRAMES = 200
_SENDS = "send_command"
_READS = "socket.py"
_RUN_NO_JOB = frozenset(("awaitTermination", "awaitAnyTermination", "processAllAvailable", "stop"))
"""Calls of PySpark's in which a thread may wait for long, and which run no job of their own."""


def with_python_call(job_start: Record) -> Record:
    """Add to a JobStart where the driver's Python waits, if that is certain; never raises.

    A streaming query's job is begun by no Python thread.
    """
    try:
        if QUERY_ID in (job_start.get(PROPERTIES) or {}):
            return job_start
        call = waiting_call()
    except Exception as error:  # it looks at Python's and PySpark's internals: not worth a record
        logger.debug("could not look where the driver's Python waits: %r", error)
        return job_start
    return job_start if call is None else {**job_start, PYTHON_CALL: {**call, "atMs": now_ms()}}


def waiting_call() -> Record | None:
    """Return the user's place in the one thread that waits for the JVM; None if none waits, or several do.

    Returns:
        ``file``, ``line`` and ``function``: the innermost frame that is neither PySpark's nor an installed
        library's.
    """
    mine = threading.get_ident()
    waiting = {
        thread: frame
        for thread, top in sys._current_frames().items()
        if thread != mine and (frame := _of_call(top)) is not None
    }
    if len(waiting) > 1:
        ours = {thread.ident for thread in threading.enumerate() if thread.name.startswith(_OUR_THREADS)}
        waiting = {thread: frame for thread, frame in waiting.items() if thread not in ours}
    if len(waiting) != 1:
        return None
    (frame,) = waiting.values()
    return _users_place(frame)


def _of_call(top: FrameType) -> FrameType | None:
    """Return the frame in which a thread waits for the JVM's answer to an action; None if it does not."""
    frame, reads = top, False
    while frame.f_code.co_filename.endswith(_READS):
        if frame.f_back is None:
            return None
        frame, reads = frame.f_back, True
    path = frame.f_code.co_filename
    # py4j's thread that waits for calls from the JVM reads as well, but has sent nothing.
    sends = frame.f_code.co_name == _SENDS and "py4j" in path
    # Rows come through a socket of their own, and ``toLocalIterator`` runs jobs while they do.
    if not (sends or (reads and "pyspark" in path and is_of_library(path))):
        return None
    return frame if _may_run_job(frame) else None


def _may_run_job(frame: FrameType) -> bool:
    at: FrameType | None = frame
    for _ in range(_MOST_FRAMES):
        if at is None or not _is_skipped(at.f_code.co_filename):
            return True
        if at.f_code.co_name in _RUN_NO_JOB:
            return False
        at = at.f_back
    return True


def _users_place(frame: FrameType) -> Record | None:
    at: FrameType | None = frame
    for _ in range(_MOST_FRAMES):
        if at is None:
            return None
        if not _is_skipped(at.f_code.co_filename):
            return {
                "file": at.f_code.co_filename,
                "line": at.f_lineno or 0,
                "function": at.f_code.co_name,
            }
        at = at.f_back
    return None


@lru_cache(4_096)
def _is_skipped(path: str) -> bool:
    return is_of_library(path)

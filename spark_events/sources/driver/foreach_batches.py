"""Lets ``foreachBatch`` functions report as tasks do, although they run in the driver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from typing import Any, ClassVar

from spark_events.runtime.log_once import logger
from spark_events.task.driver_link import DriverLink
from spark_events.task.instruments import count_in_driver
from spark_events.task.report import TaskReport, in_batch
from spark_events.task.spans import enter_trace

Record = dict[str, Any]
_NO_STAGE = -1


class ForeachBatches:
    """Gives each call of a ``foreachBatch`` function a report, also those of queries that run already.

    PySpark's method is replaced once for all attachments of the process; the last one that is open counts.

    Args:
        link: says where spans belong.
        take: called with the report of each call that has reported something, on the query's thread.
    """

    _open: ClassVar[list[ForeachBatches]] = []
    _lock = threading.Lock()
    _of_spark: ClassVar[Any] = None

    def __init__(self, link: DriverLink, take: Callable[[Record], None]) -> None:
        # What the function does itself is below the micro-batch, whatever its stages are below.
        self._link = replace(link, stages_of_queries=False, task_spans=False)
        self._take = take

    def begin(self) -> None:
        """Follow the calls that begin from now on."""
        from pyspark.sql.utils import ForeachBatchFunction

        if not hasattr(ForeachBatchFunction, "call"):
            logger.warning("this PySpark calls foreachBatch functions differently; they cannot report")
            return
        of_class = type(self)
        with of_class._lock:
            of_class._open.append(self)
            if of_class._of_spark is None:
                of_class._of_spark = ForeachBatchFunction.call
                ForeachBatchFunction.call = _call
                count_in_driver(True)

    def end(self) -> None:
        """Follow no further calls."""
        of_class = type(self)
        with of_class._lock:
            if self in of_class._open:
                of_class._open.remove(self)
            if of_class._open or of_class._of_spark is None:
                return
            from pyspark.sql.utils import ForeachBatchFunction

            ForeachBatchFunction.call, of_class._of_spark = of_class._of_spark, None
            count_in_driver(False)

    @classmethod
    def _now(cls) -> tuple[ForeachBatches | None, Any]:
        """Return the attachment that follows a call that begins now, and PySpark's own method."""
        with cls._lock:
            return (cls._open[-1] if cls._open else None), cls._of_spark

    def _follow(self, original: Callable[[], Any], session: Any, batch: int) -> Any:
        reports: list[TaskReport] = []

        def report() -> TaskReport | None:
            if not reports:  # most functions report nothing
                # While it is made, py4j may log, and a filter of logs may ask for it.
                in_batch.set(None)
                try:
                    reports.append(TaskReport(self._link, _Batch(session, batch), in_driver=True))
                except Exception as error:
                    logger.warning("a foreachBatch function cannot report: %r", error)
                    return None
                in_batch.set(report)
                enter_trace(reports[0])
            return reports[0]

        def run() -> Any:
            in_batch.set(report)
            return original()

        # In a context of its own, so that nothing of it is left in the thread.
        context = copy_context()
        failed_by: BaseException | None = None
        try:
            return context.run(run)
        except BaseException as error:
            failed_by = error
            raise
        finally:
            for each in reports:
                self._hand_over(each, batch, failed_by)

    def _hand_over(self, report: TaskReport, batch: int, failed_by: BaseException | None) -> None:
        try:
            self._take({**report.values(failed_by), "batch": batch, "raised": failed_by is not None})
        except Exception:  # the query goes on without it
            logger.exception("the report of a foreachBatch function is lost")


def _call(function: Any, frame: Any, batch: int) -> Any:
    """Called by py4j in the place of PySpark's method."""
    follower, of_spark = ForeachBatches._now()
    if of_spark is None:  # the last attachment has closed at this moment
        return type(function).call(function, frame, batch)
    if follower is None:
        return of_spark(function, frame, batch)
    return follower._follow(lambda: of_spark(function, frame, batch), function.session, batch)


class _Batch:
    """The micro-batch of a call, as a task's context would tell it."""

    def __init__(self, session: Any, batch: int) -> None:
        self._session = session
        self._batch = batch

    def stageId(self) -> int:  # noqa: N802 - PySpark's names
        return _NO_STAGE

    def partitionId(self) -> int:  # noqa: N802
        return 0

    def attemptNumber(self) -> int:  # noqa: N802
        return 0

    def taskAttemptId(self) -> int:  # noqa: N802
        return self._batch

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802
        """Return a property of the query's thread."""
        if key == "streaming.sql.batchId":
            return str(self._batch)
        value = self._session.sparkContext.getLocalProperty(key)
        return None if value is None else str(value)

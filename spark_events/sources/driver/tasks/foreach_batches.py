"""Follows the user's ``foreachBatch`` functions, which report as tasks do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from spark_events.runtime.log_once import logger
from spark_events.sources.driver.replaced_method import ReplacedMethod
from spark_events.task.current import in_batch
from spark_events.task.driver_link import DriverLink
from spark_events.task.instruments import count_in_driver
from spark_events.task.local_properties import BATCH_ID
from spark_events.task.report import TaskReport, cut_to_fit
from spark_events.task.traces import enter_trace

Record = dict[str, Any]
_NO_STAGE = -1


class ForeachBatches:
    """Gives each call of a ``foreachBatch`` function a report, also those of queries that run already.

    If several attachments are open, the last one follows them.

    Args:
        link: says where spans belong.
        take: called with the report of each call that has reported something, on the query's thread.
    """

    def __init__(self, link: DriverLink, take: Callable[[Record], None]) -> None:
        # What the function does itself is below the micro-batch, whatever its stages are below.
        self._link = replace(link, stages_of_queries=False, task_spans=False)
        self._take = take

    def begin(self) -> None:
        """Follow the calls that begin from now on."""
        from pyspark.sql.utils import ForeachBatchFunction

        if not _CALL.begin(ForeachBatchFunction, self):
            logger.warning("this PySpark calls foreachBatch functions differently; they cannot report")

    def end(self) -> None:
        """Follow no further calls."""
        _CALL.end(self)

    def follow(self, original: Callable[[], Any], session: Any, batch: int) -> Any:
        """Call a function, with a report.

        Args:
            original: calls it.
            session: of its query.
            batch: the number of the micro-batch.

        Returns:
            What it returns; what it raises goes on, too.
        """
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
                enter_trace(reports[0].place)
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
            values = report.values(failed_by)
            cut_to_fit(values)
            self._take({**values, "batch": batch, "raised": failed_by is not None})
        except Exception:  # the query goes on without it
            logger.exception("the report of a foreachBatch function is lost")


def _following(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that py4j calls in the place of PySpark's."""

    @functools.wraps(of_spark)
    def call(function: Any, frame: Any, batch: int) -> Any:
        follower = _CALL.last_owner
        if follower is None:
            return of_spark(function, frame, batch)
        return follower.follow(lambda: of_spark(function, frame, batch), function.session, batch)

    return call


_CALL = ReplacedMethod[ForeachBatches]("call", _following, count_in_driver)


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
        if key == BATCH_ID:
            return str(self._batch)
        value = self._session.sparkContext.getLocalProperty(key)
        return None if value is None else str(value)

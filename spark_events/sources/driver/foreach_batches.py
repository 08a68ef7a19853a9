"""Lets ``foreachBatch`` functions report as tasks do, although they run in the driver."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from spark_events.runtime.log_once import logger
from spark_events.task.driver_link import DriverLink
from spark_events.task.instruments import count_in_driver
from spark_events.task.report import TaskReport, in_batch
from spark_events.task.spans import enter_trace

Record = dict[str, Any]
_NO_STAGE = -1


class ForeachBatches:
    """Gives each call of a ``foreachBatch`` function a report, also those of queries that run already.

    Args:
        link: says where spans belong.
        take: called with the report of each call that has reported something, on the query's thread.
    """

    def __init__(self, link: DriverLink, take: Callable[[Record], None]) -> None:
        # What the function does itself is below the micro-batch, whatever its stages are below.
        self._link = replace(link, stages_of_queries=False, task_spans=False)
        self._take = take
        self._of_spark: Any = None

    def begin(self) -> None:
        """Follow the calls that begin from now on."""
        from pyspark.sql.utils import ForeachBatchFunction

        of_spark = getattr(ForeachBatchFunction, "call", None)
        if of_spark is None:
            logger.warning("this PySpark calls foreachBatch functions differently; they cannot report")
            return

        def call(function: Any, frame: Any, batch: int) -> Any:
            return self._call(lambda: of_spark(function, frame, batch), function, batch)

        count_in_driver(True)
        self._of_spark = of_spark
        ForeachBatchFunction.call = call

    def end(self) -> None:
        """Follow no further calls."""
        if self._of_spark is not None:
            from pyspark.sql.utils import ForeachBatchFunction

            ForeachBatchFunction.call = self._of_spark
            self._of_spark = None
            count_in_driver(False)

    def _call(self, original: Callable[[], Any], function: Any, batch: int) -> Any:
        reports: list[TaskReport] = []

        def report() -> TaskReport:
            if not reports:  # most functions report nothing
                reports.append(TaskReport(self._link, _Batch(function.session, batch), in_driver=True))
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
                self._take({**each.values(failed_by), "batch": batch, "raised": failed_by is not None})


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

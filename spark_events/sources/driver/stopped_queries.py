"""Notices which streaming queries the program stops; Spark's record of their end does not say so."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from spark_events.listeners.record_fields import RUN_ID
from spark_events.listeners.spark_records import STOPPED
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.replaced_method import Method, ReplacedMethod

Record = dict[str, Any]
_MOST = 1_000
"""So many runs are kept whose end has not come."""


class StoppedQueries:
    """Notices each call of ``StreamingQuery.stop`` while the query is active.

    A query whose trigger has an end may reach it, or be stopped before: the former is a success.
    """

    def __init__(self) -> None:
        self._runs: dict[str, bool] = {}

    def begin(self) -> None:
        """Notice those from now on."""
        from pyspark.sql.streaming import StreamingQuery

        _STOP.begin(StreamingQuery, self)

    def end(self) -> None:
        """Notice no further ones."""
        _STOP.end(self)

    def complete(self, record: Record) -> Record:
        """Add to a QueryTerminated whether the program has stopped the query."""
        return {**record, STOPPED: True} if self._runs.pop(str(record.get(RUN_ID)), False) else record

    def notice(self, query: Any) -> None:
        """Called on the user's thread, before a query is stopped."""
        if query.isActive:  # many programs stop what has ended
            self._runs[str(query.runId)] = True
            if len(self._runs) > _MOST:
                self._runs.pop(next(iter(self._runs)), None)


def _noticing(owner: Callable[[], StoppedQueries | None]) -> Callable[[Method], Method]:
    """Return what makes the method that takes the place of PySpark's own."""

    def make(of_spark: Method) -> Method:
        @wraps(of_spark)
        def stop(query: Any) -> Any:
            try:
                if (noticing := owner()) is not None:
                    noticing.notice(query)
            except Exception as problem:  # whatever goes wrong with it, the query is stopped
                logger.debug("that a query was stopped is not noticed: %r", problem)
            return of_spark(query)

        return stop

    return make


_STOP: ReplacedMethod[StoppedQueries] = ReplacedMethod("stop", _noticing(lambda: _STOP.last_owner))

"""Measures each Python UDF without a change to the user's code: ``spark.events.udf.metrics``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_events.runtime.log_once import logger
from spark_events.sources.driver.replaced_method import ReplacedMethod
from spark_events.task import measured
from spark_events.task.measured_functions import is_measured

_ROW_OR_BATCH = frozenset((100, 101, 200, 250))
"""Spark's numbers of UDFs that are called for a row or a batch; others get iterators or whole groups."""


class MeasuredUdfs:
    """Lets PySpark send a function that is measured in the place of each UDF's, as its own profiler does.

    UDFs that were used before are sent as they are.
    """

    def begin(self) -> None:
        """Measure the UDFs that are used from now on."""
        from pyspark.sql.udf import UserDefinedFunction

        if not _CREATE.begin(UserDefinedFunction, self):
            logger.warning("spark.events.udf.metrics: this PySpark makes UDFs differently; none is measured")

    def end(self) -> None:
        """Measure no further UDFs, unless another attachment does."""
        _CREATE.end(self)


def _measuring(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    def create(udf: Any, func: Any, *others: Any, **named: Any) -> Any:
        if udf.evalType in _ROW_OR_BATCH and not is_measured(func):
            func = measured(func)
        return of_spark(udf, func, *others, **named)

    return create


_CREATE = ReplacedMethod[MeasuredUdfs]("_create_judf", _measuring)

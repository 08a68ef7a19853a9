"""Measures each Python UDF without a change to the user's code: ``spark.events.udf.metrics``."""

from __future__ import annotations

from typing import Any

from spark_events.runtime.log_once import logger
from spark_events.task import measured
from spark_events.task.instruments import is_measured

_ROW_OR_BATCH = frozenset((100, 101, 200, 250))
"""Spark's numbers of UDFs that are called for a row or a batch; others get iterators or whole groups."""


class MeasuredUdfs:
    """Lets PySpark send a function that is measured in the place of each UDF's, as its own profiler does.

    UDFs that were used before are sent as they are.
    """

    def __init__(self) -> None:
        self._of_spark: Any = None

    def begin(self) -> None:
        """Measure the UDFs that are used from now on."""
        from pyspark.sql.udf import UserDefinedFunction

        of_spark = getattr(UserDefinedFunction, "_create_judf", None)
        if of_spark is None:
            logger.warning("spark.events.udf.metrics: this PySpark makes UDFs differently; none is measured")
            return

        def create(udf: Any, func: Any, *others: Any, **named: Any) -> Any:
            if udf.evalType in _ROW_OR_BATCH and not is_measured(func):
                func = measured(func)
            return of_spark(udf, func, *others, **named)

        self._of_spark = of_spark
        UserDefinedFunction._create_judf = create

    def end(self) -> None:
        """Measure no further UDFs."""
        if self._of_spark is not None:
            from pyspark.sql.udf import UserDefinedFunction

            UserDefinedFunction._create_judf = self._of_spark
            self._of_spark = None

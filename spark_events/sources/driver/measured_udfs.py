"""Measures each Python UDF without a change to the user's code: ``spark.events.udf.metrics``."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from spark_events.runtime.log_once import logger
from spark_events.task import measured
from spark_events.task.instruments import is_measured

_ROW_OR_BATCH = frozenset((100, 101, 200, 250))
"""Spark's numbers of UDFs that are called for a row or a batch; others get iterators or whole groups."""


class MeasuredUdfs:
    """Lets PySpark send a function that is measured in the place of each UDF's, as its own profiler does.

    UDFs that were used before are sent as they are. PySpark's method is replaced once for all attachments of
    the process, until the last of them ends.
    """

    _lock = threading.Lock()
    _open: ClassVar[set[MeasuredUdfs]] = set()
    _of_spark: ClassVar[Any] = None

    def begin(self) -> None:
        """Measure the UDFs that are used from now on."""
        from pyspark.sql.udf import UserDefinedFunction

        of_class = type(self)
        with of_class._lock:
            of_class._open.add(self)
            if of_class._of_spark is not None:
                return
            of_spark = getattr(UserDefinedFunction, "_create_judf", None)
            if of_spark is None:
                logger.warning(
                    "spark.events.udf.metrics: this PySpark makes UDFs differently; none is measured"
                )
                return

            def create(udf: Any, func: Any, *others: Any, **named: Any) -> Any:
                if udf.evalType in _ROW_OR_BATCH and not is_measured(func):
                    func = measured(func)
                return of_spark(udf, func, *others, **named)

            of_class._of_spark = of_spark
            UserDefinedFunction._create_judf = create

    def end(self) -> None:
        """Measure no further UDFs, unless another attachment does."""
        of_class = type(self)
        with of_class._lock:
            of_class._open.discard(self)
            if of_class._open or of_class._of_spark is None:
                return
            from pyspark.sql.udf import UserDefinedFunction

            UserDefinedFunction._create_judf, of_class._of_spark = of_class._of_spark, None

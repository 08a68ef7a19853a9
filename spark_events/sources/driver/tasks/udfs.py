"""What PySpark sends of the user's UDFs and UDTFs, which it makes once for each of them, and keeps."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

from spark_events.runtime.log_once import logger
from spark_events.sources.driver.replaced_method import ReplacedMethod
from spark_events.task import measured
from spark_events.task.measured_functions import is_measured

_ROW_OR_BATCH = frozenset((100, 101, 200, 250))
"""Spark's numbers of UDFs that are called for a row or a batch; others get iterators or whole groups."""


class UdfsOfAttachment:
    """Lets PySpark make what it sends of a UDF anew for each attachment.

    It has the accumulators and the environment of the SparkContext, as they were when the UDF was first used.
    A UDF of a module that is used again after ``spark.stop()`` would report to an application that has ended,
    as it would count in Spark's own accumulators; one that was used before attaching would not report at all.
    """

    def begin(self) -> None:
        """Do so from now on."""
        from pyspark.sql.udf import UserDefinedFunction
        from pyspark.sql.udtf import UserDefinedTableFunction

        if not (_UDF.begin(UserDefinedFunction, self) and _UDTF.begin(UserDefinedTableFunction, self)):
            logger.warning("this PySpark keeps UDFs differently; those used before do not report")

    def end(self) -> None:
        """Leave them as they are, unless another attachment is open."""
        _UDF.end(self)
        _UDTF.end(self)


class MeasuredUdfs:
    """Lets PySpark send a function that is measured in the place of each UDF's, as its own profiler does."""

    def begin(self) -> None:
        """Measure the UDFs that are used from now on."""
        from pyspark.sql.udf import UserDefinedFunction

        if not _CREATE.begin(UserDefinedFunction, self):
            logger.warning(
                "spark.events.task.measure-udfs: this PySpark makes UDFs differently; none is measured"
            )

    def end(self) -> None:
        """Measure no further UDFs, unless another attachment does."""
        _CREATE.end(self)


def _measuring(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    def create(udf: Any, func: Any, *others: Any, **named: Any) -> Any:
        if udf.evalType in _ROW_OR_BATCH and not is_measured(func):
            func = measured(func)
        return of_spark(udf, func, *others, **named)

    return create


_Kept = ReplacedMethod["UdfsOfAttachment"]


def _kept_by(owner: Callable[[], UdfsOfAttachment | None], kept_as: str) -> Callable[[Any], Any]:
    """Return what makes a property that first forgets what was kept for another attachment."""
    made_for: weakref.WeakKeyDictionary[Any, weakref.ref[UdfsOfAttachment]] = weakref.WeakKeyDictionary()

    def forget_others(udf: Any) -> None:
        attachment = owner()
        known = made_for.get(udf)
        if attachment is not None and (known is None or known() is not attachment):
            setattr(udf, kept_as, None)
            made_for[udf] = weakref.ref(attachment)

    def make(of_spark: Any) -> Any:
        def made(udf: Any) -> Any:
            with contextlib.suppress(TypeError):  # of a type of the user's own that has no hash
                forget_others(udf)
            return of_spark.__get__(udf)

        return property(made)

    return make


_UDF: _Kept = ReplacedMethod("_judf", _kept_by(lambda: _UDF.last_owner, "_judf_placeholder"))
_UDTF: _Kept = ReplacedMethod("_judtf", _kept_by(lambda: _UDTF.last_owner, "_judtf_placeholder"))
_CREATE = ReplacedMethod[MeasuredUdfs]("_create_judf", _measuring)

"""Leaves a mark in an application's event log that tells how its Python ended.

Spark writes the same end after a failure as after a success. ``spark-events run`` posts an event of ours
before it, which Spark's event log takes like any other and which its History Server passes over.
"""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any

from spark_events.jvm.janino import JavaUnit, new
from spark_events.listeners.long_texts import cut
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.process_exit import exit_code_of

_JAVA = JavaUnit("spark_events.sources.driver", "io.sparkevents", ("ApplicationExit",))


class ExitMark:
    """The marks of one application; without an event log there are none.

    Args:
        spark_context: PySpark's SparkContext, just started.
    """

    def __init__(self, spark_context: Any) -> None:
        self._context = spark_context
        self._class: Any = None
        if spark_context.getConf().get("spark.eventLog.enabled", "false").strip().lower() == "true":
            self._class = _JAVA.load(spark_context._jvm, "ApplicationExit")

    def leave_at_stop(self) -> BaseException | None:
        """Leave the mark of a ``SparkContext.stop``.

        Returns:
            The exception that the main thread is raising or handling meanwhile; None where there is none.
        """
        error = sys.exc_info()[1] if threading.current_thread() is threading.main_thread() else None
        if error is None or (isinstance(error, SystemExit) and not exit_code_of(error.code)):
            self.leave(0)
            return None
        self.leave(exit_code_of(error.code) if isinstance(error, SystemExit) else None, error)
        return error

    def leave(self, exit_code: int | None, error: BaseException | None = None) -> None:
        """Leave a mark; the last one before the application's end counts.

        Args:
            exit_code: of the process; None where that is not known yet.
            error: what was raised, unless it was ``sys.exit``.
        """
        if self._class is None or self._context._jsc is None:
            return
        try:
            mark = new(self._context._gateway, self._class, exit_code, _traceback_of(error))
            self._context._jsc.sc().listenerBus().post(mark)
        except Exception as problem:  # the JVM may be gone already; the application ends as it would
            logger.debug("the event log was not told of the end: %r", problem)


def _traceback_of(error: BaseException | None) -> str | None:
    if error is None or isinstance(error, SystemExit):
        return None
    return cut("".join(traceback.format_exception(type(error), error, error.__traceback__)))

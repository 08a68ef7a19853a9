"""Follows every Python task: set ``spark.python.daemon.module`` to ``spark_events.task.daemon``.

PySpark's daemon forks a worker for each task. This one runs PySpark's, or the one that the environment
variable ``SPARK_EVENTS_PYTHON_DAEMON`` names, and first sees to it that the report of a task begins with the
task, rather than with the first call of ``spark_events.task`` in it.
"""

from __future__ import annotations

import os
import runpy
import sys
from contextlib import suppress
from typing import Any

VARIABLE = "SPARK_EVENTS_PYTHON_DAEMON"
_OF_SPARK = "pyspark.daemon"


class TaskRegistry(dict[int, Any]):
    """PySpark's registry of accumulators, which it clears when it knows the task and before it runs it."""

    def clear(self) -> None:
        """Begin a task."""
        super().clear()
        try:
            from spark_events.task.current import current_report

            current_report()
        except Exception as error:  # the task runs without it
            _warn("a task will not report from its beginning", error)


def follow_tasks() -> None:
    """Let the workers that are forked from this process begin a report with each task."""
    from pyspark import accumulators

    accumulators._accumulatorRegistry = TaskRegistry(accumulators._accumulatorRegistry)
    try:
        # Here rather than in each worker. A report then lets the user's spans begin below the task's.
        import opentelemetry.context
        import opentelemetry.trace  # noqa: F401
    except ImportError:
        pass
    except Exception as error:
        _warn("OpenTelemetry cannot be used in tasks", error)


def main() -> None:
    """Run the daemon in the place of this module, with the same arguments."""
    try:
        follow_tasks()
    except Exception as error:  # without a daemon, there would be no Python at all
        _warn("tasks are not followed from their beginning", error)
    runpy.run_module(os.environ.get(VARIABLE) or _OF_SPARK, run_name="__main__", alter_sys=True)


def _warn(what: str, error: Exception) -> None:
    with suppress(Exception):  # it may be closed, or on a full disk
        sys.stderr.write(f"spark-events: WARNING: {what}: {error!r}\n")


if __name__ == "__main__":
    main()

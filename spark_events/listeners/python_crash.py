"""A Python worker that ended without a word: Spark says "crashed"; most often memory ran out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spark_events.api import Failure
from spark_events.api.formatting import size
from spark_events.listeners.long_texts import shorten
from spark_events.listeners.memory_limits import MemoryLimits

CRASHED = "Python worker exited unexpectedly (crashed)"
_FAULT = f"{CRASHED}:"
"""With these words Spark passes on what Python's faulthandler has written of a crash in native code."""
FAULT_HANDLER_KEYS = (
    "spark.python.worker.faulthandler.enabled",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled",
)
_LONGEST = 32_768


def ended_without_a_word(failure: Failure) -> bool:
    """Return whether a Python worker ended, and nobody says of what."""
    return failure.message.startswith(CRASHED) and not failure.message.startswith(_FAULT)


def explained(failure: Failure, conf: Mapping[str, str], limits: MemoryLimits | None) -> Failure:
    """Return a failure whose message says of what such a worker may have ended; any other as it is.

    Args:
        failure: Spark's own words stay in its stack trace.
        conf: Spark's configuration, as far as it is known.
        limits: of the memory of executors; None where they are not known.
    """
    if not ended_without_a_word(failure):
        return failure
    watched = any(conf.get(key, "").lower() == "true" for key in FAULT_HANDLER_KEYS)
    other = (
        "a crash in native code would have been written down by Python's faulthandler"
        if watched
        else "a crash in native code looks the same"
    )
    said = (
        f"{CRASHED}. Most likely it was killed (SIGKILL) because memory ran out{_limits(limits)}; {other}. "
    )
    return replace(failure, message=shorten(said + failure.message[len(CRASHED) :].lstrip(". "), _LONGEST))


def _limits(limits: MemoryLimits | None) -> str:
    """Return the limits that apply to it, in parentheses."""
    if limits is None:
        return ""
    if limits.container is None:
        parts = ["no container of Spark's: the limit is that of the machine, or of a cgroup"]
    else:
        parts = [f"the container has {size(limits.container)}"]
        if limits.overhead is not None:
            parts.append(f"of which {size(limits.overhead)} are memoryOverhead")
    if limits.python is not None:
        parts.append(f"spark.executor.pyspark.memory is {size(limits.python)}")
    elif limits.container is not None:
        parts.append("spark.executor.pyspark.memory is not set")
    return f" ({', '.join(parts)})"

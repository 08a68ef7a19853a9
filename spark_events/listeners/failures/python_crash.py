"""A Python worker that ended without a word: Spark says "crashed"; most often memory ran out."""

from __future__ import annotations

from dataclasses import replace

from spark_events.api import Failure
from spark_events.api.toolkit.formatting import size
from spark_events.listeners.executors.memory_limits import MemoryLimits
from spark_events.listeners.long_texts import shorten

CRASHED = "Python worker exited unexpectedly (crashed)"
_WRITTEN = ":"
"""What Python's faulthandler has written follows a colon; that is nothing unless native code has crashed."""
_LONGEST = 32_768


def ended_without_a_word(failure: Failure) -> bool:
    """Return whether a Python worker ended, and nobody says of what."""
    said = failure.message[len(CRASHED) :].strip()
    return failure.message.startswith(CRASHED) and (said == _WRITTEN or not said.startswith(_WRITTEN))


def explained(failure: Failure, limits: MemoryLimits | None) -> Failure:
    """Return a failure whose message says of what such a worker may have ended; any other as it is.

    Args:
        failure: Spark's own words stay in its stack trace.
        limits: of the memory of executors; None where they are not known.
    """
    if not ended_without_a_word(failure):
        return failure
    advice = failure.message[len(CRASHED) :].strip(". ")
    other = "a crash in native code looks the same"
    if advice == _WRITTEN:
        other, advice = "a crash in native code would have been written down by Python's faulthandler", ""
    said = f"{CRASHED}. Most likely it was killed (SIGKILL) because memory ran out{_limits(limits)}; {other}."
    return replace(failure, message=shorten(f"{said} {advice}.".removesuffix(" ."), _LONGEST))


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

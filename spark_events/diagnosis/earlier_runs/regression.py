"""The rule about what takes much longer than in its own past, and what changed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from spark_events.api.event import AttributeValue
from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.earlier_runs.past_runs import PastRun, Work
from spark_events.diagnosis.earlier_runs.usual import (
    LEAST_COMPARED,
    Usual,
    has_grown,
    settings_that_differ,
    usual,
)
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import REGRESSION, Thresholds

_MOST_SETTINGS = 10


class _Figure(NamedTuple):
    """A figure that may explain a duration: in words, what is too little to, and what to do about it."""

    title: str
    text: Callable[[int], str]
    least: int
    advice: str


_MORE_DATA = (
    "It read more data: check that the sources look right; give it more executors, or shuffle "
    "partitions (spark.sql.shuffle.partitions) for the size that it has now."
)
FIGURES = {
    "inputBytes": _Figure("read from sources", size, 1 << 20, _MORE_DATA),
    "inputRows": _Figure("rows from sources", "{:,}".format, 1_000, _MORE_DATA),
    "stateRows": _Figure(
        "rows of state", "{:,}".format, 1_000, "Its state grows: look at watermarks and keys."
    ),
    "shuffleReadBytes": _Figure("read from shuffles", size, 1 << 20, _MORE_DATA),
    "outputBytes": _Figure("written to sinks", size, 1 << 20, _MORE_DATA),
    "diskSpilledBytes": _Figure(
        "spilled to disk",
        size,
        1 << 20,
        "Its tasks no longer fit into memory: more partitions (spark.sql.shuffle.partitions), or more memory "
        "(spark.executor.memory).",
    ),
    "jvmGcTime": _Figure(
        "garbage collection", duration, 1_000, "Give executors more heap (spark.executor.memory)."
    ),
    "failedTasks": _Figure(
        "failed tasks", "{:,}".format, 1, "See why tasks fail: the failures of the application say it."
    ),
    "tasks": _Figure(
        "tasks", "{:,}".format, 10, "It has more tasks: look at partitions and at the number of input files."
    ),
}
"""What may have grown, the most likely reason first."""
_FEWER_CORES = (
    "It had fewer cores: look at what the cluster gave it (spark.dynamicAllocation.*, queues, quotas)."
)
_OTHER_PLAN = "The plan changed: compare EXPLAIN output, statistics and join strategies."
_OTHER_SETTINGS = "Look at the settings that changed."
_MANY = 20
"""Of fewer durations, the 95th percentile is the longest."""
_NOTHING = (
    "Nothing that Spark measures has changed: look at the machines, and at how fast sources and sinks "
    "answer; spark-events why LOG --against OTHER_LOG compares two runs in full."
)


class Changes(NamedTuple):
    """What is not as usual: in words, as figures for the event, and the advice for the first of them."""

    words: Sequence[str]
    evidence: Mapping[str, AttributeValue]
    advice: str


def is_regression(duration_ms: int, before: Usual, thresholds: Thresholds) -> bool:
    """Return whether something took much longer than it usually does."""
    return before.is_exceeded_by(duration_ms, thresholds.regression_factor)


def work_regression(
    work: Work, run: PastRun, past: Sequence[tuple[PastRun, Work]], thresholds: Thresholds
) -> Issue | None:
    """Return that work took much longer than in earlier runs.

    Args:
        work: what was done.
        run: the run that did it.
        past: the earlier runs, with what each did of the same; the oldest first.
        thresholds: what much longer is.
    """
    if len(past) < LEAST_COMPARED:
        return None
    before = usual(other.duration_ms for _, other in past)
    if not is_regression(work.duration_ms, before, thresholds):
        return None
    changes = what_changed(work.figures, [other.figures for _, other in past])
    last_run, last = past[-1]
    words, advice = list(changes.words), changes.advice
    cores = [other.figures.get("cores", 0) for _, other in past]
    now = work.figures.get("cores", 0)
    if now and has_grown(statistics.median(cores), now):
        words.append(f"cores: {now:,}, usually {statistics.median(cores):,.0f}")
        advice = advice or _FEWER_CORES
    if work.plan != last.plan and all(work.plan != other.plan for _, other in past):
        words.append("its plan is new")
        advice = advice or _OTHER_PLAN
    if run.spark_version != last_run.spark_version:
        words.append(f"Spark {run.spark_version}, before {last_run.spark_version}")
        advice = advice or _OTHER_SETTINGS
    if keys := settings_that_differ(run.settings, last_run.settings):
        more = f" and {len(keys) - _MOST_SETTINGS} more" if len(keys) > _MOST_SETTINGS else ""
        words.append(f"settings: {', '.join(keys[:_MOST_SETTINGS])}{more}")
        advice = advice or _OTHER_SETTINGS
    return regression(
        work.duration_ms,
        before,
        Changes(words, changes.evidence, advice),
        f"in its last {before.compared} runs",
    )


def late_run(lasted_ms: int, before: Usual) -> Issue:
    """Return that a run still goes on, and has taken much longer than earlier runs in the whole."""
    return Issue(
        REGRESSION,
        REGRESSION,
        lasted_ms - before.median_ms,
        None,
        f"has been running for {duration(lasted_ms)}; its last {before.compared} runs took "
        f"{duration(before.median_ms)} at the median, and {_at_most(before)}",
        "See which of its jobs runs now, in Spark's UI, and what it waits for: executors, data, or a source.",
        evidence={
            "live": True,
            "usual.durationMs": before.median_ms,
            "p95.durationMs": before.p95_ms,
            "compared": before.compared,
        },
    )


def what_changed(figures: Mapping[str, int], past: Sequence[Mapping[str, int]]) -> Changes:
    """Return which figures are higher than ever before, and by half or more than usual."""
    words, evidence, advice = [], {}, ""
    for name, figure in FIGURES.items():
        now, before = figures.get(name, 0), [other.get(name, 0) for other in past]
        median = int(statistics.median(before))
        if now <= max(before) or not has_grown(now, median) or now - median < figure.least:
            continue
        times = f", {now / median:.1f} times" if median else ""
        words.append(f"{figure.title}: {figure.text(now)}, usually {figure.text(median)}{times}")
        evidence[name], evidence[f"usual.{name}"] = now, median
        advice = advice or figure.advice
    return Changes(words, evidence, advice)


def regression(duration_ms: int, before: Usual, changes: Changes, past: str) -> Issue:
    """Return the issue that something took much longer than usually, ``past``."""
    changed = (
        f"; what changed: {'; '.join(changes.words)}" if changes.words else "; nothing else that is measured"
    )
    return Issue(
        REGRESSION,
        REGRESSION,
        duration_ms - before.median_ms,
        None,
        f"takes {duration(duration_ms)}; {past}, {duration(before.median_ms)} at the median, and "
        f"{_at_most(before)}{changed}",
        changes.advice or _NOTHING,
        evidence={
            "usual.durationMs": before.median_ms,
            "p95.durationMs": before.p95_ms,
            "compared": before.compared,
            "changed": tuple(changes.words),
            **changes.evidence,
        },
    )


def _at_most(before: Usual) -> str:
    """Return how long something took at most, or of many times in all but a few."""
    return f"at most {duration(before.p95_ms)}{' in 95 % of them' * (before.compared >= _MANY)}"

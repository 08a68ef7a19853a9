"""The rules about a streaming query as a whole, from its progress: state that grows, a source, a backlog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import (
    SOURCE_STOPPED,
    STATE_GROWTH,
    STREAM_BEHIND,
    TASK_COUNT,
    Thresholds,
)

_MOST_OPERATORS = 100
_LEAST_BATCHES, _LEAST_ROWS = 10, 10_000
_IN_A_ROW = 5
"""So many micro-batches that follow each other are no chance."""
_KNOWN_GAPS, _LONGER = 8, 5
"""How many pauses between rows have to be known, and how many times as long as those a silence is."""
_MANY_PARTS, _FEW_ROWS = 4, 100
"""So many times as many parts of a state as cores are too many, if on average so few rows of each change."""
_BEHIND_LATEST = "maxOffsetsBehindLatest"
"""The metric of Spark's Kafka source; the micro-batch itself counts as what was there when it was planned."""


@dataclass(slots=True)
class _State:
    """The rows of the state of one operator, over the micro-batches of a run."""

    first: int
    last: int
    batches: int = 0
    grew: int = 0


class StateGrowth:
    """Finds state of which nothing is ever removed."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, str], _State] = {}

    def take(self, progress: Mapping[str, Any]) -> Iterator[Issue]:
        """Yield what a query's progress shows."""
        watermark = "watermark" in (progress.get("eventTime") or {})
        for place, operator in enumerate(progress.get("stateOperators") or ()):
            issue = self._take(place, operator, watermark)
            if issue is not None:
                yield issue

    def _take(self, place: int, operator: Mapping[str, Any], watermark: bool) -> Issue | None:
        name, rows = str(operator.get("operatorName") or "state"), int(operator.get("numRowsTotal") or 0)
        if (place, name) not in self._states and len(self._states) >= _MOST_OPERATORS:
            return None
        state = self._states.setdefault((place, name), _State(rows, rows))
        state.batches += 1
        state.grew += rows > state.last
        if int(operator.get("numRowsRemoved") or 0) or rows < state.last:
            self._states[place, name] = _State(rows, rows)
            return None
        state.last = rows
        if watermark or state.batches < _LEAST_BATCHES or rows < max(_LEAST_ROWS, 2 * state.first):
            return None
        if state.grew * 10 < state.batches * 9:
            return None
        used = int(operator.get("memoryUsedBytes") or 0)
        return Issue(
            STATE_GROWTH,
            f"{STATE_GROWTH} {place} {name}",
            None,
            None,
            f"the state of {name} has grown in {state.grew} of {state.batches} micro-batches, from "
            f"{state.first:,} to {rows:,} rows, and nothing was removed",
            "If new keys keep coming, it grows until it no longer fits: set a watermark on an event time by "
            "which the operator groups or joins (withWatermark), or a timeout or TTL of the state.",
            Severity.WARN,
            {"state.operator": name, "state.firstRows": state.first, "state.rows": rows, "state.bytes": used},
        )


class ManyStateParts:
    """Finds state that is divided into far more parts than there are cores, for few rows.

    In each micro-batch, each part has a task of its own, and is committed even if none of its rows changes.
    """

    def __init__(self) -> None:
        self._lost_ms = 0

    def take(self, progress: Mapping[str, Any], all_cores: Callable[[], int]) -> Issue | None:
        """Return what the commits have cost so far that fewer parts would not need.

        Args:
            progress: of a query.
            all_cores: says how many cores all executors have; 0 if unknown.
        """
        operators = [each for each in progress.get("stateOperators") or () if _parts(each)]
        cores = all_cores() if operators else 0
        many = [each for each in operators if _is_many(each, cores)]
        if not many:
            return None
        worst = max(many, key=_commit_ms)
        for each in many:
            self._lost_ms += _commit_ms(each) // cores * (_parts(each) - cores) // _parts(each)
        parts, rows = _parts(worst), int(worst.get("numRowsUpdated") or 0)
        return Issue(
            TASK_COUNT,
            f"{TASK_COUNT} state",
            self._lost_ms,
            None,
            f"the state of {worst.get('operatorName')} is kept in {parts:,} parts, for {cores} cores: the "
            f"last micro-batch changed {rows:,} rows, and committing them took its tasks "
            f"{duration(_commit_ms(worst))}",
            "Set spark.sql.shuffle.partitions to about the number of cores. A query keeps the number of its "
            "first start, so it needs a new checkpoint.",
            evidence={"state.parts": parts, "state.updatedRows": rows, "cores": cores},
        )


def _is_many(operator: Mapping[str, Any], cores: int) -> bool:
    """Return whether an operator has several times as many parts as cores, and little to do for each."""
    parts = _parts(operator)
    few_rows = int(operator.get("numRowsUpdated") or 0) <= _FEW_ROWS * parts
    return 0 < _MANY_PARTS * cores <= parts and few_rows


def _parts(operator: Mapping[str, Any]) -> int:
    """Return into how many parts rows are divided; a join of streams has four stores in each."""
    return int(operator.get("numShufflePartitions") or 0)


def _commit_ms(operator: Mapping[str, Any]) -> int:
    return int(operator.get("commitTimeMs") or 0)


class SourceStopped:
    """Finds that no rows come any more, by the pauses between those that came before.

    Args:
        thresholds: for how long that takes at least.
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self._least_ms = thresholds.silence_ms
        self._gaps = 0
        self._longest_ms = 0
        self._last_ms: int | None = None

    def take(self, rows: int, time_ms: int) -> Issue | None:
        """Return how long no rows have come, if that is too long.

        Args:
            rows: of the micro-batch that has completed; 0 if the query has nothing to do.
            time_ms: when that was, in ms since the epoch.
        """
        if rows > 0:
            if self._last_ms is not None:
                self._gaps += 1
                self._longest_ms = max(self._longest_ms, time_ms - self._last_ms)
            self._last_ms = time_ms
            return None
        if self._last_ms is None or self._gaps < _KNOWN_GAPS:
            return None
        silent_ms = time_ms - self._last_ms
        if silent_ms < max(self._least_ms, _LONGER * self._longest_ms):
            return None
        return Issue(
            SOURCE_STOPPED,
            SOURCE_STOPPED,
            None,
            None,
            f"no rows have come for {duration(silent_ms)}; before, the longest pause was "
            f"{duration(self._longest_ms)}",
            "See whether whoever writes to the source still does, and whether the query may still read it "
            "(its path, topic, subscription and credentials).",
            Severity.WARN,
            {"source.silentMs": silent_ms, "source.longestPauseMs": self._longest_ms},
            share_ms=silent_ms,
        )


class StreamBehind:
    """Finds that micro-batches take longer than the time in which the next ones should begin.

    Args:
        interval_ms: of its trigger; None if that has none, or if it is unknown: event logs do not have it.
    """

    def __init__(self, interval_ms: int | None) -> None:
        self._interval_ms = interval_ms
        self._late = self._delay_ms = 0
        self._grew = self._first = 0
        self._backlog: int | None = None  # before the first micro-batch, nobody knows it

    def take(self, progress: Mapping[str, Any], rows: int) -> Issue | None:
        """Return how far the query is behind, if that is so, by its progress and the rows that it read."""
        took_ms = int((progress.get("durationMs") or {}).get("triggerExecution") or 0)
        if self._interval_ms and rows > 0 and took_ms > self._interval_ms:
            self._late += 1
            self._delay_ms += took_ms - self._interval_ms
        else:
            self._late = self._delay_ms = 0
        backlog = _backlog(progress)
        before = backlog if self._backlog is None else self._backlog
        if rows > 0 and backlog > before:
            self._first = self._first if self._grew else before
            self._grew += 1
        elif backlog < before or rows <= 0:
            self._grew = 0
        self._backlog = backlog
        if self._late >= _IN_A_ROW:
            return self._of_interval(took_ms)
        return self._of_backlog() if self._grew >= _IN_A_ROW else None

    def _of_interval(self, took_ms: int) -> Issue:
        return self._issue(
            f"the last {self._late} micro-batches took longer than the trigger's interval of "
            f"{duration(self._interval_ms or 0)}, the last one {duration(took_ms)}, so Spark skips triggers",
            {"behind.batches": self._late, "triggerIntervalMs": self._interval_ms or 0},
            self._delay_ms,
        )

    def _of_backlog(self) -> Issue:
        return self._issue(
            f"in {self._grew} micro-batches, its source has grown faster than it was read: from "
            f"{self._first:,} to {self._backlog:,} offsets behind the latest",
            {"behind.batches": self._grew, "behind.offsets": self._backlog or 0},
            None,
        )

    def _issue(self, sentence: str, evidence: Mapping[str, int], share_ms: int | None) -> Issue:
        return Issue(
            STREAM_BEHIND,
            STREAM_BEHIND,
            None,
            None,
            sentence,
            "See what else makes its micro-batches slow: more cores and partitions help where tasks take the "
            "time. A longer interval makes larger micro-batches, which cost less per row.",
            Severity.WARN,
            evidence,
            share_ms=share_ms,
        )


def _backlog(progress: Mapping[str, Any]) -> int:
    """Return by how many offsets the sources are behind what is there; 0 if none says."""
    behind = 0
    for source in progress.get("sources") or ():
        try:
            behind += int(float((source.get("metrics") or {}).get(_BEHIND_LATEST) or 0))
        except (TypeError, ValueError, OverflowError):
            continue
    return behind

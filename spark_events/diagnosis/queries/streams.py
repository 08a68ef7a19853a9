"""The rules about a streaming query as a whole, from its progress: its sources, and a backlog."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import IDLE_CORES, SOURCE_STOPPED, STREAM_BEHIND, Thresholds

_FOR_EACH_BATCH = "ForeachBatchSink"
_IN_A_ROW = 5
"""So many micro-batches that follow each other are no chance."""
_KNOWN_GAPS, _LONGER = 8, 5
"""How many pauses between rows have to be known, and how many times as long as those a silence is."""
_OFFSETS, _LEAST_OFFSETS, _LEAST_ASKED = "latestOffset", 0.25, 3
"""What Spark calls the time in which it asks sources for what is new; the share of it, and how often."""
_PLACE, _OPTION, _MOST_SOURCES = re.compile(r"\[(.+)\]"), re.compile(r"\w+="), 3
_BEHIND_LATEST = "maxOffsetsBehindLatest"
"""The metric of Spark's Kafka source; the micro-batch itself counts as what was there when it was planned."""
_KNOWN, _STEP_MS, _LEAST_INTERVAL_MS = 8, 100, 500
"""So many micro-batches in a row show an interval; and what it is a multiple of, in ms."""
_PUNCTUAL_MS = 50
"""Spark begins a micro-batch that is due no later than this."""
_GROWING, _SLOWER, _MORE, _STEADY = 5, 1.1, 2, 1.5
"""So many in a row grow, each by this factor at least, and all together by that; and how even rows come."""


class SlowSource:
    """Finds that a source takes long to say up to where a micro-batch goes, before that can begin."""

    def __init__(self) -> None:
        self._lost_ms = self._whole_ms = self._batches = 0

    def take(self, progress: Mapping[str, Any], rows: int, sources: str = "") -> tuple[Issue, int] | None:
        """Return what that has cost so far, and how long the micro-batches took; None if that is little.

        Args:
            progress: of a query; while there is nothing to do, it is no loss that a source looks for it.
            rows: that the micro-batch has read.
            sources: what the query reads; empty if unknown.
        """
        took = progress.get("durationMs") or {}
        if rows <= 0 or _OFFSETS not in took:
            return None
        self._lost_ms += int(took[_OFFSETS])
        self._whole_ms += int(took.get("triggerExecution") or 0)
        self._batches += 1
        if self._batches < _LEAST_ASKED or self._lost_ms < _LEAST_OFFSETS * self._whole_ms:
            return None
        number = len(progress.get("sources") or ())
        # Spark adds up the times of all sources: of several, nobody knows which one is slow.
        asked = f"{number} sources take" if number > 1 else f"source{f' {sources}' if sources else ''} takes"
        issue = Issue(
            IDLE_CORES,
            f"{IDLE_CORES} source",
            self._lost_ms,
            None,
            f"its {asked} {duration(self._lost_ms)} to say what is new, "
            f"{duration(self._lost_ms // self._batches)} before each of {self._batches:,} micro-batches "
            f"({_OFFSETS})",
            "Only the driver works in that time. Of a folder, Spark lists all files each time: remove those "
            "that are done (the option cleanSource), or read a table; of another system, see why it is slow "
            "to answer. A longer trigger interval asks less often.",
            Severity.WARN,
            {"source.offsetsMs": self._lost_ms, "source.batchesMs": self._whole_ms},
        )
        return issue, self._whole_ms


def sources_of(progress: Mapping[str, Any]) -> str:
    """Return what the sources of a query are, as people know them: folders and topics; empty if unknown."""
    return ", ".join(_places(progress.get("sources") or ()))


def is_for_each_batch(progress: Mapping[str, Any]) -> bool:
    """Return whether the program's own code gets a query's micro-batches, in ``foreachBatch``."""
    return str((progress.get("sink") or {}).get("description") or "").startswith(_FOR_EACH_BATCH)


def flow_of(progress: Mapping[str, Any]) -> str:
    """Return where a query's rows come from and go, such as ``of file:/orders into file:/daily``.

    Sources such as Spark's ``rate`` are described by their options, and are left out, as is a sink without a
    place. The result is empty if neither is left.
    """
    sources = [place for place in _places(progress.get("sources") or ()) if not _OPTION.match(place)]
    sinks = [place for place in _places([progress.get("sink") or {}]) if not _OPTION.match(place)]
    of = f"of {', '.join(sources)}" if sources else ""
    return f"{of} into {sinks[0]}".strip() if sinks else of


def _places(described: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what ``FileStreamSource[file:/orders]`` and its like have in brackets, each once."""
    matches = (_PLACE.search(str(each.get("description") or "")) for each in described)
    return list(dict.fromkeys(match[1] for match in matches if match))[:_MOST_SOURCES]


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

    def take(self, rows: int, time_ms: int, sources: str = "") -> Issue | None:
        """Return how long no rows have come, if that is too long.

        Args:
            rows: of the micro-batch that has completed; 0 if the query has nothing to do.
            time_ms: when that was, in ms since the epoch.
            sources: what the query reads; empty if unknown.
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
            f"no rows have come{f' from {sources}' if sources else ''} for {duration(silent_ms)}; before, "
            f"the longest pause was {duration(self._longest_ms)}",
            "See whether the source is still written to, and whether the query may still read it "
            "(its path, topic, subscription and credentials).",
            Severity.WARN,
            {"source.silentMs": silent_ms, "source.longestPauseMs": self._longest_ms},
            share_ms=silent_ms,
        )


class TriggerClock:
    """Finds the interval of a processing-time trigger, which event logs do not have.

    A micro-batch that has waited for its trigger begins at a multiple of the interval since the epoch. If
    several in a row do, it is no chance; those that are late begin at once, and say nothing.
    """

    def __init__(self) -> None:
        self._starts: deque[int] = deque(maxlen=_KNOWN)
        self._free_ms: int | None = None

    def take(self, begun_ms: int, took_ms: int) -> int | None:
        """Called with each micro-batch; returns the interval if it is known by now, in ms.

        Args:
            begun_ms: when it began, in ms since the epoch.
            took_ms: how long it took.
        """
        waited = self._free_ms is None or begun_ms > self._free_ms + _PUNCTUAL_MS
        self._free_ms = begun_ms + took_ms
        if not waited:
            self._starts.clear()
            return None
        self._starts.append(begun_ms)
        if len(self._starts) < _KNOWN:
            return None
        starts = list(self._starts)
        least_ms = min(after - before for before, after in pairwise(starts))
        interval_ms = round(least_ms / _STEP_MS) * _STEP_MS
        if interval_ms < _LEAST_INTERVAL_MS:
            return None
        return interval_ms if all(start % interval_ms <= _PUNCTUAL_MS for start in starts) else None


class Grown(NamedTuple):
    """Micro-batches in a row that each took longer than the one before, in ms."""

    batches: int
    first_ms: int
    last_ms: int


class _Batch(NamedTuple):
    begun_ms: int
    took_ms: int
    rows: int


class BatchGrowth:
    """Finds that each micro-batch has more to read than the one before, as if that took too long.

    If rows come evenly, and each micro-batch reads those that came while the one before ran, more come than
    the query can process. It may also read old files one by one that were larger from day to day.
    """

    def __init__(self) -> None:
        self._batches: list[_Batch] = []

    def take(self, begun_ms: int, took_ms: int, rows: int) -> Grown | None:
        """Called with each micro-batch; returns how those in a row have grown, if that is clear.

        Args:
            begun_ms: when it began, in ms since the epoch.
            took_ms: how long it took.
            rows: that it has read.
        """
        batch = _Batch(begun_ms, took_ms, rows)
        grows = bool(self._batches) and _grows(self._batches[-1], batch)
        self._batches = [*self._batches[-_GROWING:], batch] if grows else [batch]
        if len(self._batches) <= _GROWING:
            return None
        pairs = pairwise(self._batches)
        rates = [after.rows / max(1, after.begun_ms - before.begun_ms) for before, after in pairs]
        first, last = self._batches[0].took_ms, took_ms
        if last < _MORE * first or max(rates) > _STEADY * min(rates):
            return None
        return Grown(len(self._batches), first, last)


def _grows(before: _Batch, batch: _Batch) -> bool:
    at_once = batch.begun_ms - before.begun_ms - before.took_ms <= _PUNCTUAL_MS
    return at_once and 0 < before.rows < batch.rows and batch.took_ms >= _SLOWER * before.took_ms


class StreamBehind:
    """Finds that micro-batches take longer than the time in which the next ones should begin.

    Args:
        interval_ms: of its trigger; None if that has none, or if it is unknown: event logs do not have it.
            Then it is the time between micro-batches, as long as they wait for it.
        bounded: whether it ends by itself: it reads what was there when it began, and no more comes.
    """

    def __init__(self, interval_ms: int | None, bounded: bool = False) -> None:
        self._interval_ms = interval_ms
        self._clock = TriggerClock() if interval_ms is None else None
        self._growth = None if bounded else BatchGrowth()
        self._late = self._delay_ms = 0
        self._grew = self._first = 0
        self._sources = ""
        self._backlog: int | None = None  # before the first micro-batch, nobody knows it

    def take(
        self, progress: Mapping[str, Any], rows: int, begun_ms: int | None, sources: str = ""
    ) -> Issue | None:
        """Return how far the query is behind, if that is so.

        Args:
            progress: of the query.
            rows: that the micro-batch has read.
            begun_ms: when it began, in ms since the epoch; None if unknown.
            sources: what the query reads; empty if unknown.
        """
        took_ms = int((progress.get("durationMs") or {}).get("triggerExecution") or 0)
        self._sources = sources
        if self._clock is not None and begun_ms is not None:
            self._interval_ms = self._clock.take(begun_ms, took_ms) or self._interval_ms
        grown = None
        if self._growth is not None and begun_ms is not None:
            grown = self._growth.take(begun_ms, took_ms, rows)
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
        if self._grew >= _IN_A_ROW:
            return self._of_backlog()
        return self._of_growth(grown) if grown is not None else None

    def _of_interval(self, took_ms: int) -> Issue:
        interval = "the trigger's interval of" if self._clock is None else "the interval of earlier ones,"
        return self._issue(
            f"the last {self._late} micro-batches took longer than {interval} "
            f"{duration(self._interval_ms or 0)}, the last one {duration(took_ms)}, so Spark skips triggers",
            {"behind.batches": self._late, "triggerIntervalMs": self._interval_ms or 0},
            self._delay_ms,
        )

    def _of_backlog(self) -> Issue:
        return self._issue(
            f"in {self._grew} micro-batches, more came than was read: from {self._first:,} to "
            f"{self._backlog:,} offsets behind the latest",
            {"behind.batches": self._grew, "behind.offsets": self._backlog or 0},
            None,
        )

    def _of_growth(self, grown: Grown) -> Issue:
        return self._issue(
            f"each of the last {grown.batches} micro-batches read more rows and took longer than the one "
            f"before, from {duration(grown.first_ms)} to {duration(grown.last_ms)}, without a pause",
            {"behind.batches": grown.batches, "behind.batchMs": grown.last_ms},
            None,
        )

    def _issue(self, sentence: str, evidence: Mapping[str, int], share_ms: int | None) -> Issue:
        return Issue(
            STREAM_BEHIND,
            STREAM_BEHIND,
            None,
            None,
            f"{sentence}; it reads {self._sources}" if self._sources else sentence,
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

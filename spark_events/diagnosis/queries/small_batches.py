"""The rule about a limit of a source that makes so small micro-batches that most of each is a fixed cost."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.queries.state_parts import fixed_commit_ms
from spark_events.diagnosis.queries.streams import sources_of
from spark_events.diagnosis.thresholds import SMALL_BATCHES, Thresholds

_LEAST_BATCHES, _LEAST_SHARE = 20, 0.5
"""So many micro-batches in a row, and the share of their time that has nothing to do with their rows."""
_PUNCTUAL_MS, _PUNCTUAL_SHARE, _PAUSE_MS, _LATE_OF = 50, 0.1, 1_000, 10
"""If there is more to read, the next one begins that soon, or after such a share of the time of the last one,
but for one of ten; a longer pause is waiting."""
_KNOWN, _OTHER_ROWS = 100, 2
"""With so many micro-batches one is compared; and it has other rows if it takes so many times the median."""
_FILES = "number of files read"
_OFFSETS, _SLOW_SOURCE = "latestOffset", 0.25
"""A source that takes such a share to say what is new is an issue of its own."""


class BatchWork(NamedTuple):
    """What the SQL execution of a micro-batch says.

    Attributes:
        tasks_ms: how long its rows took at most: its tasks, on all cores.
        cores: of all executors; 0 if unknown.
        files: how many files were read of each path.
    """

    tasks_ms: int
    cores: int
    files: Mapping[str, int]


@dataclass(slots=True)
class _InARow:
    """Micro-batches of which each begins when the one before ends, since there is more to read.

    Attributes:
        files: that each of them reads; 0 if the source says itself how much it has left.
        batches, late: how many there are, and how many of them began later.
        rows, took_ms, fixed_ms: of all but the first one, for one batch there has to be.
    """

    files: int
    batches: int = 1
    late: int = 0
    rows: int = 0
    took_ms: int = 0
    fixed_ms: int = 0

    def plus(self, other: _InARow) -> _InARow:
        """Return the sums of both."""
        return _InARow(
            self.files,
            self.batches + other.batches,
            self.late + other.late,
            self.rows + other.rows,
            self.took_ms + other.took_ms,
            self.fixed_ms + other.fixed_ms,
        )


class _WorkOfRows:
    """How long the rows of micro-batches take at most, by what the quick ones need for as many.

    That one is slower by chance is no work of its rows, but one that takes far longer has other rows.
    """

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=_KNOWN)

    def take(self, rows: int, tasks_ms: int) -> int:
        """Return the work of one micro-batch, by those until then, in ms."""
        self._rates.append(max(0, tasks_ms) / rows)
        rates = sorted(self._rates)
        quick, usual = rates[len(rates) // 10], rates[len(rates) // 2]
        rate = self._rates[-1]
        return round(rows * (rate if rate > _OTHER_ROWS * usual else min(rate, quick)))


@dataclass(slots=True)
class SmallBatches:
    """Finds that a query is behind because its source's limit makes many small micro-batches.

    The limit shows in two ways: the source says what it has left (Kafka), or each micro-batch reads the same
    number of files without a pause between them. A query that keeps up waits for data, and its micro-batches
    read what has come by then.

    Args:
        thresholds: what is worth an issue.
    """

    thresholds: Thresholds
    _earlier: _InARow = field(default_factory=lambda: _InARow(0, 0))
    _now: _InARow | None = None
    _free_ms: int = 0
    _before_ms: int = 0
    _whole_ms: int = 0
    _sources: str = ""
    _work: _WorkOfRows = field(default_factory=_WorkOfRows)

    def take(
        self,
        progress: Mapping[str, Any],
        rows: int,
        begun_ms: int | None,
        work: BatchWork,
        code_ms: int,
    ) -> tuple[Issue, int] | None:
        """Return what small micro-batches have cost so far, and how long all took; None if that is little.

        Args:
            progress: of a query.
            rows: that the micro-batch has read.
            begun_ms: when it began, in ms since the epoch; None if unknown.
            work: of its SQL execution.
            code_ms: how long code in ``foreachBatch`` took in it: nobody knows whether that is fixed.
        """
        took = progress.get("durationMs") or {}
        took_ms = int(took.get("triggerExecution") or 0)
        self._whole_ms += took_ms
        self._sources = sources_of(progress)
        pause_ms = (begun_ms or 0) - self._free_ms
        late = pause_ms > max(_PUNCTUAL_MS, _PUNCTUAL_SHARE * self._before_ms)
        self._free_ms, self._before_ms = (begun_ms or 0) + took_ms, took_ms
        left, files = _left(progress), _files(progress, work)
        if rows <= 0 or begun_ms is None or not (left or files):
            self._end()
        elif self._now is None or not _goes_on(self._now, late, pause_ms, left, files):
            self._end()
            self._now = _InARow(files)
        else:
            asked_ms = int(took.get(_OFFSETS) or 0)
            asked_ms = asked_ms if asked_ms >= _SLOW_SOURCE * took_ms else 0
            work_ms = self._work.take(rows, work.tasks_ms - fixed_commit_ms(progress, work.cores))
            fixed_ms = max(0, took_ms - work_ms - code_ms - asked_ms)
            self._now = self._now.plus(_InARow(files, 1, int(late), rows, took_ms, fixed_ms))
        return self._issue()

    def _end(self) -> None:
        if self._now is not None and self._costs(self._now):
            self._earlier = self._earlier.plus(self._now)
        self._now = None

    def _costs(self, row: _InARow) -> bool:
        """Return whether micro-batches in a row are an issue: a short one is a query that catches up."""
        fixed = row.fixed_ms >= max(_LEAST_SHARE * row.took_ms, self.thresholds.min_time_ms)
        return fixed and row.batches >= _LEAST_BATCHES

    def _issue(self) -> tuple[Issue, int] | None:
        costs_now = self._now is not None and self._costs(self._now)
        all_of = self._earlier.plus(self._now) if self._now is not None and costs_now else self._earlier
        if not all_of.batches:
            return None
        each, of = max(1, all_of.batches - 1), f" of {self._sources}" if self._sources else ""
        issue = Issue(
            SMALL_BATCHES,
            SMALL_BATCHES,
            all_of.fixed_ms,
            None,
            f"{all_of.batches:,} micro-batches of about {all_of.rows // each:,} rows{of} follow each other "
            f"without a pause and take {duration(all_of.took_ms // each)} each, of which at least "
            f"{duration(all_of.fixed_ms // each)} would be the same for more rows (planning, commits)",
            "Raise the limit of the source: maxFilesPerTrigger, maxBytesPerTrigger or maxOffsetsPerTrigger. "
            "Fewer and larger micro-batches cost less per row; with availableNow, do without a limit if all "
            "rows fit into one.",
            evidence={
                "batches.number": all_of.batches,
                "batches.rows": all_of.rows // each,
                "batches.durationMs": all_of.took_ms // each,
                "batches.fixedMs": all_of.fixed_ms // each,
            },
        )
        return issue, self._whole_ms


def batch_work(execution: EndedExecution, alone: bool) -> BatchWork:
    """Return what the SQL execution of a micro-batch says.

    Args:
        execution: of a micro-batch.
        alone: whether its query has the cores for itself; if not, its stages may have waited for others'.
    """
    wall_ms = execution.wall_ms(execution.stages)
    if alone and execution.cores:
        work_ms = sum(_work_ms(stage, execution.cores) for stage in execution.stages.values())
        wall_ms = min(wall_ms, work_ms)
    files: dict[str, int] = {}
    for node in execution.plans[0].walk() if execution.plans else ():
        if (table := node.table()) and (number := node.metrics.get(_FILES)):
            files[table] = files.get(table, 0) + number
    return BatchWork(wall_ms, execution.cores, files)


def _work_ms(stage: ExecutedStage, cores: int) -> int:
    if not stage.longest_ms:
        return stage.wall_ms
    return min(stage.wall_ms, max(stage.longest_ms, stage.run_ms // max(1, min(stage.tasks, cores))))


def _goes_on(row: _InARow, late: bool, pause_ms: int, left: bool, files: int) -> bool:
    """Return whether a micro-batch belongs to those before it: there was more to read when they ended."""
    if pause_ms >= _PAUSE_MS or row.late + late > 1 + row.batches // _LATE_OF:
        return False
    return left or (files > 0 and files == row.files)


def _left(progress: Mapping[str, Any]) -> bool:
    """Return whether a source has more than the micro-batch has read, by its offsets of partitions."""
    for source in progress.get("sources") or ():
        latest, end = _offsets(source.get(_OFFSETS)), _offsets(source.get("endOffset"))
        if any(offset > end.get(partition, offset) for partition, offset in latest.items()):
            return True
    return False


def _offsets(said: object) -> dict[tuple[str, str], int]:
    """Return the offset of each partition of each topic; empty if it is something else."""
    try:
        topics = json.loads(said) if isinstance(said, str) else said
    except ValueError:
        return {}
    if not isinstance(topics, Mapping):
        return {}
    return {
        (str(topic), str(partition)): offset
        for topic, partitions in topics.items()
        if isinstance(partitions, Mapping)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }


def _files(progress: Mapping[str, Any], work: BatchWork) -> int:
    """Return how many files a micro-batch has read of the folders of its sources; not those of tables."""
    described = [str(source.get("description") or "") for source in progress.get("sources") or ()]
    folders = [text.partition("[")[2].rstrip("]/") for text in described if "[" in text]
    return sum(
        number
        for path, number in work.files.items()
        if any(folder and _is_in(path, folder) for folder in folders)
    )


def _is_in(path: str, folder: str) -> bool:
    folder = folder.partition("*")[0].rstrip("/")
    return path == folder or path.startswith(f"{folder}/")

"""The rules about time in which only the driver works, while the cores of all executors wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import COLLECT, IDLE_CORES, SMALL_JOBS, Thresholds

_MOST_PLACES = 1_000
_LEAST_COLLECTED = 4 << 20
_COLLECTED_PER_MS = 4 << 10
"""Python takes rows from the JVM at 4 MB a second or faster; longer pauses are for something else."""
_LOOP, _MAY_BE_LOOP, _SMALL_MS = 20, 3, 5_000
"""From so many stages of one place on, it is a loop, or may become one; and how long each takes at most."""
_AT_START = "before its first stage, beyond the usual minute"
_AFTER = "after "
_AT_END, _OTHERS = "after its last stage", "others"
_USUAL_START_MS = 60_000
"""Each application takes a while until its first stage: to load classes, and to look at what it reads."""


@dataclass(slots=True)
class _Pauses:
    """The time in which no stage ran before those of one place, in ms.

    Attributes:
        number: how often.
        within_ms: how much of it belonged to SQL executions.
        stages, stages_ms: how many stages of the place have ended, and for how long any stage ran since the
            pauses before them.
    """

    number: int = 0
    time_ms: int = 0
    within_ms: int = 0
    stages: int = 0
    stages_ms: int = 0

    def is_loop(self, least: int = _LOOP) -> bool:
        """Whether a loop runs small jobs there, so many at least, one after the other."""
        return self.number >= least and self.time_ms + self.stages_ms <= _SMALL_MS * self.stages


class DriverTime:
    """Adds up the time in which no stage of an application ran although it had cores, by what came after it.

    Time in which a streaming query runs does not count: between its micro-batches it waits for data, or for
    its trigger.

    Attributes:
        cores: of all executors that live.
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._executors: dict[str, int] = {}
        # With the pause before each, and where that was, if not before the stage's own place.
        self._stages: dict[tuple[int, int], tuple[str, _Pauses]] = {}
        self._queries: set[str] = set()
        self._ending = False
        self._executions = 0
        self._last_ms: int | None = None
        self._wall_ms = self._busy_ms = 0
        self._after = ""  # what brought a large result before the pause
        self._pause = _Pauses()
        self._before: dict[str, _Pauses] = {}
        self._collected: dict[str, _Pauses] = {}
        self._collects: tuple[str, int] | None = None  # what the last stage sent to the driver, and how much
        self._any_stage = self._has_ended = False
        self.cores = 0

    def executor_added(self, executor: str, cores: int, time_ms: int) -> None:
        """Called when an executor was added."""
        self._advance(time_ms)
        self._executors[executor] = cores
        self.cores = sum(self._executors.values())

    def executor_removed(self, executor: str, time_ms: int) -> None:
        """Called when an executor was removed."""
        self._advance(time_ms)
        self._executors.pop(executor, None)
        self.cores = sum(self._executors.values())

    def query_started(self, run_id: str, time_ms: int) -> None:
        """Called when a streaming query has begun."""
        self._advance(time_ms)
        self._queries.add(run_id)

    def query_ended(self, run_id: str, time_ms: int) -> None:
        """Called when a streaming query has ended, at the latest: an event log does not say when."""
        self._advance(time_ms)
        self._ending = run_id in self._queries or self._ending
        self._queries.discard(run_id)

    def executions(self, change: int, time_ms: int) -> None:
        """Called when an SQL execution has begun, or ended where the change is negative."""
        self._advance(time_ms)
        self._executions = max(0, self._executions + change)

    def stage_submitted(self, key: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has begun."""
        self._advance(time_ms)
        pause = self._ended_pause()
        if not self._any_stage:
            pause = _Pauses(1, max(0, pause.time_ms - _USUAL_START_MS), 0)
        at = f"{_AFTER}{self._after}" if self._after else ""
        self._stages[key] = at if self._any_stage else _AT_START, pause
        self._after = ""
        self._any_stage = True

    def stage_completed(self, key: tuple[int, int], place: str, result_bytes: int, time_ms: int) -> None:
        """Called when a stage attempt has ended.

        Args:
            key: the stage and the number of its attempt.
            place: in the user's code that it was for, or its name.
            result_bytes: the size of the rows that its tasks sent to the driver.
            time_ms: when, in ms since the epoch.
        """
        self._advance(time_ms)
        at, pause = self._stages.pop(key, ("", _Pauses()))
        self._book(at or place, pause)
        busy_ms, self._busy_ms = self._busy_ms, 0
        if not at and (before := self._before.get(place)) is not None:
            before.stages += 1
            before.stages_ms += busy_ms
        self._collects = (place, result_bytes) if result_bytes >= _LEAST_COLLECTED else None

    def end(self, time_ms: int) -> None:
        """Called at the end of the application."""
        self._advance(time_ms)
        self._has_ended = True
        for at, pause in self._stages.values():
            self._book(at or _OTHERS, pause)
        self._stages.clear()
        if self._any_stage:
            pause = self._ended_pause()
            self._book(f"{_AFTER}{self._after}" if self._after else _AT_END, pause)

    def issues(self, time_ms: int) -> Iterator[Issue]:
        """Yield what the time of the driver alone has cost so far, however little."""
        self._advance(time_ms)
        for place, collected in self._collected.items():
            yield self._of_collect(place, collected)
        least_ms = max(
            self._thresholds.least_idle_ms,
            self._thresholds.idle_share * self._wall_ms,
            1,
        )
        others = dict(self._before)
        for place, pauses in self._before.items():
            if pauses.is_loop() and pauses.time_ms + pauses.stages_ms >= least_ms:
                yield _of_loop(place, others.pop(place))
            elif not self._has_ended and pauses.is_loop(_MAY_BE_LOOP):
                del others[place]
        alone_ms = sum(pause.time_ms for pause in others.values())
        if alone_ms >= least_ms:
            yield self._of_driver(alone_ms, others)

    def _of_driver(self, alone_ms: int, pauses: dict[str, _Pauses]) -> Issue:
        longest = sorted(pauses, key=lambda place: -pauses[place].time_ms)[:3]
        parts = [
            _described(place, pauses[place]) for place in longest if pauses[place].time_ms >= alone_ms // 20
        ]
        first = pauses[longest[0]]
        if first.within_ms * 2 > first.time_ms:
            advice = (
                "Spark's driver plans, lists files or commits in that time: fewer and larger files, fewer "
                "partitions, and a plan that is not built up in a loop make it shorter."
            )
        else:
            advice = (
                "The program computes, waits or calls something else there: move that work into Spark, or "
                "run it beside the jobs."
            )
        return Issue(
            IDLE_CORES,
            IDLE_CORES,
            alone_ms,
            None,
            f"only the driver works for {duration(alone_ms)} of {duration(self._wall_ms)}: "
            f"{'; '.join(parts)}",
            advice,
            Severity.INFO,
            {
                "driverAloneMs": alone_ms,
                "driverAlone.pauses": sum(pause.number for pause in pauses.values()),
                "driverAlone.inExecutionsMs": sum(pause.within_ms for pause in pauses.values()),
                "cores": self.cores,
            },
        )

    def _of_collect(self, place: str, collected: _Pauses) -> Issue:
        return Issue(
            COLLECT,
            f"{COLLECT} {place}",
            collected.time_ms,
            None,
            f"{place} brings {size(collected.within_ms)} to the driver, which takes at least "
            f"{duration(collected.time_ms)} of the {duration(collected.stages_ms)} until the next stage",
            "Aggregate or filter in Spark, and collect only the result; write large results to a table; for "
            "pandas, set spark.sql.execution.arrow.pyspark.enabled=true.",
            evidence={"collect.bytes": collected.within_ms, "collect.times": collected.number},
        )

    def _ended_pause(self) -> _Pauses:
        """Return the pause that ends now, without the part in which a result came to the driver."""
        pause, self._pause = self._pause, _Pauses()
        return self._settle_collect(pause) if self._collects is not None and pause.time_ms else pause

    def _book(self, place: str, pause: _Pauses) -> None:
        if not pause.time_ms:
            return
        if place not in self._before and len(self._before) >= _MOST_PLACES:
            place = _OTHERS
        before = self._before.setdefault(place, _Pauses())
        before.number += 1
        before.time_ms += pause.time_ms
        before.within_ms += pause.within_ms

    def _settle_collect(self, pause: _Pauses) -> _Pauses:
        """Book the part of a pause in which a result came to the driver, and return the rest of it."""
        assert self._collects is not None  # asked before
        place, result_bytes = self._collects
        self._collects = None
        taken_ms = min(pause.time_ms, result_bytes // _COLLECTED_PER_MS)
        if place in self._collected or len(self._collected) < _MOST_PLACES:
            collected = self._collected.setdefault(place, _Pauses())
            collected.number += 1
            collected.time_ms += taken_ms
            collected.within_ms += result_bytes
            collected.stages_ms += pause.time_ms
        self._after = place
        return _Pauses(1, pause.time_ms - taken_ms, max(0, pause.within_ms - taken_ms))

    def _advance(self, time_ms: int) -> None:
        passed_ms = max(0, time_ms - self._last_ms) if self._last_ms is not None else 0
        self._last_ms = max(time_ms, self._last_ms or 0)
        of_query = self._queries or self._ending
        self._ending = self._ending and not passed_ms
        if not self.cores or of_query or not passed_ms:
            return
        self._wall_ms += passed_ms
        self._busy_ms += passed_ms if self._stages else 0
        if not self._stages:
            self._pause.time_ms += passed_ms
            self._pause.within_ms += passed_ms if self._executions else 0


def _of_loop(place: str, pauses: _Pauses) -> Issue:
    whole_ms, of = pauses.time_ms + pauses.stages_ms, place.removeprefix("stages of ")
    return Issue(
        SMALL_JOBS,
        f"{SMALL_JOBS} {place}",
        whole_ms * (pauses.stages - 1) // max(1, pauses.stages),
        None,
        f"{pauses.stages:,} small stages of {of} run one after the other, {duration(whole_ms)} in all, of "
        f"which no stage runs for {duration(pauses.time_ms)}",
        "A loop in the driver runs a small job each time: let one job do all of it (a join, a groupBy or a "
        "window in place of the loop), or run the jobs at the same time in threads.",
        evidence={"loop.stages": pauses.stages, "loop.driverAloneMs": pauses.time_ms},
    )


def _described(place: str, pauses: _Pauses) -> str:
    if place in (_AT_START, _AT_END) or place.startswith(_AFTER):
        return f"{duration(pauses.time_ms)} {place}"
    pauses_of = f" in {pauses.number:,} pauses" if pauses.number > 1 else ""
    return f"{duration(pauses.time_ms)}{pauses_of} before {place}"

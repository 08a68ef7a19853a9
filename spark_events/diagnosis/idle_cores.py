"""The rule about cores that have nothing to do, while nobody waits for data."""

from __future__ import annotations

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import IDLE_CORES, Thresholds


class IdleCores:
    """Adds up the time of an application's cores, and how much of it no stage had tasks for.

    Time in which a streaming query runs does not count: between its micro-batches it waits for data, or for
    its trigger. What has ended of a stage is not known here, so cores that wait for its last tasks count as
    busy; the rules about long tasks find those.

    Attributes:
        cores: of all executors that live.
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._executors: dict[str, int] = {}
        self._stages: dict[tuple[int, int], int] = {}
        self._queries: set[str] = set()
        self._last_ms: int | None = None
        self._core_ms = self._alone_ms = self._few_ms = 0
        self._wall_ms = 0
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
        """Called when a streaming query has ended."""
        self._advance(time_ms)
        self._queries.discard(run_id)

    def stage_submitted(self, key: tuple[int, int], tasks: int, time_ms: int) -> None:
        """Called when a stage attempt has begun."""
        self._advance(time_ms)
        self._stages[key] = tasks

    def stage_completed(self, key: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has ended."""
        self._advance(time_ms)
        self._stages.pop(key, None)

    def issue(self, time_ms: int) -> Issue | None:
        """Return that most cores had nothing to do for a long time, if so."""
        self._advance(time_ms)
        idle_ms = self._alone_ms + self._few_ms
        if not self._core_ms or idle_ms < self._thresholds.idle_share * self._core_ms:
            return None
        lost_ms = idle_ms * self._wall_ms // self._core_ms
        if lost_ms < self._thresholds.idle_time_ms:
            return None
        of_alone = idle_ms and self._alone_ms / idle_ms
        return Issue(
            IDLE_CORES,
            IDLE_CORES,
            lost_ms,
            None,
            f"its cores had nothing to do for {idle_ms / self._core_ms:.0%} of {duration(self._wall_ms)}: "
            f"{of_alone:.0%} of that while only the driver worked, the rest in stages with few tasks",
            "Move work from the driver into Spark, or run its jobs at the same time; use fewer executors, or "
            "let their number follow the load (spark.dynamicAllocation.enabled).",
            Severity.INFO,
            {
                "coreTimeMs": self._core_ms,
                "idleCoreTimeMs": idle_ms,
                "driverAloneCoreTimeMs": self._alone_ms,
                "tooFewTasksCoreTimeMs": self._few_ms,
            },
        )

    def _advance(self, time_ms: int) -> None:
        passed_ms = max(0, time_ms - self._last_ms) if self._last_ms is not None else 0
        self._last_ms = max(time_ms, self._last_ms or 0)
        if not self.cores or self._queries or not passed_ms:
            return
        self._wall_ms += passed_ms
        self._core_ms += self.cores * passed_ms
        if not self._stages:
            self._alone_ms += self.cores * passed_ms
        else:
            busy = min(self.cores, sum(self._stages.values()))
            self._few_ms += (self.cores - busy) * passed_ms

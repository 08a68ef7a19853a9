"""The rule about lost executors, several or the only one: tasks begin anew, and stages miss cores."""

from __future__ import annotations

from collections import deque

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TasksMeasured
from spark_events.diagnosis.thresholds import EXECUTOR_CHURN

_LEAST_LOSSES = 2
_MOST_MISSED = 10_000
_KILLED = 137
_MOST_ROUNDS, _EVEN = 10, 1.5
"""Of so few rounds of tasks that take about as long, one more is seen in how long a stage takes."""
_WHAT_OF = (
    "Their ExecutorLostEvents, and their logs, say what they died of: give them more memory if that was it."
)
_WHAT_OF_ONE = (
    "Its ExecutorLostEvent, and its log, say what it died of: give executors more memory if that was it."
)
_ABOVE_LIMIT = (
    "Exit code 137 is a SIGKILL, as containers send it above their memory limit: raise "
    "spark.executor.memoryOverhead, in which Python has its memory, too, or let fewer tasks run at once "
    "(spark.executor.cores)."
)


class ExecutorChurn:
    """Adds up what the losses of an application's executors have cost."""

    def __init__(self) -> None:
        self._cores: dict[str, int] = {}
        self._most_cores = 0
        self._stages: set[tuple[int, int]] = set()
        self._last_ms = self._busy_ms = 0
        self._stood_still_ms = 0
        # Of those that were lost and not replaced: for how long stages had run by then, and their cores.
        self._missed: deque[tuple[int, int]] = deque(maxlen=_MOST_MISSED)
        self._recent: deque[tuple[int, int]] = deque(maxlen=_MOST_MISSED)
        self._losses = 0
        self._missing_core_ms = self._failed_ms = self._rounds_ms = 0
        # When cores came again, and how much of their time stages had missed by then.
        self._came: deque[tuple[int, int]] = deque(maxlen=_MOST_MISSED)
        self._beside_ms = 0  # until when several stages ran at once
        self._last = ""
        self._any_killed = False

    @property
    def any_lost(self) -> bool:
        """Whether an executor was lost that should have stayed."""
        return self._losses > 0

    @property
    def is_churn(self) -> bool:
        """Whether executors were lost more than once, or none was left for stages that ran."""
        return self._losses >= _LEAST_LOSSES or self._stood_still_ms > 0

    def added(self, executor: str, cores: int, time_ms: int) -> None:
        """Called when an executor was added; it takes the place of the one that was lost first.

        Nobody misses cores while no stage runs, so only the time counts in which one did.
        """
        self._advance(time_ms)
        self._cores[executor] = cores
        self._most_cores = max(self._most_cores, sum(self._cores.values()))
        if self._missed:
            busy_ms, missing = self._missed.popleft()
            missed_core_ms = (self._busy_ms - busy_ms) * missing
            self._missing_core_ms += missed_core_ms
            self._came.append((time_ms, missed_core_ms))

    def lost(self, executor: str, reason: str, time_ms: int, exit_code: int | None = None) -> None:
        """Called when an executor was lost that should have stayed.

        Args:
            executor: its id.
            reason: in one word.
            time_ms: when, in ms since the epoch.
            exit_code: of its process; None if unknown.
        """
        self._advance(time_ms)
        cores = self._cores.pop(executor, 0)
        if cores:
            self._losses += 1
            self._last = reason.replace("_", " ")
            if exit_code is not None:
                self._last += f" with exit code {exit_code}"
            self._any_killed = self._any_killed or exit_code == _KILLED
            self._missed.append((self._busy_ms, cores))
            self._recent.append((time_ms, cores))

    def stage_begun(self, stage: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has begun."""
        self._advance(time_ms)
        self._stages.add(stage)

    def stage_ended(self, stage: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has ended."""
        self._advance(time_ms)
        self._stages.discard(stage)

    def gone(self, executor: str) -> None:
        """Called when an executor was removed that was to go."""
        self._cores.pop(executor, None)

    def takes_failures(self, measured: TasksMeasured) -> bool:
        """Add how long the failed attempts of a stage had run, if they went with executors.

        With an executor goes at most one for each of its cores.
        """
        lost_cores = sum(cores for time_ms, cores in self._recent if time_ms >= measured.first_ms)
        if not self.is_churn or measured.failed > lost_cores:
            return False
        self._failed_ms += measured.failed_ms
        missing_ms = sum(missed for time_ms, missed in self._came if time_ms >= measured.first_ms)
        lost_ms = measured.failed_ms + missing_ms
        self._rounds_ms += max(
            0, min(self._beyond_rounds_ms(measured), lost_ms) - lost_ms // self._most_cores
        )
        return True

    def _beyond_rounds_ms(self, measured: TasksMeasured) -> int:
        """Return by how much a stage takes longer than its tasks do in rounds of one for each core.

        A task that begins again as the others end has all cores but one wait for it. 0 if tasks differ, or if
        other stages had a part of the cores.
        """
        if self._beside_ms > measured.first_ms:
            return 0
        rounds, run = -(-measured.tasks // self._most_cores), measured.run
        if not measured.tasks or rounds > _MOST_ROUNDS or run.highest > _EVEN * run.median:
            return 0
        return max(0, measured.last_ms - measured.first_ms - rounds * run.total // measured.tasks)

    def issue(self) -> Issue | None:
        """Return what that has cost so far; None if no more than one was lost, and others were left."""
        if not self.is_churn or not self._most_cores:
            return None
        lost, others, what_of = f"the only executor was lost ({self._last})", "another", _WHAT_OF_ONE
        if self._losses > 1:
            lost, others = f"{self._losses} executors were lost, the last one: {self._last}", "others"
            what_of = _WHAT_OF
        began_again = f"tasks that had run for {duration(self._failed_ms)} began again, and "
        return Issue(
            EXECUTOR_CHURN,
            EXECUTOR_CHURN,
            (self._missing_core_ms + self._failed_ms) // self._most_cores + self._rounds_ms,
            None,
            f"{lost}: {began_again * (self._failed_ms > 0)}until {others} came, stages missed cores for "
            f"{duration(self._missing_core_ms)} in all",
            f"{_ABOVE_LIMIT if self._any_killed else what_of} If executors are preempted, or run on spot "
            "instances, set spark.decommission.enabled=true: they then move their blocks to others before "
            "they end.",
            evidence={
                "executors.lost": self._losses,
                "executors.failedTasksMs": self._failed_ms,
                "executors.missingCoresMs": self._missing_core_ms,
            },
        )

    def _advance(self, time_ms: int) -> None:
        if len(self._stages) > 1:
            self._beside_ms = max(time_ms, self._last_ms)
        if self._stages:
            passed_ms = max(0, time_ms - self._last_ms)
            self._busy_ms += passed_ms
            self._stood_still_ms += passed_ms if self._missed and not self._cores else 0
        self._last_ms = max(time_ms, self._last_ms)

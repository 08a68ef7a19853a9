"""Which stage attempts make again what had been made before."""

from __future__ import annotations

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.costs_of_places import CostsOfPlaces
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TasksMeasured
from spark_events.diagnosis.thresholds import RETRIES

_MOST_ENDED, _MOST_JOBS = 10_000, 100
MADE_AGAIN = "repeats"
"""The evidence that tasks make again what was lost."""
KEEP_SHUFFLES = (
    "The shuffle output went with executors (see their ExecutorLostEvents), or was removed from their disks. "
    "An external shuffle service, or spark.decommission.enabled where executors are told to go, keeps it."
)


class RepeatedStages:
    """Knows of each stage attempt of one application whether it makes again what was lost.

    A stage has another attempt after one that failed, which it completes, or because executors are gone that
    had what it wrote. That may have been written by another job: then the first attempt that anybody sees has
    a number above zero, after the failure of a stage that could not read it. Where no failure was seen, as by
    those who come late, nobody knows.
    """

    def __init__(self) -> None:
        # Whether the last attempt of each succeeded, in the order of the first; long ago, nothing runs again.
        self._succeeded: dict[int, bool] = {}
        self._any_failed = False

    def ended(self, stage: int, attempt: int, failed: bool) -> bool:
        """Called when a stage attempt has ended; returns whether it made something again.

        Args:
            stage, attempt: its numbers.
            failed: whether this attempt did not complete the stage.
        """
        again = attempt > 0 and self._succeeded.get(stage, self._any_failed)
        self._succeeded[stage] = not failed
        self._any_failed = self._any_failed or failed
        if len(self._succeeded) > _MOST_ENDED:
            self._succeeded.pop(next(iter(self._succeeded)))
        return again


class WorkMadeAgain:
    """Adds up the stage attempts of an application that make again what was lost; each may be small."""

    def __init__(self) -> None:
        self._costs = CostsOfPlaces()
        self._jobs_ms: dict[int, int] = {}
        self._other_jobs_ms = 0
        self._attempts = self._tasks = 0

    @property
    def jobs_ms(self) -> int:
        """How long the jobs have taken that they belong to, until then, in ms."""
        return self._other_jobs_ms + sum(self._jobs_ms.values())

    def take(self, place: str, measured: TasksMeasured, lost_ms: int, job_begun_ms: int) -> Issue:
        """Return what they have cost so far.

        Args:
            place: in the user's code, or the name of the stage.
            measured: what the tasks of one more attempt measured.
            lost_ms: for how long they ran alone, in ms.
            job_begun_ms: when its job began, in ms since the epoch.
        """
        self._jobs_ms[job_begun_ms] = measured.last_ms - job_begun_ms
        if len(self._jobs_ms) > _MOST_JOBS:
            self._other_jobs_ms += self._jobs_ms.pop(next(iter(self._jobs_ms)))
        self._attempts += 1
        self._tasks += measured.tasks
        self._costs.add(place, lost_ms)
        all_ms, (worst, most_ms) = self._costs.all_ms, self._costs.most
        most = ", most of that" if most_ms < all_ms else ""
        where = f"{most} for {worst}" if worst else ""
        of = "" if self._attempts == 1 else f" of {self._attempts:,} stage attempts"
        tasks = "one task runs" if self._tasks == 1 else f"{self._tasks:,} tasks{of} run"
        return Issue(
            RETRIES,
            f"{RETRIES} again",
            all_ms,
            None,
            f"{tasks} again for {duration(all_ms)}{where}: what had been written was gone",
            KEEP_SHUFFLES,
            evidence={MADE_AGAIN: True, "numTasks": self._tasks, "attempts": self._attempts},
        )

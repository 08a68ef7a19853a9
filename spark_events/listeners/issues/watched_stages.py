"""Jobs and stages that run, with what was found about them so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_events.diagnosis.measured import NO_PYTHON, PythonTimes, TasksMeasured
from spark_events.diagnosis.rdds.listed_again import Listing
from spark_events.listeners.issues.findings import Finding
from spark_events.listeners.run import Job

Key = tuple[int, int]
"""The numbers of a stage and of its attempt."""


@dataclass(slots=True)
class JobFindings:
    """What was found about a job that runs.

    Attributes:
        lists: the folders whose files it lists; None if it does something else.
        arrow_rows: see ``EndedStage``.
        by_arrow: see ``WorkDone``.
        warned: the stages of which a warning was given.
    """

    run: Job
    lists: Listing | None = None
    arrow_rows: int | None = None
    by_arrow: bool | None = None
    issues: list[Finding] = field(default_factory=list)
    warned: set[Key] = field(default_factory=set)


@dataclass(slots=True)
class WatchedStage:
    """A stage attempt that runs; its job is None if unknown. Its end says the rest."""

    job: JobFindings | None
    name: str
    begun_ms: int
    measured: TasksMeasured | None = None
    python: PythonTimes = NO_PYTHON
    repeats: bool = False

    @property
    def of_job(self) -> Job | None:
        """The job as the run knows it; None if unknown."""
        return self.job.run if self.job is not None else None

    @property
    def of_query(self) -> bool:
        """Whether it works for a streaming query."""
        return bool(self.job and self.job.run.query)

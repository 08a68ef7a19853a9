"""Times in which no stage runs, and the stages that end them."""

from __future__ import annotations

from dataclasses import dataclass, replace

ANYWHERE = "stages of DataFrames"
"""Where Spark does not say for which place in the code stages are: they may be for many."""
MOST_PLACES = 1_000
"""Of no more places in the code anything is kept."""
_BETWEEN_MS = 500
"""So long the program takes at most between two SQL executions to make the next one."""


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What a stage attempt that has ended worked for.

    Attributes:
        place: in the user's code, or the stage's name; empty if unknown.
        job: tells the jobs of one place apart; those of one SQL execution are the same.
        run_ms: how long its tasks ran, in all.
        result_bytes: the size of the rows that they sent to the driver.
        lists_files: whether they list files, which no program asks for as such.
        told_ms: how much of the pause before it another issue tells, in ms.
        by_arrow: whether Arrow is to bring the rows to Python; None if it is as for the application.
    """

    place: str
    job: str
    run_ms: int
    result_bytes: int
    lists_files: bool = False
    told_ms: int = 0
    by_arrow: bool | None = None


@dataclass(slots=True)
class Pauses:
    """The time in which no stage ran before those of one place, in ms.

    Attributes:
        number: how often.
        within_ms: how much of it belonged to SQL executions.
        longest_ms: how long the longest was.
        program_ms: how much of it was between SQL executions, and longer than it takes to make the next one.
        programs: how often there was any of that.
        usual_ms: how much of it was no more than Spark takes between any two stages.
        after: the place of the last stage before that; empty if unknown.
    """

    number: int = 0
    time_ms: int = 0
    within_ms: int = 0
    longest_ms: int = 0
    usual_ms: int = 0
    after: str = ""
    program_ms: int = 0
    programs: int = 0

    @property
    def mostly_after(self) -> str:
        """The place before most of it; empty if there is none, or Spark works on what comes next."""
        is_most = 2 * self.longest_ms > self.time_ms > 2 * self.within_ms
        return self.after if is_most else ""

    def add(self, pause: Pauses) -> None:
        """Add one pause."""
        self.number += 1
        self.time_ms += pause.time_ms
        self.within_ms += pause.within_ms
        own_ms = max(0, pause.time_ms - pause.within_ms - _BETWEEN_MS)
        self.program_ms += own_ms
        self.programs += own_ms > 0
        self.usual_ms += min(pause.usual_ms, pause.time_ms)
        if pause.time_ms > self.longest_ms:
            self.longest_ms, self.after = pause.time_ms, pause.after

    def merge(self, others: Pauses) -> None:
        """Add the pauses before stages of another place."""
        self.number += others.number
        self.time_ms += others.time_ms
        self.within_ms += others.within_ms
        self.program_ms += others.program_ms
        self.programs += others.programs
        self.usual_ms += others.usual_ms
        if others.longest_ms > self.longest_ms:
            self.longest_ms, self.after = others.longest_ms, others.after

    def of_loop(self) -> tuple[Pauses, Pauses]:
        """Return what of them a loop of SQL executions costs, and what the program does between these."""
        own_ms = self.program_ms
        of_loop = replace(self, time_ms=self.time_ms - own_ms, program_ms=0, programs=0)
        longest_ms = min(self.longest_ms, own_ms)
        return of_loop, Pauses(self.programs, own_ms, 0, longest_ms, 0, self.after, own_ms, self.programs)

    def take(self, told_ms: int) -> int:
        """Take off what another issue tells, that of SQL executions first; returns how much it was, in ms."""
        taken_ms = min(told_ms, self.time_ms)
        self.time_ms -= taken_ms
        self.within_ms = max(0, self.within_ms - taken_ms)
        return taken_ms

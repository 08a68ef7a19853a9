"""Issues of an application that its stages outside SQL show: what they list, read or compute again.

They are about the application, because each stage alone has only a part of what they cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TasksMeasured
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.rdds.computed_again import RddsComputedAgain
from spark_events.diagnosis.rdds.evicted_rdds import EvictedRdds
from spark_events.diagnosis.rdds.fitted_again import FittedAgain
from spark_events.diagnosis.rdds.listed_again import ListedAgain, Listing
from spark_events.diagnosis.rdds.one_by_one import Fetch, OneByOne
from spark_events.diagnosis.rdds.repeated_stages import WorkMadeAgain
from spark_events.diagnosis.rdds.schema_reads import SchemaRead, SchemaReads
from spark_events.diagnosis.rdds.sorted_again import SortedAgain
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.listeners.issues.issue_events import TakeIssue


class RddIssues:
    """Finds them, and hands each on with what it has cost so far.

    Args:
        take: takes them.
        cores: returns how many cores the application has now.
    """

    def __init__(self, take: TakeIssue, cores: Callable[[], int]) -> None:
        self._take = take
        self._cores = cores
        self._one_by_one = OneByOne()
        self._schema_reads = SchemaReads()
        self._listed_again = ListedAgain()
        self._evicted = EvictedRdds()
        self._sorted_again = SortedAgain()
        self._computed_again = RddsComputedAgain()
        self._made_again = WorkMadeAgain()
        self._fitted_again = FittedAgain()

    def fetches(self, place: str, fetch: Fetch, beside_ms: int) -> int:
        """Called with a stage that has succeeded, and computed one of many partitions that are fetched.

        Args:
            place: in the user's code, or the stage's name.
            fetch: it.
            beside_ms: for how long other stages ran at the same time.

        Returns:
            How much of its time is told as an issue of the application, in ms.
        """
        if (lost := self._one_by_one.take(place, fetch, beside_ms, self._cores())) is None:
            return 0
        issue, told_ms = lost
        self._take(issue, fetch.ended_ms)
        return told_ms

    def reads_schema(self, read: SchemaRead, time_ms: int) -> int:
        """The same of a stage that has read files for their schema."""
        for issue in self._schema_reads.take(read):
            self._take(issue, time_ms)
        return read.wall_ms

    def lists_files(
        self, lists: Listing, job: int, begun_ms: int, ended_ms: int, beside_ms: int
    ) -> tuple[int, int]:
        """Called with a stage that has listed files; see ``ListedAgain.take``.

        Returns:
            How much of its time is told as an issue of the application, and how much before it, in ms.
        """
        again = self._listed_again.take(lists, job, begun_ms, ended_ms, beside_ms)
        if again is None:
            return 0, 0
        self._take(again.issue, ended_ms, (again.since_ms, again.until_ms))
        return max(0, ended_ms - begun_ms - beside_ms), begun_ms - again.since_ms

    def rdds_read(
        self, info: Mapping[str, Any], stage: EndedStage, beside: Callable[[], int], time_ms: int
    ) -> int:
        """Called with a stage that has ended and belongs to no SQL execution.

        Args:
            info: its ``Stage Info``.
            stage: it.
            beside: returns for how long other stages ran at the same time, in ms.
            time_ms: now, in ms since the epoch.

        Returns:
            How much of its time is told as what RDDs cost that were computed again, in ms.
        """
        if info.get("Failure Reason") or stage.repeats:
            return 0
        again = self._evicted.take(info, stage.measured, stage.slots)

        def alone_ms() -> int:
            return max(0, stage.wall_ms - beside())

        if (shared := self._computed_again.take(info, stage.wall_ms, alone_ms)) is not None:
            self._take(shared, time_ms)
        again = again or self._sorted_again.take(info, alone_ms)
        if again is None:
            return 0
        issue, lost_ms = again
        self._take(issue, time_ms)
        return lost_ms

    def reads_checkpoint(self, info: Mapping[str, Any], time_ms: int) -> None:
        """Called with the ``Stage Info`` of a stage that has ended: it may read what was written before."""
        if (written := self._computed_again.checkpoints(info)) is not None:
            self._take(written, time_ms)

    def of_library(self, name: str, measured: TasksMeasured, beside: Callable[[], int], time_ms: int) -> None:
        """Called with a stage that has succeeded, by its name: it may be one of MLlib's.

        Args:
            name: Spark's, of the stage.
            measured: what its tasks measured.
            beside: returns for how long other stages ran at the same time, in ms.
            time_ms: now, in ms since the epoch.
        """
        begun_ms, ended_ms = measured.first_ms, measured.last_ms
        again = self._fitted_again.take(
            name, measured.rows.total, lambda: max(0, ended_ms - begun_ms - beside())
        )
        if again is not None:
            self._take(again, time_ms, (begun_ms, ended_ms))

    def makes_again(
        self, place: str, measured: TasksMeasured, beside_ms: int, job_begun_ms: int, time_ms: int
    ) -> None:
        """Called with a stage attempt that has ended and made again what was lost.

        Args:
            place: in the user's code, or the stage's name.
            measured: what its tasks measured.
            beside_ms: for how long other stages ran at the same time.
            job_begun_ms: when its job began, in ms since the epoch.
            time_ms: now, in ms since the epoch.
        """
        ran = measured.first_ms, measured.last_ms
        lost_ms = max(0, ran[1] - ran[0] - beside_ms)
        issue = self._made_again.take(place, measured, lost_ms, job_begun_ms)
        # In an application that runs for days, it matters to these jobs.
        self._take(issue, time_ms, ran, ("the jobs that it is about", self._made_again.jobs_ms))

    def unpersisted(self, rdd: int) -> None:
        """Called with the id of an RDD that is kept no longer."""
        self._evicted.unpersisted(rdd)

    def execution_ended(self, ended: EndedExecution, time_ms: int) -> None:
        """Called with an SQL execution that has ended: files may have been read for its schema."""
        self._listed_again.execution_ended(ended)
        for issue in self._schema_reads.execution_ended(ended):
            self._take(issue, time_ms)

    def end(self) -> list[Issue]:
        """Return what is clear only at the end of the application."""
        return [*self._schema_reads.end()]

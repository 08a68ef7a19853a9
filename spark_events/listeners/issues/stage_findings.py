"""What a stage that has ended says of itself, by what its tasks have measured, and what it worked for."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import (
    NO_PYTHON,
    TasksMeasured,
    misses_reads,
    without_reads,
)
from spark_events.diagnosis.packed_files import packed_rdd
from spark_events.diagnosis.plans.execution import ExecutedStage, writes_files
from spark_events.diagnosis.rdds.of_objects import reads_arrow_batches, unpacks_objects
from spark_events.diagnosis.rdds.one_by_one import fetch, is_fetch
from spark_events.diagnosis.rdds.schema_reads import reads_footers, schema_read
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.stage_rules import stage_issues
from spark_events.diagnosis.stages.tiny_tasks import TinyTasks, tiny_tasks, tiny_tasks_issue
from spark_events.diagnosis.thresholds import RETRIES, SKEW, STRAGGLER, Thresholds
from spark_events.diagnosis.times.other_work import OtherWork
from spark_events.diagnosis.times.pauses import WorkDone
from spark_events.listeners.executors.executor_ends import exit_code, exit_meaning, reason_class
from spark_events.listeners.failures.failure_events import in_one_line
from spark_events.listeners.failures.failures import parse_failure
from spark_events.listeners.issues.application_issues import ApplicationIssues
from spark_events.listeners.issues.findings import Finding, named
from spark_events.listeners.issues.watched_stages import Key, WatchedStage
from spark_events.listeners.long_texts import shorten
from spark_events.listeners.record_fields import NUMBER_OF_TASKS, RESOURCE_PROFILE_ID
from spark_events.listeners.run import Run

_OF_DELTA_LOG = "Delta Table State"
_OF_FRAME, _OF_STATE = "SQLExecutionRDD", "StateStore"
"""What Spark calls the RDD of a DataFrame's rows, and that of a streaming query's state."""
_ALL_PAIRS = "CartesianRDD"
_BY_KEY, _HANDS_OUT = "groupByKey at ", ("foreach at ", "foreachPartition at ")
_IN_PYTHON = ".py:"
"""What the name of a stage has in it whose place is in a program in Python."""
_LONGEST_REASON, _MOST_NAMES = 200, 2_000


class StageFindings:
    """Finds what makes the stages of one application slow, each when it has ended.

    Args:
        run: what runs now.
        thresholds: of what is told.
        application: what is known about the application as a whole.
    """

    def __init__(self, run: Run, thresholds: Thresholds, application: ApplicationIssues) -> None:
        self._run = run
        self._thresholds = thresholds
        # A micro-batch may lose too little for a limit, and all of them enough.
        self._of_batches = replace(thresholds, min_bytes=1)
        self._application = application
        self._other_work = OtherWork()
        self._names: dict[int, str] = {}

    def begun(self, key: Key, name: str, time_ms: int) -> None:
        """Called when a stage has begun."""
        self._names[key[0]] = name
        if len(self._names) > _MOST_NAMES:
            self._names.pop(next(iter(self._names)))
        self._application.stage_submitted(key, time_ms)
        if not is_fetch(name):  # whose partitions have only each other beside them
            self._other_work.begun(key, time_ms)

    def take_work(
        self,
        key: Key,
        stage: WatchedStage | None,
        executed: ExecutedStage,
        info: Mapping[str, Any],
        time_ms: int,
    ) -> int | None:
        """Take what a stage that has ended worked for; its stage is None if nobody has seen it begin.

        Returns:
            How much of its time is told with that, in ms; None if it did nothing but work.
        """
        self._other_work.ended(key, time_ms, executed.run_ms)
        told_ms, pause_ms = self._takes_listing(key, stage, executed, info)
        self._application.stage_completed(key, _work(stage, executed, pause_ms), time_ms)
        if told_ms is None:
            told_ms = self._takes_unplanned(key, stage, executed, info)
        return told_ms

    def take_measured(
        self,
        key: Key,
        stage: WatchedStage,
        measured: TasksMeasured,
        info: Mapping[str, Any],
        kept: Collection[int],
        told_ms: int | None,
        time_ms: int,
    ) -> Iterator[Finding]:
        """Yield what was found in a stage that has ended, besides what is told of it already.

        Args:
            key: of the stage attempt.
            stage: what is known about it.
            measured: by its tasks.
            info: Spark's ``StageInfo``.
            kept: the ids of the RDDs that it keeps, or reads where they are kept.
            told_ms: how much of its time is told elsewhere; None if nothing is.
            time_ms: when it ended, in ms since the epoch.
        """
        lasted_ms = time_ms - int(info.get("Submission Time") or stage.begun_ms)
        beside = functools.partial(self._other_work.beside_ms, key, measured.first_ms, measured.last_ms)
        tiny = self._tiny_tasks(stage, measured, info) if told_ms is None else None
        if tiny is not None and not stage.of_query:
            place = named(stage.name, stage.of_job)
            self._application.has_tiny_tasks(place, tiny, (measured.first_ms, measured.last_ms), time_ms)
        if not stage.of_query and not info.get("Failure Reason"):
            self._application.rdds.of_library(stage.name, measured, beside, time_ms)
        if stage.repeats and not stage.of_query:
            begun_ms = stage.of_job.begun_ms if stage.of_job else measured.first_ms
            self._application.rdds.makes_again(
                named(stage.name, stage.of_job), measured, beside(), begun_ms, time_ms
            )
        if lasted_ms < self._thresholds.min_time_ms and not stage.of_query:
            return  # it cannot have lost so much
        ended = self._ended(stage, measured, info, bool(kept))
        self._application.executors.stage_measured(ended, time_ms)
        if kept:
            self._application.executors.reads_cache(ended, kept, beside, time_ms)
        job = stage.of_job
        if job is not None and job.execution is not None and _uses_one_core(stage, info):
            self._application.of_sql(ended, time_ms)
        if job is not None and not stage.of_query and self._run.execution_of(job) is None:
            # What that has cost, the stage has not lost to anything else.
            again_ms = self._application.rdds.rdds_read(info, ended, beside, time_ms)
            lasted_ms = max(0, lasted_ms - again_ms - (told_ms or 0))
        # What failed or is made again has fewer tasks that succeeded than its data has partitions.
        is_part = stage.repeats or bool(info.get("Failure Reason"))
        has_few = not is_part and int(info.get(NUMBER_OF_TASKS) or 0) < ended.cores
        for issue in self._issues(stage, ended, tiny, has_few and told_ms is None):
            of_stage = replace(self._alone(issue, key, ended, time_ms), stages=frozenset((key[0],)))
            yield Finding(of_stage, key, stage.name, lasted_ms, time_ms, job)

    def _issues(
        self, stage: WatchedStage, ended: EndedStage, tiny: TinyTasks | None, needs_more_tasks: bool
    ) -> Iterator[Issue]:
        """Yield what the rules say about a stage, but for what explains itself otherwise.

        Args:
            stage, ended, tiny: what is known about it.
            needs_more_tasks: whether more tasks could help it: not if all cores had one, nor who fetches one
                partition, or asks for a schema.
        """
        churn = self._application.executors.explains_retries(ended.measured)
        issues = list(stage_issues(ended, self._of_batches if stage.of_query else self._thresholds))
        if tiny is not None and stage.of_query:
            issues.append(tiny_tasks_issue(tiny, ended.cores))
        for issue in issues:
            few = "fewTasks" in issue.evidence
            if issue.kind == RETRIES and (not stage.of_query if stage.repeats else churn):
                continue  # it is told of the application
            if few and not needs_more_tasks:
                continue
            if stage.of_query and ended.warms_up and few:
                continue  # what is so of each micro-batch is so of the next as well
            yield issue

    def _ended(
        self, stage: WatchedStage, measured: TasksMeasured, info: Mapping[str, Any], reads_cache: bool
    ) -> EndedStage:
        return EndedStage(
            cores=self._application.cores,
            measured=without_reads(measured) if misses_reads(info) else measured,
            python=stage.python,
            retries_tasks=self._application.retries_tasks,
            warms_up=self._application.executors.warms_up(measured, stage.python.in_rdd),
            repeats=stage.repeats,
            reads_cache=reads_cache,
            failed_of=_failed_of(measured.last_failure),
            reuses_workers=self._application.reuses_workers,
            by_key=stage.name.startswith(_BY_KEY),
            writes_files=writes_files(info),
            rows_from=self._rows_from(stage, info) if stage.python.in_rdd else "",
            arrow_rows=stage.job.arrow_rows if stage.job else None,
            of_frame=_reads(_OF_FRAME, info),
            of_objects=stage.python.in_rdd and unpacks_objects(info),
            of_arrow=reads_arrow_batches(info),
            pairs_all=_reads(_ALL_PAIRS, info),
            hands_out=stage.name.startswith(_HANDS_OUT),
            packed=packed_rdd(info),
            keeps_state=_keeps_state(info),
            lists_files=_lists_files(stage),
            of_delta_log=_is_of_delta_log(info),
        )

    def _rows_from(self, stage: WatchedStage, info: Mapping[str, Any]) -> str:
        """Return the place of the only shuffle of an RDD that a stage reads; empty if there is none."""
        parents = [self._names.get(int(number), "") for number in info.get("Parent IDs") or ()]
        is_known = len(parents) == 1 and _IN_PYTHON in parents[0] and parents[0] != stage.name
        return parents[0] if is_known else ""

    def _tiny_tasks(
        self, stage: WatchedStage, measured: TasksMeasured, info: Mapping[str, Any]
    ) -> TinyTasks | None:
        """Return the tasks of a stage that has far too many; those that keep state are told with it."""
        if _keeps_state(info):
            return None
        ended = EndedStage(
            self._application.cores,
            measured,
            of_arrow=reads_arrow_batches(info),
            lists_files=_lists_files(stage),
            of_delta_log=_is_of_delta_log(info),
        )
        return tiny_tasks(ended, self._thresholds)

    def _alone(self, issue: Issue, key: Key, stage: EndedStage, time_ms: int) -> Issue:
        """Return an issue of late, few or repeated tasks without the time in which cores had other work.

        More tasks only help as far as there are cores for them besides that work.
        """
        late = issue.kind in (SKEW, STRAGGLER) or not {"fewTasks", "repeats"}.isdisjoint(issue.evidence)
        if not late or not issue.lost_ms:
            return issue
        few = "fewTasks" in issue.evidence  # for which the core time of those that have ended is known
        beside_ms = self._other_work.beside_ms(key, time_ms - issue.lost_ms, time_ms, ended=not few)
        lost_ms = issue.lost_ms - beside_ms
        if few:
            span = stage.measured.first_ms, stage.measured.last_ms
            core_ms = stage.measured.run.total + self._other_work.core_ms(key, *span)
            lost_ms = min(lost_ms, span[1] - span[0] - core_ms // stage.cores)
        return replace(issue, lost_ms=max(0, lost_ms))

    def _takes_listing(
        self, key: Key, stage: WatchedStage | None, executed: ExecutedStage, info: Mapping[str, Any]
    ) -> tuple[int | None, int]:
        """Take a stage that lists files.

        Returns:
            How much of its time, and of the pause before it, is told with what they were listed for before,
            in ms; the former is None if it lists none.
        """
        job = stage.job if stage is not None else None
        # A stream lists other files each time.
        if job is None or job.lists is None or job.run.query or info.get("Failure Reason"):
            return None, 0
        span = executed.begun_ms, executed.ended_ms
        beside_ms = self._other_work.beside_ms(key, *span)
        return self._application.rdds.lists_files(job.lists, job.run.id, *span, beside_ms)

    def _takes_unplanned(
        self, key: Key, stage: WatchedStage | None, executed: ExecutedStage, info: Mapping[str, Any]
    ) -> int | None:
        """Take a stage of no plan: of a partition that is fetched alone, or of files' schema.

        Returns:
            How much of its time is told with that, in ms; None if it is neither.
        """
        job = stage.of_job if stage is not None else None
        if job is None or job.query or info.get("Failure Reason") or self._run.execution_of(job) is not None:
            return None
        place, span = named(str(info.get("Stage Name") or ""), job), (executed.begun_ms, executed.ended_ms)
        if is_fetch(place):
            fetched = fetch(info, executed.tasks, executed.run_ms, *span)
            if fetched is None:
                return None
            return self._application.rdds.fetches(place, fetched, self._other_work.beside_ms(key, *span))
        # One that is a part of an SQL execution which nobody has seen begin may be of a write.
        if job.execution is not None:
            return None
        read = schema_read(info, executed.wall_ms, executed.read_bytes)
        if read is None:
            return 0 if reads_footers(info) else None
        alone_ms = max(0, read.wall_ms - self._other_work.beside_ms(key, *span))
        return self._application.rdds.reads_schema(read._replace(wall_ms=alone_ms), executed.ended_ms)


def _reads(name: str, info: Mapping[str, Any]) -> bool:
    """Return whether a stage has an RDD of a name."""
    return any(rdd.get("Name") == name for rdd in info.get("RDD Info") or ())


def _keeps_state(info: Mapping[str, Any]) -> bool:
    """Return whether a stage reads or writes the state of a streaming query."""
    return _has_rdd(_OF_STATE, info)


def _has_rdd(beginning: str, info: Mapping[str, Any]) -> bool:
    """Return whether the name of an RDD of a stage begins so."""
    return any(str(rdd.get("Name") or "").startswith(beginning) for rdd in info.get("RDD Info") or ())


def _is_of_delta_log(info: Mapping[str, Any]) -> bool:
    """Return whether a stage puts the state of a Delta table together, or reads it."""
    return _has_rdd(_OF_DELTA_LOG, info)


def _lists_files(stage: WatchedStage | None) -> bool:
    """Return whether the tasks of a stage list the files of a read, for Spark itself."""
    return stage is not None and stage.job is not None and stage.job.lists is not None


def _work(stage: WatchedStage | None, executed: ExecutedStage, pause_ms: int) -> WorkDone:
    """Return what a stage that has ended worked for; so much of the pause before it is told elsewhere."""
    job = stage.of_job if stage is not None else None
    of = "" if job is None else f"job {job.id}" if job.execution is None else f"execution {job.execution}"
    return WorkDone(
        named(stage.name, job) if stage is not None else "",
        of,
        executed.run_ms,
        0 if job is not None and job.of_broadcast else executed.collected_bytes,
        _lists_files(stage),
        pause_ms,
        stage.job.by_arrow if stage is not None and stage.job is not None else None,
    )


def _uses_one_core(stage: WatchedStage, info: Mapping[str, Any]) -> bool:
    """Return whether the tasks of a stage of SQL use one core each, and get what all stages get."""
    return stage.python == NO_PYTHON and not int(info.get(RESOURCE_PROFILE_ID) or 0)


def _failed_of(text: str) -> str:
    """Return what an attempt failed of, in one line, with the meaning of an exit code."""
    if not text:
        return ""
    said, code = shorten(in_one_line(parse_failure(text)), _LONGEST_REASON), exit_code(text)
    meaning = exit_meaning(code, reason_class(text)) if code is not None else None
    return f"{said} ({meaning})" if meaning else said

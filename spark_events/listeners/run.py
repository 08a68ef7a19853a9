"""What runs in an application now, and what belongs to what: the one model that all listeners ask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_events.api import CodePlace
from spark_events.listeners import spark_records
from spark_events.listeners.failures.failures import place_of_call_site
from spark_events.listeners.listener import Handlers, Timeless, first, last
from spark_events.listeners.long_texts import LONGEST_NAME, LONGEST_TITLE, cut
from spark_events.listeners.queries.micro_batch import MicroBatch, parse_micro_batch
from spark_events.listeners.record_fields import (
    EXECUTION_ID,
    JOB_ID,
    NUMBER_OF_TASKS,
    PROPERTIES,
    ROOT_EXECUTION_ID,
    RUN_ID,
    STAGE_IDS,
    STAGE_INFOS,
)
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    JobEndRecord,
    JobStartRecord,
    QueryNotStartedRecord,
    QueryStartedRecord,
    QueryTerminatedRecord,
    SQLExecutionEndRecord,
    SQLExecutionStartRecord,
)
from spark_events.task.local_properties import (
    BATCH_ID,
    EXECUTION,
    JOB_DESCRIPTION,
    JOB_GROUP,
    JOB_TAGS,
    ROOT_EXECUTION,
)

_SURE_MS = 1
_BROADCAST = "broadcast exchange (runId "
"""A tag of such a job since Spark 4, before that its description; by ``BroadcastExchangeExec``."""
_NUMBER = re.compile(r"\d{1,19}", re.ASCII)
"""Of an SQL execution; the user may set the local property of a job to any text."""
_NO_QUERY: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """An SQL execution that runs.

    Attributes:
        id: its number.
        begun_ms: in ms since the epoch.
        description: how Spark's begins, often a statement's text.
        batch: the micro-batch of a streaming query that it is; None if it is none.
    """

    id: int
    begun_ms: int
    description: str
    batch: MicroBatch | None


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job that runs.

    Attributes:
        id: its number.
        begun_ms: in ms since the epoch.
        stages: the ids of all of them, those included that are skipped.
        tasks: how many there are in all stages.
        group: its job group, which is the run id of the query that it works for; empty for none.
        batch: the number of the micro-batch, as Spark writes it; None for none.
        description: how the one begins that the user gave it; empty for none.
        query: the variables of the streaming query that it works for; empty for none.
        execution: the number of the SQL execution that it is of, the outermost one; None for none.
        final_stage: the name of its last stage.
        of_broadcast: whether Spark runs it to bring rows to the driver, which sends them to all executors.
        action: the place in the user's code that began it; None if nobody has seen it.
        action_seen_ms: when the driver's Python was seen to wait there, in ms since the epoch; None if Spark
            itself names the place.
    """

    id: int
    begun_ms: int
    stages: tuple[int, ...]
    tasks: int
    group: str
    batch: str | None
    description: str
    query: Mapping[str, str]
    execution: int | None
    final_stage: str
    of_broadcast: bool = False
    action: CodePlace | None = None
    action_seen_ms: int | None = None

    def action_until(self, end_ms: int) -> CodePlace | None:
        """Return the place of its action, now that it has run until then; None if that is not certain.

        Whoever was seen to wait when the job was about to end may have waited for something else.
        """
        seen_ms = self.action_seen_ms
        return self.action if seen_ms is None or end_ms > seen_ms + _SURE_MS else None


class Run(Timeless):
    """Knows what runs: it is told of a beginning before all listeners, and of an end after them.

    It holds no more than what runs at once.

    Attributes:
        jobs: by number.
        executions: by number; one that is a part of another is not among them.
        queries: by run id, the variables of the streaming query, for what works for it.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.executions: dict[int, Execution] = {}
        self.queries: dict[str, Mapping[str, str]] = {}
        self._jobs_of_stage: dict[int, list[Job]] = {}

    @property
    def handlers(self) -> Handlers:
        """Beginnings first, and ends last."""
        return {
            spark_records.QUERY_STARTED: first(self._begin_query),
            spark_records.QUERY_TERMINATED: last(self._end_query),
            spark_records.SQL_EXECUTION_START: first(self._begin_execution),
            spark_records.SQL_EXECUTION_END: last(self._end_execution),
            spark_records.JOB_START: first(self._begin_job),
            spark_records.JOB_END: last(self._end_job),
            spark_records.APPLICATION_END: last(self._end_all),
        }

    def jobs_of(self, stage: int) -> Sequence[Job]:
        """Return the jobs that a stage belongs to, in the order in which they began."""
        return self._jobs_of_stage.get(stage, ())

    def job_of(self, stage: int) -> Job | None:
        """Return the job that a stage works for: of several, the one that began first; None if unknown."""
        jobs = self._jobs_of_stage.get(stage)
        return jobs[0] if jobs else None

    def execution_of(self, job: Job) -> Execution | None:
        """Return the SQL execution that a job is of; None if there is none, or it is not known to run."""
        return self.executions.get(job.execution) if job.execution is not None else None

    def query_of(self, group: object) -> Mapping[str, str]:
        """Return the variables of the streaming query whose run id a job group is; empty for none."""
        return self.queries.get(str(group), _NO_QUERY)

    def _begin_query(self, record: QueryStartedRecord, time_ms: int) -> None:
        self.queries.setdefault(str(record[RUN_ID]), {"query_name": query_name(record)})

    def _end_query(self, record: QueryTerminatedRecord, time_ms: int) -> None:
        self.queries.pop(str(record[RUN_ID]), None)

    def _begin_execution(self, record: SQLExecutionStartRecord, time_ms: int) -> None:
        number, root = int(record[EXECUTION_ID]), record.get(ROOT_EXECUTION_ID)
        if root is None or int(root) == number:
            described = str(record.get("description") or "")
            batch = parse_micro_batch(described)
            self.executions[number] = Execution(number, time_ms, described[:LONGEST_TITLE], batch)

    def _end_execution(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        self.executions.pop(int(record[EXECUTION_ID]), None)

    def _begin_job(self, record: JobStartRecord, time_ms: int) -> None:
        number = int(record[JOB_ID])
        if number in self.jobs:  # it was found running
            return
        properties, infos = record.get(PROPERTIES) or {}, record.get(STAGE_INFOS) or ()
        execution = str(properties.get(ROOT_EXECUTION) or properties.get(EXECUTION))
        job = self.jobs[number] = Job(
            number,
            time_ms,
            tuple(int(stage) for stage in record.get(STAGE_IDS) or ()),
            sum(int(info.get(NUMBER_OF_TASKS) or 0) for info in infos),
            str(properties.get(JOB_GROUP) or ""),
            properties.get(BATCH_ID),
            str(properties.get(JOB_DESCRIPTION) or "")[:LONGEST_TITLE],
            self.query_of(properties.get(JOB_GROUP)),
            int(execution) if _NUMBER.fullmatch(execution) else None,
            str(infos[-1].get("Stage Name") or "")[:LONGEST_TITLE] if infos else "",
            any(_BROADCAST in str(properties.get(key)) for key in (JOB_TAGS, JOB_DESCRIPTION)),
            *_action(record),
        )
        for stage in job.stages:
            self._jobs_of_stage.setdefault(stage, []).append(job)

    def _end_job(self, record: JobEndRecord, time_ms: int) -> None:
        job = self.jobs.pop(int(record[JOB_ID]), None)
        if job is None:
            return
        for stage in job.stages:
            jobs = self._jobs_of_stage[stage]
            jobs.remove(job)
            if not jobs:
                del self._jobs_of_stage[stage]

    def _end_all(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Nothing runs after the application; Spark may fail what did only then."""
        self.jobs.clear()
        self.executions.clear()
        self._jobs_of_stage.clear()


def query_name(started: QueryStartedRecord | QueryNotStartedRecord) -> str:
    """Return a query's name from its QueryStarted, or its id if it has no name."""
    return cut(str(started.get("name") or started["id"]), LONGEST_NAME)


def _action(record: JobStartRecord) -> tuple[CodePlace | None, int | None]:
    """Return the place in the user's code that began a job, and when it was seen; see ``Job``."""
    named = place_of_call_site((record.get("Properties") or {}).get("callSite.short"))
    call = record.get(spark_records.PYTHON_CALL)
    if call is None:
        return named, None
    seen = CodePlace(str(call["file"]), int(call["line"]), str(call["function"]))
    if named is None:
        return seen, int(call["atMs"])
    # Spark names no function.
    same = (seen.file_path, seen.line_number) == (named.file_path, named.line_number)
    return seen if same else named, None

"""Makes OpenLineage run events from job events."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, ClassVar, TypeVar

from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    error_message_run,
    extraction_error_run,
    processing_engine_run,
    source_code_location_job,
)
from openlineage.client.uuid import generate_static_uuid

from spark_events.api import (
    DataRead,
    DataWritten,
    Failure,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobLineageEvent,
    JobProgressEvent,
    JobStatus,
    JobStatusChangedEvent,
    JobStatusChangedListener,
    LineageGraph,
    SendingReporter,
)
from spark_events_openlineage.datasets import inputs_of, outputs_of
from spark_events_openlineage.job_facets import dependencies, job_facets, parent_facet
from spark_events_openlineage.parents import Dependency, ParentRun
from spark_events_openlineage.producer import PRODUCER, VERSION
from spark_events_openlineage.transport import Destination

_STATES = {
    JobStatus.RUNNING: RunState.RUNNING,
    JobStatus.FINISHED: RunState.COMPLETE,
    JobStatus.FAILED: RunState.FAIL,
    JobStatus.CANCELED: RunState.ABORT,
}
_BLANKS = re.compile(r"\s+")
_MOST_JOBS = 10_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """How the listener is configured.

    Attributes:
        namespace: of jobs.
        reads: whether statements that write nothing are reported.
        applications: whether applications are.
        most_inputs: the most inputs that the columns of one event may have.
        parent: the run that the application is part of; None if there is none.
        root: the outermost run; None if it is the parent.
        owners: of the jobs.
        tags: of the jobs.
        source_code: where their code is; None if that is unknown.
        dataset_owners: whether to say who owns tables.
        upstream: what has to complete before the application may begin.
    """

    namespace: str
    reads: bool
    applications: bool
    most_inputs: int
    parent: ParentRun | None
    root: ParentRun | None
    owners: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    source_code: source_code_location_job.SourceCodeLocationJobFacet | None = None
    dataset_owners: bool = True
    upstream: tuple[Dependency, ...] = ()


@dataclass(slots=True)
class _Running:
    """A run that has begun, with the lineage known so far."""

    run: ParentRun
    created: JobCreatedEvent
    graph: LineageGraph
    parent: ParentRun | None


def _keep_few(jobs: dict[str, T], created: Callable[[T], JobCreatedEvent]) -> None:
    """Forget the oldest job if there are too many: where events are dropped, some have no end."""
    if len(jobs) > _MOST_JOBS:
        lasting = ("application", "query")
        oldest = next((job_id for job_id in jobs if created(jobs[job_id]).job_kind not in lasting), None)
        jobs.pop(oldest or next(iter(jobs)))


class OpenLineageListener(JobStatusChangedListener, SendingReporter):
    """Emits a run event for each event of a job; each is sent until the catalog has it.

    Args:
        settings: how it is configured.
        destination: where events go.
    """

    max_request_records: ClassVar[int] = 1

    def __init__(self, settings: Settings, destination: Destination) -> None:
        self._settings = settings
        self._destination = destination
        self._runs: dict[str, _Running] = {}
        self._only_reading: dict[str, JobCreatedEvent] = {}
        self._application: ParentRun | None = None

    @property
    def destination(self) -> str:
        """The catalog."""
        return self._destination.name

    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Emit what an event says."""
        if isinstance(event, JobCreatedEvent):
            self._begin(event)
        elif event.job_id in self._only_reading:
            self._follow_reader(event)
        elif (running := self._runs.get(event.job_id)) is not None:
            if isinstance(event, JobLineageEvent):
                running.graph = event.lineage
                self._emit(running, RunState.RUNNING, event.time_ms)
            elif isinstance(event, JobProgressEvent):
                self._emit(
                    running, RunState.RUNNING, event.time_ms, None, event.written, event.read, event.made
                )
            elif isinstance(event, JobExecutionStatusEvent):
                self._change(running, event)

    def send(self, records: Sequence[bytes], context: bytes) -> None:
        """Send one event."""
        for record in records:
            self._destination.send(record)

    def readable(self, record: bytes) -> Any:
        """Return an event as JSON."""
        return json.loads(record)

    def close(self) -> None:
        """Close the transport."""
        self._destination.close()

    # ------------------------------------------------------------------------------------------------

    def _begin(self, event: JobCreatedEvent) -> None:
        settings = self._settings
        of_application = event.job_kind == "application"
        run = ParentRun(settings.namespace, _job_name(event), _run_id(event))
        if of_application and settings.applications:
            self._application = run
        wanted = settings.applications if of_application else settings.reads or event.job_kind == "query"
        if not (wanted or event.lineage.sinks):
            self._only_reading[event.job_id] = event
            _keep_few(self._only_reading, lambda created: created)
            return
        parent = settings.parent if of_application else self._application or settings.parent
        running = self._runs[event.job_id] = _Running(run, event, event.lineage, parent)
        _keep_few(self._runs, lambda running: running.created)
        self._emit(running, RunState.START, event.time_ms)

    def _follow_reader(self, event: JobStatusChangedEvent) -> None:
        """Start reporting a statement that seemed only to read, once a part of it turns out to write."""
        created = self._only_reading[event.job_id]
        if isinstance(event, JobLineageEvent) and event.lineage.sinks:
            del self._only_reading[event.job_id]
            self._begin(replace(created, lineage=event.lineage))
        elif isinstance(event, JobExecutionStatusEvent) and event.new_status.terminal:
            del self._only_reading[event.job_id]

    def _change(self, running: _Running, event: JobExecutionStatusEvent) -> None:
        state = _STATES.get(event.new_status)
        if state is None:
            return
        if event.new_status.terminal:
            del self._runs[event.job_id]
        self._emit(running, state, event.time_ms, event.exception, event.written, event.read, event.made)

    def _emit(
        self,
        running: _Running,
        state: RunState,
        time_ms: int,
        failure: Failure | None = None,
        written: Mapping[str, int] | None = None,
        read: Sequence[DataRead] = (),
        made: Sequence[DataWritten] = (),
    ) -> None:
        graph = running.graph
        with_columns = graph.input_count <= self._settings.most_inputs
        inputs = inputs_of(graph, read)
        outputs = outputs_of(graph, state is RunState.COMPLETE, written or {}, made, with_columns)
        if not self._settings.dataset_owners:
            for facets in (dataset.facets for dataset in (*inputs, *outputs)):
                (facets or {}).pop("ownership", None)
        event = RunEvent(
            eventTime=_time(time_ms).isoformat().replace("+00:00", "Z"),
            producer=PRODUCER,
            eventType=state,
            run=Run(runId=running.run.run_id, facets=self._run_facets(running, failure, with_columns)),
            job=Job(
                namespace=running.run.namespace,
                name=running.run.name,
                facets=self._job_facets(running.created),
            ),
            inputs=inputs,
            outputs=outputs,
        )
        self._destination.prepare(event, self.outbox.put)

    def _job_facets(self, created: JobCreatedEvent) -> dict[str, Any]:
        facets = job_facets(created, self._settings.owners, self._settings.tags)
        if self._settings.source_code is not None:
            facets["sourceCodeLocation"] = self._settings.source_code
        return facets

    def _run_facets(self, running: _Running, failure: Failure | None, with_columns: bool) -> dict[str, Any]:
        facets: dict[str, Any] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version=running.created.spark_version or "unknown",
                name="spark",
                openlineageAdapterVersion=VERSION,
                producer=PRODUCER,
            )
        }
        if running.parent is not None:
            facets["parent"] = parent_facet(running.parent, self._settings.root or self._settings.parent)
        if self._settings.upstream and running.parent == self._settings.parent:
            facets["jobDependencies"] = dependencies(self._settings.upstream)
        if failure is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=failure.message,
                programmingLanguage="PYTHON" if "Traceback (most" in (failure.stacktrace or "") else "JAVA",
                stackTrace=failure.stacktrace,
                producer=PRODUCER,
            )
        missing = running.graph.incomplete
        if not with_columns:
            missing = f"the columns have more than {self._settings.most_inputs} inputs"
        if missing:
            error = extraction_error_run.Error(errorMessage=missing)
            facets["extractionError"] = extraction_error_run.ExtractionErrorRunFacet(
                totalTasks=1, failedTasks=1, errors=[error], producer=PRODUCER
            )
        return facets


def _run_id(event: JobCreatedEvent) -> str:
    """Return the run's id, which is the same in every replay."""
    if event.job_kind == "query":
        return event.job_id
    unique = f"{event.application.id} {event.application.attempt_id} {event.job_id}"
    return str(generate_static_uuid(_time(event.time_ms), unique.encode()))


def _job_name(event: JobCreatedEvent) -> str:
    name = event.job_name if event.job_kind == "application" else f"{event.application.name}.{event.job_name}"
    return _BLANKS.sub("_", name.strip()) or "unnamed"


def _time(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, tz=timezone.utc)

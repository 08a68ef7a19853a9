"""Listeners that are informed about jobs, their lineage, and each change of their status (FLIP-314)."""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from types import MappingProxyType

from spark_events.api.config import ApplicationInfo, ReporterConfig
from spark_events.api.failure import Failure
from spark_events.api.job_data import DataRead, DataWritten
from spark_events.api.lineage import LineageGraph, LineageVertex
from spark_events.api.reporter import Reporter, ReporterFactory, SendingReporter
from spark_events.api.toolkit.daemon_executor import DaemonExecutor


class JobStatus(enum.Enum):
    """Flink's ``JobStatus``. Spark itself is never CANCELLING or FAILING, and only queries are RESTARTING."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"

    @property
    def terminal(self) -> bool:
        """Whether only a restart can follow."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)


APPLICATION, QUERY, STATEMENT, RDD_JOB = "application", "query", "statement", "rdd_job"
_IO_THREADS = 4


class ExecutionMode(enum.Enum):
    """Whether a job is bounded (Flink's ``RuntimeExecutionMode``)."""

    STREAMING = "STREAMING"
    BATCH = "BATCH"


@dataclass(frozen=True)
class JobStatusChangedEvent:
    """Common attributes of all events of a job.

    Attributes:
        job_id: identifies the job: an application's id, a run id of a streaming query,
            ``<application id>/<execution id>`` of a statement, or ``<application id>/job-<job id>`` of a job
            that writes an RDD.
        job_name: the same for each run of the same job, as far as Spark allows to recognize it.
        job_kind: ``application``, ``query``, ``statement`` or ``rdd_job``.
        time_ms: when it happened, in ms since the epoch.
        application: the application that runs it.
        variables: of the scope, such as ``app_name`` and ``query_name``.
    """

    job_id: str
    job_name: str
    job_kind: str
    time_ms: int
    application: ApplicationInfo
    variables: Mapping[str, str]


@dataclass(frozen=True)
class JobCreatedEvent(JobStatusChangedEvent):
    """A job begins.

    Attributes:
        lineage: what it reads and writes.
        execution_mode: STREAMING for a streaming query, or BATCH.
        statement: its SQL text, or else where the program asked for it; empty where that is not known.
        is_sql: whether the statement is SQL text.
        spark_version: what runs it.
    """

    lineage: LineageGraph = field(default_factory=LineageGraph)
    execution_mode: ExecutionMode = ExecutionMode.BATCH
    statement: str = ""
    is_sql: bool = False
    spark_version: str = ""


@dataclass(frozen=True)
class JobLineageEvent(JobStatusChangedEvent):
    """More of a job's lineage is known, such as the tables that a foreachBatch function writes.

    Attributes:
        lineage: the whole of it, in place of what was known.
    """

    lineage: LineageGraph = field(default_factory=LineageGraph)


@dataclass(frozen=True)
class JobProgressEvent(JobStatusChangedEvent):
    """A streaming query has come further: at most one for each ``spark.events.lineage.progress-interval``.

    Attributes:
        batch: the number of its last micro-batch.
        read: the rows read of each source since the last such event, or since the start; ``version`` is the
            offset reached, as Spark's progress has it.
        written: the ``rows`` written since then; empty if its sink does not say.
        made: the version of its table that a micro-batch has written since then; empty if unknown.
    """

    batch: int = 0
    read: tuple[DataRead, ...] = ()
    written: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    made: tuple[DataWritten, ...] = ()


@dataclass(frozen=True)
class JobExecutionStatusEvent(JobStatusChangedEvent):
    """A change of a job's status.

    Attributes:
        old_status: the status before.
        new_status: the status now.
        exception: why it failed; None if it has not, or Spark does not say.
        written: what a statement has written, by ``rows``, ``bytes`` and ``files``; empty if unknown.
        read: what a statement that writes has read, by dataset; empty if unknown.
        made: what a statement has made of the data that it wrote: its version, say; of a streaming query, the
            version that its last micro-batch has written; empty if unknown.
    """

    old_status: JobStatus = JobStatus.CREATED
    new_status: JobStatus = JobStatus.RUNNING
    exception: Failure | None = None
    written: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    read: tuple[DataRead, ...] = ()
    made: tuple[DataWritten, ...] = ()


class JobStatusChangedListener(Reporter):
    """Learns of jobs (FLIP-314's ``JobStatusChangedListener``).

    It has the life cycle of a ``Reporter``: ``open``, ``flush`` and ``close`` are optional, all calls come
    from the listener's own thread, and an error in it affects nothing else. A listener that sends data
    may also be a ``SendingReporter``.
    """

    @abc.abstractmethod
    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Called for each event of a job, in order: created, lineage, execution status."""


@dataclass(frozen=True)
class JobListenerContext:
    """What a factory gets to create a listener (FLIP-314's ``JobStatusChangedListenerFactory.Context``).

    Attributes:
        config: the listener's own options, and the application; ``config.values`` has them as written.
        io_executor: for slow work. It finishes its work before the listener is closed, as far as
            ``spark.events.close.timeout`` allows, and accepts no new work after that. Work that
            never returns does not keep the process from ending.
    """

    config: ReporterConfig
    io_executor: Executor


class JobStatusChangedListenerFactory(ReporterFactory):
    """Creates listeners; entry-point group ``spark_events.job_listeners``."""

    @abc.abstractmethod
    def create_listener(self, context: JobListenerContext) -> JobStatusChangedListener:
        """Create a listener, without opening anything.

        Raises:
            ConfigError: a value cannot be used.
        """

    def create(self, config: ReporterConfig) -> JobStatusChangedListener:
        """Create a listener together with its executor. The runtime calls this."""
        executor = DaemonExecutor(_IO_THREADS, "spark-events-io")
        listener = self.create_listener(JobListenerContext(config, executor))
        wrong: object = listener
        if isinstance(listener, SendingReporter) or not isinstance(wrong, JobStatusChangedListener):
            return listener  # the runtime says what is wrong with it
        return _WithExecutor(listener, executor)


class _WithExecutor(JobStatusChangedListener):
    """A listener whose executor ends before it does."""

    def __init__(self, listener: JobStatusChangedListener, executor: DaemonExecutor) -> None:
        self._listener = listener
        self._executor = executor
        # Its own, so that what they return is seen.
        self.open = listener.open  # type: ignore[method-assign]
        self.on_event = listener.on_event  # type: ignore[method-assign]
        self.flush = listener.flush  # type: ignore[method-assign]
        self.rest = listener.rest  # type: ignore[method-assign]

    @property
    def destination(self) -> str:
        return self._listener.destination

    def on_event(self, event: JobStatusChangedEvent) -> None:
        self._listener.on_event(event)

    def close(self) -> None:
        try:
            self._executor.shutdown(wait=True)
        finally:
            self._listener.close()


class JobExecutionListener(JobStatusChangedListener):
    """A listener with one method per status (FLIP-314, first version)."""

    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Call the method for the event's status."""
        # What it returns is seen, too: a coroutine has done nothing.
        if isinstance(event, JobCreatedEvent):
            return self.on_created(event.job_id, event.job_name, event.lineage.sources, event.lineage.sinks)
        if not isinstance(event, JobExecutionStatusEvent) or not event.new_status.terminal:
            return None
        if event.new_status is JobStatus.FINISHED:
            return self.on_finished(event.job_id, event.job_name)
        if event.new_status is JobStatus.CANCELED:
            return self.on_canceled(event.job_id, event.job_name)
        return self.on_failed(event.job_id, event.job_name, event.exception)

    def on_created(
        self, job_id: str, job_name: str, sources: tuple[LineageVertex, ...], sinks: tuple[LineageVertex, ...]
    ) -> None:
        """Called when a job begins."""

    def on_finished(self, job_id: str, job_name: str) -> None:
        """Called when a job has finished."""

    def on_canceled(self, job_id: str, job_name: str) -> None:
        """Called when a job was cancelled."""

    def on_failed(self, job_id: str, job_name: str, exception: Failure | None) -> None:
        """Called when a job has failed."""

"""The conformance kit of job status listeners; see ``spark_events.api.testing`` for that of reporters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from spark_events.api.config import ApplicationInfo
from spark_events.api.failure import Failure
from spark_events.api.job_listener import (
    ExecutionMode,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobLineageEvent,
    JobStatus,
    JobStatusChangedEvent,
    JobStatusChangedListener,
    JobStatusChangedListenerFactory,
)
from spark_events.api.lineage import (
    LineageDataset,
    LineageEdge,
    LineageGraph,
    LineageVertex,
    ModifyType,
    SchemaFacet,
    SchemaField,
    SourceColumn,
    SourceLineageVertex,
    TableColumnLineageEdge,
    TableLineageDataset,
    TableLineageEdge,
    TableSinkLineageVertex,
    Transformation,
)
from spark_events.api.testing import ReporterConformance

_T0 = 1_700_000_000_000
_ODD_TEXTS = ("", "Grüße, 世界 🚀", "\ud800", "a\0b\nc", "x" * 1_000_000)


class JobListenerConformance(ReporterConformance):
    """Tests for job status listeners."""

    factory: ClassVar[type[JobStatusChangedListenerFactory]]
    kind = JobStatusChangedListener

    def good_items(self, count: int) -> Sequence[JobStatusChangedEvent]:
        """Return the events of jobs that begin, are told more of, and end."""
        events: list[JobStatusChangedEvent] = []
        for number in range(count):
            job = str(number)
            events += [
                self.created(job, self.graph("orders")),
                self.status(job, JobStatus.CREATED, JobStatus.RUNNING),
                JobLineageEvent(
                    job, "job", "statement", _T0 + 1, _APPLICATION, {}, lineage=self.graph("more")
                ),
                self.status(job, JobStatus.RUNNING, JobStatus.FINISHED),
            ]
        return events

    def odd_items(self) -> Sequence[JobStatusChangedEvent]:
        """Return events out of order, with odd names, and with graphs that lack what others have."""
        nowhere = LineageVertex(())
        odd = [LineageGraph(), LineageGraph((nowhere,), (nowhere,), (LineageEdge(nowhere, nowhere),), "why")]
        events: list[JobStatusChangedEvent] = [
            self.status("nobody's", JobStatus.RUNNING, JobStatus.FAILED),
            JobLineageEvent("nobody's", "", "query", 0, _APPLICATION, {}, lineage=self.graph("x")),
            *(self.created(f"odd {number}", graph) for number, graph in enumerate(odd)),
        ]
        for number, text in enumerate(_ODD_TEXTS):
            created = self.created(f"text {number}", self.graph(text))
            events.append(
                replace(created, job_name=text, statement=text, is_sql=True, variables={text: text})
            )
            failed = self.status(created.job_id, JobStatus.CREATED, JobStatus.FAILED)
            events.append(replace(failed, exception=Failure(text, text, text, text, text)))
        restarted = replace(
            self.created("0197d6ab-0000-7000-8000-000000000001", self.graph("s")),
            job_kind="query",
            execution_mode=ExecutionMode.STREAMING,
        )
        return [*events, restarted, self.status(restarted.job_id, JobStatus.FAILED, JobStatus.RESTARTING)]

    def take(self, reporter: Any, item: JobStatusChangedEvent) -> None:
        """Hand one event over."""
        reporter.on_event(item)

    def created(self, job_id: str, graph: LineageGraph) -> JobCreatedEvent:
        """Return the creation of a job."""
        return JobCreatedEvent(
            job_id, "job", "statement", _T0, _APPLICATION, {"app_name": "x"}, lineage=graph
        )

    def status(self, job_id: str, old: JobStatus, new: JobStatus) -> JobExecutionStatusEvent:
        """Return a change of a job's status."""
        return JobExecutionStatusEvent(
            job_id,
            "job",
            "statement",
            _T0 + 2,
            _APPLICATION,
            {"app_name": "x"},
            old_status=old,
            new_status=new,
            written={"rows": 1},
        )

    def graph(self, name: str) -> LineageGraph:
        """Return a graph with one source, one sink, and columns of a name."""
        schema = SchemaFacet((SchemaField(name, "string"),))
        read = LineageDataset(name, "file", {"schema": schema})
        written = TableLineageDataset(name, "file", {"schema": schema}, "spark_catalog", "default", name)
        source, sink = SourceLineageVertex((read,)), TableSinkLineageVertex((written,), ModifyType.CTAS)
        columns = TableColumnLineageEdge(name, (SourceColumn(read, name, tuple(Transformation), True),))
        edge = TableLineageEdge(source, sink, (columns,), columns.sources)
        return LineageGraph((source,), (sink,), (edge,))


_APPLICATION = ApplicationInfo("conformance", "app-1")

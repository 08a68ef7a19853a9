"""One job, and the events of its life."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from spark_events.api import (
    DataRead,
    DataWritten,
    ExecutionMode,
    Failure,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobLineageEvent,
    JobProgressEvent,
    JobStatus,
    JobStatusChangedEvent,
    LineageDatasetFacet,
    LineageGraph,
)
from spark_events.api.job_listener import QUERY
from spark_events.api.toolkit.read_only import ReadOnly
from spark_events.jobs.query_progress import QueryProgress
from spark_events.lineage.edges import GivenEdges


class TrackedJob:
    """A running job, which sends its creation first, and then its changes.

    Attributes:
        common: the fields that all its events share.
        status: its current status.
        graph: its lineage according to its plan, without the edges that the program gave.
        given: the edges that the program gave for it; None if it gave none.
        created: whether its creation has been sent.
    """

    def __init__(
        self,
        common: JobStatusChangedEvent,
        send: Callable[[JobStatusChangedEvent], None],
        status: JobStatus = JobStatus.CREATED,
        given: GivenEdges | None = None,
    ) -> None:
        self.common = common
        self.status = status
        self.graph = LineageGraph()
        self.given = given
        self.created = False
        self._send = send
        self._held: list[JobExecutionStatusEvent] = []

    def create(
        self, graph: LineageGraph, spark_version: str, statement: str = "", is_sql: bool = False
    ) -> None:
        """Send the job's creation, and the status changes that were held back until then.

        Args:
            graph: its lineage according to its plan.
            spark_version: the version of Spark that runs it.
            statement: its SQL text, or else the place in the program that started it.
            is_sql: whether ``statement`` is SQL text.
        """
        self.created, self.graph = True, graph
        event = JobCreatedEvent(
            **self._fields(self.common.time_ms),
            lineage=with_given(graph, self.given),
            execution_mode=(
                ExecutionMode.STREAMING if self.common.job_kind == QUERY else ExecutionMode.BATCH
            ),
            statement=statement,
            is_sql=is_sql,
            spark_version=spark_version,
        )
        self._send(event)
        for change in self._held:
            self._send(change)
        self._held = []

    def set_graph(self, graph: LineageGraph, time_ms: int) -> None:
        """Report that more is known about the lineage than when the job was created."""
        if graph == self.graph and _facets(graph) == _facets(self.graph) and not self.given:
            return
        self.graph = graph
        self._send(JobLineageEvent(**self._fields(time_ms), lineage=with_given(graph, self.given)))

    def report(self, progress: QueryProgress, time_ms: int) -> None:
        """Send how far it has come."""
        reads, written, made = progress.take(self.graph.sources, time_ms)
        fields = self._fields(time_ms)
        self._send(
            JobProgressEvent(**fields, batch=progress.batch, read=reads, written=ReadOnly(written), made=made)
        )

    def change_status(
        self,
        new: JobStatus,
        time_ms: int,
        failure: Failure | None = None,
        written: Mapping[str, int] | None = None,
        read: tuple[DataRead, ...] = (),
        made: tuple[DataWritten, ...] = (),
    ) -> None:
        """Send a status change, or hold it until the job's creation; an unchanged status sends nothing."""
        if new is self.status:
            return
        change = JobExecutionStatusEvent(
            **self._fields(time_ms),
            old_status=self.status,
            new_status=new,
            exception=failure,
            written=ReadOnly(written or {}),
            read=read,
            made=made,
        )
        self.status = new
        if self.created:
            self._send(change)
        else:
            self._held.append(change)

    def _fields(self, time_ms: int) -> dict[str, Any]:
        """Return the fields that all events have."""
        common = {member.name: getattr(self.common, member.name) for member in fields(self.common)}
        return {**common, "time_ms": time_ms}


def _facets(graph: LineageGraph) -> list[Mapping[str, LineageDatasetFacet]]:
    """Return what is known of each dataset, which graphs are not compared by."""
    vertices = (*graph.sources, *graph.sinks)
    return [dataset.facets for vertex in vertices for dataset in vertex.datasets]


def with_given(graph: LineageGraph, given: GivenEdges | None) -> LineageGraph:
    """Return a graph with the edges that the program gave, if it gave any."""
    return given.applied_to(graph) if given else graph

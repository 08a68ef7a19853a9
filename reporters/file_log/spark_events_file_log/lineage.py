"""The events of jobs as they are written down, lineage included."""

from __future__ import annotations

from typing import Any

from spark_events.api import (
    ConfigFacet,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobLineageEvent,
    JobStatusChangedEvent,
    LineageDataset,
    LineageEdge,
    LineageGraph,
    LineageVertex,
    SchemaFacet,
    SourceColumn,
    SourceLineageVertex,
    SymlinksFacet,
    TableLineageDataset,
    TableLineageEdge,
    TableSinkLineageVertex,
)


def job_event(event: JobStatusChangedEvent) -> dict[str, Any]:
    """Return an event of a job as JSON has it."""
    record: dict[str, Any] = {
        "event": type(event).__name__,
        "jobId": event.job_id,
        "jobName": event.job_name,
        "jobKind": event.job_kind,
        "timeUnixNano": str(event.time_ms * 1_000_000),
        "application": {
            "name": event.application.name,
            "id": event.application.id,
            "attemptId": event.application.attempt_id,
        },
        "variables": dict(event.variables),
    }
    if isinstance(event, JobCreatedEvent):
        record["executionMode"] = event.execution_mode.value
        record["statement"] = event.statement
        record["sparkVersion"] = event.spark_version
    if isinstance(event, JobCreatedEvent | JobLineageEvent):
        record["lineage"] = graph_record(event.lineage)
    if isinstance(event, JobExecutionStatusEvent):
        record["oldStatus"], record["newStatus"] = event.old_status.value, event.new_status.value
        record["written"] = dict(event.written)
        if event.exception is not None:
            record["exception"] = {
                "type": event.exception.exception_type,
                "message": event.exception.message,
                "errorClass": event.exception.error_class,
                "sqlState": event.exception.sql_state,
                "stacktrace": event.exception.stacktrace,
            }
    return record


def graph_record(graph: LineageGraph) -> dict[str, Any]:
    """Return a graph as JSON has it: edges by the places of their vertices."""
    sources = {vertex: place for place, vertex in enumerate(graph.sources)}
    sinks = {vertex: place for place, vertex in enumerate(graph.sinks)}
    record: dict[str, Any] = {
        "sources": [_vertex(vertex) for vertex in graph.sources],
        "sinks": [_vertex(vertex) for vertex in graph.sinks],
        "relations": [
            {"source": sources.get(edge.source), "sink": sinks.get(edge.sink), **_columns(edge)}
            for edge in graph.relations
        ],
    }
    if graph.incomplete:
        record["incomplete"] = graph.incomplete
    return record


def _vertex(vertex: LineageVertex) -> dict[str, Any]:
    record: dict[str, Any] = {"datasets": [_dataset(dataset) for dataset in vertex.datasets]}
    if isinstance(vertex, SourceLineageVertex):
        record["boundedness"] = vertex.boundedness.value
    if isinstance(vertex, TableSinkLineageVertex):
        record["modifyType"] = vertex.modify_type.value
    return record


def _dataset(dataset: LineageDataset) -> dict[str, Any]:
    record: dict[str, Any] = {"namespace": dataset.namespace, "name": dataset.name}
    if isinstance(dataset, TableLineageDataset):
        record["table"] = dataset.identifier
    for facet in dataset.facets.values():
        if isinstance(facet, SchemaFacet):
            record["schema"] = [{"name": column.name, "type": column.type} for column in facet.fields]
        elif isinstance(facet, ConfigFacet):
            record["config"] = dict(facet.config)
        elif isinstance(facet, SymlinksFacet):
            record["symlinks"] = [
                {"namespace": namespace, "name": name} for namespace, name in facet.identifiers
            ]
    return record


def _columns(edge: LineageEdge) -> dict[str, Any]:
    if not isinstance(edge, TableLineageEdge):
        return {}
    return {
        "columns": {column.column: [_source(source) for source in column.sources] for column in edge.columns},
        "influences": [_source(source) for source in edge.influences],
    }


def _source(source: SourceColumn) -> dict[str, Any]:
    record: dict[str, Any] = {
        "dataset": source.dataset.name,
        "column": source.column,
        "transformations": [kind.value for kind in source.transformations],
    }
    return {**record, "masking": True} if source.masking else record

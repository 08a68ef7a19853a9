"""The events of jobs as JSON, lineage included: the lines of the file log of jobs."""

from __future__ import annotations

from typing import TypedDict

from spark_events.api.dataset_facets import OwnershipFacet, TagsFacet
from spark_events.api.failure import Failure
from spark_events.api.job_listener import (
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobLineageEvent,
    JobProgressEvent,
    JobStatusChangedEvent,
)
from spark_events.api.lineage import (
    ConfigFacet,
    LineageDataset,
    LineageEdge,
    LineageGraph,
    LineageVertex,
    RenamedFromFacet,
    SchemaFacet,
    SourceColumn,
    SourceLineageVertex,
    SymlinksFacet,
    TableLineageDataset,
    TableLineageEdge,
    TableSinkLineageVertex,
)
from spark_events.api.toolkit.json_of_data import (
    DataReadJson,
    DataWrittenJson,
    data_read_json,
    data_written_json,
)


class ApplicationJson(TypedDict):
    """The application that runs a job."""

    name: str
    id: str
    attemptId: str


class FailureJson(TypedDict):
    """Why a job failed."""

    type: str | None
    message: str
    errorClass: str | None
    sqlState: str | None
    stacktrace: str | None


class DatasetJson(TypedDict, total=False):
    """A dataset: its namespace and name, and what else is known."""

    namespace: str
    name: str
    table: str
    schema: list[dict[str, str]]
    config: dict[str, str]
    symlinks: list[dict[str, str]]
    renamedFrom: dict[str, str]
    owners: list[dict[str, str]]
    tags: list[dict[str, str]]


class VertexJson(TypedDict, total=False):
    """A source, with its boundedness, or a sink, with its modify type."""

    datasets: list[DatasetJson]
    boundedness: str
    modifyType: str


class SourceColumnJson(TypedDict, total=False):
    """A source's column; ``masking`` is left out where it is false."""

    dataset: str
    column: str
    transformations: list[str]
    masking: bool


class RelationJson(TypedDict, total=False):
    """An edge between a source and a sink, by their places; ``columns`` are by the sink's column.

    So are ``expressions``, the texts of those that compute them; they are left out where there are none.
    """

    source: int | None
    sink: int | None
    columns: dict[str, list[SourceColumnJson]]
    expressions: dict[str, str]
    influences: list[SourceColumnJson]


class LineageJson(TypedDict, total=False):
    """A lineage graph; ``incomplete`` is left out where nothing is known to be missing."""

    sources: list[VertexJson]
    sinks: list[VertexJson]
    relations: list[RelationJson]
    incomplete: str


class JobEventJson(TypedDict, total=False):
    """An event of a job: all have the keys until ``variables``, and each kind those of its class."""

    event: str
    jobId: str
    jobName: str
    jobKind: str
    timeUnixNano: str
    application: ApplicationJson
    variables: dict[str, str]
    executionMode: str
    statement: str
    sparkVersion: str
    lineage: LineageJson
    oldStatus: str
    newStatus: str
    batch: int
    written: dict[str, int]
    read: list[DataReadJson]
    made: list[DataWrittenJson]
    exception: FailureJson


def job_event_json(event: JobStatusChangedEvent) -> JobEventJson:
    """Return an event of a job as JSON has it; times are texts of ns since the epoch, as in OTLP's JSON."""
    record: JobEventJson = {
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
        record["lineage"] = _lineage(event.lineage)
    if isinstance(event, JobProgressEvent):
        record["batch"] = event.batch
    if isinstance(event, JobExecutionStatusEvent | JobProgressEvent):
        record["written"] = dict(event.written)
        if event.read:
            record["read"] = [data_read_json(data) for data in event.read]
    if isinstance(event, JobExecutionStatusEvent):
        record["oldStatus"], record["newStatus"] = event.old_status.value, event.new_status.value
    if isinstance(event, JobExecutionStatusEvent | JobProgressEvent) and event.made:
        record["made"] = [data_written_json(data) for data in event.made]
    if isinstance(event, JobExecutionStatusEvent) and event.exception is not None:
        record["exception"] = _failure(event.exception)
    return record


def _failure(failure: Failure) -> FailureJson:
    return {
        "type": failure.exception_type,
        "message": failure.message,
        "errorClass": failure.error_class,
        "sqlState": failure.sql_state,
        "stacktrace": failure.stacktrace,
    }


def _lineage(graph: LineageGraph) -> LineageJson:
    sources = {vertex: place for place, vertex in enumerate(graph.sources)}
    sinks = {vertex: place for place, vertex in enumerate(graph.sinks)}
    record: LineageJson = {
        "sources": [_vertex(vertex) for vertex in graph.sources],
        "sinks": [_vertex(vertex) for vertex in graph.sinks],
        "relations": [
            _relation(edge, sources.get(edge.source), sinks.get(edge.sink)) for edge in graph.relations
        ],
    }
    if graph.incomplete:
        record["incomplete"] = graph.incomplete
    return record


def _vertex(vertex: LineageVertex) -> VertexJson:
    record: VertexJson = {"datasets": [_dataset(dataset) for dataset in vertex.datasets]}
    if isinstance(vertex, SourceLineageVertex):
        record["boundedness"] = vertex.boundedness.value
    if isinstance(vertex, TableSinkLineageVertex):
        record["modifyType"] = vertex.modify_type.value
    return record


def _dataset(dataset: LineageDataset) -> DatasetJson:
    record: DatasetJson = {"namespace": dataset.namespace, "name": dataset.name}
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
        elif isinstance(facet, RenamedFromFacet):
            namespace, name = facet.previous
            record["renamedFrom"] = {"namespace": namespace, "name": name}
        elif isinstance(facet, OwnershipFacet):
            record["owners"] = [_filled(name=owner.name, type=owner.type) for owner in facet.owners]
        elif isinstance(facet, TagsFacet):
            record["tags"] = [
                _filled(key=tag.key, value=tag.value, column=tag.column, source=tag.source)
                for tag in facet.tags
            ]
    return record


def _filled(**values: str) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}


def _relation(edge: LineageEdge, source: int | None, sink: int | None) -> RelationJson:
    record: RelationJson = {"source": source, "sink": sink}
    if isinstance(edge, TableLineageEdge):
        record["columns"] = {
            column.column: [_source_column(source) for source in column.sources] for column in edge.columns
        }
        if texts := {column.column: column.expression for column in edge.columns if column.expression}:
            record["expressions"] = texts
        record["influences"] = [_source_column(source) for source in edge.influences]
    return record


def _source_column(source: SourceColumn) -> SourceColumnJson:
    record: SourceColumnJson = {
        "dataset": source.dataset.name,
        "column": source.column,
        "transformations": [kind.value for kind in source.transformations],
    }
    if source.masking:
        record["masking"] = True
    return record

"""Reads the file logs of jobs into one graph of data."""

from __future__ import annotations

import gzip
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from spark_events.api.errors import NothingToReadError
from spark_events.api.job_listener import APPLICATION
from spark_events.api.toolkit.json_of_job_events import JobEventJson, LineageJson, RelationJson, VertexJson
from spark_events.api.toolkit.local_disk import all_below
from spark_events.lineage.data_flow import DataFlow, DataKey, Flow

_PATTERN = "*.lineage.*.jsonl*"
_LISTENER = "spark.job-status-changed.listener.log"
_LONGEST_LINE = 64 << 20
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/")
_NOT_AS_WRITTEN = (ValueError, KeyError, TypeError, AttributeError, IndexError)


_FlowsOfJob = dict[tuple[DataKey | None, DataKey | None], Flow]
"""By source and sink."""


class LoggedData(NamedTuple):
    """A piece of data as an event names it."""

    key: DataKey
    title: str
    is_table: bool
    """Whether the title is a table's name."""
    columns: tuple[str, ...] = ()


@dataclass(slots=True)
class LoggedEvent:
    """What a line says about a job.

    Attributes:
        time_ms: when it happened, in ms since the epoch.
        status: its new status; None if the event is not about a status.
        data: what it reads and writes.
        flows: from source to sink; an unknown one is None.
    """

    job_id: str
    time_ms: int
    status: str | None
    data: list[LoggedData] = field(default_factory=list)
    flows: list[tuple[DataKey | None, DataKey | None, Flow]] = field(default_factory=list)


def read_job_logs(paths: Iterable[Path], until_ms: int | None = None) -> DataFlow:
    """Read files, or all job file logs below folders; of a job's runs, only the last counts.

    Lines that are not job events, and incomplete ones, are counted and left out.

    Args:
        paths: files or folders.
        until_ms: leave out what happened after this time, in ms since the epoch; None for all.

    Raises:
        ConfigError: a path does not exist, there is no such file below it, or none of the lines is an event.
    """
    graph = DataFlow()
    has_events = False
    flows_by_job: dict[str, _FlowsOfJob] = {}
    replaced: set[DataKey] = set()
    for path in _files(paths, graph):
        for event in _events(path, graph):
            has_events = True
            if until_ms is None or event.time_ms <= until_ms:
                replaced |= _add(event, graph, flows_by_job.setdefault(event.job_id, {}))
    if graph.skipped and not has_events:
        raise NothingToReadError(
            f"{', '.join(map(str, graph.skipped))}: no job event among its lines; skipped "
            f"{sum(graph.skipped.values())} lines that are not job events"
        )
    for key in replaced - {key for pair in graph.flows for key in pair if key is not None}:
        del graph.titles[key]
        graph.columns.pop(key, None)
    return graph


def flow_of_events(events: Iterable[JobEventJson]) -> DataFlow:
    """Return the graph of events that are in no file."""
    graph = DataFlow()
    for event in events:
        _add(_parse(event), graph, {})
    return graph


def _add(event: LoggedEvent, graph: DataFlow, flows_of_job: _FlowsOfJob) -> set[DataKey]:
    """Add what an event says; return the data that its job was said to read or write, and is so no more."""
    for data in event.data:
        if data.is_table or data.key not in graph.titles:
            graph.titles[data.key] = data.title
        if data.columns:
            graph.columns[data.key] = data.columns
    before_event = dict(flows_of_job) if event.flows else {}
    status = next((flow.status for flow in before_event.values()), "CREATED")
    for source, sink, flow in event.flows:
        if source not in graph.titles:
            source = None  # nothing is known of a table under the name that it had before
        of_jobs = graph.flows.setdefault((source, sink), {})
        if (before := of_jobs.get(flow.job)) is not None:
            flow.finished_ms = before.finished_ms
        flow.status = status
        of_jobs[flow.job] = flow
        graph.last_applications[flow.job] = flow.application
        flows_of_job[source, sink] = flow
    replaced: set[DataKey] = set()
    for pair, flow in before_event.items():
        if flows_of_job[pair] is flow:
            # What the job was said to read or write before more was known, which the event has all of.
            del flows_of_job[pair]
            _drop(flow, pair, graph)
            replaced.update(key for key in pair if key is not None)
    for flow in flows_of_job.values():
        flow.status = event.status or flow.status
        flow.time_ms = event.time_ms
        if flow.status == "FINISHED" and flow.writes_rows:
            flow.finished_ms = event.time_ms
    return replaced


def _drop(flow: Flow, pair: tuple[DataKey | None, DataKey | None], graph: DataFlow) -> None:
    of_jobs = graph.flows.get(pair, {})
    if of_jobs.get(flow.job) is flow:
        del of_jobs[flow.job]
        if not of_jobs:  # an edge without a job is none
            del graph.flows[pair]


def _files(paths: Iterable[Path], graph: DataFlow) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            hint = "; only local files are read, so copy it to this machine" if _URL.match(str(path)) else ""
            raise NothingToReadError(f"{path}: no such file or folder{hint}")
        below = (file for file in all_below(path) if file.match(_PATTERN)) if path.is_dir() else [path]
        files = [file for _, file in sorted(_readable(below, graph))]
        if path in graph.torn:
            raise NothingToReadError(f"{path}: {graph.torn[path]}")
        if not files:
            raise NothingToReadError(
                f"{path}: no lineage files ({_PATTERN}) here; to write some, set "
                f"{_LISTENER}.factory.class=file_log and {_LISTENER}.path=<folder>"
            )
        yield from files


def _readable(paths: Iterable[Path], graph: DataFlow) -> Iterator[tuple[int, Path]]:
    """Yield when each file was written, and the file; a pipe, say, would never end."""
    for path in paths:
        try:
            state = path.stat()
        except OSError as error:  # a link to nothing
            graph.torn[path] = error.strerror or str(error)
            continue
        if stat.S_ISREG(state.st_mode):
            yield state.st_mtime_ns, path
        else:
            graph.torn[path] = "it is not a file"


def _events(path: Path, graph: DataFlow) -> Iterator[LoggedEvent]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                try:
                    yield _parse(orjson.loads(line))
                except _NOT_AS_WRITTEN:
                    graph.skipped[path] += 1
    except (OSError, EOFError, zlib.error) as error:
        graph.torn[path] = str(error)


def _parse(event: JobEventJson) -> LoggedEvent:
    """Return what an event says.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, IndexError: it does not have the form that
            ``job_event_json`` produces.
    """
    status = event.get("newStatus")
    parsed = LoggedEvent(
        _text(event["jobId"]), int(event["timeUnixNano"]) // 1_000_000, status and _text(status)
    )
    if "lineage" in event:
        graph = event["lineage"]
        job = f"{_text(event['application']['name'])}.{_text(event['jobName'])}"
        parsed.data = [data for vertex in (*graph["sources"], *graph["sinks"]) for data in _data(vertex)]
        parsed.flows = list(_flows(job, graph))
        if not parsed.data and event.get("jobKind") != APPLICATION:
            parsed.flows.append((None, None, Flow(job)))
        for _, _, flow in parsed.flows:
            flow.application = _text(event["application"].get("id", ""))
            flow.incomplete = _text(graph.get("incomplete", "")) or flow.incomplete
    return parsed


def _data(vertex: VertexJson) -> Iterator[LoggedData]:
    for dataset in vertex["datasets"]:
        key = DataKey(_text(dataset["namespace"]), _text(dataset["name"]))
        table = _text(dataset.get("table", "")).removeprefix("spark_catalog.")
        columns = tuple(_text(column["name"]) for column in dataset.get("schema", ()))
        yield LoggedData(key, table or key.name, "table" in dataset, columns)


def _flows(job: str, graph: LineageJson) -> Iterator[tuple[DataKey | None, DataKey | None, Flow]]:
    """Yield the flows of a job: its edges, and, for data without edges, flows from or to an unknown place."""
    sources = [[data.key for data in _data(vertex)] for vertex in graph["sources"]]
    sinks = [[data.key for data in _data(vertex)] for vertex in graph["sinks"]]
    connected: set[tuple[str, DataKey]] = set()
    modify = {
        data.key: _text(vertex.get("modifyType", "")) for vertex in graph["sinks"] for data in _data(vertex)
    }
    for before, sink, flow in _renamed(job, graph["sinks"]):
        connected.add(("sink", sink))
        yield before, sink, flow
    for relation in graph["relations"]:
        columns, influences = _columns(relation), _influences(relation)
        for source in sources[_place(relation["source"])]:
            for sink in sinks[_place(relation["sink"])]:
                connected |= {("source", source), ("sink", sink)}
                yield source, sink, Flow(job, columns=columns, influences=influences, modify=modify[sink])
    for source in (key for keys in sources for key in keys if ("source", key) not in connected):
        yield source, None, Flow(job)
    for sink in (key for keys in sinks for key in keys if ("sink", key) not in connected):
        yield None, sink, Flow(job, modify=modify[sink])


def _renamed(job: str, sinks: list[VertexJson]) -> Iterator[tuple[DataKey, DataKey, Flow]]:
    """Yield a flow from the old name of each table that is renamed, whose columns keep their names."""
    for vertex in sinks:
        for dataset, data in zip(vertex["datasets"], _data(vertex), strict=True):
            if before := dataset.get("renamedFrom"):
                columns = {name: [name] for name in data.columns}
                incomplete = "" if columns else "the columns of the table that it renames are unknown"
                modify = _text(vertex.get("modifyType", ""))
                yield (
                    DataKey(_text(before["namespace"]), _text(before["name"])),
                    data.key,
                    Flow(job, columns=columns, incomplete=incomplete, modify=modify),
                )


def _columns(relation: RelationJson) -> dict[str, list[str]]:
    return {
        column: list(dict.fromkeys(_text(source["column"]) for source in inputs))
        for column, inputs in relation.get("columns", {}).items()
    }


def _influences(relation: RelationJson) -> list[str]:
    return list(dict.fromkeys(_text(source["column"]) for source in relation.get("influences", ())))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__}, not a string")
    return value


def _place(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{type(value).__name__}, not a number")
    return value

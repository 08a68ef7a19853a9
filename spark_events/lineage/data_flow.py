"""Reads the file logs of jobs into one graph of data: what feeds what, by which job, and how that ended."""

from __future__ import annotations

import difflib
import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from spark_events.api import ConfigError

Key = tuple[str, str]
"""Namespace and name."""
_PATTERN = "*.lineage.*.jsonl*"
_LONGEST_LINE = 64 << 20
_NOT_AS_WRITTEN = (ValueError, KeyError, TypeError, AttributeError, IndexError)


@dataclass(slots=True)
class Flow:
    """A job that takes data from one place to another.

    Attributes:
        job: its name, with its application's.
        status: its last status.
        time_ms: when that was, in ms since the epoch.
        columns: for each column of the sink those of the source that it is computed from.
    """

    job: str
    status: str = "CREATED"
    time_ms: int = 0
    columns: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class DataFlow:
    """Data and what feeds it.

    Attributes:
        titles: how data is called: its table's name, or its own.
        flows: from source to sink; by job the last that was told. A source or a sink that is not known is
            None.
        skipped: for each file how many of its lines are no events of jobs.
        torn: the files that cannot be read to their end, with the reason.
    """

    titles: dict[Key, str] = field(default_factory=dict)
    flows: dict[tuple[Key | None, Key | None], dict[str, Flow]] = field(default_factory=dict)
    skipped: Counter[Path] = field(default_factory=Counter)
    torn: dict[Path, str] = field(default_factory=dict)

    @property
    def jobs(self) -> list[str]:
        """The names of all jobs, each once."""
        return list(dict.fromkeys(job for jobs in self.flows.values() for job in jobs))

    def title(self, data: Key | None) -> str:
        """Return how some data is called, ``-`` where it is not known."""
        return "-" if data is None else self.titles[data]

    def find(self, name: str) -> Key | str:
        """Return the data that a name means, a table or a path, or else the job; the end is enough.

        Raises:
            ConfigError: there is neither, or more than one.
        """
        data = [key for key, title in self.titles.items() if name in (title, key[1])] or [
            key for key, title in self.titles.items() if _ends(title, name) or _ends(key[1], name)
        ]
        jobs = self.jobs
        found: list[Key | str] = [*data] or [job for job in jobs if job == name]
        found = found or [job for job in jobs if _ends(job, name)]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(sorted(each if isinstance(each, str) else " ".join(each) for each in found))
            raise ConfigError(f"--of {name}: more than one: {several}")
        names = [*self.titles.values(), *jobs]
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(close)}?" if close else f"there are {len(self.titles)} others"
        raise ConfigError(f"--of {name}: no job reads or writes it, and none is called so; {hint}")

    def sources_of(self, sink: Key) -> list[tuple[Key, list[Flow]]]:
        """Return what feeds some data, and by which jobs."""
        return [
            (source, list(jobs.values()))
            for (source, to), jobs in self.flows.items()
            if to == sink and source is not None
        ]

    def sinks_of(self, source: Key) -> list[tuple[Key, list[Flow]]]:
        """Return what some data feeds, and by which jobs."""
        return [
            (to, list(jobs.values()))
            for (given, to), jobs in self.flows.items()
            if given == source and to is not None
        ]

    def of_job(self, name: str) -> list[tuple[Key | None, Key | None, Flow]]:
        """Return the sources and sinks of a job, in pairs."""
        return [(source, sink, jobs[name]) for (source, sink), jobs in self.flows.items() if name in jobs]


@dataclass(slots=True)
class _JobEvent:
    """An event of a job as its line tells it."""

    job_id: str
    time_ms: int
    status: str | None
    titles: list[tuple[Key, str, bool]]
    flows: list[tuple[Key | None, Key | None, Flow]]


def read(paths: Iterable[Path]) -> DataFlow:
    """Read files, or all file logs of jobs below folders; a job that ran often counts as it ran last.

    Lines that are no such events, and what is torn off, are counted and left out.

    Raises:
        ConfigError: a path is not there, or there is no such file below it.
    """
    flow = DataFlow()
    runs: dict[str, list[Flow]] = {}
    for path in _files(paths):
        for event in _events(path, flow):
            for data, title, of_table in event.titles:
                if of_table or data not in flow.titles:
                    flow.titles[data] = title
            for source, sink, told in event.flows:
                flow.flows.setdefault((source, sink), {})[told.job] = told
                runs.setdefault(event.job_id, []).append(told)
            for told in runs.get(event.job_id, ()):
                told.status = event.status or told.status
                told.time_ms = event.time_ms
    return flow


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise ConfigError(f"{path}: is not there")
        files = (
            [path]
            if path.is_file()
            else sorted(path.rglob(_PATTERN), key=lambda file: file.stat().st_mtime_ns)
        )
        if not files:
            raise ConfigError(
                f"{path}: no file log of jobs below it ({_PATTERN}); a job status listener of the type "
                "file_log writes them"
            )
        yield from files


def _events(path: Path, flow: DataFlow) -> Iterator[_JobEvent]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                try:
                    yield _job_event(orjson.loads(line))
                except _NOT_AS_WRITTEN:
                    flow.skipped[path] += 1
    except (OSError, EOFError, zlib.error) as error:
        flow.torn[path] = str(error)


def _job_event(event: Any) -> _JobEvent:
    """Return what an event tells.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, IndexError: it is not as the file log writes it.
    """
    titles: list[tuple[Key, str, bool]] = []
    flows: list[tuple[Key | None, Key | None, Flow]] = []
    if "lineage" in event:
        graph = event["lineage"]
        job = f"{_text(event['application']['name'])}.{_text(event['jobName'])}"
        sources = [_data(vertex, titles) for vertex in graph["sources"]]
        sinks = [_data(vertex, titles) for vertex in graph["sinks"]]
        is_application = event.get("jobKind") == "application"
        flows = list(_flows(job, sources, sinks, graph["relations"], is_application))
    status = event.get("newStatus")
    time_ms = int(event["timeUnixNano"]) // 1_000_000
    return _JobEvent(_text(event["jobId"]), time_ms, status and _text(status), titles, flows)


def _flows(
    job: str,
    sources: list[list[Key]],
    sinks: list[list[Key]],
    relations: list[dict[str, Any]],
    is_application: bool,
) -> Iterator[tuple[Key | None, Key | None, Flow]]:
    """Yield the flows of a job: along its edges, and of what has none, those to or from what is not known."""
    from_them: set[Key] = set()
    into_them: set[Key] = set()
    for edge in relations:
        columns = {
            column: list(dict.fromkeys(_text(source["column"]) for source in inputs))
            for column, inputs in edge.get("columns", {}).items()
        }
        for source in sources[edge["source"]]:
            for sink in sinks[edge["sink"]]:
                from_them.add(source)
                into_them.add(sink)
                yield source, sink, Flow(job, columns=columns)
    for source in (key for keys in sources for key in keys if key not in from_them):
        yield source, None, Flow(job)
    for sink in (key for keys in sinks for key in keys if key not in into_them):
        yield None, sink, Flow(job)
    if not any(sources) and not any(sinks) and not is_application:
        yield None, None, Flow(job)


def _data(vertex: dict[str, Any], titles: list[tuple[Key, str, bool]]) -> list[Key]:
    keys: list[Key] = []
    for dataset in vertex["datasets"]:
        key = (_text(dataset["namespace"]), _text(dataset["name"]))
        table = _text(dataset.get("table", "")).removeprefix("spark_catalog.")
        titles.append((key, table or key[1], "table" in dataset))
        keys.append(key)
    return keys


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__}, no text")
    return value


def _ends(title: str, name: str) -> bool:
    return title.endswith((f".{name}", f"/{name}"))

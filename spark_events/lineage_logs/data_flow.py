"""Reads the file logs of jobs into one graph of data: what feeds what, by which job, and how that ended."""

from __future__ import annotations

import difflib
import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from spark_events.api import ConfigError

Key = tuple[str, str]
"""Namespace and name."""
_PATTERN = "*.lineage.*.jsonl*"


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
        flows: from source to sink; by job the last that was told. A source that is not known is None.
        skipped: lines that are no events of jobs.
    """

    titles: dict[Key, str] = field(default_factory=dict)
    flows: dict[tuple[Key | None, Key], dict[str, Flow]] = field(default_factory=dict)
    skipped: int = 0

    def find(self, name: str) -> Key:
        """Return the data that a name means: a table, a path, or the end of either.

        Raises:
            ConfigError: there is none, or more than one.
        """
        exact = [key for key, title in self.titles.items() if name in (title, key[1])]
        found = exact or [
            key for key, title in self.titles.items() if _ends(title, name) or _ends(key[1], name)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(sorted(f"{namespace} {name}" for namespace, name in found))
            raise ConfigError(f"--of {name}: more than one: {several}")
        close = difflib.get_close_matches(name, self.titles.values(), n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(close)}?" if close else f"there are {len(self.titles)} others"
        raise ConfigError(f"--of {name}: no job reads or writes it; {hint}")

    def sources_of(self, sink: Key) -> list[tuple[Key, list[Flow]]]:
        """Return what feeds some data, and by which jobs."""
        return [
            (source, list(jobs.values()))
            for (source, to), jobs in self.flows.items()
            if to == sink and source is not None
        ]

    def sinks_of(self, source: Key) -> list[tuple[Key, list[Flow]]]:
        """Return what some data feeds, and by which jobs."""
        return [(to, list(jobs.values())) for (given, to), jobs in self.flows.items() if given == source]


def read(paths: Iterable[Path]) -> DataFlow:
    """Read files, or all file logs of jobs below folders; a job that ran often counts as it ran last.

    Raises:
        ConfigError: a path is not there, or there is no such file below it.
    """
    flow = DataFlow()
    runs: dict[str, list[Flow]] = {}
    for path in _files(paths):
        for event in _events(path, flow):
            if "lineage" in event:
                told = runs.setdefault(event["jobId"], [])
                told += _add(flow, event)
            for one in runs.get(event["jobId"], ()):
                one.status = event.get("newStatus", one.status)
                one.time_ms = int(event["timeUnixNano"]) // 1_000_000
    return flow


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise ConfigError(f"{path}: is not there")
        files = (
            [path] if path.is_file() else sorted(path.rglob(_PATTERN), key=lambda one: one.stat().st_mtime_ns)
        )
        if not files:
            raise ConfigError(
                f"{path}: no file log of jobs below it ({_PATTERN}); a job status listener of the type "
                "file_log writes them"
            )
        yield from files


def _events(path: Path, flow: DataFlow) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            try:
                event = orjson.loads(line)
                known = "jobId" in event and "timeUnixNano" in event
            except (orjson.JSONDecodeError, TypeError):
                known = False
            if known:
                yield event
            else:
                flow.skipped += 1


def _add(flow: DataFlow, event: dict[str, Any]) -> list[Flow]:
    graph = event["lineage"]
    job = f"{event['application']['name']}.{event['jobName']}"
    sources = [_data(flow, vertex) for vertex in graph["sources"]]
    sinks = [_data(flow, vertex) for vertex in graph["sinks"]]
    added: list[Flow] = []
    fed: set[Key] = set()
    for edge in graph["relations"]:
        columns = {
            column: list(dict.fromkeys(source["column"] for source in inputs))
            for column, inputs in edge.get("columns", {}).items()
        }
        for source in sources[edge["source"]]:
            for sink in sinks[edge["sink"]]:
                fed.add(sink)
                added.append(_flow(flow, source, sink, Flow(job, columns=columns)))
    unfed = [key for keys in sinks for key in keys if key not in fed]
    return added + [_flow(flow, None, sink, Flow(job)) for sink in unfed]


def _flow(flow: DataFlow, source: Key | None, sink: Key, one: Flow) -> Flow:
    flow.flows.setdefault((source, sink), {})[one.job] = one
    return one


def _data(flow: DataFlow, vertex: dict[str, Any]) -> list[Key]:
    keys: list[Key] = []
    for dataset in vertex["datasets"]:
        key = (dataset["namespace"], dataset["name"])
        if "table" in dataset or key not in flow.titles:
            flow.titles[key] = dataset.get("table", "").removeprefix("spark_catalog.") or dataset["name"]
        keys.append(key)
    return keys


def _ends(title: str, name: str) -> bool:
    return title.endswith((f".{name}", f"/{name}"))

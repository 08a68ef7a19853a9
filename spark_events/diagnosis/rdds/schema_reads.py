"""The rule about files that are read as a whole to find out what columns they have."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import Node
from spark_events.diagnosis.thresholds import FULL_SCAN

_FORMATS = ("csv", "json", "xml")
_WITH_FOOTERS = ("parquet", "orc")
_OF_FOOTERS = {"ParallelCollectionRDD", "MapPartitionsRDD"}
_ANY = "load"
"""What Spark calls a job of ``spark.read.format(…).load(…)``."""
_FILES = "FileScanRDD"
_NAMED = re.compile(r"(?:CSV|JSON|XML)File: (.+)", re.IGNORECASE)
"""What Spark calls the RDDs by which it reads files for their schema: line by line, or as a whole."""
_SIZE = "size of files read"
_OVERLAP = 128 << 10
"""How far a task reads at most beyond its part of a file, up to the end of a line, and of a buffer."""
_LOCAL, _CHECKED = "file:", 512 // 4
"""Where what is read counts with its checksums, and of how many bytes each byte of them is."""
_MOST_WAITING, _MOST_SOURCES = 100, 100


class SchemaRead(NamedTuple):
    """A stage that has read files for their schema; form and path are empty if Spark does not say them."""

    form: str
    wall_ms: int
    read_bytes: int
    path: str = ""
    tasks: int = 1

    def is_of(self, scan: FileScan) -> bool:
        """Return whether it may have read what a scan reads: as much, and of the same format."""
        checksums = scan.size_bytes // _CHECKED if scan.path.startswith(_LOCAL) else 0
        most = scan.size_bytes + checksums + self.tasks * _OVERLAP
        fits = 0 < scan.size_bytes <= self.read_bytes <= most
        return self.form in ("", scan.form) and fits


class FileScan(NamedTuple):
    """Files of text that a plan reads."""

    form: str
    path: str
    size_bytes: int


@dataclass(slots=True)
class _Source:
    times: int = 0
    wall_ms: int = 0
    read_bytes: int = 0


def reads_footers(stage_info: Mapping[str, Any]) -> bool:
    """Return whether a stage that belongs to no SQL execution reads the footers of Parquet or ORC files.

    Those say which columns the files have; few tasks read them, and that is all that these do.
    """
    verb = str(stage_info.get("Stage Name") or "").split(" ")[0]
    names = {str(rdd.get("Name") or "") for rdd in stage_info.get("RDD Info") or ()}
    return verb in (*_WITH_FOOTERS, _ANY) and bool(names) and names <= _OF_FOOTERS


def schema_read(stage_info: Mapping[str, Any], wall_ms: int, read_bytes: int) -> SchemaRead | None:
    """Return what a stage is that belongs to no SQL execution, if it reads files for their schema.

    Readers of files do that when they are called; all that a plan reads belongs to an SQL execution.

    Args:
        stage_info: as Spark writes it.
        wall_ms: how long the stage took, and nothing else ran.
        read_bytes: how much it read.
    """
    verb = str(stage_info.get("Stage Name") or "").split(" ")[0]
    if verb not in (*_FORMATS, _ANY):
        return None
    names = [str(rdd.get("Name") or "") for rdd in stage_info.get("RDD Info") or ()]
    path = next((match[1] for name in names if (match := _NAMED.fullmatch(name))), "")
    if not path and _FILES not in names:
        return None
    form, tasks = "" if verb == _ANY else verb, int(stage_info.get("Number of Tasks") or 1)
    return SchemaRead(form, wall_ms, read_bytes, path, tasks)


def file_scan(node: Node) -> FileScan | None:
    """Return the files of text that a node reads, if it does."""
    words = node.name.split()
    form = words[1].lower() if len(words) > 1 and words[0] == "Scan" else ""
    path = node.table() if form in _FORMATS else ""
    return FileScan(form, path, node.metrics.get(_SIZE, 0)) if path else None


class SchemaReads:
    """Adds up what it takes to find schemas, by files: a later plan that reads as much says which."""

    def __init__(self) -> None:
        self._waiting: deque[SchemaRead] = deque()
        self._sources: dict[str, _Source] = {}

    def take(self, read: SchemaRead) -> Iterator[Issue]:
        """Called with each stage that has read files for their schema; yields it if it says which."""
        if read.path:
            yield from self._add(read, read.form, read.path)
            return
        self._waiting.append(read)
        if len(self._waiting) > _MOST_WAITING:
            yield from self._add_unknown()

    def execution_ended(self, execution: EndedExecution) -> Iterator[Issue]:
        """Called with each SQL execution that has ended; yields what is known now of files that it reads."""
        if not self._waiting:
            return
        scans = {scan for node in execution.nodes() if (scan := file_scan(node)) is not None}
        fitting = {scan: [read for read in self._waiting if read.is_of(scan)] for scan in sorted(scans)}
        of_reads = [read for reads in fitting.values() for read in reads]
        for scan, reads in fitting.items():
            # What may be of several files is of none that anybody knows.
            if len(reads) == 1 and of_reads.count(reads[0]) == 1:
                self._waiting.remove(reads[0])
                yield from self._add(reads[0], scan.form, scan.path)

    def end(self) -> Iterator[Issue]:
        """Called at the end of the application: nobody has read the other files, or nobody knows which."""
        while self._waiting:
            yield from self._add_unknown()

    def _add_unknown(self) -> Iterator[Issue]:
        read = self._waiting.popleft()
        return self._add(read, read.form, "")

    def _add(self, read: SchemaRead, form: str, path: str) -> Iterator[Issue]:
        name = path or form
        if name not in self._sources and len(self._sources) >= _MOST_SOURCES:
            return
        source = self._sources.setdefault(name, _Source())
        source.times += 1
        source.wall_ms += read.wall_ms
        source.read_bytes += read.read_bytes
        yield _issue(form, path, source)


def _issue(form: str, path: str, source: _Source) -> Issue:
    files = f"{form.upper()} files" if form else "files"
    read = f", {size(source.read_bytes)}" if source.read_bytes else ""
    times = f", {source.times:,} times" if source.times > 1 else ""
    return Issue(
        FULL_SCAN,
        f"{FULL_SCAN} schema {path or form}",
        source.wall_ms,
        None,
        f"Spark reads {files}{f' of {path}' if path else ''}{read}{times}, only to find what columns they "
        f"have, which takes {duration(source.wall_ms)}",
        "Say what the columns are: spark.read.schema(…), without inferSchema; or keep the data in a format "
        "that has its schema with it, such as Parquet.",
        evidence={"schema.format": form, "schema.readBytes": source.read_bytes, "schema.path": path},
    )

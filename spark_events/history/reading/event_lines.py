"""Reads stored events line by line, oldest first, without a database: what ``spark-events show`` shows.

It holds a block of each file at most, so it needs little memory, and can go on while files grow.
"""

from __future__ import annotations

import glob
import gzip
import heapq
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.api.toolkit.local_disk import all_below, decoded
from spark_events.history.reading.stored_forms import LINEAGE, NOTHING, SPANS, is_hidden, otlp_value

_NUMBERED = re.compile(r"(.+)\.(\d{6,})\.jsonl(?:\.\w+)?", re.ASCII)
_BLOCK = 1 << 20
_HEAD = 256
_LONGEST_LINE = 16 * _BLOCK
_MOST_WAITING = 1_000
_OTHER_FORMS = r"\.(zst|bz2|xz|lz4|snappy|lzo|deflate)"
_LINES = re.compile(rf"\.(jsonl?|ndjson)(\.gz|{_OTHER_FORMS})?$")
_PACKED = re.compile(rf"{_OTHER_FORMS}$")
_NOT_EVENTS = re.compile(rf"({SPANS}|{LINEAGE})(\.\w+)?$")
_OTHER_SIGNALS = ("resourceSpans", "resourceMetrics", "traceId", "jobId")


class StoredEvent(NamedTuple):
    """An event as it is stored, whichever form it has.

    Attributes:
        time_ms: when it happened, in ms since 1970.
        name, severity, body: of the event.
        attributes: its attributes, the identifying ones among them.
        record: all of it, as a file log writes it.
    """

    time_ms: int
    name: str
    severity: str
    body: str
    attributes: Mapping[str, Any]
    record: Mapping[str, Any]


class _Read(NamedTuple):
    """How far a file was read.

    Attributes:
        place: which file of the disk it is, whatever its name.
        position: up to which byte; of a packed file, its size.
        head: its first bytes.
        unpacked: of a packed file, up to which byte it was read before it was packed.
    """

    place: tuple[int, int]
    position: int = 0
    head: bytes = b""
    unpacked: int = 0


class EventLines:
    """The events in some files, and those that are added to them.

    Args:
        paths: files, folders or globs on this machine.
        follows: whether they are read again: then a last line without a line feed is yet to be written.

    Attributes:
        skipped: lines so far that are not events.
        cut: files that cannot be unpacked to their end.
        left_out: files in a form that is not read.
        missed: how many files of a folder were added and deleted between two reads, by their numbers.
    """

    def __init__(self, paths: Sequence[str], follows: bool = True) -> None:
        self._paths = list(map(_local, paths))
        self._follows = follows
        self._read: dict[Path, _Read] = {}
        self._folders = [path for path in map(Path, self._paths) if path.is_dir()]
        self._numbers: dict[str, int] = {}
        self.missed = 0
        self.skipped = 0
        self.cut: list[Path] = []
        self.left_out = sorted({file for path in self._paths for file in _packed_at(path)})

    def demand_some(self) -> None:
        """Check that each path has files.

        Raises:
            NothingToReadError: one has none.
        """
        for path in self._paths:
            if not list(_files_at(path)):
                if not Path(path).exists() and not any(letter in path for letter in "*?["):
                    raise NothingToReadError(f"{path}: no such file or folder")
                why = ""
                if packed := list(_packed_at(path)):
                    why = f"{packed[0]} is packed in a form that show does not read: unpack it; "
                raise NothingToReadError(f"{path}: {why}{NOTHING}")

    def read(self) -> Iterator[StoredEvent]:
        """Yield what was not read before, in the order of time, but for what comes a thousand events late.

        A file may have an event some places after later ones: of a commit that was due, when it did not come.
        """
        files = {file: None for path in self._paths for file in _files_at(path)}
        self._count_missed(file for file in files if any(map(file.is_relative_to, self._folders)))
        self._find_renamed(files)
        waiting: list[tuple[int, int, StoredEvent]] = []
        merged = heapq.merge(*map(self._events, files), key=lambda event: event.time_ms)
        for number, event in enumerate(merged):
            heapq.heappush(waiting, (event.time_ms, number, event))
            if len(waiting) > _MOST_WAITING:
                yield heapq.heappop(waiting)[2]
        while waiting:
            yield heapq.heappop(waiting)[2]

    def _find_renamed(self, files: Iterable[Path]) -> None:
        """Find out which files are new, and which have another name, as by a collector that rotates.

        It may pack a file then. A file that is removed may leave its number on the disk to the next.
        """
        stats: dict[Path, os.stat_result] = {}
        for file in files:
            with suppress(FileNotFoundError):
                stats[file] = file.stat()
        places = {file: (stat.st_dev, stat.st_ino) for file, stat in stats.items()}
        moved = {read.place: read for file, read in self._read.items() if places.get(file) != read.place}
        gone = self._read.keys() - places.keys()
        packed = {file.with_name(f"{file.name}.gz"): self._read[file].position for file in gone}
        known, self._read = self._read, {}
        for file, place in places.items():
            size, read = stats[file].st_size, known.get(file)
            if read is None or read.place != place:
                read = moved.get(place)
                if read is not None and not _begins(file, read.head):
                    read = None
            if read is None or size < read.position:  # new, or emptied and written again
                read = _Read(place, unpacked=packed.get(file, 0))
            self._read[file] = read

    def _count_missed(self, files: Iterable[Path]) -> None:
        """Count the gaps in the numbers that a file log gives its files, since the last read.

        The first of a log that is there may be any: older ones are deleted when they have been kept long
        enough. A glob or a list of files may leave some out, so that folders alone are counted.
        """
        numbers: dict[str, list[int]] = {}
        for file in files:
            if named := _NUMBERED.fullmatch(file.name):
                numbers.setdefault(f"{file.parent}/{named[1]}", []).append(int(named[2]))
        for log, there in numbers.items():
            before = self._numbers.get(log, 0)
            added = sorted(number for number in there if number > before)
            if before and added:
                self.missed += added[0] - before - 1
            self._numbers[log] = max(before, *there)

    def _events(self, path: Path) -> Iterator[StoredEvent]:
        try:
            for line in self._new_lines(path):
                try:
                    yield from events_of_line(line)
                except (ValueError, KeyError, TypeError, AttributeError):
                    self.skipped += 1
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self.cut.append(path)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error}") from error

    def _new_lines(self, path: Path) -> Iterator[bytes]:
        """Yield whole lines; a file is open only while a block of it is read: there may be thousands."""
        read = self._read.get(path)
        if read is None:  # it is gone
            return
        position = read.position
        if path.suffix == ".gz":
            self._read[path] = read._replace(position=path.stat().st_size)
            yield from () if position else self._unpacked_lines(path, read.unpacked)
            return
        while True:
            block = _block_at(path, position)
            end = block.rfind(b"\n") + 1
            if not end and (len(block) > _BLOCK or not self._follows):
                end = len(block)  # at the file's end, or of a line that is no event's, and counted as such
            if not end:
                return
            head = read.head or block[:_HEAD]
            position += end
            self._read[path] = read = read._replace(position=position, head=head)
            yield from block[:end].splitlines()

    def _unpacked_lines(self, path: Path, since: int) -> Iterator[bytes]:
        """Yield the lines of a file that does not grow any more, in one go: seeking would unpack it anew."""
        with gzip.open(path, "rb") as file:
            file.seek(since)
            while line := file.readline(_LONGEST_LINE):
                yield line  # a part of one that is longer is not an event, either


def _begins(path: Path, head: bytes) -> bool:
    """Return whether a file begins with some bytes; not if it is gone."""
    try:
        with path.open("rb") as file:
            return bool(head) and file.read(len(head)) == head
    except FileNotFoundError:
        return False


def events_of_line(line: bytes) -> Iterator[StoredEvent]:
    """Yield the events of a line: one of a file log, or those of a collector's request.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it has no event, nor another known record.
    """
    if not line.strip():
        return
    record = orjson.loads(line)
    if "resourceLogs" in record:
        for resource in record["resourceLogs"]:
            for scope in resource.get("scopeLogs", ()):
                for each in scope.get("logRecords", ()):
                    yield _stored(_of_otlp(each))
    elif "eventName" in record:
        yield _stored(record)
    elif not any(key in record for key in _OTHER_SIGNALS):
        raise ValueError("no event")


def _stored(record: Mapping[str, Any]) -> StoredEvent:
    attributes = record.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise TypeError(f"attributes: a {type(attributes).__name__}")
    return StoredEvent(
        int(record["timeUnixNano"]) // 1_000_000,
        str(record["eventName"]),
        str(record.get("severityText") or "INFO"),
        str(record.get("body") or ""),
        attributes,
        record,
    )


def _of_otlp(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return an OTLP log record as a file log would write it."""
    attributes = {pair["key"]: otlp_value(pair["value"]) for pair in record.get("attributes", ())}
    return {
        "eventName": record.get("eventName") or attributes.get("event.name", ""),
        "eventId": attributes.get("event.id", ""),
        "timeUnixNano": record["timeUnixNano"],
        "observedTimeUnixNano": record.get("observedTimeUnixNano", ""),
        "severityText": record.get("severityText", ""),
        "body": otlp_value(record.get("body") or {}),
        "attributes": attributes,
    }


def _local(path: str) -> str:
    path = decoded(path)
    if "://" in path and not path.startswith("file://"):
        raise UsageError(f"{path}: show reads files of this machine; copy them here, or give them to report")
    return path.removeprefix("file://")


def _files_at(path: str) -> Iterator[Path]:
    """Yield the files with events at a path, but for packed ones that are not read."""
    return (file for file in _all_at(path) if not _PACKED.search(file.name))


def _packed_at(path: str) -> Iterator[Path]:
    """Yield the files with events at a path that are packed in a form that is not read."""
    return (file for file in _all_at(path) if _PACKED.search(file.name))


def _all_at(path: str) -> Iterator[Path]:
    named = [Path(path)] if Path(path).exists() else sorted(map(Path, glob.glob(path, recursive=True)))
    for each in named:
        if each.is_dir():
            yield from (file for file in sorted(all_below(each)) if _has_events(file, each))
        elif each.is_file():
            yield each


def _has_events(file: Path, folder: Path) -> bool:
    inside = file.relative_to(folder).as_posix()
    is_of_events = _LINES.search(inside) and not _NOT_EVENTS.search(inside)
    return bool(is_of_events) and not is_hidden(inside) and file.is_file()


def _block_at(path: Path, position: int) -> bytes:
    """Return bytes of a file from a position on: whole lines, if there are any; none if it was removed."""
    try:
        with path.open("rb") as file:
            file.seek(position)
            block = file.read(_BLOCK)
            return block if b"\n" in block or len(block) < _BLOCK else block + file.readline(_LONGEST_LINE)
    except FileNotFoundError:
        return b""

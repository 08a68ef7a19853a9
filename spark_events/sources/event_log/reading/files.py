"""Finds event logs: single files, rolling folders, folders of Spark before 1.3; local or any fsspec path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, BinaryIO

from spark_events.api import ConfigError, needs_extra
from spark_events.api.errors import NothingToReadError
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_secrets_of
from spark_events.runtime.log_once import logger

with needs_extra("eventlog", "fsspec", "reading event logs"):
    import fsspec

    from spark_events.sources.event_log.reading.open_hdfs_files import OpenHdfsFiles
    from spark_events.spark.file_systems import NotSignedInError, open_file_system

IsKnown = Callable[[str, int], bool]
IsFollowed = Callable[[str], bool]
IN_PROGRESS = ".inprogress"
_COMPACT = ".compact"
_CODECS = (".zstd", ".lz4", ".snappy", ".lzf")
_ROLLING = "eventlog_v2_"
_PART = re.compile(r"events_(\d{1,9})_")
_STATUS = "appstatus_"
_ATTEMPT = re.compile(r"(application_\d+_\d+)_(\d{1,9})")
# Spark before 1.3 wrote a folder of these.
_OLD_PART = re.compile(r"EVENT_LOG_(\d{1,9})$")
_OLD_COMPLETE, _OLD_VERSION = "APPLICATION_COMPLETE", "SPARK_VERSION_"
_HEAD = 64 << 10  # those of two applications differ in it
_BLOCK = 256 << 10  # a block that fits a core's own cache is split twice as fast


@dataclass(frozen=True, slots=True)
class LogPart:
    """One file of an event log.

    Attributes:
        path: for its file system.
        index: its number in a rolling log, from 1; 0 for a log of one file.
        size: in bytes, as stored (compressed).
        compacted: whether it also replaces all parts before it.
        is_open: whether Spark may be writing to it on HDFS, where it then has more than is listed.
    """

    path: str
    index: int
    size: int
    compacted: bool = False
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class EventLog:
    """The event log of one application attempt.

    Attributes:
        name: the application's id and attempt, as in the log's name.
        path: of the file or the folder, as a person would write it.
        parts: its files, in their order.
        in_progress: whether Spark has not marked it as complete.
        modified_ms: when it was last written to, in ms since the epoch; 0 if the file system does not say.
        spark_version: the version in its name, as before Spark 1.3; else empty.
        folder_modified_ms: when a part was last added or removed, in ms since the epoch; 0 for a single file.
    """

    name: str
    path: str
    parts: tuple[LogPart, ...]
    in_progress: bool
    modified_ms: int
    spark_version: str = ""
    folder_modified_ms: int = 0

    @property
    def size(self) -> int:
        """The size of all its files, in bytes."""
        return sum(part.size for part in self.parts)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The first and the last number of parts that a rolling log lacks, before and between its own."""
        if not self.parts[0].index:
            return []
        known = self.parts[0].index if self.parts[0].compacted else 0
        gaps = []
        for part in self.parts:
            if part.index > known + 1:
                gaps.append((known + 1, part.index - 1))
            known = part.index
        return gaps

    @property
    def is_one_file(self) -> bool:
        """Whether it is a single file whose size is known: it only grows."""
        return len(self.parts) == 1 and not self.parts[0].index and not self.parts[0].is_open


def latest_attempts(names: Iterable[str]) -> dict[str, int]:
    """Return the latest attempt of each of YARN's applications, by the names of their logs."""
    latest: dict[str, int] = {}
    for match in filter(None, map(_ATTEMPT.fullmatch, names)):
        application, attempt = match.group(1), int(match.group(2))
        latest[application] = max(attempt, latest.get(application, 0))
    return latest


class LogFiles:
    """The event logs at one path.

    Args:
        path: a log, a folder of logs, or a glob; local, or with a scheme that fsspec knows or ``s3a://``.

    Raises:
        ConfigError: its file system cannot be used.

    Attributes:
        path: as it may be shown.
    """

    def __init__(self, path: str) -> None:
        self._url = path
        self.path = path_without_secrets(path)
        self._fs, self._root = open_file_system(path, path)
        protocol = self._fs.protocol
        protocols = [protocol] if isinstance(protocol, str) else protocol
        self._is_local = "file" in protocols
        self._open_files = OpenHdfsFiles(self._fs) if "webhdfs" in protocols else None
        self._left_out: set[str] = set()

    def find(
        self,
        is_known: IsKnown = lambda name, modified_ms: False,
        is_followed: IsFollowed = lambda name: True,
    ) -> list[EventLog]:
        """Return the logs, by name.

        Args:
            is_known: given a folder's name and modification time, returns whether to skip its content.
            is_followed: given a log's name, returns whether to ask again how large it is although HDFS had
                closed it at the size that it still has.

        Raises:
            ConfigError: there is nothing at that path, or it cannot be listed.
        """
        try:
            logs = list(self._logs(is_known, is_followed))
            if self._open_files is not None:
                self._open_files.keep_only({part.path for log in logs for part in log.parts})
        except ConfigError:
            raise
        except Exception as error:  # each file system has errors of its own
            reason = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            reason = text_without_secrets_of(self._url, reason)
            raise ConfigError(f"{self.path}: cannot be listed: {reason}") from error
        return sorted(logs, key=lambda log: log.name)

    def blocks(self, part: LogPart, position: int) -> Iterator[bytes]:
        """Yield a part's bytes, starting at a position.

        Raises:
            OSError: it cannot be read, whatever its file system raised, or was cut or written anew meanwhile.
        """
        if part.is_open and self._open_files is not None:
            yield from self._blocks_of_open(self._open_files, part, position)
            return
        # Remote files are read sequentially.
        options = {} if self._is_local else {"cache_type": "readahead", "block_size": 4 << 20}
        try:
            with self._fs.open(part.path, "rb", **options) as file:
                # Who follows a log reads on from where it was; elsewhere, nobody writes within a file, and
                # each request for its beginning costs time.
                head = file.read(_HEAD) if self._is_local and not position else b""
                end = file.seek(position)
                while block := file.read(_BLOCK):
                    end += len(block)
                    yield block
                if end < part.size or (head and not _begins_with(file, head)):
                    raise OSError(
                        f"{path_without_secrets(part.path)} was cut or written anew while it was read; "
                        f"{end:,} bytes of it were read"
                    )
        except Exception as error:  # each file system has errors of its own
            if isinstance(error, NotSignedInError) or (self._is_local and isinstance(error, OSError)):
                raise
            reason = text_without_secrets_of(self._url, f"{type(error).__name__}: {error}")
            raise OSError(reason) from error

    # ----------------------------------------------------------------------------------------------------

    def _blocks_of_open(self, files: OpenHdfsFiles, part: LogPart, position: int) -> Iterator[bytes]:
        try:
            yield from files.blocks(part.path, position, _BLOCK)
        except NotSignedInError:
            raise
        except Exception as error:  # of fsspec, or of HTTP
            reason = text_without_secrets_of(self._url, f"{type(error).__name__}: {error}")
            raise OSError(reason) from error

    def _with_open_block(self, part: LogPart, is_followed: bool) -> LogPart:
        """Return a part that Spark may be writing to with the size that it really has."""
        if self._open_files is None:
            return part
        size = self._open_files.size(part.path, part.size, is_followed)
        return replace(part, size=size.readable, is_open=size.is_open)

    def _logs(self, is_known: IsKnown, is_followed: IsFollowed) -> Iterator[EventLog]:
        entries = self._named_entries()
        named = entries[0]
        if named["name"].rstrip("/") == self._root.rstrip("/") and named["type"] == "directory":
            entries = self._list(self._root)
            if log := self._log_of_folder(named, entries, is_followed):
                yield log
                return
        for entry in entries:
            name = _base(entry).removeprefix(_ROLLING)
            if entry["type"] == "directory" and is_known(name, _modified_ms(entry)):
                continue
            try:
                log = self._log_of_entry(entry, is_followed)
            except PermissionError as error:
                self._leave_out(self._shown(entry["name"]), error)
                continue
            if log:
                yield log

    def _leave_out(self, name: str, error: PermissionError) -> None:
        """Say, once, that a log may not be read: all others are."""
        if name not in self._left_out:
            self._left_out.add(name)
            logger.warning("%s is left out: %s", name, error.strerror or error)

    def _named_entries(self) -> list[dict[str, Any]]:
        """Return the entries that the path names: itself, or what the glob matches."""
        try:
            return [self._fs.info(self._root)]
        except FileNotFoundError:
            if not fsspec.core.has_magic(self._root):
                raise NothingToReadError(f"{self.path}: no such file or folder") from None
        matches = list(self._fs.glob(self._root, detail=True).values())
        if not matches:
            raise NothingToReadError(f"{self.path}: nothing matches this pattern")
        return matches

    def _list(self, folder: str) -> list[dict[str, Any]]:
        self._fs.invalidate_cache()
        return [info for info in self._fs.ls(folder, detail=True) if _base(info) != _base({"name": folder})]

    def _log_of_entry(self, info: Mapping[str, Any], is_followed: IsFollowed) -> EventLog | None:
        base = _base(info)
        if info["type"] == "directory":
            return self._log_of_folder(info, self._list(info["name"]), is_followed)
        in_progress = base.endswith(IN_PROGRESS)
        name = base.removesuffix(IN_PROGRESS)
        for codec in _CODECS:
            name = name.removesuffix(codec)
        part = LogPart(info["name"], 0, int(info.get("size") or 0))
        if in_progress and not base.startswith((".", "_")):
            part = self._with_open_block(part, is_followed(name))
        if base.startswith((".", "_")) or not part.size:
            return None
        # HDFS changes it only when a file is opened and closed.
        modified_ms = 0 if part.is_open else _modified_ms(info)
        return EventLog(name, self._shown(info["name"]), (part,), in_progress, modified_ms)

    def _log_of_folder(
        self, folder: Mapping[str, Any], inside: list[dict[str, Any]], is_followed: IsFollowed
    ) -> EventLog | None:
        names = [_base(info) for info in inside]
        parts = [info for info in inside if _PART.match(_base(info)) and info["type"] == "file"]
        if parts:
            return self._log_of_parts(folder, parts, names, is_followed)
        old = [info for info in inside if _OLD_PART.match(_base(info)) and info["type"] == "file"]
        if not old:
            return None
        version = next((name for name in names if name.startswith(_OLD_VERSION)), _OLD_VERSION)
        return EventLog(
            _base(folder),
            self._shown(folder["name"]),
            tuple(sorted((_part(info, _OLD_PART) for info in old), key=lambda part: part.index)),
            _OLD_COMPLETE not in names,
            max(map(_modified_ms, old)),
            version.removeprefix(_OLD_VERSION),
        )

    def _log_of_parts(
        self,
        folder: Mapping[str, Any],
        infos: list[dict[str, Any]],
        names: list[str],
        is_followed: IsFollowed,
    ) -> EventLog:
        name = _base(folder).removeprefix(_ROLLING)
        parts = sorted((_part(info, _PART) for info in infos), key=lambda part: (part.index, part.compacted))
        # Like Spark's own reader, begin at the last compacted part.
        last = max((number for number, part in enumerate(parts) if part.compacted), default=0)
        status = [name for name in names if name.startswith(_STATUS)]
        in_progress = not status or any(name.endswith(IN_PROGRESS) for name in status)
        if in_progress:
            parts[-1] = self._with_open_block(parts[-1], is_followed(name))
        return EventLog(
            name,
            self._shown(folder["name"]),
            tuple(parts[last:]),
            in_progress,
            0 if parts[-1].is_open else max(map(_modified_ms, infos)),
            folder_modified_ms=_modified_ms(folder),
        )

    def _shown(self, path: str) -> str:
        return path if self._is_local else path_without_secrets(str(self._fs.unstrip_protocol(path)))


def _part(info: Mapping[str, Any], pattern: re.Pattern[str]) -> LogPart:
    base = _base(info)
    match = pattern.match(base)
    assert match is not None
    return LogPart(info["name"], int(match.group(1)), int(info["size"] or 0), base.endswith(_COMPACT))


def _begins_with(file: BinaryIO, head: bytes) -> bool:
    """Return whether a file still begins as it did when it was opened."""
    file.seek(0)
    return file.read(len(head)) == head


def _base(info: Mapping[str, Any]) -> str:
    return str(info["name"]).rstrip("/").rsplit("/", 1)[-1]


def _modified_ms(info: Mapping[str, Any]) -> int:
    """Return when a file was last written to; file systems have different names for this."""
    if isinstance(in_hdfs := info.get("modificationTime"), int):
        return in_hdfs
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            return round(value.timestamp() * 1000)
        if isinstance(value, (int, float)):
            return round(value * 1000)
    return 0

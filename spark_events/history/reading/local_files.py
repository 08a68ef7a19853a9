"""Finds the files of stored events without Hadoop: on this machine, or on any file system of fsspec."""

from __future__ import annotations

import errno
import locale
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError, needs_extra
from spark_events.api.toolkit.formatting import is_utf8, path_without_secrets, text_without_secrets_of
from spark_events.api.toolkit.local_disk import all_below
from spark_events.history.reading.stored_forms import LINEAGE, NOTHING, SPANS, is_hidden
from spark_events.runtime.log_once import logger

with needs_extra("report", "fsspec", "reading stored events without Spark"):
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    from spark_events.spark.file_systems import NotSignedInError, open_file_system

_SPANS, _LINEAGE = re.compile(SPANS), re.compile(LINEAGE)
_STORE = re.compile(r"(?:^|/)store-\d{8}\.json$")
_FILE_URL = re.compile(r"^file:(//)?")
_COMPRESSED = re.compile(r"\.(bz2|lz4|snappy|xz|deflate|lzo)$")
"""What Hadoop decompresses, and DuckDB does not."""


class StoredFiles(NamedTuple):
    """The files at some paths.

    Attributes:
        json: those with a JSON object a line.
        parquet: those of rows.
        file_systems: those of fsspec that they lie on, but for the local one.
        size: of all these, in bytes.
        compressed: one that DuckDB cannot decompress, if there is any.
        spans: those of a file log's spans, which lie beside its events.
    """

    json: list[str]
    parquet: list[str]
    file_systems: list[Any]
    size: int
    compressed: str | None
    spans: list[str]


def stored_files(paths: Sequence[str]) -> StoredFiles:
    """Return the files at some paths: files, folders with all that is below, and globs.

    Raises:
        ConfigError: there is nothing at a path, or its file system cannot be used.
    """
    json: list[str] = []
    parquet: list[str] = []
    spans: list[str] = []
    file_systems: list[Any] = []
    size, compressed = 0, None
    for path in paths:
        file_system, root = open_file_system(path, path)
        shown = path_without_secrets(path)
        is_local = "file" in file_system.protocol
        if not is_local:
            file_systems.append(file_system)
        of_events = of_spans = 0
        for info in _files_at(file_system, root, path):
            name = info["name"] if is_local else file_system.unstrip_protocol(info["name"])
            if _STORE.search(name):
                raise ConfigError(
                    f"{shown}: {path_without_secrets(name)} is of a store: give a store with --store, events "
                    "as paths"
                )
            if _LINEAGE.search(name):
                continue
            if _SPANS.search(name):
                spans.append(name)
                of_spans += 1
                continue
            of_events += 1
            (parquet if name.endswith(".parquet") else json).append(name)
            size += info["size"] or 0
            compressed = name if _COMPRESSED.search(name) else compressed
        if not of_events:
            there = file_system.exists(root) or fsspec.core.has_magic(root)
            if not there:
                raise NothingToReadError(f"{shown}: no such file or folder")
            why = "it has spans alone; " if of_spans else ""
            raise NothingToReadError(f"{shown}: {why}{NOTHING}")
    return StoredFiles(json, parquet, file_systems, size, compressed, spans)


def state_of_files(paths: Sequence[str]) -> list[tuple[str, int, str]]:
    """Return the name, the size in bytes and the time of each file at some paths: what changes if one does.

    Raises:
        ConfigError: a file system cannot be used.
    """
    states = []
    for path in paths:
        file_system, root = open_file_system(path, path)
        for info in _files_at(file_system, root, path):
            changed = info.get("mtime") or info.get("LastModified") or info.get("modificationTime")
            states.append((str(info["name"]), int(info["size"] or 0), str(changed)))
    return sorted(states)


def _files_at(file_system: Any, root: str, path: str) -> Iterator[dict[str, Any]]:
    is_local = "file" in file_system.protocol
    try:
        if fsspec.core.has_magic(root) and not file_system.exists(root):
            matches = file_system.glob(root, detail=True).values()
        else:
            matches = [file_system.info(root)]
        for info in matches:
            below = [info]
            if info["type"] == "directory":
                # Of this machine, fsspec leaves out folders that cannot be read.
                below = (
                    list(_files_below(info["name"]))
                    if is_local
                    else list(file_system.find(info["name"], detail=True).values())
                )
            seen = {Path(info["name"]).resolve()} if is_local else set()
            for file in below:
                if not is_hidden(file["name"].removeprefix(info["name"])):
                    yield from _readable(file, seen) if is_local else (file,)
    except FileNotFoundError:
        return
    except ConfigError:
        raise
    except Exception as error:  # each file system has errors of its own
        reason = str(error) if isinstance(error, NotSignedInError) else f"{type(error).__name__}: {error}"
        reason = text_without_secrets_of(path, reason)
        raise ConfigError(f"{path_without_secrets(path)}: cannot be read: {reason}") from error


def _files_below(folder: str) -> Iterator[dict[str, Any]]:
    """Yield the files and links below a folder of this machine, as fsspec has them, but for those that go."""
    for path in sorted(all_below(Path(folder))):
        if path.is_dir() and not path.is_symlink():
            continue
        try:
            yield LocalFileSystem().info(str(path))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP):
                raise
            if path.is_symlink():  # to nothing, or to itself
                yield {"name": str(path), "type": "link", "size": 0}


def _readable(file: dict[str, Any], seen: set[Path]) -> Iterator[dict[str, Any]]:
    """Yield what can be read of something below a folder of this machine: a file, or those behind a link.

    A pipe, say, would never end.

    Args:
        file: as fsspec has it.
        seen: the folders behind links so far, which may lead in a circle.
    """
    path = Path(file["name"])
    if not is_utf8(file["name"]):
        _refuse_other_encoding(file["name"])
        logger.warning("%s is left out: its name is not UTF-8, so DuckDB cannot open it; rename it", path)
    elif file["type"] == "file":
        yield file
    elif path.is_file():
        yield {**file, "size": path.stat().st_size}
    elif path.is_dir():
        if (folder := path.resolve()) not in seen:
            seen.add(folder)
            for inside in _files_below(f"{path}/"):
                yield from _readable(inside, seen)
    else:
        logger.warning("%s is left out: it is not a file, or a link to none", path)


def _refuse_other_encoding(name: str) -> None:
    """Refuse a name that is UTF-8 where the locale is not: it is nothing that files should be left out for.

    Raises:
        ConfigError: it is so.
    """
    try:
        shown = os.fsencode(name).decode()
    except UnicodeDecodeError:
        return
    raise ConfigError(
        f"{shown}: its name is UTF-8, but the locale {locale.setlocale(locale.LC_CTYPE)} is not "
        f"({sys.getfilesystemencoding()}): set PYTHONUTF8=1, or LC_ALL to a locale such as C.UTF-8"
    )


def local_path(url: str) -> str:
    """Return the path of a folder of this machine, which may be given as ``file:///folder``."""
    return _FILE_URL.sub("", url)


@contextmanager
def all_or_none(folder: Path) -> Iterator[Path]:
    """Give a new folder, whose folders replace those of their names in another folder at the end.

    After an error none is moved, and the other folder is not made.

    Raises:
        NotADirectoryError: there is a file or a link of such a name, which is not replaced.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    new = folder / f".{uuid.uuid4().hex}.new"
    try:
        new.mkdir(parents=True)
        yield new
        for path in new.iterdir():
            there = folder / path.name
            if there.is_symlink() or (there.exists() and not there.is_dir()):
                raise NotADirectoryError(
                    errno.ENOTDIR, f"{there} is a file or a link; expected a folder, or none"
                )
        for path in new.iterdir():
            shutil.rmtree(folder / path.name, ignore_errors=True)
            path.rename(folder / path.name)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        with suppress(OSError):  # what somebody else has put there stays
            for path in made:
                path.rmdir()
        raise
    new.rmdir()


class LocalFiles:
    """The files in a folder of this machine; see ``database.Files``."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(local_path(folder))

    def names(self) -> list[str]:
        """Return the names in the folder; none if it does not exist."""
        return sorted(os.listdir(self._folder)) if self._folder.is_dir() else []

    def sizes(self) -> dict[str, int]:
        """Return how many bytes the files in the folder have, by name; none if it does not exist."""
        paths = [self._folder / name for name in self.names()]
        return {path.name: path.stat().st_size for path in paths if path.is_file()}

    def exists(self, name: str) -> bool:
        """Return whether there is such a file or folder."""
        return (self._folder / name).exists()

    def read(self, name: str) -> bytes:
        """Return what is in a file.

        Raises:
            OSError: it cannot be read, or is a pipe, say, that would never end.
        """
        path = self._folder / name
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is not a file", str(path))
        return path.read_bytes()

    def create(self, name: str, content: bytes) -> bool:
        """Write a file in one step, unless there is one; return whether it is written."""
        self._folder.mkdir(parents=True, exist_ok=True)
        new = self._folder / f"_{name}.{uuid.uuid4().hex}.new"
        try:
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            self._publish(new, self._folder / name)
        except FileExistsError:
            return False
        finally:
            new.unlink(missing_ok=True)
        return True

    def _publish(self, new: Path, path: Path) -> None:
        """Let a whole file appear under its name.

        Raises:
            FileExistsError: there is a file of this name.
        """
        try:
            os.link(new, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links, such as some that are mounted from the network
            with path.open("xb") as file:
                file.write(new.read_bytes())
                file.flush()
                os.fsync(file.fileno())

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it need not be there."""
        path = self._folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

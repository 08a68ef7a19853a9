"""The store: where manifests, checkpoints and savepoints are kept, on any file system that fsspec knows."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from spark_events.api import ConfigError, SparkEventsError, needs_extra
from spark_events.api.toolkit.formatting import url_without_secrets
from spark_events.sql_runner.store.clock import StoreClock

with needs_extra("sql", "fsspec", "the store of queries"):
    from spark_events.spark.file_systems import open_file_system

# Names of queries cannot contain a tilde.
_NEW, _MADE = "~new", "~made"
_PROBE = "locks/can-be-written"
# A full disk has room for an empty file, and a file system that compresses for one of zeros.
_PROBE_BYTES = 8_192
_CLOCK = "locks/clock"
_LEFTOVER_MS = 24 * 3_600_000
_READ_TRIES = 20
_COPY_TRIES = 5
_PIECE = 1 << 20


class StoreError(SparkEventsError):
    """The store cannot be read or written now."""


class DamagedFile(StoreError):  # noqa: N818 - says what is wrong with the store
    """A file of the store is not what spark-events writes; the store itself can be read."""


class Store:
    """A folder of any file system.

    A file is written atomically: a reader sees the old or the new content. Each method except ``check``
    raises ``StoreError`` if the file system fails.

    Args:
        url: a local folder, or a URL as Spark takes it: ``s3a://bucket/queries``, ``hdfs://name/queries``.

    Attributes:
        clock: gives the store's time, which is this machine's until ``set_clock``.

    Raises:
        ConfigError: its file system is not known here, or not installed; or the URL has a password.
    """

    def __init__(self, url: str) -> None:
        _demand_no_password(url)
        self.url = url.rstrip("/")
        self.clock = StoreClock()
        self._fs, root = open_file_system(self.url, f"store {url}")
        self._root = root.rstrip("/")
        protocol = self._fs.protocol
        protocols = (protocol,) if isinstance(protocol, str) else tuple(protocol)
        self._is_local = "file" in protocols
        self._is_webhdfs = "webhdfs" in protocols
        self._is_hdfs = "hdfs" in protocols or self._is_webhdfs
        # A put into an object store is atomic; in a file system, a complete file is renamed.
        self._by_rename = self._is_local or self._is_hdfs
        if self._is_local and "://" not in self.url:
            self.url = self._root

    def spark_url(self, path: str) -> str:
        """Return the URL of a file or a folder of the store, as Spark takes it."""
        return f"{self.url}/{path}"

    def check(self) -> None:
        """Check that the store can be reached.

        Raises:
            ConfigError: it cannot; says why.
        """
        bucket = self._root.split("/", 1)[0]
        try:
            if bucket and not self._by_rename:
                self._fs.ls(bucket)
            else:
                self._exists(self._root)
        except Exception as error:  # each file system has errors of its own
            raise ConfigError(f"store {self.url}: cannot be reached: {_reason(error)}") from error

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        with self._reporting("read", path):
            for _ in range(_READ_TRIES):
                name = self._current_name(path)
                if name is None:
                    return None
                with suppress(FileNotFoundError):
                    return self._content(self._at(name))
                if not self._is_hdfs:
                    return None
            raise StoreError(f"store {self.url}: {path} keeps changing, and cannot be read")

    def write(self, path: str, data: bytes) -> None:
        """Write a file, replacing any existing one."""
        with self._reporting("written", path):
            if not self._by_rename:
                self._fs.pipe_file(self._at(path), data)
                return
            with self._beside(path, data) as made:
                if self._is_local:
                    self._move(made, path)
                    return
                # HDFS does not rename over a file: meanwhile, read() finds the new file under its other name.
                self._remove(path + _NEW)
                self._move(made, path + _NEW)
                self._remove(path)
                self._move(path + _NEW, path)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file that must not exist yet.

        Returns:
            Whether it was created: if several create it at once, only one gets True.
        """
        with self._reporting("written", path):
            if not self._by_rename:
                try:
                    self._fs.pipe_file(self._at(path), data, mode="create")
                except FileExistsError:
                    return False
                return True
            with self._beside(path, data) as made:
                try:
                    return self._link(made, path) if self._is_local else self._rename(made, path)
                finally:
                    self._remove(made)

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of files and folders in a folder; empty if there is no such folder.

        Args:
            folder: its path; empty for the store's own.
        """
        with self._reporting("listed", folder or "its folder"):
            names = self._listed(folder)
            if self._is_hdfs:  # the writer may have been killed before it renamed the file
                names = {name.removesuffix(_NEW) for name in names}
            return sorted(name for name in names if not name.endswith(_MADE))

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file below a folder, by its path from there."""
        with self._reporting("listed", folder):
            root = self._at(folder)
            try:
                # By default, fsspec treats a folder that it cannot list as empty.
                on_error = {"on_error": _pass_over_removed} if self._by_rename else {}
                files = self._fs.find(root, detail=True, **on_error)
            except FileNotFoundError:
                return {}
            sizes = {str(path)[len(root) :].lstrip("/"): info.get("size") for path, info in files.items()}
            # S3A marks a folder by a file whose name ends with a slash.
            return {name: int(size or 0) for name, size in sizes.items() if name and not name.endswith("/")}

    def checksum(self, path: str) -> str:
        """Return a checksum of a file that nobody writes to: 16 hexadecimal digits."""
        made = hashlib.blake2b(digest_size=8)
        with self._reporting("read", path):
            if self._is_webhdfs:
                made.update(self._content(self._at(path)))
                return made.hexdigest()
            with self._fs.open(self._at(path), "rb") as file:
                while piece := file.read(_PIECE):
                    made.update(piece)
        return made.hexdigest()

    def modified_ms(self, path: str) -> int | None:
        """Return when a file was last written, in ms since the epoch; None if the file system cannot tell."""
        try:
            return int(self._fs.modified(self._at(path)).timestamp() * 1000)
        except Exception:  # each file system has errors of its own; nothing depends on the time
            return None

    def set_clock(self) -> None:
        """Compare this machine's clock with the store's, by a file that is removed at once."""
        before_ms = self.clock.own()
        with self._reporting("written", _CLOCK):
            if not self._by_rename:
                self._fs.pipe_file(self._at(_CLOCK), b"")
                self.compare_clock(_CLOCK, before_ms)
                self._remove(_CLOCK)
                return
            with self._beside(_CLOCK, b"") as made:
                self.compare_clock(made, before_ms)
                self._remove(made)

    def compare_clock(self, path: str, before_ms: int) -> None:
        """Compare this machine's clock with the store's, by a file that has been written just now.

        Args:
            path: the file.
            before_ms: when writing it began, by this machine's clock.
        """
        stamped_ms = self.modified_ms(path)
        if stamped_ms is not None:
            self.clock.compare(before_ms, stamped_ms, self.clock.own())

    def copy(self, source: str, target: str) -> dict[str, int]:
        """Copy all files of a folder that nobody writes to; files removed meanwhile are left out.

        Returns:
            The size in bytes of each file of the copy, by its path from there.
        """
        for _ in range(_COPY_TRIES):
            before = self.sizes(source)
            for name in before:
                self._copy_file(f"{source}/{name}", f"{target}/{name}")
            if before == self.sizes(source) == self.sizes(target):
                return before
            self.delete(target)
        raise StoreError(
            f"store {self.url}: {source} keeps changing, or its copy {target} never becomes complete"
        )

    def sweep(self, folder: str, older_than_ms: int = _LEFTOVER_MS) -> None:
        """Remove what killed writers have left in a folder.

        Args:
            folder: the folder, without those in it.
            older_than_ms: a writer may still be there that has begun less long ago, in ms.
        """
        if not self._by_rename:
            return
        with self._reporting("swept", folder):
            for name in self._listed(folder):
                if name.endswith(_MADE) and self.clock.now_ms() - _begun_ms(name) > older_than_ms:
                    self._remove(f"{folder}/{name}")

    def write_problem(self) -> str:
        """Return why nothing can be written now; empty if it can, or if only this user may not.

        An object store is not asked: it does not become full.
        """
        if not self._by_rename:
            return ""
        try:
            self.write(_PROBE, os.urandom(_PROBE_BYTES))
            self.delete(_PROBE)
        except StoreError as error:
            return "" if isinstance(error.__cause__, PermissionError) else str(error)
        return ""

    def delete(self, path: str) -> None:
        """Remove a file or a folder with everything in it, if it exists."""
        with self._reporting("removed", path):
            self._remove(path)

    def _listed(self, folder: str) -> set[str]:
        """Return all names in a folder; empty if there is no such folder."""
        try:
            paths = {str(path).rstrip("/") for path in self._fs.ls(self._at(folder), detail=False)}
        except FileNotFoundError:
            return set()
        paths.discard(self._at(folder))  # an object store may list the folder itself
        return {path.rsplit("/", 1)[-1] for path in paths}

    def _copy_file(self, source: str, target: str) -> None:
        with self._reporting("copied", source):
            self._make_parent(target)
            with suppress(FileNotFoundError):
                self._fs.cp_file(self._at(source), self._at(target))

    def _current_name(self, path: str) -> str | None:
        """Return the name under which a file exists; None if it does not.

        While a file is replaced in HDFS, it has one name, the other, or both; a listing shows which.
        """
        if not self._is_hdfs:
            return path
        folder, _, name = path.rpartition("/")
        names = self._listed(folder)
        return path if name in names else path + _NEW if name + _NEW in names else None

    def _content(self, path: str) -> bytes:
        if self._is_webhdfs:
            # fsspec asks for the size first and, if the file was replaced in between, takes an error response
            # for the file's bytes. This is a single request, in which errors are errors.
            answer: bytes = self._fs._call("OPEN", path=path).content
            return answer
        content: bytes = self._fs.cat_file(path)
        return content

    @contextmanager
    def _beside(self, path: str, data: bytes) -> Iterator[str]:
        """Write a file under another name, which the block takes away; if anything fails, none is left."""
        made = f"{path}.{self.clock.now_ms():x}-{uuid.uuid4().hex[:8]}{_MADE}"
        self._make_parent(path)
        try:
            self._fs.pipe_file(self._at(made), data)
            yield made
        except BaseException:
            with suppress(Exception):  # the error that is raised says what is wrong
                self._remove(made)
            raise

    def _link(self, made: str, path: str) -> bool:
        """Give a local file its name if that is free; fsspec itself would first look and then write."""
        try:
            os.link(self._at(made), self._at(path))
        except FileExistsError:
            return False
        return True

    def _rename(self, made: str, path: str) -> bool:
        """Give a file in HDFS its name if that is free; WebHDFS does not report a failed rename."""
        failed: OSError | None = None
        try:
            self._move(made, path)
        except OSError as error:
            failed = error
        if not self._exists(self._at(made)):
            return True
        if failed is not None and not self._exists(self._at(path)):
            raise failed
        return False

    def _exists(self, path: str) -> bool:
        """Return whether a file or a folder exists; fsspec's ``exists`` returns False if it cannot tell."""
        try:
            self._fs.info(path)
        except FileNotFoundError:
            return False
        return True

    def _move(self, source: str, target: str) -> None:
        self._fs.mv(self._at(source), self._at(target))

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm(self._at(path), recursive=True)

    def _make_parent(self, path: str) -> None:
        if self._by_rename:
            self._fs.makedirs(self._at(path).rsplit("/", 1)[0], exist_ok=True)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root or "/"

    @contextmanager
    def _reporting(self, done: str, path: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # each file system has errors of its own
            raise StoreError(f"store {self.url}: {path} cannot be {done}: {_reason(error)}") from error


def _demand_no_password(url: str) -> None:
    """Raise if a URL has a password: everybody on this machine sees the command line of an application."""
    if re.match(r"[^/]*//[^/@]*:.*@", url):
        raise ConfigError(
            f"store {url_without_secrets(url)}: has a password in its URL, which others could see; give it "
            "in the configuration of the file system (fsspec's and Hadoop's)"
        )


def _pass_over_removed(error: OSError) -> None:
    """Ignore an error for a folder removed since it was listed; raise any other."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _begun_ms(made: str) -> int:
    """Return when a file was begun, by its name, in ms since the epoch; 0 for one of older versions."""
    stamp, dash, _ = made.removesuffix(_MADE).rpartition(".")[2].partition("-")
    with suppress(ValueError):
        return int(stamp, 16) if dash else 0
    return 0


def _reason(error: Any) -> str:
    return str(error) if isinstance(error, OSError) and str(error) else f"{type(error).__name__}: {error}"

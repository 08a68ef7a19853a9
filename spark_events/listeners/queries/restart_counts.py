"""How often each streaming query was restarted, over all drivers of its application."""

from __future__ import annotations

import re
import secrets
import stat
from hashlib import sha256
from pathlib import Path

import orjson

from spark_events.listeners.settings import STATE_DIR
from spark_events.runtime.log_once import logger

_MOST = 10_000
_MOST_BYTES = 8 << 20
_LONGEST_NAME = 234
"""A file's name has at most 255 bytes, with what tells the new one apart while it is written."""
_IMPOSSIBLE = 1 << 53
_WITHOUT_NAME = ""


class RestartCounts:
    """Counts of each query, kept in a small JSON file per application if a folder is given.

    A query that continues from its checkpoint has the id that it had; with another checkpoint it has another
    one, and the same name. Several drivers of one name may share the file: each keeps what the others have
    counted.

    Args:
        state_dir: a local folder; None keeps the counts in memory alone.
        app_name: names the file.
    """

    def __init__(self, state_dir: Path | None, app_name: str) -> None:
        self._path = state_dir / _file_name(app_name) if state_dir else None
        # By id, how often it was restarted under each name.
        self._counts: dict[str, dict[str, int]] = {}
        self._is_broken = False
        self._take_counts()

    def known(self, query_id: str) -> bool:
        """Return whether the query has run before, here or in another driver of this name."""
        if query_id not in self._counts:
            self._take_counts()
        return query_id in self._counts

    def count(self, name: str) -> int:
        """Return how often the query of this name was restarted, whatever ids it had."""
        return sum(by_name.get(name, 0) for by_name in self._counts.values())

    def started(self, query_id: str, name: str) -> None:
        """Remember a query that starts for the first time."""
        if not self.known(query_id):
            self._counts[query_id] = {name: 0}
            self._save()

    def restarted(self, query_id: str, name: str) -> None:
        """Count one restart."""
        self._take_counts()
        by_name = self._counts.setdefault(query_id, {})
        without_name = by_name.pop(_WITHOUT_NAME, 0)
        by_name[name] = by_name.get(name, without_name) + 1
        self._save()

    def _take_counts(self) -> None:
        """Take over what is in the file: a query that has moved was counted there last."""
        for query_id, counted in self._load().items():
            by_name = self._counts.setdefault(query_id, {})
            for name, count in counted.items():
                by_name[name] = max(count, by_name.get(name, 0))

    def _load(self) -> dict[str, dict[str, int]]:
        if self._path is None or self._is_broken:
            return {}
        try:
            if not stat.S_ISREG(self._path.stat().st_mode):  # a pipe, say, would never end
                raise ValueError("it is no file")
            with self._path.open("rb") as file:
                text = file.read(_MOST_BYTES + 1)  # others may write there, and shall not fill this memory
            if len(text) > _MOST_BYTES:
                raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
            counts = orjson.loads(text)
            return {query_id: _counted(by_name) for query_id, by_name in counts.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            self._is_broken = True
            logger.error("cannot read %s, so restarts are counted from 0: %s", self._path, error)
            return {}

    def _save(self) -> None:
        while len(self._counts) > _MOST:  # queries without a checkpoint have a new id each time
            del self._counts[next(iter(self._counts))]
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Drivers in containers that share the folder may have one process id.
            written = self._path.with_suffix(f".{secrets.token_hex(8)}.tmp")
            while len(text := orjson.dumps(self._counts)) > _MOST_BYTES:  # names may be long
                del self._counts[next(iter(self._counts))]
            written.write_bytes(text)
            if self._is_broken:
                self._keep_aside(self._path)
            written.replace(self._path)
            self._is_broken = False
        except OSError as error:
            logger.error("%s: cannot write %s: %s", STATE_DIR, self._path, error)
            self._path = None

    def _keep_aside(self, path: Path) -> None:
        """Rename a file that is not as it was written here: it may be of somebody else."""
        if path.is_file() and not path.is_symlink():
            aside = path.with_suffix(f".{secrets.token_hex(4)}.unreadable")
            path.rename(aside)
            logger.warning("%s was not written here; it is kept as %s", path, aside.name)


def _file_name(app_name: str) -> str:
    """Return the name of an application's file; of a long name, what tells it from others."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", app_name)
    if len(name) > _LONGEST_NAME:
        digest = sha256(app_name.encode(errors="replace")).hexdigest()[:16]
        name = f"{name[: _LONGEST_NAME - 1 - len(digest)]}-{digest}"
    return f"{name}.json"


def _counted(by_name: dict[str, object] | int) -> dict[str, int]:
    if isinstance(by_name, int):  # as versions before wrote it
        return {_WITHOUT_NAME: _count(by_name)}
    return {name: _count(value) for name, value in by_name.items()}


def _count(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < _IMPOSSIBLE:
        raise ValueError(f"{str(value)[:40]!r} is not a number of restarts")
    return value

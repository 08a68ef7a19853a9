"""How far each followed log has been read and delivered, in a small database on disk."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ConfigError
from spark_events.api.toolkit.formatting import is_utf8
from spark_events.sources.event_log.reading.tail import NOTHING_READ, LinePosition

FOLLOWED, ENDED, DEAD, PASSED = "followed", "ended", "dead", "passed over"
# Writes do not wait for the disk, so after a crash of the machine some events are sent again.
_OPEN = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
BEGIN EXCLUSIVE;
CREATE TABLE IF NOT EXISTS logs (
  name TEXT PRIMARY KEY, state TEXT NOT NULL, part INTEGER NOT NULL, lines INTEGER NOT NULL,
  size INTEGER NOT NULL, folder_ms INTEGER NOT NULL
) WITHOUT ROWID;
COMMIT;
"""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """How far one log has been read.

    Attributes:
        state: FOLLOWED, ENDED, DEAD, or PASSED (complete before anybody followed it).
        read_up_to: everything before it is delivered.
        size: of the log at that time, in bytes.
        folder_ms: when a part had last been added or removed by then, in ms since the epoch; 0 for one file.
    """

    state: str
    read_up_to: LinePosition = NOTHING_READ
    size: int = 0
    folder_ms: int = 0


class LogPositions:
    """The positions in all logs of one folder; one process has them at a time.

    Attributes:
        fresh: whether no process has looked at the logs yet; one that could not start has not.
        unsaved: why positions could not be saved the last time; empty if they were.

    Raises:
        ConfigError: it cannot be used, or another process does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=0.5, isolation_level=None)
            self._database.executescript(_OPEN)
            rows = self._database.execute("SELECT name, state, part, lines, size, folder_ms FROM logs")
            self._positions = {
                _name_of(key): LogPosition(state, LinePosition(part, lines), size, folder_ms)
                for key, state, part, lines, size, folder_ms in rows
            }
            self._unsaved: set[str] = set()
            self.unsaved = ""
            (has_looked,) = self._database.execute("PRAGMA user_version").fetchone()
            self.fresh = not has_looked and not self._positions
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(self._problem(error)) from error

    def __getitem__(self, name: str) -> LogPosition | None:
        return self._positions.get(name)

    @property
    def names(self) -> Set[str]:
        """The names of all logs of which it knows a position."""
        return self._positions.keys()

    def begin(self, passed: Mapping[str, LogPosition]) -> None:
        """Note that the logs are looked at for the first time, and those that are passed over."""
        self._positions.update(passed)
        self._unsaved.update(passed)
        self.fresh = False
        self.save()

    def put(self, name: str, position: LogPosition) -> None:
        """Note how far a log has been read, and save it."""
        if self._positions.get(name) == position:
            return
        self._positions[name] = position
        self._change(name)

    def forget(self, name: str) -> None:
        """Forget a log that is gone."""
        if self._positions.pop(name, None) is not None:
            self._change(name)

    def save(self) -> None:
        """Save all that is not saved, or nothing: ``unsaved`` then says why, and the next call tries it."""
        if not self._unsaved and not self.unsaved:
            return
        try:
            self._database.execute("BEGIN")
            for name in self._unsaved:
                self._write(name)
            if not self.fresh:
                self._database.execute("PRAGMA user_version = 1")
            self._database.execute("COMMIT")
        except (sqlite3.Error, OverflowError) as error:  # the latter of numbers that it cannot hold
            self.unsaved = self._problem(error)
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
        else:
            self.unsaved = ""
            self._unsaved.clear()

    def _change(self, name: str) -> None:
        self._unsaved.add(name)
        if not self.unsaved:  # else trying once for all is enough
            self.save()

    def _write(self, name: str) -> None:
        position = self._positions.get(name)
        if position is None:
            self._database.execute("DELETE FROM logs WHERE name = ?", (_key_of(name),))
        else:
            row = (_key_of(name), position.state, *position.read_up_to, position.size, position.folder_ms)
            self._database.execute("INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Save what is not saved, and release the database for other processes.

        Raises:
            ConfigError: it cannot be saved: the next start repeats what was reported since.
        """
        self.save()
        self._database.close()
        if self.unsaved:
            raise ConfigError(
                f"{self.unsaved}; how far {len(self._unsaved):,} log(s) were read is not saved, so the next "
                "start reports some events again"
            )

    def _problem(self, error: Exception) -> str:
        if "locked" in str(error):
            return f"{self.path}: another spark-events follow uses this file; give each its own --state"
        return f"{self.path}: cannot be used ({error}); give --state a writable file"


def _key_of(name: str) -> str | bytes:
    """Return a log's name as SQLite takes it: its bytes, if it is not text."""
    return name if is_utf8(name) else name.encode("utf-8", "surrogateescape")


def _name_of(key: str | bytes) -> str:
    return key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else key


def default_path(folder: str) -> Path:
    """Return the path of the positions for a folder of logs, below the user's state folder (XDG).

    Raises:
        ConfigError: the user has no such folder.
    """
    try:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:  # nobody knows this user, as in a container, and HOME is not set
        raise ConfigError(
            "this user has no home folder: say with --state where positions are kept"
        ) from error
    absolute = folder if "://" in folder else os.path.realpath(folder)
    digest = hashlib.blake2b(absolute.encode(), digest_size=6).hexdigest()
    return Path(base) / "spark-events" / f"follow-{digest}.sqlite"

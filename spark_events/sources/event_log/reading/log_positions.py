"""How far each followed log has been read and delivered, in a small database on disk."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ConfigError
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
            (has_looked,) = self._database.execute("PRAGMA user_version").fetchone()
            self.fresh = not has_looked and not self._positions
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(self._problem(error)) from error

    def __getitem__(self, name: str) -> LogPosition | None:
        return self._positions.get(name)

    def begin(self, passed: Mapping[str, LogPosition]) -> None:
        """Note, all in one, that the logs are looked at for the first time, and those that are passed over.

        Raises:
            ConfigError: it cannot be written to disk.
        """
        self._run("BEGIN", ())
        for name, position in passed.items():
            self.put(name, position)
        self._run("PRAGMA user_version = 1", ())
        self._run("COMMIT", ())
        self.fresh = False

    def put(self, name: str, position: LogPosition) -> None:
        """Save how far a log has been read.

        Raises:
            ConfigError: it cannot be written to disk.
        """
        if self._positions.get(name) == position:
            return
        row = (_key_of(name), position.state, *position.read_up_to, position.size, position.folder_ms)
        self._run("INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?, ?)", row)
        self._positions[name] = position

    def forget(self, name: str) -> None:
        """Forget a log that is gone."""
        if self._positions.pop(name, None) is not None:
            self._run("DELETE FROM logs WHERE name = ?", (_key_of(name),))

    def keep_only(self, names: Set[str]) -> None:
        """Forget all logs but these."""
        for name in self._positions.keys() - names:
            self.forget(name)

    def close(self) -> None:
        """Release the database for other processes."""
        self._database.close()

    def _run(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise ConfigError(self._problem(error)) from error

    def _problem(self, error: Exception) -> str:
        if "locked" in str(error):
            return f"{self.path}: another spark-events follow uses this file; give each its own --state"
        return f"{self.path}: cannot be used ({error}); give --state a writable file"


def _key_of(name: str) -> str | bytes:
    """Return a log's name as SQLite takes it: its bytes, if it is no text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape")
    return name


def _name_of(key: str | bytes) -> str:
    return key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else key


def default_path(folder: str) -> Path:
    """Return the path of the positions for a folder of logs, below the user's state folder (XDG)."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    absolute = folder if "://" in folder else os.path.realpath(folder)
    digest = hashlib.blake2b(absolute.encode(), digest_size=6).hexdigest()
    return Path(base) / "spark-events" / f"follow-{digest}.sqlite"

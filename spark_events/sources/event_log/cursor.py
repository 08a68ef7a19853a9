"""How far each followed log has been read and delivered, in a small database on disk."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ConfigError

FOLLOWED, ENDED, DEAD, PASSED = "followed", "ended", "dead", "passed over"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS logs (
  name TEXT PRIMARY KEY, state TEXT NOT NULL, part INTEGER NOT NULL, lines INTEGER NOT NULL,
  size INTEGER NOT NULL, folder_ms INTEGER NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far one log has been read.

    Attributes:
        state: FOLLOWED, ENDED, DEAD, or PASSED: it was complete before anybody followed it.
        position: the number of its part, and how many of that part's lines are delivered.
        size: of the log then, in bytes.
        folder_ms: when a part of the log had come or gone then, in ms since the epoch; 0 for a single file.
    """

    state: str
    position: tuple[int, int] = (0, 0)
    size: int = 0
    folder_ms: int = 0


class Cursors:
    """The cursors of all logs of one folder; one process has them at a time.

    Args:
        path: of the database.

    Attributes:
        fresh: whether there was none before.

    Raises:
        ConfigError: it cannot be used, or another process does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.fresh = not path.exists()
            self._database = sqlite3.connect(path, timeout=0.5, isolation_level=None)
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            # No wait for the disk with each write: after a crash of the machine, some events come again.
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute("BEGIN EXCLUSIVE")
            self._database.execute(_SCHEMA)
            self._database.execute("COMMIT")
            rows = self._database.execute("SELECT name, state, part, lines, size, folder_ms FROM logs")
            self._known = {row[0]: Cursor(row[1], (row[2], row[3]), row[4], row[5]) for row in rows}
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(self._problem(error)) from error

    def __getitem__(self, name: str) -> Cursor | None:
        return self._known.get(name)

    def put(self, name: str, cursor: Cursor) -> None:
        """Keep how far a log has been read.

        Raises:
            ConfigError: the disk does not take it.
        """
        if self._known.get(name) == cursor:
            return
        row = (name, cursor.state, *cursor.position, cursor.size, cursor.folder_ms)
        self._run("INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?, ?)", row)
        self._known[name] = cursor

    def forget(self, name: str) -> None:
        """Forget a log that is gone."""
        if self._known.pop(name, None) is not None:
            self._run("DELETE FROM logs WHERE name = ?", (name,))

    def keep_only(self, names: Set[str]) -> None:
        """Forget all logs but these."""
        for name in self._known.keys() - names:
            self.forget(name)

    def close(self) -> None:
        """Let another process have them."""
        self._database.close()

    def _run(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise ConfigError(self._problem(error)) from error

    def _problem(self, error: Exception) -> str:
        if "locked" in str(error):
            return f"{self.path}: another spark-events follow uses this file; give each its own --state"
        return f"{self.path}: cannot be used ({error}); give --state a file that may be written"


def default_path(folder: str) -> Path:
    """Return where the cursors of a folder of logs are kept, below the user's folder for state (XDG)."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    whole = folder if "://" in folder else str(Path(folder).resolve())
    digest = hashlib.blake2b(whole.encode(), digest_size=6).hexdigest()
    return Path(base) / "spark-events" / f"follow-{digest}.sqlite"

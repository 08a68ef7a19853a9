"""Keeps the facts of a history, so that a day's events are added without reading the rest again.

A store is a folder: of this machine with DuckDB, on any of Hadoop's file systems with Spark. Its index names,
for each UTC day, the folder with the day's facts and sums. Adding events writes the affected days into a new
folder, and then replaces the index, which makes them visible all at once; an interrupted run leaves the store
as it was. Only one process may add at a time.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from spark_events.api import ConfigError
from spark_events.history.checkpoints import SUMS, day_sums
from spark_events.history.database import Database, Files
from spark_events.history.facts import CHECKPOINT, COLUMNS, SEEN, Reading, day_of
from spark_events.history.history import History, period_of
from spark_events.history.plausible import DAY_MS, PossibleTimes, iso_date, iso_day
from spark_events.history.sla import Sla

_VERSION = 3
_FILE = "store.json"
_FOLDER_PREFIX = "part-"
_PARTS = ("checkpoints", "others")
"""The facts of a day lie in two folders; reports read single checkpoints seldom."""
_Days = dict[str, dict[str, Any]]
"""By the day, as ``2026-11-21``: its ``folder``, and the ``sla`` that its sums were made with."""


class HistoryStore:
    """A folder with the facts of a history, day by day.

    Args:
        database: that reads and writes it.
        path: the folder; made by the first ``add``.
        times: the possible ones; from 2009 to a day from now by default. Days of other times are left out.

    Raises:
        ConfigError: the folder is not that of a store, or of a store of another version.
    """

    def __init__(self, database: Database, path: str, times: PossibleTimes | None = None) -> None:
        self._times = times or PossibleTimes()
        self._database = database
        self._path = path.rstrip("/")
        self._index = _StoreIndex(database.files(self._path), self._path)

    @property
    def days(self) -> Sequence[str]:
        """The days it has within the possible times, as ``2026-11-21``, in order."""
        return sorted(day for day in self._index.days if self._times.has_day(day))

    def add(self, paths: Sequence[str], sla: Sla | None = None) -> Reading:
        """Add the events at some paths, except those that are already there, judging by their ids.

        Args:
            paths: files, folders and globs.
            sla: used for the sums; a history with another SLA recomputes them from the facts.

        Returns:
            How reading went.

        Raises:
            ConfigError: there is nothing at a path, or another process added at the same time.
        """
        new, reading = self._database.read_facts(paths, self._times)
        days = sorted(
            day for (day,) in self._database.rows(f"SELECT DISTINCT {day_of('time_ms')} FROM {new}")
        )
        touched_days = [iso_date(day) for day in days]
        old = self._facts([day for day in touched_days if day in self._index.days])
        merged = self._database.each_once([new, old])
        reading.duplicates = reading.facts + self._count(old) - self._count(merged)
        sla = sla or Sla()
        folder = self._write(merged, days, sla)
        self._index.commit({day: {"folder": folder, "sla": asdict(sla)} for day in touched_days})
        return reading

    def _write(self, facts: str, days: Sequence[int], sla: Sla) -> str:
        """Write facts and their sums into a new folder, and return its name."""
        folder = f"{_FOLDER_PREFIX}{uuid.uuid4().hex}"
        part = f"CASE WHEN fact = '{CHECKPOINT}' THEN 'checkpoints' ELSE 'others' END AS part"
        parts = f"SELECT {', '.join(COLUMNS)}, {part}, {_date_sql(day_of('time_ms'), days)} FROM {facts}"
        self._database.to_parquet(parts, f"{self._path}/{folder}/facts", ("part", "date"))
        sums = f"SELECT {', '.join(SUMS)}, {_date_sql('day', days)} FROM ({day_sums(facts, sla)})"
        self._database.to_parquet(sums, f"{self._path}/{folder}/sums", ("date",))
        return folder

    def history(self, sla: Sla | None = None, span_ms: int | None = None, until_now: bool = False) -> History:
        """Return the history of everything that was added.

        Args:
            sla, span_ms, until_now: as for ``read_history``.

        Raises:
            ConfigError: nothing was added yet.
        """
        if not self.days:
            raise ConfigError(f"{self._path}: the store is empty; give paths of events to add")
        sla = sla or Sla()
        others = self._facts(self.days, ["others"])
        checkpoints = self._facts(self.days, ["checkpoints"])
        # All days except the first and the last lie completely within the period.
        outer = self._facts([self.days[0], self.days[-1]], ["checkpoints"])
        period = period_of(self._database, [others, outer], span_ms, until_now, [self._path])
        sums = self._sums(sla, period.since_ms)
        return History(self._database, others, sums, checkpoints, sla, period)

    def _sums(self, sla: Sla, since_ms: int) -> str:
        """Return ``day_sums``: as stored, but recomputed for days of another SLA and the first day."""
        first_day = iso_day(since_ms)
        entries = self._index.days
        written = [day for day in self.days if entries[day]["sla"] == asdict(sla) and day != first_day]
        anew = [day for day in self.days if day not in written]
        sums = day_sums(self._facts(anew, ["checkpoints"]), sla, since_ms)
        if not written:
            return sums
        folders = [f"{self._path}/{entries[day]['folder']}/sums/date={day}" for day in written]
        stored = self._database.from_parquet(folders, SUMS)
        counted = f"day >= {since_ms // DAY_MS} AS counted"
        columns = ", ".join(SUMS)
        return f"SELECT {columns}, counted FROM ({sums}) UNION ALL SELECT {columns}, {counted} FROM {stored}"

    def _facts(self, days: Sequence[str], parts: Sequence[str] = _PARTS) -> str:
        folders = {day: f"{self._path}/{self._index.days[day]['folder']}/facts" for day in days}
        paths = [f"{folders[day]}/part={part}/date={day}" for day in days for part in parts]
        return self._database.from_parquet(paths, COLUMNS)

    def _count(self, facts: str) -> int:
        ((count,),) = self._database.rows(f"SELECT count(*) FROM {facts} WHERE fact <> '{SEEN}'")
        return int(count)


def _date_sql(day: str, days: Sequence[int]) -> str:
    """Return the SQL of the name of a day, ``2026-11-20``, as the folders have it."""
    names = " ".join(f"WHEN {number} THEN '{iso_date(number)}'" for number in days)
    return f"CASE {day} {names} END AS date"


class _StoreIndex:
    """The file ``store.json`` in the folder of a store; ``days`` are as it was last read or written."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self.days = self._read()

    def commit(self, changed: _Days) -> None:
        """Write the index with other folders for some days, and remove the folders that no day has now."""
        if self._read() != self.days:
            raise ConfigError(f"{self._path}: another process added to the store meanwhile; run it again")
        self.days = {**self.days, **changed}
        content = {"version": _VERSION, "days": self.days}
        self._files.replace(_FILE, orjson.dumps(content, option=orjson.OPT_INDENT_2))
        # Replaced ones, and leftovers of an interrupted run.
        used = {day["folder"] for day in self.days.values()}
        for name in self._files.names():
            if name.startswith(_FOLDER_PREFIX) and name not in used:
                self._files.remove(name)

    def _read(self) -> _Days:
        if not self._files.exists(_FILE):
            strange = [
                name for name in self._files.names() if not name.startswith((_FOLDER_PREFIX, f"_{_FILE}"))
            ]
            if strange:
                raise ConfigError(f"{self._path}: has no {_FILE} but {strange[0]}: it is no store")
            return {}
        content = orjson.loads(self._files.read(_FILE))
        if content.get("version") != _VERSION:
            raise ConfigError(
                f"{self._path}/{_FILE}: version {content.get('version')!r}; {_VERSION} is known"
            )
        days: _Days = content["days"]
        return days

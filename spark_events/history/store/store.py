"""Keeps the facts of a history, so that a day's events are added without reading the rest again.

A store is a folder: of this machine with DuckDB, on any of Hadoop's file systems with Spark. Its index names,
for each UTC day, the folder with the day's facts and sums. Adding events writes the affected days into a new
folder, and then a new index, which makes them visible all at once; an interrupted run leaves the store as it
was. If another process has written an index meanwhile, its days are merged with those of this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace

from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError
from spark_events.api.toolkit.formatting import counted, moment
from spark_events.history.figures.checkpoints import day_sums
from spark_events.history.figures.day_sums import SUMS
from spark_events.history.history import History, period_of
from spark_events.history.options import Sla
from spark_events.history.reading.database import Database
from spark_events.history.reading.facts import CHECKPOINT, COLLAPSED, COLUMNS, Reading, day_of, together
from spark_events.history.reading.plausible import DAY_MS, PossibleTimes, day_number, iso_date, iso_day
from spark_events.history.selection import Selection
from spark_events.history.store.retention import kept_of_dropped
from spark_events.history.store.store_index import PARTS, Contents, StoreIndex, new_folder

_MOST_TRIES = 20


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
        self._index = StoreIndex(database.files(self._path), self._path)

    @property
    def days(self) -> Sequence[str]:
        """The days it has within the possible times, as ``2026-11-21``, in order."""
        return sorted(day for day in self._index.contents.days if self._times.has_day(day))

    def add(self, paths: Sequence[str], sla: Sla | None = None) -> Reading:
        """Add the events at some paths, except those that are already there, judging by their ids.

        Args:
            paths: files, folders and globs.
            sla: used for the sums; a history with another SLA recomputes them from the facts.

        Returns:
            How reading went.

        Raises:
            ConfigError: there is nothing at a path, or other processes add all the time.
        """
        new, reading = self._database.read_facts(paths, self._times)
        new = self._without_dropped(new, reading)
        days = sorted(
            day for (day,) in self._database.rows(f"SELECT DISTINCT {day_of('time_ms')} FROM {new}")
        )
        if not days:  # nothing that could be used
            return reading
        touched_days = [iso_date(day) for day in days]
        sla = sla or Sla()
        self._index.begin()
        for _ in range(_MOST_TRIES):
            contents = self._index.contents
            old = self._facts([day for day in touched_days if day in contents.days])
            merged = self._database.each_once([new, old])
            reading.duplicates = reading.facts + self._count(old) - self._count(merged)
            with self._new_folder() as folder:
                self._write(merged, days, sla, folder)
                changed = {
                    day: {"folder": folder, "sla": asdict(sla), **self._files_of(folder, day)}
                    for day in touched_days
                }
                if self._commit(folder, replace(contents, days={**contents.days, **changed})):
                    return reading
        raise ConfigError(f"{self._path}: other processes add to it all the time; run it again later")

    def _without_dropped(self, facts: str, reading: Reading) -> str:
        """Return the facts of days that are not dropped, and count the others."""
        before = self._index.contents.before
        if before is None:
            return facts
        first_ms = day_number(before["until"]) * DAY_MS
        ((late,),) = self._database.rows(
            f"SELECT count(*) FROM {facts} WHERE time_ms < {first_ms} AND NOT {COLLAPSED}"
        )
        if late:
            reading.problems["dropped_day"], reading.examples["dropped_day"] = int(late), self._path
            reading.facts -= int(late)
        return f"(SELECT {', '.join(COLUMNS)} FROM {facts} WHERE time_ms >= {first_ms})"

    def retain(self, span_ms: int) -> list[str]:
        """Drop the days that ended longer than ``span_ms`` before the last one, and return them.

        Of each application and query it stays known how it was before the days that are left.

        Raises:
            ConfigError: other processes add all the time.
        """
        for _ in range(_MOST_TRIES):
            contents, days = self._index.contents, self.days
            # The last event may have come as its day began.
            first = day_number(days[-1]) - -(-span_ms // DAY_MS) if days else 0
            dropped = [day for day in days if day_number(day) < first]
            if not dropped:
                return []
            facts = together([self._facts(dropped), *self._before()])
            with self._new_folder() as folder:
                self._database.to_parquet(kept_of_dropped(f"({facts})"), f"{self._path}/{folder}")
                left = {day: entry for day, entry in contents.days.items() if day not in dropped}
                size = sum(self._sizes(f"{self._path}/{folder}"))
                before = {"folder": folder, "until": iso_date(first), "bytes": size}
                if self._commit(folder, replace(contents, days=left, before=before)):
                    return dropped
        raise ConfigError(f"{self._path}: other processes add to it all the time; run it again later")

    @contextmanager
    def _new_folder(self) -> Iterator[str]:
        """Yield the name of a new folder, of which nothing is left if it cannot be written or committed."""
        folder = new_folder()
        try:
            yield folder
        except BaseException as error:
            with suppress(Exception):
                self._index.reload()
                if folder not in self._index.contents.folders():
                    self._database.files(self._path).remove(folder)
            if isinstance(error, OSError):
                raise ConfigError(f"{self._path}: cannot be written ({error.strerror or error})") from error
            raise

    def _files_of(self, folder: str, day: str) -> dict[str, dict[str, int]]:
        """Return how many ``files`` and ``bytes`` a day has, each by their folders in the new one."""
        names = (*(f"facts/part={part}/date={day}" for part in PARTS), f"sums/date={day}")
        sizes = {name: self._sizes(f"{self._path}/{folder}/{name}") for name in names}
        return {
            "files": {name: len(of) for name, of in sizes.items() if of},
            "bytes": {name: sum(of) for name, of in sizes.items() if of},
        }

    def _sizes(self, folder: str) -> list[int]:
        """Return the bytes of each Parquet file in a folder."""
        sizes = self._database.files(folder).sizes()
        return [size for name, size in sizes.items() if name.endswith(".parquet")]

    def _whole(self, day: str, name: str) -> str:
        """Return the path of a folder of a day, which has all files that the index knows of, maybe none.

        Raises:
            ConfigError: some are missing, or are not as they were written.
        """
        entry = self._index.contents.days[day]
        path = f"{self._path}/{entry['folder']}/{name}"
        self._check_files(path, entry.get("files", {}).get(name, 0), entry.get("bytes", {}).get(name))
        return path

    def _check_files(self, path: str, wanted: int, wanted_bytes: int | None) -> None:
        if not wanted:
            return
        sizes = self._sizes(path)
        if len(sizes) < wanted:
            wrong = f"has {len(sizes)} of {counted(wanted, 'file')} that the store's index names"
        elif wanted_bytes is not None and sum(sizes) != wanted_bytes:
            wrong = (
                f"its files have {sum(sizes)} bytes where the store's index says {wanted_bytes}, so they are "
                "not as they were written"
            )
        else:
            return
        raise ConfigError(f"{path}: {wrong}; restore them, or make a new store of the events")

    def _commit(self, folder: str, contents: Contents) -> bool:
        """Write the index, or remove the new folder and read what another process has written."""
        if self._index.commit(contents):
            return True
        self._database.files(self._path).remove(folder)
        self._index.reload()
        return False

    def _write(self, facts: str, days: Sequence[int], sla: Sla, folder: str) -> None:
        """Write facts and their sums into a new folder."""
        part = f"CASE WHEN fact = '{CHECKPOINT}' THEN 'checkpoints' ELSE 'others' END AS part"
        parts = f"SELECT {', '.join(COLUMNS)}, {part}, {_date_sql(day_of('time_ms'), days)} FROM {facts}"
        self._database.to_parquet(parts, f"{self._path}/{folder}/facts", ("part", "date"))
        # Spark 3.5 reads no INT as a BIGINT, and an engine may take the SLA, a literal, for an INT.
        columns = ", ".join(f"CAST({name} AS {sql_type}) AS {name}" for name, sql_type in SUMS.items())
        sums = f"SELECT {columns}, {_date_sql('day', days)} FROM ({day_sums(facts, sla)})"
        self._database.to_parquet(sums, f"{self._path}/{folder}/sums", ("date",))

    def history(self, sla: Sla | None = None, selection: Selection | None = None) -> History:
        """Return the history of everything that was added.

        Args:
            sla, selection: as for ``read_history``.

        Raises:
            NothingToReadError: nothing was added yet, or nothing of that part.
        """
        sla, selection = sla or Sla(), selection or Selection()
        days = self._days_of(selection)
        of_days = self._facts(days, ["others"])
        checkpoints = selection.of(self._facts(days, ["checkpoints"]))
        # All days except the first and the last lie completely within the period.
        outer = self._facts(days if selection.app else [days[0], days[-1]], ["checkpoints"])
        period = period_of(self._database, [of_days, outer], selection, [self._path])
        others = selection.of(of_days)
        if before := self._before():
            others = f"({together([others, *map(selection.of, before)])})"
            first_ms = day_number(days[0]) * DAY_MS
            begins_later = selection.span_ms is not None or selection.since_ms is not None
            period = period._replace(
                since_ms=max(period.since_ms, first_ms) if begins_later else first_ms,
                days_since_ms=max(period.days_since_ms, first_ms),
            )
        sums = self._sums(days, sla, selection, period.since_ms)
        return History(self._database, others, sums, checkpoints, sla, period, selection)

    def _days_of(self, selection: Selection) -> Sequence[str]:
        """Return the days up to the end of a part.

        Raises:
            NothingToReadError: there are none.
        """
        if not self.days:
            raise NothingToReadError(f"{self._path}: the store is empty; give paths of events to add")
        if selection.until_ms is None:
            return self.days
        days = [day for day in self.days if day <= iso_day(selection.until_ms)]
        if not days:
            raise NothingToReadError(
                f"{self._path}: there is no event before {moment(selection.until_ms)} UTC; "
                f"the first day is {self.days[0]}"
            )
        return days

    def _sums(self, days: Sequence[str], sla: Sla, selection: Selection, since_ms: int) -> str:
        """Return ``day_sums``: as stored, but recomputed for days of another SLA, and for parts of days."""
        entries = self._index.contents.days
        cut = {iso_day(since_ms), *([] if selection.until_ms is None else [iso_day(selection.until_ms)])}
        written = [day for day in days if entries[day]["sla"] == asdict(sla) and day not in cut]
        anew = [day for day in days if day not in written]
        checkpoints = f"({together([self._facts(anew, ['checkpoints']), *self._before()])})"
        sums = day_sums(selection.of(checkpoints), sla, since_ms)
        if not written:
            return sums
        folders = [self._whole(day, f"sums/date={day}") for day in written]
        stored = selection.of(self._database.from_parquet(folders, SUMS), f"day * {DAY_MS}")
        counted = f"day >= {since_ms // DAY_MS} AS counted"
        columns = ", ".join(SUMS)
        return f"SELECT {columns}, counted FROM ({sums}) UNION ALL SELECT {columns}, {counted} FROM {stored}"

    def _facts(self, days: Sequence[str], parts: Sequence[str] = PARTS) -> str:
        paths = [self._whole(day, f"facts/part={part}/date={day}") for day in days for part in parts]
        return self._database.from_parquet(paths, COLUMNS)

    def _before(self) -> list[str]:
        """Return the relation of what is left of dropped days; none if there are none."""
        before = self._index.contents.before
        if not before:
            return []
        folder = f"{self._path}/{before['folder']}"
        self._check_files(folder, 1, before.get("bytes"))
        return [self._database.from_parquet([folder], COLUMNS)]

    def _count(self, facts: str) -> int:
        ((count,),) = self._database.rows(f"SELECT count(*) FROM {facts} WHERE NOT {COLLAPSED}")
        return int(count)


def _date_sql(day: str, days: Sequence[int]) -> str:
    """Return the SQL of the name of a day, ``2026-11-20``, as the folders have it."""
    names = " ".join(f"WHEN {number} THEN '{iso_date(number)}'" for number in days)
    return f"CASE {day} {names} END AS date"

"""Reads stored events without Spark: DuckDB, in this process, over files that fsspec reaches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from spark_events.api import ConfigError
from spark_events.api.errors import needs_extra
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_url_secrets
from spark_events.history.reading.dialect import DUCKDB
from spark_events.history.reading.duckdb_sql import events_of, text_of
from spark_events.history.reading.duckdb_tables import TOO_LONG, DamagedFileError, DuckDbTables, StorageError
from spark_events.history.reading.facts import (
    COLLAPSED,
    COLUMNS,
    CUT,
    PROBLEMS,
    Reading,
    classified,
    order_of_repeated,
    together,
)
from spark_events.history.reading.local_files import StoredFiles, stored_files
from spark_events.history.reading.packed_ends import gzip_has_no_end, zstandard_has_no_end
from spark_events.history.reading.plausible import PossibleTimes
from spark_events.spark.file_systems import open_file_system

with needs_extra("report", "duckdb", "reading stored events without Spark"):
    import duckdb

_Read = TypeVar("_Read")
_LINE = 16 << 20
"""The longest line, in bytes, that is read within the memory that DuckDB has at first."""
_MOST_LISTINGS = 5
"""How often files are looked for, at most, while writers remove some."""
_LONG_LINE, _MEMORY_FOR_LONG_LINES = 256 << 20, "3GB"


class DuckDb(DuckDbTables):
    """A database that reads stored events; see ``Database`` for its methods.

    Attributes:
        damaged: files that were found to be unreadable, and that are left out.

    Raises:
        MissingExtraError: DuckDB is not installed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._protocols: set[Any] = set()
        self._longest_line = _LINE
        self.damaged: set[str] = set()

    def read_facts(self, paths: Sequence[str], times: PossibleTimes) -> tuple[str, Reading]:
        """Read stored events; see ``Database.read_facts``."""
        (facts, seen), cut = self._read_whole(paths, lambda events: self._read(events, times))
        reading = self._reading(facts, seen, times)
        if cut:
            reading.problems[CUT], reading.examples[CUT] = len(cut), cut[0]
        once = self.each_once([f"(SELECT {', '.join(COLUMNS)} FROM {facts} WHERE problem IS NULL)"])
        reading.duplicates = reading.facts - self.number(f"SELECT count(*) FROM {once}")
        both = self.name("both")
        self.run(
            f"CREATE VIEW {both} AS SELECT {', '.join(COLUMNS)} FROM {once} UNION ALL BY NAME "
            "SELECT fact, event_id, latest.time_ms, app_name, app_id, attempt, query_name, "
            f"nullif(latest.duration_ms, -1) AS duration_ms FROM {seen} WHERE problem IS NULL"
        )
        return both, reading

    def events_of_name(
        self, paths: Sequence[str], name: str
    ) -> Iterator[tuple[str, int, dict[str, str | None]]]:
        """Yield the id, the time in ms since the epoch, and the attributes of each stored event of a name.

        One whose attributes are none counts as unreadable.

        Raises:
            ConfigError: there is nothing to read at a path, or it cannot be read.
        """
        events = self._events_of(self._undamaged(self._files(paths)))
        try:
            for event_id, time_ms, entries in self.rows(
                f"SELECT event_id, time_ms, map_entries(attributes) FROM {events} "
                f"WHERE event_name = {text_of(name)} AND event_id IS NOT NULL AND time_ms IS NOT NULL "
                "AND attributes IS NOT NULL ORDER BY time_ms, event_id"
            ):
                # Of two attributes of one name, the first counts.
                yield event_id, time_ms, {each["key"]: each["value"] for each in reversed(entries)}
        except (duckdb.Error, StorageError) as error:
            raise _unreadable(paths, error) from error

    def unreadable(self, paths: Sequence[str]) -> tuple[int, str, list[str]]:
        """Look at all records at some paths, and leave files out, from now on, that cannot be read.

        Returns:
            How many records are not JSON, or not such as events are; a file with one; and the files that
            cannot be read to their end.

        Raises:
            ConfigError: there is nothing to read at a path, or it cannot be read.
        """
        ((count, file),), cut = self._read_whole(
            paths,
            lambda events: list(
                self.rows(
                    f"SELECT count(*), min(file) FROM {events} WHERE NOT other "
                    "AND (unreadable OR event_name IS NULL AND event_id IS NULL)"
                )
            ),
        )
        return int(count), str(file or ""), cut

    def each_once(self, relations: Sequence[str]) -> str:
        """Keep one fact of each id; see ``Database.each_once``."""
        columns, facts = ", ".join(COLUMNS), together(relations)
        repeated = self.name("repeated")
        self.run(
            f"CREATE TABLE {repeated} AS SELECT event_id FROM ({facts}) GROUP BY event_id HAVING count(*) > 1"
        )
        if len(relations) == 1 and not self.number(f"SELECT count(*) FROM {repeated}"):
            return relations[0]
        once = self.name("once")
        # Few facts are there twice, and only those have to be compared.
        self.run(
            f"CREATE TABLE {once} AS SELECT * FROM ({facts}) ANTI JOIN {repeated} USING (event_id) "
            f"UNION ALL BY NAME SELECT * EXCLUDE (place) FROM (SELECT {columns}, row_number() OVER "
            f"(PARTITION BY event_id ORDER BY {order_of_repeated()}) AS place "
            f"FROM ({facts}) SEMI JOIN {repeated} USING (event_id)) WHERE place = 1"
        )
        return once

    def _read(self, events: str, times: PossibleTimes) -> tuple[str, str]:
        """Return a table of the facts, not yet each once, and one of what all other records amount to."""
        records = f"({classified(events, DUCKDB, times)})"
        facts, seen = self.name("facts"), self.name("seen")
        columns = ", ".join((*COLUMNS, "file", "problem", "odd_numbers", "own"))
        self.run(f"CREATE TABLE {facts} AS SELECT {columns} FROM {records} WHERE NOT {COLLAPSED}")
        # Most records only show that an application lived. Reading them again costs less than keeping them.
        apart = ", ".join(
            f"CASE WHEN problem IS NULL THEN {name} END AS {name}"
            for name in ("fact", "event_id", "app_name", "app_id", "attempt", "query_name")
        )
        self.run(
            f"CREATE TABLE {seen} AS SELECT problem, {apart}, "
            "max({'time_ms': time_ms, 'duration_ms': coalesce(duration_ms, -1)}) AS latest, "
            "count(*) AS records, min(file) AS file, "
            "count(CASE WHEN problem IS NULL AND own THEN 1 END) AS own "
            f"FROM {records} WHERE {COLLAPSED} GROUP BY ALL"
        )
        return facts, seen

    def _read_whole(self, paths: Sequence[str], read: Callable[[str], _Read]) -> tuple[_Read, list[str]]:
        """Return what a function makes of the SQL of all events, and the files that have no readable end.

        Files that cannot be read are left out, also later. A writer may remove its oldest ones meanwhile:
        then all are looked for again.

        Raises:
            ConfigError: there is nothing to read at a path, or there is no file that can be read.
        """
        files = self._files(paths)
        for _ in range(_MOST_LISTINGS - 1):
            try:
                return self._read_all(paths, files, read)
            except ConfigError:
                before, files = {*files.json, *files.parquet}, self._files(paths)
                if before <= {*files.json, *files.parquet}:
                    raise
        return self._read_all(paths, files, read)

    def _read_all(
        self, paths: Sequence[str], all_files: StoredFiles, read: Callable[[str], _Read]
    ) -> tuple[_Read, list[str]]:
        files = self._undamaged(all_files)
        try:
            done = self._read_long_lines_too(files, read)
        except (duckdb.Error, StorageError) as error:
            self.damaged.update(filter(self._is_damaged, (*files.json, *files.parquet)))
            rest = self._undamaged(all_files)
            if rest == files or not (rest.json or rest.parquet):
                damaged = [name for name in (*all_files.json, *all_files.parquet) if name in self.damaged]
                raise _unreadable(damaged[:1] or paths, error) from error
            try:
                done = self._read_long_lines_too(rest, read)
            except (duckdb.Error, StorageError) as again:
                raise _unreadable(paths, again) from again
            files = rest
        left_out = [name for name in (*all_files.json, *all_files.parquet) if name in self.damaged]
        return done, left_out + [name for name in files.json if _is_cut(name)]

    def _read_long_lines_too(self, files: StoredFiles, read: Callable[[str], _Read]) -> _Read:
        try:
            return read(self._events_of(files))
        except duckdb.InvalidInputException as error:
            if TOO_LONG not in str(error) or self._longest_line == _LONG_LINE:
                raise
        self._longest_line = _LONG_LINE
        self.run(f"SET memory_limit = '{_MEMORY_FOR_LONG_LINES}'")
        return read(self._events_of(files))

    def _is_damaged(self, name: str) -> bool:
        """Return whether a file cannot be read although it can be opened."""
        is_parquet = name.endswith(".parquet")
        alone = StoredFiles([] if is_parquet else [name], [name] if is_parquet else [], [], 0, None, [])
        try:
            list(self.rows(f"SELECT count(event_name), count(attributes) FROM {self._events_of(alone)}"))
        except (duckdb.Error, StorageError):
            file_system, path = open_file_system(name, name)
            try:
                with file_system.open(path, "rb") as file:
                    file.read(1)
            except Exception:  # each file system has errors of its own; the one of reading all is told
                return False
            return True
        return False

    def _files(self, paths: Sequence[str]) -> StoredFiles:
        """Return the files at some paths, for which DuckDB knows how to reach them.

        Raises:
            ConfigError: there is nothing to read at a path.
        """
        files = stored_files(paths)
        for file_system in files.file_systems:
            if file_system.protocol not in self._protocols:
                self._protocols.add(file_system.protocol)
                self.connection.register_filesystem(file_system)
        return files

    def _undamaged(self, files: StoredFiles) -> StoredFiles:
        return files._replace(
            json=[name for name in files.json if name not in self.damaged],
            parquet=[name for name in files.parquet if name not in self.damaged],
        )

    def _events_of(self, files: StoredFiles) -> str:
        return events_of(files, self._longest_line)

    def _reading(self, facts: str, seen: str, times: PossibleTimes) -> Reading:
        """Return how reading went, from the two tables of ``_read``."""
        reading = Reading(times=times)
        problems: dict[str, tuple[int, str]] = {}
        both = (
            "SELECT problem, 1 AS records, 1 AS kept, odd_numbers, "
            f"CAST(own AND problem IS NULL AS INT) AS own, file FROM {facts} "
            f"UNION ALL SELECT problem, records, 0, 0, own, file FROM {seen}"
        )
        for problem, records, kept, odd_numbers, own, file in self.rows(
            "SELECT problem, sum(records), sum(kept), sum(odd_numbers), sum(own), min(file) "
            f"FROM ({both}) GROUP BY problem"
        ):
            reading.records += int(records)
            reading.odd_numbers += int(odd_numbers)
            reading.own += int(own)
            if problem is None:
                reading.facts = int(kept)
            else:
                problems[problem] = int(records), file
        for problem in PROBLEMS:
            if problem in problems:
                reading.problems[problem], reading.examples[problem] = problems[problem]
        return reading


_HAS_NO_END = {".zst": zstandard_has_no_end, ".gz": gzip_has_no_end}


def _is_cut(name: str) -> bool:
    """Return whether DuckDB reads a file without a word that ends in the middle."""
    has_no_end = _HAS_NO_END.get(os.path.splitext(name)[1])
    if has_no_end is None:
        return False
    file_system, path = open_file_system(name, name)
    with file_system.open(path, "rb") as file:
        return has_no_end(file)


def _unreadable(paths: Sequence[str], error: Exception) -> ConfigError:
    shown = ", ".join(map(path_without_secrets, paths))
    what = error.what if isinstance(error, DamagedFileError) else str(error)  # they are of no store
    return ConfigError(f"{shown}: cannot be read: {text_without_url_secrets(what)}")

"""Reads stored events without Spark: DuckDB, in this process, over files that fsspec reaches."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import orjson

from spark_events.api import ConfigError
from spark_events.api.errors import needs_extra
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_url_secrets
from spark_events.history.reading.dialect import DUCKDB, no_rows
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
from spark_events.history.reading.local_files import (
    LocalFiles,
    StoredFiles,
    all_or_none,
    local_path,
    stored_files,
)
from spark_events.history.reading.plausible import PossibleTimes
from spark_events.history.reading.zstandard_frames import ends_in_the_middle
from spark_events.spark.file_systems import open_file_system
from spark_events.spark.temporary_folders import TemporaryFolder

with needs_extra("report", "duckdb", "reading stored events without Spark"):
    import duckdb

_Read = TypeVar("_Read")
_MEMORY = "600MB"
"""What DuckDB may hold; what is beyond it goes to a temporary folder."""
_ROWS_AT_ONCE = 10_000
_LINE = 16 << 20
"""The longest line, in bytes, that is read within this memory."""
_LONG_LINE, _MEMORY_FOR_LONG_LINES = 256 << 20, "3GB"
_TOO_LONG = "maximum_object_size"
_PATTERN = re.compile(r"([*?[])")
_ATTRIBUTES = "MAP(VARCHAR, VARCHAR)"
_VALUE = "STRUCT(stringValue VARCHAR, intValue VARCHAR, doubleValue VARCHAR, boolValue VARCHAR)"
_LOG_RECORD = (
    "STRUCT(timeUnixNano VARCHAR, eventName VARCHAR, severityText VARCHAR, "
    f'attributes STRUCT("key" VARCHAR, "value" {_VALUE})[])'
)
_JSON = {
    "eventName": "VARCHAR",
    "eventId": "VARCHAR",
    "timeUnixNano": "VARCHAR",
    "time": "VARCHAR",
    "attributes": _ATTRIBUTES,
    "resourceLogs": f"STRUCT(scopeLogs STRUCT(logRecords {_LOG_RECORD}[])[])[]",
    "resourceSpans": "VARCHAR",
    "resourceMetrics": "VARCHAR",
    "traceId": "VARCHAR",
}


class _StorageError(ConfigError):
    """The error of a file that cannot be read or written."""


class DuckDb:
    """A database in a temporary folder; see ``Database`` for its methods.

    Attributes:
        damaged: files that were found to be unreadable, and that are left out.

    Raises:
        MissingExtraError: DuckDB is not installed.
    """

    def __init__(self) -> None:
        self._folder = TemporaryFolder("report")
        self._numbers = itertools.count()
        self._protocols: set[Any] = set()
        self._longest_line = _LINE
        self.damaged: set[str] = set()
        try:
            self._connection = duckdb.connect(
                ":memory:",
                config={
                    "memory_limit": _MEMORY,
                    "temp_directory": f"{self._folder.path}/spilled",
                    "preserve_insertion_order": "false",
                    # It has what it needs, and fetches nothing.
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                },
            )
            self._run("SET TimeZone = 'UTC'")
            self._run("SET enable_progress_bar = true")  # else there is no progress to ask for
            self._run("SET enable_progress_bar_print = false")
        except BaseException:
            self._folder.remove()
            raise

    def close(self) -> None:
        """Close the database, and remove its folder."""
        self._connection.close()
        self._folder.remove()

    def progress(self) -> float | None:
        """Return how much of the running statement is done; see ``Database.progress``."""
        percent = self._connection.query_progress()
        return percent if percent >= 0 else None

    def read_facts(self, paths: Sequence[str], times: PossibleTimes) -> tuple[str, Reading]:
        """Read stored events; see ``Database.read_facts``."""
        (facts, seen), cut = self._read_whole(paths, lambda events: self._read(events, times))
        reading = self._reading(facts, seen, times)
        if cut:
            reading.problems[CUT], reading.examples[CUT] = len(cut), cut[0]
        once = self.each_once([f"(SELECT {', '.join(COLUMNS)} FROM {facts} WHERE problem IS NULL)"])
        reading.duplicates = reading.facts - self._number(f"SELECT count(*) FROM {once}")
        both = self._name("both")
        self._run(
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
        events = self._events(self._undamaged(self._files(paths)))
        try:
            for event_id, time_ms, entries in self.rows(
                f"SELECT event_id, time_ms, map_entries(attributes) FROM {events} "
                f"WHERE event_name = {_text(name)} AND event_id IS NOT NULL AND time_ms IS NOT NULL "
                "AND attributes IS NOT NULL ORDER BY time_ms, event_id"
            ):
                # Of two attributes of one name, the first counts.
                yield event_id, time_ms, {each["key"]: each["value"] for each in reversed(entries)}
        except (duckdb.Error, _StorageError) as error:
            raise _unreadable(paths, error) from error

    def unreadable(self, paths: Sequence[str]) -> tuple[int, str, list[str]]:
        """Look at all records at some paths, and leave files out, from now on, that cannot be read.

        Returns:
            How many records are no JSON, or not such as events are; a file with one; and the files that
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
        repeated = self._name("repeated")
        self._run(
            f"CREATE TABLE {repeated} AS SELECT event_id FROM ({facts}) GROUP BY event_id HAVING count(*) > 1"
        )
        if len(relations) == 1 and not self._number(f"SELECT count(*) FROM {repeated}"):
            return relations[0]
        once = self._name("once")
        # Few facts are there twice, and only those have to be compared.
        self._run(
            f"CREATE TABLE {once} AS SELECT * FROM ({facts}) ANTI JOIN {repeated} USING (event_id) "
            f"UNION ALL BY NAME SELECT * EXCLUDE (place) FROM (SELECT {columns}, row_number() OVER "
            f"(PARTITION BY event_id ORDER BY {order_of_repeated()}) AS place "
            f"FROM ({facts}) SEMI JOIN {repeated} USING (event_id)) WHERE place = 1"
        )
        return once

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        with _interruptible():
            cursor = self._connection.cursor().execute(sql)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield from rows

    def from_parquet(self, folders: Sequence[str], columns: Mapping[str, str]) -> str:
        """Return the rows of those folders that exist; see ``Database.from_parquet``."""
        paths = [Path(local_path(folder)) for folder in folders]
        files = [str(file) for path in paths for file in sorted(path.glob("*.parquet"))]
        if not files:
            return no_rows(columns)
        options = "hive_partitioning = false, union_by_name = true"
        return (
            # What was written before a column existed has nulls in it.
            f"(SELECT {', '.join(columns)} FROM (SELECT * FROM {no_rows(columns)} UNION ALL BY NAME "
            f"SELECT * FROM read_parquet({_file_list(files)}, {options})))"
        )

    def to_parquet(self, sql: str, folder: str, partition_by: Sequence[str] = ()) -> None:
        """Write the rows of a query; see ``Database.to_parquet``."""
        folder = local_path(folder)
        Path(folder).mkdir(parents=True, exist_ok=True)
        if partition_by:
            self._run(
                f"COPY ({sql}) TO {_text(folder)} (FORMAT parquet, PARTITION_BY ({', '.join(partition_by)}))"
            )
        else:
            self._run(f"COPY ({sql}) TO {_text(f'{folder}/part-0.parquet')} (FORMAT parquet)")

    def rows_to_parquet(
        self, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], folder: str
    ) -> None:
        """Write rows into a folder; what was in it is replaced."""
        shutil.rmtree(local_path(folder), ignore_errors=True)
        lines = self._folder.path / "rows.jsonl"
        with lines.open("wb") as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        types = ", ".join(f"{_text(name)}: {_text(of_type)}" for name, of_type in columns.items())
        self.to_parquet(f"SELECT * FROM read_ndjson({_text(str(lines))}, columns = {{{types}}})", folder)
        lines.unlink()

    def tables_to_parquet(
        self,
        tables: Mapping[str, Iterable[Mapping[str, Any]]],
        columns: Mapping[str, Mapping[str, str]],
        folder: str,
    ) -> None:
        """Write tables below a folder: on a full disk, say, none, and what was there stays."""
        try:
            with all_or_none(Path(local_path(folder))) as new:
                for name, rows in tables.items():
                    self.rows_to_parquet(rows, columns[name], f"{new}/{name}")
        except OSError as error:
            raise ConfigError(f"{folder}: cannot be written: {error.strerror or error}") from error

    def files(self, folder: str) -> LocalFiles:
        """Return the access to the files in a folder."""
        return LocalFiles(folder)

    def _read(self, events: str, times: PossibleTimes) -> tuple[str, str]:
        """Return a table of the facts, not yet each once, and one of what all other records amount to."""
        records = f"({classified(events, DUCKDB, times)})"
        facts, seen = self._name("facts"), self._name("seen")
        columns = ", ".join((*COLUMNS, "file", "problem", "odd_numbers", "own"))
        self._run(f"CREATE TABLE {facts} AS SELECT {columns} FROM {records} WHERE NOT {COLLAPSED}")
        # Most records only show that an application lived. Reading them again costs less than keeping them.
        apart = ", ".join(
            f"CASE WHEN problem IS NULL THEN {name} END AS {name}"
            for name in ("fact", "event_id", "app_name", "app_id", "attempt", "query_name")
        )
        self._run(
            f"CREATE TABLE {seen} AS SELECT problem, {apart}, "
            "max({'time_ms': time_ms, 'duration_ms': coalesce(duration_ms, -1)}) AS latest, "
            "count(*) AS records, min(file) AS file, "
            "count(CASE WHEN problem IS NULL AND own THEN 1 END) AS own "
            f"FROM {records} WHERE {COLLAPSED} GROUP BY ALL"
        )
        return facts, seen

    def _read_whole(self, paths: Sequence[str], read: Callable[[str], _Read]) -> tuple[_Read, list[str]]:
        """Return what a function makes of the SQL of all events, and the files that have no readable end.

        Files that cannot be read are left out, also later.

        Raises:
            ConfigError: there is nothing to read at a path, or there is no file that can be read.
        """
        all_files = self._files(paths)
        files = self._undamaged(all_files)
        try:
            done = self._read_long_lines_too(files, read)
        except (duckdb.Error, _StorageError) as error:
            self.damaged.update(filter(self._is_damaged, (*files.json, *files.parquet)))
            rest = self._undamaged(all_files)
            if rest == files or not (rest.json or rest.parquet):
                raise _unreadable(paths, error) from error
            try:
                done = self._read_long_lines_too(rest, read)
            except (duckdb.Error, _StorageError) as again:
                raise _unreadable(paths, again) from again
            files = rest
        left_out = [name for name in (*all_files.json, *all_files.parquet) if name in self.damaged]
        return done, left_out + [name for name in files.json if _is_cut(name)]

    def _read_long_lines_too(self, files: StoredFiles, read: Callable[[str], _Read]) -> _Read:
        try:
            return read(self._events(files))
        except duckdb.InvalidInputException as error:
            if _TOO_LONG not in str(error) or self._longest_line == _LONG_LINE:
                raise
        self._longest_line = _LONG_LINE
        self._run(f"SET memory_limit = '{_MEMORY_FOR_LONG_LINES}'")
        return read(self._events(files))

    def _is_damaged(self, name: str) -> bool:
        """Return whether a file cannot be read although it can be opened."""
        is_parquet = name.endswith(".parquet")
        alone = StoredFiles([] if is_parquet else [name], [name] if is_parquet else [], [], 0, None, [])
        try:
            list(self.rows(f"SELECT count(event_name), count(attributes) FROM {self._events(alone)}"))
        except (duckdb.Error, _StorageError):
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
                self._connection.register_filesystem(file_system)
        return files

    def _undamaged(self, files: StoredFiles) -> StoredFiles:
        return files._replace(
            json=[name for name in files.json if name not in self.damaged],
            parquet=[name for name in files.parquet if name not in self.damaged],
        )

    def _events(self, files: StoredFiles) -> str:
        """Return the events of some files; see ``facts.classified`` for the columns."""
        sources = []
        if files.json:
            types = ", ".join(f"{name}: {_text(of_type)}" for name, of_type in _JSON.items())
            options = f"ignore_errors = true, filename = true, maximum_object_size = {self._longest_line}"
            rows = f"read_ndjson({_file_list(files.json)}, columns = {{{types}}}, {options})"
            sources.append(_events_of_lines(f"(SELECT *, filename AS file FROM {rows})"))
        if files.parquet:
            sources.append(_events_of_parquet(_file_list(files.parquet)))
        return f"({' UNION ALL BY NAME '.join(sources)})"

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

    def _run(self, sql: str) -> None:
        with _interruptible():
            self._connection.execute(sql)

    def _number(self, sql: str) -> int:
        ((number,),) = self.rows(sql)
        return int(number)

    def _name(self, what: str) -> str:
        return f"{what}_{next(self._numbers)}"


def _is_cut(name: str) -> bool:
    """Return whether DuckDB reads a file without a word that ends in the middle."""
    if not name.endswith(".zst"):
        return False
    file_system, path = open_file_system(name, name)
    with file_system.open(path, "rb") as file:
        return ends_in_the_middle(file)


def _unreadable(paths: Sequence[str], error: Exception) -> ConfigError:
    shown = ", ".join(map(path_without_secrets, paths))
    return ConfigError(f"{shown}: cannot be read: {text_without_url_secrets(str(error))}")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for DuckDB's own error after Ctrl-C."""
    try:
        yield
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        if _TOO_LONG in str(error):
            raise
        # A file that is cut off or damaged, or a disk that is full; its first line has the file's name.
        raise _StorageError(str(error).partition("\n")[0]) from error
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def _events_of_lines(lines: str) -> str:
    """Return the SQL of lines: an event of a file log each, or an OTLP request with many log records."""
    other = (
        "coalesce(resourceSpans, resourceMetrics, traceId) IS NOT NULL "
        "AND coalesce(eventName, eventId) IS NULL"
    )
    records = (
        "flatten(list_transform(flatten(list_transform(resourceLogs, "
        "lambda of_resource: of_resource.scopeLogs)), lambda of_scope: of_scope.logRecords))"
    )
    # A line of a file log has one record, which is null.
    each = f"unnest(CASE WHEN resourceLogs IS NULL THEN [NULL] ELSE {records} END)"
    event_attributes = f"CASE WHEN record IS NULL THEN attributes ELSE {_attributes_of('record')} END"
    nanos = "try_cast(coalesce(record.timeUnixNano, timeUnixNano) AS BIGINT)"
    # In OTLP, the id is one of the attributes; so is the name, where a collector's filelog receiver read it.
    return (
        "SELECT coalesce(eventId, of_event['event.id']) AS event_id, "
        "coalesce(record.eventName, eventName, of_event['event.name']) AS event_name, "
        f"coalesce({nanos} // 1000000, epoch_ms(try_cast(time AS TIMESTAMPTZ))) AS time_ms, "
        f"of_event AS attributes, file, of_event IS NULL AS unreadable, {other} AS other "
        f"FROM (SELECT *, {event_attributes} AS of_event FROM (SELECT *, {each} AS record FROM {lines}))"
    )


def _attributes_of(record: str) -> str:
    """Return the SQL of OTLP's list of attributes as a map; of two with one key, the first counts."""
    keys = f"list_transform({record}.attributes, lambda pair: pair.key)"
    value = f"{record}.attributes[list_position({keys}, of_key)].value"
    texts = f"coalesce({value}.stringValue, {value}.intValue, {value}.doubleValue, {value}.boolValue)"
    return f"map(list_distinct({keys}), list_transform(list_distinct({keys}), lambda of_key: {texts}))"


def _events_of_parquet(files: str) -> str:
    """Return the SQL of Parquet that ``replay --on-spark`` wrote."""
    return (
        "SELECT eventId AS event_id, eventName AS event_name, epoch_ms(time) AS time_ms, attributes, "
        "filename AS file, attributes IS NULL AS unreadable, false AS other "
        f"FROM read_parquet({files}, filename = true, hive_partitioning = false)"
    )


def _file_list(names: Iterable[str]) -> str:
    """Return the SQL of a list of files, whose names DuckDB would take for patterns."""
    literal_names = (_PATTERN.sub(r"[\1]", name) for name in names)
    return f"[{', '.join(map(_text, literal_names))}]"


def _text(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"

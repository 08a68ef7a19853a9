"""DuckDB in this process, in a temporary folder: statements, rows, and Parquet on this machine's disks."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from spark_events.api import ConfigError
from spark_events.api.errors import needs_extra
from spark_events.history.reading.dialect import no_rows
from spark_events.history.reading.duckdb_sql import file_list, text_of
from spark_events.history.reading.local_files import LocalFiles, all_or_none, local_path
from spark_events.spark.temporary_folders import TemporaryFolder

with needs_extra("report", "duckdb", "reading stored events without Spark"):
    import duckdb

_MEMORY = "600MB"
"""What DuckDB may hold; what is beyond it goes to a temporary folder."""
_ROWS_AT_ONCE = 10_000
_DAMAGED = re.compile(
    "Failed to read file|Could not read enough bytes|too small to be a Parquet file|No magic bytes found"
)
_RESTORE = "restore the file, or make a new store of the events"
TOO_LONG = "maximum_object_size"
"""In the error of a line that is longer than DuckDB is told to read."""


class StorageError(ConfigError):
    """The error of a file that cannot be read or written."""


class DamagedFileError(StorageError):
    """The error of a file that is there, and is not as it was written.

    Args:
        what: is wrong, in a sentence; it is followed by what to do where the file is of a store.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; {_RESTORE}")
        self.what = what


class DuckDbTables:
    """A database in a temporary folder; see ``Database`` for its methods.

    Raises:
        MissingExtraError: DuckDB is not installed.
    """

    def __init__(self) -> None:
        self._folder = TemporaryFolder("report")
        self._numbers = itertools.count()
        try:
            self.connection = duckdb.connect(
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
            self.run("SET TimeZone = 'UTC'")
            self.run("SET enable_progress_bar = true")  # else there is no progress to ask for
            self.run("SET enable_progress_bar_print = false")
        except BaseException:
            self._folder.remove()
            raise

    def close(self) -> None:
        """Close the database, and remove its folder."""
        self.connection.close()
        self._folder.remove()

    def progress(self) -> float | None:
        """Return how much of the running statement is done; see ``Database.progress``."""
        percent = self.connection.query_progress()
        return percent if percent >= 0 else None

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        with interruptible():
            cursor = self.connection.cursor().execute(sql)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield from rows

    def from_parquet(self, folders: Sequence[str], columns: Mapping[str, str]) -> str:
        """Return the rows of those folders that exist; see ``Database.from_parquet``.

        Raises:
            ConfigError: there is a pipe or a folder in the place of a file, which would be waited for, or
                a file that is not what was written.
        """
        paths = [Path(local_path(folder)) for folder in folders]
        files = [file for path in paths for file in sorted(path.glob("*.parquet"))]
        if odd := next((file for file in files if not file.is_file()), None):
            raise ConfigError(
                f"{odd}: is not a file; remove it, and restore the file if it has taken its place"
            )
        if not files:
            return no_rows(columns)
        names = file_list(map(str, files))
        self._check_columns(names, columns)
        return (
            # What was written before a column existed has nulls in it.
            f"(SELECT {', '.join(columns)} FROM (SELECT * FROM {no_rows(columns)} UNION ALL BY NAME "
            f"SELECT * FROM read_parquet({names}, hive_partitioning = false, union_by_name = true)))"
        )

    def _check_columns(self, names: str, columns: Mapping[str, str]) -> None:
        """Check that the files are such as were written here; versions differ in the later columns alone.

        Raises:
            ConfigError: one lacks the first column, or has a text where numbers belong, or the reverse.
        """
        first, *_ = columns
        wanted = ", ".join(f"({text_of(name)}, {of_type == 'STRING'})" for name, of_type in columns.items())
        # Without a match, each file still has a row: its root is none of the columns.
        odd = self.rows(
            f"SELECT file_name, any_value(name) FILTER ((type = 'BYTE_ARRAY') != is_text) AS mistyped, "
            f"count(*) FILTER (name = {text_of(first)}) AS of_first "
            f"FROM parquet_schema({names}) LEFT JOIN (VALUES {wanted}) AS w (name, is_text) USING (name) "
            "GROUP BY file_name HAVING mistyped IS NOT NULL OR of_first = 0 ORDER BY file_name LIMIT 1"
        )
        if (odd_file := next(odd, None)) is not None:
            file, mistyped, _ = odd_file
            what = f"column {mistyped} of another type" if mistyped else f"no column {first}"
            raise DamagedFileError(f"{file}: has {what}, so it is not what was written")

    def to_parquet(self, sql: str, folder: str, partition_by: Sequence[str] = ()) -> None:
        """Write the rows of a query; see ``Database.to_parquet``."""
        folder = local_path(folder)
        Path(folder).mkdir(parents=True, exist_ok=True)
        if partition_by:
            columns = ", ".join(partition_by)
            self.run(f"COPY ({sql}) TO {text_of(folder)} (FORMAT parquet, PARTITION_BY ({columns}))")
        else:
            self.run(f"COPY ({sql}) TO {text_of(f'{folder}/part-0.parquet')} (FORMAT parquet)")

    def rows_to_parquet(
        self, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], folder: str
    ) -> None:
        """Write rows into a folder; what was in it is replaced."""
        shutil.rmtree(local_path(folder), ignore_errors=True)
        lines = self._folder.path / "rows.jsonl"
        with lines.open("wb") as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        types = ", ".join(f"{text_of(name)}: {text_of(of_type)}" for name, of_type in columns.items())
        self.to_parquet(f"SELECT * FROM read_ndjson({text_of(str(lines))}, columns = {{{types}}})", folder)
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

    def run(self, sql: str) -> None:
        """Run a statement that has no result."""
        with interruptible():
            self.connection.execute(sql)

    def number(self, sql: str) -> int:
        """Return the one number that a query gives."""
        ((number,),) = self.rows(sql)
        return int(number)

    def name(self, what: str) -> str:
        """Return a name for a table or a view that none has yet."""
        return f"{what}_{next(self._numbers)}"


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise errors of ours for DuckDB's own of files, and KeyboardInterrupt for that after Ctrl-C."""
    try:
        yield
    except duckdb.Error as error:
        text = str(error).partition("\n")[0].strip()
        if type(error) is duckdb.Error:  # of what has no meaning in Parquet, say; it names no file
            raise DamagedFileError(f"a Parquet file may be damaged ({text})") from error
        if TOO_LONG in str(error) or not isinstance(error, duckdb.IOException | duckdb.InvalidInputException):
            raise
        # A file that is cut off or damaged, or a disk that is full; its first line has the file's name.
        raise (DamagedFileError if _DAMAGED.search(text) else StorageError)(text) from error
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise

"""What a history needs of the database that reads events and adds them up: DuckDB's, or Spark's.

Facts are small (of 10 million events of ``bench.history``, 72 MB of Parquet), so Spark could read and
classify alone, and leave the rest to DuckDB. Against it: the dialects differ in classifying alone, so both
would stay; executors would need a shared folder to hand facts over; a store that only Hadoop reaches would be
copied to the driver and back, with all checkpoints of a report's charts; and Spark would need DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from spark_events.history.reading.facts import Reading
from spark_events.history.reading.plausible import PossibleTimes


class Database(Protocol):
    """Runs the SQL of a history, which is the same everywhere; the relations it makes are named by it."""

    def read_facts(self, paths: Sequence[str], times: PossibleTimes) -> tuple[str, Reading]:
        """Read stored events.

        Args:
            paths: files, folders with all that is below, and globs.
            times: the possible ones.

        Returns:
            A relation of ``facts.COLUMNS``, each fact once, and how reading went.

        Raises:
            ConfigError: there is nothing at a path, or it cannot be read.
        """

    def each_once(self, relations: Sequence[str]) -> str:
        """Return a relation of the facts of some relations, each once, judging by their ids."""

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Run a query, and yield its rows in order."""

    def from_parquet(self, folders: Sequence[str], columns: Mapping[str, str]) -> str:
        """Return what to select from for the rows of those of the folders that exist."""

    def to_parquet(self, sql: str, folder: str, partition_by: Sequence[str] = ()) -> None:
        """Write the rows of a query into a folder that is not there yet, a folder for each partition."""

    def rows_to_parquet(
        self, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], folder: str
    ) -> None:
        """Write rows into a folder; what was in it is replaced."""

    def tables_to_parquet(
        self,
        tables: Mapping[str, Iterable[Mapping[str, Any]]],
        columns: Mapping[str, Mapping[str, str]],
        folder: str,
    ) -> None:
        """Write tables into a folder of their name each, below one folder; what was in these is replaced."""

    def files(self, folder: str) -> Files:
        """Return the access to the files in a folder."""

    def progress(self) -> float | None:
        """Return how much of the statement that runs is done, in percent; None if nobody knows.

        It may be called on another thread than the statement.
        """

    def close(self) -> None:
        """Release what it holds."""


class Files(Protocol):
    """The files in a folder, by names relative to it."""

    def names(self) -> list[str]:
        """Return the names in the folder itself; none if it does not exist."""

    def sizes(self) -> dict[str, int]:
        """Return how many bytes the files in the folder itself have, by name; none if it does not exist."""

    def exists(self, name: str) -> bool:
        """Return whether there is such a file or folder."""

    def read(self, name: str) -> bytes:
        """Return what is in a file."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file in one step, unless there is one; return whether it is written."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it need not be there."""

"""Keeps the facts of a history, so that a day's events are added without reading the rest again.

A store is a folder on any of Hadoop's file systems. Its index names, for each UTC day, the folder with the
day's facts and sums. Adding events writes the affected days into a new folder, and then replaces the index,
which makes them visible all at once; an interrupted run leaves the store as it was. Only one process may add
at a time.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_events.api import ConfigError
from spark_events.history.checkpoints import checkpoint_days
from spark_events.history.facts import CHECKPOINT, SCHEMA, SEEN, FactReader, Reading, each_once
from spark_events.history.history import History, period_of
from spark_events.history.plausible import PossibleTimes, iso_day
from spark_events.history.sla import Sla

_VERSION = 1
_FILE = "store.json"
_FOLDER_PREFIX = "part-"
_PARTS = ("checkpoints", "others")
"""The facts of a day lie in two folders; reports read single checkpoints seldom."""
_Days = dict[str, dict[str, Any]]
"""By the day, as ``2026-11-21``: its ``folder``, and the ``sla`` that its sums were made with."""


class HistoryStore:
    """A folder with the facts of a history, day by day.

    Args:
        spark: a classic session.
        path: the folder; made by the first ``add``.
        times: the possible ones; from 2009 to a day from now by default. Days of other times are left out.

    Raises:
        ConfigError: the folder is not that of a store, or of a store of another version.
    """

    def __init__(self, spark: SparkSession, path: str, times: PossibleTimes | None = None) -> None:
        self._times = times or PossibleTimes()
        self._spark = spark
        self._path = path.rstrip("/")
        self._index = _StoreIndex(spark, self._path)

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
        reader = FactReader(self._spark, paths, self._times)
        new = each_once(reader.facts).persist(StorageLevel.MEMORY_AND_DISK)
        touched_days = [str(row["date"]) for row in new.select("date").distinct().collect()]
        reading = reader.reading()
        old = self._facts([day for day in touched_days if day in self._index.days])
        merged = each_once(new.unionByName(old)).persist(StorageLevel.MEMORY_AND_DISK)
        counted = F.col("fact") != SEEN
        reading.duplicates = reading.facts + old.where(counted).count() - merged.where(counted).count()
        sla = sla or Sla()
        folder = self._write(merged, sla)
        for frame in (new, merged):
            frame.unpersist()
        self._index.commit({day: {"folder": folder, "sla": asdict(sla)} for day in touched_days})
        return reading

    def _write(self, facts: DataFrame, sla: Sla) -> str:
        """Write facts and their sums into a new folder, and return its name."""
        folder = f"{_FOLDER_PREFIX}{uuid.uuid4().hex}"
        part = F.when(F.col("fact") == CHECKPOINT, "checkpoints").otherwise("others")
        parts = facts.withColumn("part", part)
        parts.write.partitionBy("part", "date").parquet(f"{self._path}/{folder}/facts")
        checkpoint_days(facts, sla).write.partitionBy("date").parquet(f"{self._path}/{folder}/sums")
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
        others = self._facts(self.days, ["others"]).persist(StorageLevel.MEMORY_AND_DISK)
        checkpoints = self._facts(self.days, ["checkpoints"])
        # All days except the first and the last lie completely within the period.
        outer = self._facts([self.days[0], self.days[-1]], ["checkpoints"])
        times = others.select("time_ms").unionByName(outer.select("time_ms"))
        period = period_of(times, span_ms, until_now, [self._path])
        return History(others, self._sums(sla, period.since_ms), checkpoints, sla, period)

    def _sums(self, sla: Sla, since_ms: int) -> DataFrame:
        """Return ``checkpoint_days``: as stored, but recomputed for days of another SLA and the first day."""
        first_day = iso_day(since_ms)
        entries = self._index.days
        written = [day for day in self.days if entries[day]["sla"] == asdict(sla) and day != first_day]
        anew = [day for day in self.days if day not in written]
        sums = checkpoint_days(self._facts(anew, ["checkpoints"]), sla, since_ms)
        if not written:
            return sums
        paths = [f"{entries[day]['folder']}/sums/date={day}" for day in written]
        of_written = self._parquet(paths, sums.schema)
        counted = F.col("date") >= F.lit(first_day).cast("date")
        return sums.unionByName(of_written.withColumn("counted", counted))

    def _facts(self, days: Sequence[str], parts: Sequence[str] = _PARTS) -> DataFrame:
        folders = {day: f"{self._index.days[day]['folder']}/facts" for day in days}
        paths = [f"{folders[day]}/part={part}/date={day}" for day in days for part in parts]
        return self._parquet(paths, SCHEMA)

    def _parquet(self, paths: Sequence[str], schema: Any) -> DataFrame:
        """Return the rows at those of the paths that exist."""
        existing = [path for path in (f"{self._path}/{path}" for path in paths) if self._index.exists(path)]
        if not existing:
            # In the JVM only: createDataFrame would need Python on the executors.
            empty = self._spark.range(0).select(F.from_json(F.lit(""), schema).alias("row"))
            return empty.select("row.*")
        frame = self._spark.read.schema(schema).parquet(*existing)
        # The day is in the folder's name.
        day = F.regexp_extract(F.col("_metadata.file_path"), r"/date=([\d-]+)/", 1)
        return frame.withColumn("date", day.cast("date"))


class _StoreIndex:
    """The file ``store.json`` in the folder of a store; ``days`` are as it was last read or written."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self._folder = self._hadoop_path(path)
        self._files = self._folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self.days = self._read()

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._hadoop_path(path)))

    def commit(self, changed: _Days) -> None:
        """Write the index with other folders for some days, and remove the folders that no day has now."""
        if self._read() != self.days:
            raise ConfigError(f"{self._path}: another process added to the store meanwhile; run it again")
        self.days = {**self.days, **changed}
        new = self._hadoop_path(f"{self._path}/_{_FILE}.new")
        stream = self._files.create(new, True)
        content = {"version": _VERSION, "days": self.days}
        stream.write(bytearray(orjson.dumps(content, option=orjson.OPT_INDENT_2)))
        stream.close()
        self._replace(new, self._hadoop_path(f"{self._path}/{_FILE}"))
        self._remove_unused_folders()

    def _read(self) -> _Days:
        path = f"{self._path}/{_FILE}"
        if not self.exists(path):
            strange = [name for name in self._names() if not name.startswith((_FOLDER_PREFIX, f"_{_FILE}"))]
            if strange:
                raise ConfigError(f"{self._path}: has no {_FILE} but {strange[0]}: it is no store")
            return {}
        stream = self._files.open(self._hadoop_path(path))
        try:
            text = self._spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        content = orjson.loads(text)
        if content.get("version") != _VERSION:
            raise ConfigError(f"{path}: version {content.get('version')!r}; {_VERSION} is known")
        days: _Days = content["days"]
        return days

    def _remove_unused_folders(self) -> None:
        """Remove the folders that no day uses: replaced ones, and leftovers of an interrupted run."""
        used = {day["folder"] for day in self.days.values()}
        for name in self._names():
            if name.startswith(_FOLDER_PREFIX) and name not in used:
                self._files.delete(self._hadoop_path(f"{self._path}/{name}"), True)

    def _names(self) -> list[str]:
        if not self._files.exists(self._folder):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._folder)]

    def _replace(self, source: Any, target: Any) -> None:
        """Rename a file over another; a FileSystem's own rename refuses to overwrite."""
        fs = self._spark._jvm.org.apache.hadoop.fs
        context = self._spark.sparkContext
        files = fs.FileContext.getFileContext(self._folder.toUri(), context._jsc.hadoopConfiguration())
        options = context._gateway.new_array(fs.Options.Rename, 1)
        options[0] = fs.Options.Rename.OVERWRITE
        files.rename(source, target, options)

    def _hadoop_path(self, path: str) -> Any:
        return self._spark._jvm.org.apache.hadoop.fs.Path(path)

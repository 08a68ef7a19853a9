"""Keeps the facts of a history, so that a day's events are added without reading the rest again.

A store is a folder on any of Hadoop's file systems: ``store.json`` names, for each day in UTC, the folder
that has its facts and sums. Adding events writes the days that they touch into a new folder, and then
``store.json`` anew, which makes them visible at once; a run that is cut off leaves the store as it was. One
process adds at a time.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import orjson
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812

from spark_events.api import ConfigError
from spark_events.history.checkpoints import Sla, checkpoint_days
from spark_events.history.facts import CHECKPOINT, SCHEMA, SEEN, FactReader, Reading, each_once
from spark_events.history.history import History, window_of
from spark_events.history.plausible import PossibleTimes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_VERSION = 1
_INDEX = "store.json"
_PART = "part-"


class HistoryStore:
    """A folder with the facts of a history, day by day.

    Args:
        spark: a classic session.
        path: the folder; made by the first ``add``.
        times: which can be; from 2009 to a day from now by default. Days of others are left out.

    Raises:
        ConfigError: what is there is no store, or one of another version.
    """

    def __init__(self, spark: SparkSession, path: str, times: PossibleTimes | None = None) -> None:
        self._times = times or PossibleTimes()
        self._spark = spark
        self._path = path.rstrip("/")
        jvm = spark._jvm
        self._folder = jvm.org.apache.hadoop.fs.Path(self._path)
        self._files = self._folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self._index = self._read_index()

    @property
    def days(self) -> Sequence[str]:
        """The days that it has, as ``2026-11-21``, in order."""
        return sorted(day for day in self._index if self._times.has_day(day))

    def add(self, paths: Sequence[str], sla: Sla | None = None) -> Reading:
        """Add the events at some paths; those that are there already are dropped by their ids.

        Args:
            paths: files, folders and globs.
            sla: with which the sums are made; a history with another one makes them anew from the facts.

        Returns:
            How reading went.

        Raises:
            ConfigError: there is nothing at a path, or another process added at the same time.
        """
        before = dict(self._index)
        reader = FactReader(self._spark, paths, self._times)
        new = each_once(reader.facts).persist(StorageLevel.MEMORY_AND_DISK)
        touched = [str(row["date"]) for row in new.select("date").distinct().collect()]
        reading = reader.reading()
        old = self._facts([day for day in touched if day in before])
        merged = each_once(new.unionByName(old)).persist(StorageLevel.MEMORY_AND_DISK)
        folder = f"{_PART}{uuid.uuid4().hex}"
        is_checkpoint = F.col("fact") == CHECKPOINT
        parts = merged.withColumn("part", F.when(is_checkpoint, "checkpoints").otherwise("others"))
        parts.write.partitionBy("part", "date").parquet(f"{self._path}/{folder}/facts")
        kept = F.col("fact") != SEEN
        reading.duplicates = reading.facts + old.where(kept).count() - merged.where(kept).count()
        sla = sla or Sla()
        checkpoint_days(merged, sla).write.partitionBy("date").parquet(f"{self._path}/{folder}/sums")
        for frame in (new, merged):
            frame.unpersist()
        self._commit(before, {day: {"folder": folder, "sla": _as_json(sla)} for day in touched})
        return reading

    def history(self, sla: Sla | None = None, since: int | None = None, until_now: bool = False) -> History:
        """Return the history of all that was added.

        Args:
            sla: the longest time between two checkpoints; 60 s by default.
            since: what was before is left out: ms before the end, all where it is None.
            until_now: whether what was heard last holds until now.

        Raises:
            ConfigError: nothing was added yet.
        """
        if not self.days:
            raise ConfigError(f"{self._path}: the store is empty; give paths of events to add")
        sla = sla or Sla()
        others = self._facts(self.days, "others").persist(StorageLevel.MEMORY_AND_DISK)
        single = self._facts(self.days, "checkpoints")
        # All days but the first and the last lie within.
        ends = self._facts([self.days[0], self.days[-1]], "checkpoints")
        times = others.select("time_ms").unionByName(ends.select("time_ms"))
        window = window_of(times, since, until_now, [self._path])
        return History(others, self._sums(sla, window.since_ms), single, sla, window)

    def _sums(self, sla: Sla, since_ms: int) -> DataFrame:
        """Return ``checkpoint_days``: as written, or anew where the SLA or the window is another."""
        first_day = datetime.fromtimestamp(since_ms / 1_000, timezone.utc).date().isoformat()
        written = [day for day in self.days if self._index[day]["sla"] == _as_json(sla) and day != first_day]
        anew = [day for day in self.days if day not in written]
        sums = checkpoint_days(self._facts(anew, "checkpoints"), sla, since_ms)
        if not written:
            return sums
        read = self._parquet(
            [f"{self._index[day]['folder']}/sums/date={day}" for day in written], sums.schema
        )
        return sums.unionByName(read.withColumn("counted", F.col("date") >= F.lit(first_day).cast("date")))

    def _facts(self, days: Sequence[str], part: str = "*") -> DataFrame:
        parts = ("checkpoints", "others") if part == "*" else (part,)
        paths = [f"{self._index[day]['folder']}/facts/part={p}/date={day}" for day in days for p in parts]
        return self._parquet(paths, SCHEMA)

    def _parquet(self, paths: Sequence[str], schema: Any) -> DataFrame:
        whole = [f"{self._path}/{path}" for path in paths]
        there = [path for path in whole if self._exists(path)]
        if not there:
            # By the JVM alone: createDataFrame would ask for Python on the executors.
            nothing = self._spark.range(0).select(F.from_json(F.lit(""), schema).alias("row"))
            return nothing.select("row.*")
        frame = self._spark.read.schema(schema).parquet(*there)
        # The day is in the folder's name.
        day = F.regexp_extract(F.col("_metadata.file_path"), r"/date=([\d-]+)/", 1)
        return frame.withColumn("date", day.cast("date"))

    # -- the index -----------------------------------------------------------------------------------

    def _exists(self, path: str) -> bool:
        return bool(self._files.exists(self._spark._jvm.org.apache.hadoop.fs.Path(path)))

    def _place(self, name: str) -> Any:
        return self._spark._jvm.org.apache.hadoop.fs.Path(self._folder, name)

    def _read_index(self) -> dict[str, dict[str, Any]]:
        if not self._files.exists(self._place(_INDEX)):
            strange = [name for name in self._names() if not name.startswith((_PART, f"_{_INDEX}"))]
            if strange:
                raise ConfigError(f"{self._path}: has no {_INDEX} but {strange[0]}: it is no store")
            return {}
        stream = self._files.open(self._place(_INDEX))
        try:
            text = self._spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        found = orjson.loads(text)
        if found.get("version") != _VERSION:
            raise ConfigError(f"{self._path}/{_INDEX}: version {found.get('version')!r}; {_VERSION} is known")
        days: dict[str, dict[str, Any]] = found["days"]
        return days

    def _commit(self, before: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
        if self._read_index() != before:
            raise ConfigError(f"{self._path}: another process added to the store meanwhile; run it again")
        self._index = {**before, **changed}
        text = orjson.dumps({"version": _VERSION, "days": self._index}, option=orjson.OPT_INDENT_2)
        new = self._place(f"_{_INDEX}.new")
        stream = self._files.create(new, True)
        stream.write(bytearray(text))
        stream.close()
        self._rename(new, self._place(_INDEX))
        kept = {day["folder"] for day in self._index.values()}
        # Also those that a run left behind which was cut off.
        for name in self._names():
            if name.startswith(_PART) and name not in kept:
                self._files.delete(self._place(name), True)

    def _names(self) -> list[str]:
        if not self._files.exists(self._folder):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._folder)]

    def _rename(self, source: Any, target: Any) -> None:
        jvm = self._spark._jvm
        context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._folder.toUri(), self._spark.sparkContext._jsc.hadoopConfiguration()
        )
        options = self._spark.sparkContext._gateway.new_array(jvm.org.apache.hadoop.fs.Options.Rename, 1)
        options[0] = jvm.org.apache.hadoop.fs.Options.Rename.OVERWRITE
        # FileSystem's own rename refuses to overwrite.
        context.rename(source, target, options)


def _as_json(sla: Sla) -> dict[str, Any]:
    return {"default_ms": sla.default_ms, "by_query": dict(sla.by_query)}

"""Reads stored events into one DataFrame of Spark, whatever wrote them.

Three things write events: the reporter ``file_log`` (a JSON object a line), ``spark-events replay
--on-spark`` (Parquet, or JSON lines), and the file exporter of an OpenTelemetry Collector (an OTLP request a
line).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_secrets_of
from spark_events.history.reading.stored_forms import LINEAGE, NOTHING, OWN_NAME, SPANS
from spark_events.runtime.log_once import logger

_VALUE = "struct<stringValue:string,intValue:string,doubleValue:string,boolValue:string>"
_LOG_RECORD = (
    "struct<timeUnixNano:string,eventName:string,severityText:string,"
    f"attributes:array<struct<key:string,value:{_VALUE}>>>"
)
_JSON = (
    "eventName string, eventId string, timeUnixNano string, time string, attributes map<string,string>, "
    f"resourceLogs array<struct<scopeLogs:array<struct<logRecords:array<{_LOG_RECORD}>>>>>, "
    "resourceSpans string, resourceMetrics string, traceId string, _corrupt_record string"
)
_PARQUET = "eventId string, eventName string, time timestamp, attributes map<string,string>"
_JSON_FILES = "*.{json,jsonl,json.*,jsonl.*}"
_PEEKED_FILES = 1_000


def read_stored_events(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Read the events at some paths.

    Args:
        spark: a classic session, not one of Spark Connect.
        paths: files, folders (read with all that is below) and globs, on any of Hadoop's file systems.

    Returns:
        ``event_id``, ``event_name``: strings, null where the record lacks them; ``time_ms``: long, since the
        epoch; ``attributes``: map of strings; ``file``: that has the record; ``unreadable``: whether the
        line is not JSON, or not such as events are; ``other``: whether it is a record of another kind, a span
        or a metric.

    Raises:
        ConfigError: there is nothing at a path.
    """
    names = {path: _file_names(spark, path) for path in paths}
    json = [path for path in paths if not all(name.endswith(".parquet") for name in names[path])]
    parquet = [path for path in paths if any(name.endswith(".parquet") for name in names[path])]
    if not parquet:
        return _from_json(spark, json, mixed=False)
    if not json:
        return _from_parquet(spark, parquet)
    return _from_json(spark, json, mixed=True).unionByName(_from_parquet(spark, parquet))


def _file_names(spark: SparkSession, path: str) -> list[str]:
    """Return the names of the first files at a path, and below."""
    from py4j.protocol import Py4JJavaError

    try:
        pattern = spark._jvm.org.apache.hadoop.fs.Path(path)
        file_system = pattern.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        matches = file_system.globStatus(pattern) or ()
        names = [name for status in matches for name in _names_below(file_system, status)]
    except Py4JJavaError as error:
        reason = text_without_secrets_of(path, str(error.java_exception.toString()))
        raise ConfigError(f"{path_without_secrets(path)}: cannot be read: {reason}") from error
    if not names:
        raise NothingToReadError(f"{path_without_secrets(path)}: {NOTHING}")
    return names


def _names_below(file_system: Any, status: Any) -> list[str]:
    if not status.isDirectory():
        return [str(status.getPath().getName())]
    below: list[str] = []
    files = file_system.listFiles(status.getPath(), True)
    while files.hasNext() and len(below) < _PEEKED_FILES:
        below.append(str(files.next().getPath().getName()))
    if own := sum(re.search(OWN_NAME, name) is not None for name in below):
        logger.warning(
            "%s: %d or more files of file logs are left out, because Spark hides what begins with '_': read "
            "them with --engine local, or rename them",
            status.getPath().toString(),
            own,
        )
    return [name for name in below if not name.startswith(("_", "."))]  # Spark reads none of these


def _from_json(spark: SparkSession, paths: list[str], mixed: bool) -> DataFrame:
    reader = spark.read.schema(_JSON).option("recursiveFileLookup", True)
    if mixed:
        reader = reader.option("pathGlobFilter", _JSON_FILES)
    lines = reader.json(paths).where(~F.col("_metadata.file_name").rlike(f"{SPANS}|{LINEAGE}"))
    lines = lines.select("*", F.col("_metadata.file_path").alias("file"))
    requests = F.flatten(F.transform(F.flatten("resourceLogs.scopeLogs"), lambda scope: scope["logRecords"]))
    records = lines.select("*", F.explode_outer(requests).alias("record"))
    record = F.col("record")
    attributes = F.when(record.isNull(), F.col("attributes")).otherwise(_as_map(record["attributes"]))
    other = F.coalesce("resourceSpans", "resourceMetrics", "traceId").isNotNull()
    nanos = "try_cast(coalesce(record.timeUnixNano, timeUnixNano) as bigint)"
    flat = records.select(
        F.coalesce(record["eventName"], "eventName").alias("event_name"),
        F.col("eventId").alias("event_id"),
        F.expr(f"coalesce({nanos} div 1000000, unix_millis(try_cast(time as timestamp)))").alias("time_ms"),
        attributes.alias("attributes"),
        "file",
        (F.col("_corrupt_record").isNotNull() | attributes.isNull()).alias("unreadable"),
        (other & F.coalesce("eventName", "eventId").isNull()).alias("other"),
    )
    # In OTLP, the id is one of the attributes; so is the name, where a collector's filelog receiver read it.
    attribute = F.col("attributes")
    flat = flat.withColumn("event_id", F.coalesce("event_id", attribute["event.id"]))
    return flat.withColumn("event_name", F.coalesce("event_name", attribute["event.name"]))


def _as_map(pairs: Any) -> Any:
    """Return OTLP's list of attributes as a map; of two with one key, the first counts."""
    keys = F.array_distinct(pairs["key"])

    def value_of(key: Any) -> Any:
        value = F.get(pairs["value"], F.call_function("array_position", pairs["key"], key).cast("int") - 1)
        return F.coalesce(*(value[kind] for kind in ("stringValue", "intValue", "doubleValue", "boolValue")))

    return F.map_from_arrays(keys, F.transform(keys, value_of))


def _from_parquet(spark: SparkSession, paths: list[str]) -> DataFrame:
    reader = spark.read.schema(_PARQUET).option("recursiveFileLookup", True)
    return (
        reader.option("pathGlobFilter", "*.parquet")
        .parquet(*paths)
        .select(
            F.col("eventName").alias("event_name"),
            F.col("eventId").alias("event_id"),
            F.unix_millis("time").alias("time_ms"),
            "attributes",
            F.col("_metadata.file_path").alias("file"),
            F.col("attributes").isNull().alias("unreadable"),
            F.lit(False).alias("other"),
        )
    )

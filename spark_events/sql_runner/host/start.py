"""Starts a prepared query: its name, its checkpoint, its trigger, its sink."""

from __future__ import annotations

from typing import Any

import orjson

from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.prepared import PreparedQuery
from spark_events.sql_runner.analysis.target import TargetTable
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import DeployedQuery
from spark_events.sql_runner.store.savepoints import begin_checkpoint
from spark_events.sql_runner.store.store import Store

_SINK = "spark-events-sink.json"
_SINK_LOG = "_spark_metadata"
_POOL = "spark.scheduler.pool"


def start_query(prepared: PreparedQuery, deployed: DeployedQuery, store: Store) -> Any:
    """Start a query, from its checkpoint.

    Its jobs run in their own FAIR pool, if the application uses such pools.

    Returns:
        PySpark's StreamingQuery.
    """
    manifest, meta = deployed.manifest, deployed.meta
    begin_checkpoint(store, meta)
    # The query's thread inherits this thread's local properties.
    prepared.session.sparkContext.setLocalProperty(_POOL, manifest.name)
    writer = (
        prepared.rows.writeStream.queryName(manifest.name)
        .outputMode(manifest.output_mode)
        .option("checkpointLocation", store.spark_url(meta.checkpoint))
    )
    if manifest.trigger is not None:
        writer = writer.trigger(**manifest.trigger.options)
    return _start_into(writer, prepared, manifest, _batches_before(prepared, meta.checkpoint, store))


def _start_into(writer: Any, prepared: PreparedQuery, manifest: Manifest, batches_before: int) -> Any:
    target = prepared.target
    if batches_before:
        writer._jwrite = writer._jwrite.foreachBatch(_later_sink(prepared, batches_before))
        return writer.start()
    if target.provider:
        options = {key: value for key, value in target.options.items() if key.lower() != "path"}
        writer = writer.format(target.provider).options(**options)
    if target.partitions:
        writer = writer.partitionBy(*target.partitions)
    return writer.toTable(manifest.target_table)


def _batches_before(prepared: PreparedQuery, checkpoint: str, store: Store) -> int:
    """Return how many micro-batches other queries had written into a folder when this checkpoint began.

    Spark considers a batch written if its number alone is in the folder's log.
    """
    if not prepared.target.has_file_sink:
        return 0
    path = f"{checkpoint}/{_SINK}"
    sink = store.read(path)
    if sink is None:
        sink = orjson.dumps({"batchesBefore": _logged_batches(prepared.session, prepared.target)})
        store.write(path, sink)
    return int(orjson.loads(sink)["batchesBefore"])


def _logged_batches(session: Any, target: TargetTable) -> int:
    jvm = session._jvm
    folder = jvm.org.apache.hadoop.fs.Path(target.location, _SINK_LOG)
    files = folder.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
    if not files.exists(folder):
        return 0
    names = [status.getPath().getName().partition(".")[0] for status in files.listStatus(folder)]
    return max((int(name) + 1 for name in names if name.isdigit()), default=0)


def _later_sink(prepared: PreparedQuery, batches_before: int) -> Any:
    target = prepared.target
    return entry_of(prepared.session).laterFileSink(
        target.location, target.provider, list(target.partitions), target.options, batches_before
    )

"""Starts a prepared query: its name, its checkpoint, its trigger, its sink."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.prepared import PreparedQuery, prepare
from spark_events.sql_runner.host.resuming import Resuming, begun, resuming
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.checkpoints import begin_checkpoint, query_id_of
from spark_events.sql_runner.store.deployed import DeployedQuery
from spark_events.sql_runner.store.store import Store

_POOL = "spark.scheduler.pool"
_STATE_CHECK = "spark.sql.streaming.stateStore.commitValidation.enabled"


def start_query(session: Any, deployed: DeployedQuery, store: Store) -> Any:
    """Start a query, from its checkpoint.

    Its jobs run in their own FAIR pool, if the application uses such pools.

    Args:
        session: the query's own, in which its tables are known.
        deployed: the query.
        store: has the checkpoint.

    Returns:
        PySpark's StreamingQuery.

    Raises:
        StateLost: it cannot continue from the checkpoint.
    """
    manifest = deployed.manifest
    is_new = not query_id_of(store, deployed.meta.checkpoint)
    meta = begun(store, deployed)
    prepared = prepare(session, manifest, meta)
    resumed = resuming(prepared, meta, store)
    if resumed.query_id != meta.query_id:  # each row has the id
        meta = replace(meta, query_id=resumed.query_id)
        prepared = prepare(session, manifest, meta)
    # The query's thread inherits this thread's local properties.
    prepared.session.sparkContext.setLocalProperty(_POOL, manifest.name)
    writer = (
        prepared.rows.writeStream.queryName(manifest.name)
        .outputMode(manifest.output_mode)
        .option("checkpointLocation", store.spark_url(meta.checkpoint))
    )
    if manifest.trigger is not None:
        writer = writer.trigger(**manifest.trigger.options)
    if is_new:
        # An old one is taken for that of an earlier run, and to prepare a query may take a while.
        begin_checkpoint(store, meta.checkpoint, meta.query_id)
    return _start_into(writer, prepared, manifest, resumed)


def _start_into(writer: Any, prepared: PreparedQuery, manifest: Manifest, resumed: Resuming) -> Any:
    target = prepared.target
    if resumed.batches_before:
        # A batch that the folder's log drops computes no state: Spark 4.1 forbids that in foreachBatch alone.
        prepared.session.conf.set(_STATE_CHECK, "false")
        writer._jwrite = writer._jwrite.foreachBatch(_later_sink(prepared, resumed.batches_before))
        return writer.start()
    if target.provider:
        options = {key: value for key, value in target.options.items() if key.lower() != "path"}
        writer = writer.format(target.provider).options(**options)
    if target.partitions:
        writer = writer.partitionBy(*target.partitions)
    return writer.toTable(manifest.target_table)


def _later_sink(prepared: PreparedQuery, batches_before: int) -> Any:
    target = prepared.target
    return entry_of(prepared.session).laterFileSink(
        target.location, target.provider, list(target.partitions), target.options, batches_before
    )

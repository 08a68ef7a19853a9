"""Whether a streaming query continues from a checkpoint of earlier runs, which Spark's records do not say."""

from __future__ import annotations

import time
from typing import Any

from spark_events.listeners.queries.micro_batch import parse_micro_batch
from spark_events.runtime.log_once import logger

_CLEARLY_OLDER_MS = 10_000
_NONE_KNOWN = -1
_TRIES = 20
_TRY_AGAIN_S = 0.05


def resumed_after(jvm: Any, query: Any, started_ms: int) -> int | None:
    """Ask a query that has just started for the last batch that earlier runs have committed.

    Args:
        jvm: py4j's view of the driver's JVM.
        query: Spark's StreamExecution.
        started_ms: when this run started, in ms since the epoch.

    Returns:
        The batch; -1 if earlier runs are known to have been, but not what they have committed. None for a
        query that is new, or of which this is not known.
    """
    committed = _committed_before(query)
    if committed is None and _is_older(jvm, query, started_ms):
        return _NONE_KNOWN
    return committed


def _committed_before(query: Any) -> int | None:
    """Return the last batch that was committed before this run; None if the run itself may have done it.

    The run goes on meanwhile. A batch is committed first, then there is progress of it, and then comes the
    next: so without progress, this run has committed one batch at most, and that is the current one.
    """
    try:
        latest = query.commitLog().getLatestBatchId()
        if latest.isEmpty():
            return None
        committed = int(latest.get())
        for _ in range(_TRIES):
            current = _current_batch(query)
            if query.lastProgress() is not None:
                return None
            if current is None or current > committed:
                return committed
            # Either it has just committed this batch, or it reads what was committed before. Both pass.
            time.sleep(_TRY_AGAIN_S)
    except Exception as error:  # Spark internals, which no version promises
        logger.debug("could not read the commits of a query: %r", error)
        return None
    return committed - 1 if committed > 0 else None


def _current_batch(query: Any) -> int | None:
    """Return the batch that a run has come to; None before it knows."""
    from py4j.protocol import Py4JJavaError  # comes with PySpark

    try:
        batch = parse_micro_batch(query.getBatchDescriptionString())
    except Py4JJavaError:  # a null pointer: it has not begun
        return None
    return batch.number if batch is not None else None


def _is_older(jvm: Any, query: Any, started_ms: int) -> bool:
    """Return whether the checkpoint was made clearly before this run started."""
    try:
        path = jvm.org.apache.hadoop.fs.Path(str(query.resolvedCheckpointRoot()), "metadata")
        hadoop_conf = query.sparkSession().sparkContext().hadoopConfiguration()
        made_ms = int(path.getFileSystem(hadoop_conf).getFileStatus(path).getModificationTime())
    except Exception as error:  # no such file, no permission: it is not known
        logger.debug("could not read the age of a checkpoint: %r", error)
        return False
    return 0 < made_ms <= started_ms - _CLEARLY_OLDER_MS

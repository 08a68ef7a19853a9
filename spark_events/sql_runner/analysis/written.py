"""What a target's own log says of the micro-batches written to it.

Such a log makes the micro-batch that was broken off come once. It also makes a query that resumes from an
older state lose rows: what it does anew has numbers that the log has already.
"""

from __future__ import annotations

from typing import Any

from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.target import TargetTable

_SINK_LOG = "_spark_metadata"


def last_written(session: Any, target: TargetTable, query_id: str) -> int | None:
    """Return the last micro-batch that a target's log has; -1 for none, None if it keeps no such log.

    Args:
        session: knows the table.
        target: the table.
        query_id: Spark's id of the query. Delta and Iceberg keep one number for each; Spark's file sink keeps
            one for all queries.
    """
    if target.has_file_sink:
        return _last_in_folder(session, target)
    last = entry_of(session).lastWritten(target.name, target.provider, target.location, query_id)
    return None if last is None else int(last)


def _last_in_folder(session: Any, target: TargetTable) -> int:
    jvm = session._jvm
    folder = jvm.org.apache.hadoop.fs.Path(target.location, _SINK_LOG)
    files = folder.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
    if not files.exists(folder):
        return -1
    names = [status.getPath().getName().partition(".")[0] for status in files.listStatus(folder)]
    return max((int(name) for name in names if name.isdecimal()), default=-1)

"""The rule about files that are so small that opening them costs more than what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.thresholds import SMALL_FILES, Thresholds

_OPENING_BYTES = 4 << 20
_LARGE_BYTES = 128 << 20
_METRICS = {"Read": "number of files read", "Written": "number of written files"}
_PARTITIONS = "number of dynamic part"
_WAYS = (
    (
        "Read",
        "reads",
        "Compact the table (OPTIMIZE in Delta, rewrite_data_files in Iceberg), or let those who write it "
        "write fewer files: repartition before the write, or a longer trigger interval.",
    ),
    (
        "Written",
        "writes",
        "Write fewer files: repartition by the columns of partitionBy before the write, or coalesce(); in "
        "SQL, the hint /*+ REBALANCE */.",
    ),
)


def small_files(
    files: Mapping[str, int], execution: EndedExecution, thresholds: Thresholds
) -> Iterator[Issue]:
    """Yield that an SQL execution reads, or writes, many small files.

    What that costs in bytes is Spark's own estimate: to open a file costs as much as to read 4 MiB
    (``spark.sql.files.openCostInBytes``); what it costs in time is that share of the stages that do it.

    Args:
        files: ``Read`` and ``Written``, how many; ``Read Bytes`` and ``Written Bytes``.
        execution: that read or wrote them.
        thresholds: from when on files are many, and small.
    """
    for field, verb, advice in _WAYS:
        number, total = files.get(field, 0), files.get(f"{field} Bytes", 0)
        # A size that is missing is not a measurement.
        if number <= thresholds.many_files or not 0 < total < thresholds.small_file_bytes * number:
            continue
        nodes = [node for node in execution.nodes() if node.metrics.get(_METRICS[field])]
        of_table = sum(node.metrics.get(_PARTITIONS, 0) for node in nodes)  # each of which needs a file
        enough = min(number, max(-(-total // _LARGE_BYTES), of_table))
        saved_bytes = (number - enough) * _OPENING_BYTES
        stages = frozenset().union(*(node.stages for node in nodes))
        wall_ms = execution.wall_ms(stages)
        tables = list(dict.fromkeys(filter(None, (node.table() for node in nodes))))
        of_tables = f" of {', '.join(tables[:3])}" if tables else ""
        yield Issue(
            SMALL_FILES,
            f"{SMALL_FILES} {verb}",
            wall_ms * saved_bytes // (number * _OPENING_BYTES + total) if wall_ms else None,
            saved_bytes,
            f"{verb} {number:,} files{of_tables}, of {size(total / number)} each on average; "
            f"{enough:,} would do",
            advice,
            evidence={"files": number, "fileBytes": total, "meanFileBytes": total // number},
            stages=stages,
        )

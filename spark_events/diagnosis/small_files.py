"""The rule about files that are so small that opening them costs more than what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import SMALL_FILES, Thresholds

_OPENING_BYTES = 4 << 20
_LARGE_BYTES = 128 << 20
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


def small_files(files: Mapping[str, int], thresholds: Thresholds) -> Iterator[Issue]:
    """Yield that an SQL execution reads, or writes, many small files.

    What that costs is Spark's own estimate: to open a file costs as much as to read 4 MiB
    (``spark.sql.files.openCostInBytes``).

    Args:
        files: ``Read`` and ``Written``, how many; ``Read Bytes`` and ``Written Bytes``.
        thresholds: from when on files are many, and small.
    """
    for field, verb, advice in _WAYS:
        number, total = files.get(field, 0), files.get(f"{field} Bytes", 0)
        # No size is no measurement.
        if number <= thresholds.many_files or not 0 < total < thresholds.small_file_bytes * number:
            continue
        enough = -(-total // _LARGE_BYTES)
        yield Issue(
            SMALL_FILES,
            f"{SMALL_FILES} {verb}",
            None,
            (number - enough) * _OPENING_BYTES,
            f"{verb} {number:,} files of {size(total / number)} each on average; {enough:,} would do",
            advice,
            evidence={"files": number, "fileBytes": total, "meanFileBytes": total // number},
        )

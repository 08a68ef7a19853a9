"""The rule about files that are so small that opening them costs more than what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.costly_nodes.scans import PARTITIONS, reads_all_for_a_time
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import BROADCAST_JOIN, has_further_condition, key_ids
from spark_events.diagnosis.plans.node import FILES, MOVES, Node, listed, without_ids
from spark_events.diagnosis.plans.work_in_stage import MEASURED_TIMES, SCAN_TIME, above, is_light
from spark_events.diagnosis.thresholds import SMALL_FILES, Thresholds

_OPENING_BYTES = 4 << 20
_MOST_OPENING_MS = 100
"""A file takes no longer, also in an object store; whatever else the stages do is not for files."""
_MOST_SHARE = 0.95
"""Something remains for what is in the files."""
_ROW_US, _BYTES_OF_MS = 10, 25_000
"""What a row and a byte need to be read or written, and sorted, if a task has a CPU for half of its time."""
_LARGE_BYTES = 128 << 20
WRITES = f"{SMALL_FILES} writes"
"""The cause of an issue that is about files that are written."""
_METRICS = {"Read": "number of files read", "Written": "number of written files"}
_FILES_OF_A_FOLDER = _FILES_OF_A_TASK = 2
_FILES_OF_A_TINY_FOLDER, _TINY_BYTES = 3, 1 << 20
"""With fewer files in folders of so few bytes, the folders cost as much as one file in each would save."""
_FOLDERS_BY = re.compile(
    r"InsertIntoHadoopFsRelationCommand \S+, (?:true|false), (?:[^\[\]]*, )?(\[[^\]]*\]), \w+, \["
)
_MANY_SCANS = 20
_FEWER_SCANS = (
    "They are read by {scans} scans, each of which has a task for itself: read them as one table "
    "(spark.read.parquet(*paths), or their folder), for Spark puts the small files of one scan together. If "
    "they are still many then, compact the table."
)
_FEWER_FOLDERS = (
    "These are {folders:,} partitions, with {files} each. Unless readers need a folder for each value, leave "
    "{column} out of partitionBy, or take a coarser one (a month, a bucket); filters on it then use the "
    "statistics of files."
)
_ELSE_ONE_OF_EACH = (
    " If they need it, repartition by the columns of partitionBy before the write: then one task writes each."
)
_FIELDS = (("Read", "reads"), ("Written", "writes"))
_COARSER_FOLDERS = (
    " The {folders:,} partitions hold only {each} each, too: unless readers need a folder for each value, "
    "leave the column that has most values out of partitionBy, or take a coarser one (a month, a bucket)."
)
_ONE_OF_EACH = (
    "Repartition by the columns of partitionBy before the write, so that one task writes each partition; in "
    "SQL, DISTRIBUTE BY them."
)
_WRITE_FEWER = (
    "Write fewer files: coalesce() or repartition() before the write; in SQL, the hint /*+ REBALANCE */."
)
_COMPACT = (
    "Compact the table (OPTIMIZE in Delta, rewrite_data_files in Iceberg), or let those who write it write "
    "fewer files: repartition before the write."
)
_LET_WRITE_FEWER = (
    "Let those who write these files write fewer: repartition before the write. Rewrite those that exist "
    "once, as fewer files."
)
_BY_STREAM = (
    " A streaming query writes them, one for each task of a micro-batch: with fewer shuffle partitions, or "
    "larger micro-batches, they are fewer and larger."
)
_PLAIN, _OF_SINK = ("InMemoryFileIndex", "CatalogFileIndex"), "MetadataLogFileIndex"
"""How Spark finds files of a folder or a table of its own, and those that a streaming query has written."""
_OF_FILES = ("Execute InsertIntoHadoopFsRelationCommand", "Execute InsertIntoHiveTable")
"""How the names of writes begin whose files the driver moves to their places, one by one."""
TABLES = "fileTables"
"""The evidence of which tables or paths the files are."""


def small_files(
    files: Mapping[str, int], execution: EndedExecution, thresholds: Thresholds, of_query: bool = False
) -> Iterator[Issue]:
    """Yield that an SQL execution reads, or writes, many small files.

    What that costs in bytes is Spark's own estimate: to open a file costs as much as to read 4 MiB
    (``spark.sql.files.openCostInBytes``); what it costs in time is that share of the stages that do it,
    and not more than 100 ms for a file, nor what their rows need. Where these stages do more than read, it
    is no more than their scans take, as far as Spark measures that.

    Args:
        files: ``Read`` and ``Written``, how many; ``Read Bytes`` and ``Written Bytes``; ``Written Parts``,
            the partitions of the table that were written.
        execution: that read or wrote them.
        thresholds: from when on files are many, and small.
        of_query: whether it is a micro-batch of a streaming query.
    """
    for field, verb in _FIELDS:
        number, total = files.get(field, 0), files.get(f"{field} Bytes", 0)
        if number <= thresholds.many_files:
            continue
        nodes = [node for node in execution.nodes() if node.metrics.get(_METRICS[field])]
        if field == "Read" and (small := _with_small_files(nodes, number, total, thresholds)):
            nodes = small
            number, total = (sum(node.metrics[name] for node in nodes) for name in FILES)
        # A size that is missing is not a measurement.
        if number <= thresholds.many_files or not 0 < total < thresholds.small_file_bytes * number:
            continue
        unneeded = filter(reads_all_for_a_time, nodes) if field == "Read" else ()
        if number <= _FILES_OF_A_FOLDER * sum(scan.metrics[PARTITIONS] for scan in unneeded):
            continue  # as many files as partitions, most of which should not be read at all
        advice, folders = _to_read_fewer(nodes, number), 0
        if field == "Written":
            folders = files.get("Written Parts", 0)
            columns = _folders_by(nodes)
            advice, folders = _to_write_fewer(
                number, total, folders, thresholds.many_files, columns, of_query
            )
        tables = list(dict.fromkeys(filter(None, (node.table() for node in nodes))))
        of_each = len(tables) if len(nodes) < _MANY_SCANS else 1  # many are folders of one table
        enough = min(number, max(-(-total // _LARGE_BYTES), folders, of_each))
        of_folders = ", one for each partition" if 1 < folders == enough else ""
        one_each = field == "Written" and not folders and files.get("Written Parts", 0) > 1
        if one_each:  # which readers may need
            of_folders = " without these partitions"
        saved_bytes = (number - enough) * _OPENING_BYTES
        # The sink of a streaming query is in no plan: it writes what comes out of that of the micro-batch.
        top = nodes or execution.plans[:1]
        stages = frozenset().union(*(node.stages for node in top))
        if field == "Written" and not stages:
            stages = _last_stage(execution)
        wall_ms = execution.wall_ms(stages)
        shown = list(dict.fromkeys(filter(None, (node.shown_table() for node in nodes))))
        of_tables = f" of {', '.join(shown[:3])}" if shown else ""
        share = min(_MOST_SHARE, saved_bytes / (number * _OPENING_BYTES + total))
        overhead = _share_of_overhead(stages, total, execution)
        if field == "Written":
            share = share if overhead is None else min(share, overhead)
        elif overhead is None or not _only_reads(nodes):
            share *= _share_of_scans(nodes, execution)
        else:  # many files also make many tasks, each of which writes for the shuffle
            share *= max(_share_of_scans(nodes, execution), overhead)
        share_ms = wall_ms * share
        # Of a micro-batch, the driver commits more; and a file for each partition may be needed.
        may_commit = field == "Written" and not of_query and not one_each
        commit_span = _commit(execution, stages) if may_commit else (0, 0)
        commit_ms = (commit_span[1] - commit_span[0]) * (number - enough) // number
        yield Issue(
            SMALL_FILES,
            f"{SMALL_FILES} {verb}",
            round(min(share_ms + commit_ms, (number - enough) * _MOST_OPENING_MS)) if wall_ms else None,
            saved_bytes,
            f"{verb} {number:,} files{of_tables}, of {size(total / number)} each on average; "
            f"{enough:,} would do{of_folders}",
            advice,
            evidence={
                "files": number,
                "fileBytes": total,
                "meanFileBytes": total // number,
                **({TABLES: ", ".join(tables)} if tables else {}),
            },
            stages=stages,
            driver_ms=commit_ms,
            driver_span_ms=commit_span,
        )


def _last_stage(execution: EndedExecution) -> frozenset[int]:
    """Return the stage that writes where nothing measures in it, as behind ``repartition(n)``: the last."""
    last = max(execution.stages, key=lambda number: execution.stages[number].ended_ms, default=None)
    return frozenset() if last is None else frozenset((last,))


def _commit(execution: EndedExecution, stages: frozenset[int]) -> tuple[int, int]:
    """Return from when until when the driver committed files one by one, after the stages that wrote them.

    Both are 0 if another stage comes after these, and for formats whose commit is a single entry of a log.
    """
    last_ms = max((stage.ended_ms for stage in execution.stages.values()), default=0)
    ended_ms = max((execution.stages[each].ended_ms for each in stages & execution.stages.keys()), default=0)
    one_by_one = any(node.name.startswith(_OF_FILES) for node in execution.nodes())
    is_last = 0 < ended_ms == last_ms <= execution.ended_ms
    return (last_ms, execution.ended_ms) if one_by_one and is_last else (0, 0)


def _share_of_scans(scans: list[Node], execution: EndedExecution) -> float:
    """Return which part of the time of their stages scans take, for files are opened in it; 1 if unknown.

    Of columnar formats, Spark measures that; of text, it does not. Where files have tasks of their own, all
    of these is for the files.
    """
    numbers = {stage for scan in scans for stage in scan.stages}
    stages = [execution.stages[number] for number in numbers if number in execution.stages]
    run_ms, tasks = sum(stage.run_ms for stage in stages), sum(stage.tasks for stage in stages)
    have_tasks = _FILES_OF_A_TASK * tasks >= sum(scan.metrics[FILES[0]] for scan in scans)
    if not run_ms or have_tasks or not all(scan.metrics.get(SCAN_TIME) for scan in scans):
        return 1
    return min(1, sum(scan.metrics[SCAN_TIME] for scan in scans) / run_ms)


def _share_of_overhead(stages: frozenset[int], total: int, execution: EndedExecution) -> float | None:
    """Return which part of the time of stages goes beyond what rows need; None if nobody has measured it.

    Args:
        stages: that read or write files.
        total: the bytes in the files.
        execution: of which the stages are.
    """
    run_ms = sum(execution.stages[number].run_ms for number in stages if number in execution.stages)
    nodes = [node for node in execution.nodes() if node.stages & stages]
    # Where nothing in them is measured, the write itself says how many rows it had.
    nodes = nodes or [node for node in execution.nodes() if node.metrics.get(_METRICS["Written"])]
    rows = max((node.rows or 0 for node in nodes), default=0)
    others_ms = sum(
        node.metrics.get(name, 0) for node in nodes for name in MEASURED_TIMES if name != SCAN_TIME
    )
    needed_ms = rows * _ROW_US / 1_000 + total / _BYTES_OF_MS + others_ms
    return max(0, 1 - needed_ms / run_ms) if run_ms else None


def _only_reads(scans: list[Node]) -> bool:
    """Return whether what else is done in the stages of scans takes next to nothing for a row.

    So it is where each row is looked up by plain keys: all that come out of a join are counted.
    """
    return all(
        is_light(node) or node.name in MOVES or _looks_up(node) for scan in scans for node in above(scan)
    )


def _looks_up(node: Node) -> bool:
    is_join = node.name == BROADCAST_JOIN
    return is_join and not has_further_condition(node) and key_ids(node) is not None


def _with_small_files(scans: list[Node], number: int, total: int, thresholds: Thresholds) -> list[Node]:
    """Return the scans of many whose files are small; empty where nobody knows the files of each."""
    if any(name not in scan.metrics for scan in scans for name in FILES):
        return []
    of_all = tuple(sum(scan.metrics[name] for scan in scans) for name in FILES)
    if of_all != (number, total):
        return []  # some files are in no scan
    files, of_bytes = FILES
    return [
        scan for scan in scans if scan.metrics[of_bytes] < thresholds.small_file_bytes * scan.metrics[files]
    ]


def _folders_by(nodes: list[Node]) -> list[str]:
    """Return the columns of partitionBy, as far as the plan of a write says them."""
    matches = filter(None, (_FOLDERS_BY.search(node.text) for node in nodes))
    return next(([without_ids(column) for column in listed(match[1])] for match in matches), [])


def _to_write_fewer(
    number: int, total: int, folders: int, many: int, columns: list[str], of_query: bool
) -> tuple[str, int]:
    """Return what to do about small files that are written, and how many partitions need one each."""
    of_one_folder = _FILES_OF_A_TINY_FOLDER if total < _TINY_BYTES * folders else _FILES_OF_A_FOLDER
    if folders > many and number < of_one_folder * folders:
        are_few = number < _FILES_OF_A_FOLDER * folders
        fewer = _FEWER_FOLDERS.format(
            folders=folders,
            files="a file or two" if are_few else f"{number / folders:.0f} files",
            column=columns[0] if len(columns) == 1 else "the column that has so many",
        )
        return fewer + _ELSE_ONE_OF_EACH * (not are_few), 0
    by_stream = _BY_STREAM * of_query
    if folders < 2 or folders * _LARGE_BYTES < total:
        return _WRITE_FEWER + by_stream, folders
    are_small = folders > many and total < _OPENING_BYTES * folders
    coarser = _COARSER_FOLDERS.format(folders=folders, each=size(total / folders)) if are_small else ""
    return _ONE_OF_EACH + by_stream + coarser, folders


def _to_read_fewer(scans: list[Node], number: int) -> str:
    """Return what to do about small files that are read, by how Spark finds them."""
    if len(scans) >= _MANY_SCANS and number < _FILES_OF_A_FOLDER * len(scans):
        return _FEWER_SCANS.format(scans=len(scans))
    found_by = [scan.metadata.get("Location", "") for scan in scans]
    is_plain = bool(scans) and all(location.startswith((*_PLAIN, _OF_SINK)) for location in found_by)
    is_of_sink = any(location.startswith(_OF_SINK) for location in found_by)
    return (_LET_WRITE_FEWER if is_plain else _COMPACT) + _BY_STREAM * is_of_sink

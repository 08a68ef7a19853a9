"""The rules about broadcasts: of too much, or missing, so that a join moves a large side instead."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.plans.join_keys import EQUAL, join_keys, key_ids, made_of, of_tables
from spark_events.diagnosis.plans.node import CUT, DATA_SIZE, EXCHANGE, Node, listed
from spark_events.diagnosis.plans.work_in_stage import SCAN_TIME, above, is_light
from spark_events.diagnosis.thresholds import LARGE_BROADCAST, MISSING_BROADCAST, Thresholds

_LARGER_SIDE = 8
"""How many times as large the other side is at least, so that it is worth a broadcast of the small one."""
_LEAST_ROW_NS, _LEAST_BYTE_NS = 700, 8
"""What a shuffle takes at least, to write, to read and to sort: for a row, and for each of its bytes."""
_LONG_BYTES = 8
"""Of a column that Spark describes with an L at its end, and of what each row has besides."""
_IDENTIFIER = re.compile(r"[\w.]+")
_BUILD_MS = ("time to build", "time to broadcast")
_INNER = "Inner"
_CAN_BROADCAST = {
    "Inner": (0, 1),
    "Cross": (0, 1),
    "LeftOuter": (1,),
    "LeftSemi": (1,),
    "LeftAnti": (1,),
    "RightOuter": (0,),
}
"""By the type of a join, which of its sides Spark can broadcast."""


def large_broadcast(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """The driver collects a large table, and sends it to every executor."""
    data = node.metrics.get(DATA_SIZE, 0)
    if data < thresholds.broadcast_bytes:
        return
    below = frozenset().union(*(child.stages for child in node.children))
    lost_ms = driver_ms(node, execution)
    tables, join = node.tables(), node.parent if node.parent is not None else node
    keys = f", for a join on {join_keys(join)}" if join.name in EQUAL else ""
    advice = (
        "Let Spark shuffle this join: without a broadcast hint, and with "
        "spark.sql.autoBroadcastJoinThreshold=-1 (Spark compares it with its estimate, such as the size of "
        "files, and not with the size in memory). Or filter and select columns before the join, so that less "
        "is sent."
    )
    computed_ms, other_rows, other_bytes = _computed_for_nothing(node, join, execution)
    saved_ms = lost_ms + computed_ms
    if other_rows:
        smaller = "" if other_bytes else ", if that is smaller"
        advice = (
            f"Broadcast the other side of the join instead, which has {other_rows:,} rows{smaller}: hint "
            "that one."
        )
    else:
        saved_ms = max(0, lost_ms - _shuffled_instead_ms(node, join, execution))
    yield Issue(
        LARGE_BROADCAST,
        f"{LARGE_BROADCAST} {', '.join(tables)}",
        saved_ms,
        None,
        f"the driver collects {size(data)} ({node.rows or 0:,} rows{of_tables(tables)}), and sends them to "
        f"all executors{keys}; that takes it {duration(lost_ms)}",
        advice,
        evidence={
            "broadcast.bytes": data,
            "broadcast.rows": node.rows or 0,
            "broadcast.driverMs": lost_ms,
        },
        driver_ms=lost_ms,
        driver_span_ms=_between(below, join.stages, execution),
    )


def _shuffled_instead_ms(broadcast: Node, join: Node, execution: EndedExecution) -> int:
    """Return how long it takes at least to shuffle and sort both sides of a join instead of a broadcast."""
    rows = sum(child.rows or 0 for child in join.children if child is not broadcast) + (broadcast.rows or 0)
    return _least_shuffle_ms(rows, broadcast.metrics.get(DATA_SIZE, 0), execution)


def _least_shuffle_ms(rows: int, data: int, execution: EndedExecution) -> int:
    """Return how long it takes at least to shuffle and sort so many rows, of so many bytes, in ms."""
    least_ns = rows * _LEAST_ROW_NS + data * _LEAST_BYTE_NS
    return least_ns // 1_000_000 // max(1, execution.cores)


def driver_ms(broadcast: Node, execution: EndedExecution) -> int:
    """Return for how long the driver collects and builds a broadcast, besides the stages that compute it."""
    below = frozenset().union(*(child.stages for child in broadcast.children))
    collected_ms = max(0, broadcast.metrics.get("time to collect", 0) - execution.wall_ms(below))
    return collected_ms + sum(broadcast.metrics.get(name, 0) for name in _BUILD_MS)


def _between(before: frozenset[int], after: frozenset[int], execution: EndedExecution) -> tuple[int, int]:
    """Return when the last of some stages has ended, and the first of others has begun, as far as known."""
    ended = [stage.ended_ms for number, stage in execution.stages.items() if number in before]
    begun = [stage.begun_ms for number, stage in execution.stages.items() if number in after]
    return max(ended, default=execution.begun_ms), min(begun, default=execution.ended_ms)


def _computed_for_nothing(broadcast: Node, join: Node, execution: EndedExecution) -> tuple[int, int, int]:
    """Return what it takes to compute the rows of a broadcast that the join drops, and the other side's rows.

    That is saved where the other side is far smaller, so that it can be broadcast instead. The last is its
    size in bytes; if that is not known, nothing is saved for sure. All are 0 if it has too many rows, or is
    too large.
    """
    others = [child for child in join.children if child is not broadcast]
    rows, inner = broadcast.rows or 0, f", {_INNER}" in join.text
    other_rows = (others[0].rows or 0) if len(others) == 1 else 0
    if not other_rows or other_rows * _LARGER_SIDE > rows or not inner:
        return 0, 0, 0
    other_bytes = _known_bytes(others[0], other_rows)
    if other_bytes * _LARGER_SIDE > broadcast.metrics.get(DATA_SIZE, 0):
        return 0, 0, 0
    if not other_bytes:
        return 0, other_rows, 0
    stages = [execution.stages[stage] for stage in _written_in(broadcast) if stage in execution.stages]
    share = _dropped(join, broadcast) * (1 - _reading_share(join, broadcast, stages))
    return int(share * sum(stage.wall_ms for stage in stages)), other_rows, other_bytes


def _known_bytes(side: Node, rows: int) -> int:
    """Return how large a side of a join is: what was shuffled, or rows of integers; 0 if it is not known."""
    while side.name in ("AQEShuffleRead", "Filter", "Sort") and len(side.children) == 1:
        side = side.children[0]
    if side.name == EXCHANGE:
        return side.metrics.get(DATA_SIZE, 0)
    text = side.text if side.name == "Project" or side.name.startswith("Scan ") else ""
    names = listed(text)
    is_of_longs = bool(names) and CUT not in text and all(name.endswith("L") for name in names)
    return rows * _LONG_BYTES * (1 + len(names)) if is_of_longs else 0


def missing_broadcast(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Both sides are shuffled, though one is small enough to be sent to all executors."""
    sides = [_exchange(child) for child in node.children]
    if len(sides) != 2 or sides[0] is None or sides[1] is None:
        return
    sizes = [side.metrics.get(DATA_SIZE, 0) for side in sides if side]
    small = 0 if sizes[0] <= sizes[1] else 1
    kind = next((kind for kind in _CAN_BROADCAST if f", {kind}" in node.text), "")
    fits = 0 < sizes[small] <= thresholds.small_side_bytes and sizes[1 - small] >= _LARGER_SIDE * sizes[small]
    if not fits or small not in _CAN_BROADCAST.get(kind, ()):
        return
    large_side = sides[1 - small]
    assert large_side is not None  # both are there
    keys, name = join_keys(node), ", ".join(node.children[small].tables())
    hinted = name if _IDENTIFIER.fullmatch(name) else "alias"  # no path, and no more than one
    yield Issue(
        MISSING_BROADCAST,
        f"{MISSING_BROADCAST} {keys}",
        _shuffle_ms(node, large_side, execution),
        None,
        f"the join on {keys} shuffles and sorts {size(sizes[1 - small])}, though its other side"
        f"{f' ({name})' if name else ''} has {size(sizes[small])} only",
        f"Broadcast the small side: the hint /*+ BROADCAST({hinted}) */ or broadcast(df), or a "
        "spark.sql.autoBroadcastJoinThreshold that it fits under; with that, spark.sql.adaptive.enabled=true "
        "finds out by itself.",
        evidence={"join.keys": keys, "join.smallBytes": sizes[small], "join.largeBytes": sizes[1 - small]},
        stages=node.stages | _written_in(large_side),
    )


def _shuffle_ms(node: Node, large: Node, execution: EndedExecution) -> int:
    """Return how long writing, reading and sorting the large side took, and what else a broadcast would save.

    Of the rows that the join drops, next to nothing is computed where they meet the broadcast of the small
    side; here, each of them is computed, written, read and sorted. Of the others, the time to write and to
    sort is measured; what serializes, fetches and merges rows is in no metric of Spark's, so all of it takes
    at least what a shuffle does.
    """
    written_in = [execution.stages[stage] for stage in _written_in(large) if stage in execution.stages]
    dropped = _dropped(node, large)
    of_large = dropped * (1 - _reading_share(node, large, written_in))
    write_ms = sum(max(_write_ms(stage), int(of_large * stage.wall_ms)) for stage in written_in)
    sort_ms = sum(below.metrics.get("sort time", 0) for below in node.within_stage() if below.name == "Sort")
    of_join = dropped if all(map(is_light, above(node))) else 0.0
    join_ms, joined_in = 0, [execution.stages[stage] for stage in node.stages & execution.stages.keys()]
    for stage in joined_in:
        sorted_ms = stage.wall_ms * min(sort_ms, stage.run_ms) // stage.run_ms if stage.run_ms else 0
        join_ms += max(sorted_ms, int(of_join * stage.wall_ms))
    whole_ms = sum(stage.wall_ms for stage in (*written_in, *joined_in))
    least_ms = _least_shuffle_ms(large.rows or 0, large.metrics.get(DATA_SIZE, 0), execution)
    return max(join_ms + write_ms, min(whole_ms, least_ms))


def _dropped(node: Node, large: Node) -> float:
    """Return the share of the large side's rows out of which the join makes none; 0 if it is not known."""
    rows, read = node.rows, large.rows
    return max(0.0, 1 - rows / read) if rows is not None and read else 0.0


def _reading_share(join: Node, large: Node, written_in: list[ExecutedStage]) -> float:
    """Return the share of a large side's time in which it was read, for all of its rows; 1 if not known.

    The keys by which the join drops rows are needed of all rows as well: if they are computed, nobody knows
    how long that takes.
    """
    run_ms = sum(stage.run_ms for stage in written_in)
    keys = key_ids(join)
    for below in (node for child in large.children for node in child.within_stage()):
        if keys is None:
            return 1.0
        if below.name == "Range":
            return 0.0
        if SCAN_TIME in below.metrics and run_ms:
            return min(1.0, below.metrics[SCAN_TIME] / run_ms)
        if below.name == "Project":
            keys = made_of(keys, below)
        elif not is_light(below):
            return 1.0
    return 1.0


def _write_ms(stage: ExecutedStage) -> int:
    return stage.wall_ms * min(stage.shuffle_write_ms, stage.run_ms) // stage.run_ms if stage.run_ms else 0


def _exchange(node: Node) -> Node | None:
    """Return the shuffle that a side of a join comes from; None if there is none right below it."""
    while node.name in ("Sort", "AQEShuffleRead", "Project", "Filter") and node.children:
        node = node.children[0]
    return node if node.name == EXCHANGE else None


def _written_in(exchange: Node) -> frozenset[int]:
    return frozenset().union(*(child.stages for child in exchange.children))

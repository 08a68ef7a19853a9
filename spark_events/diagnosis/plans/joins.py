"""The rules about joins: those that make far too many rows, compare all with all, or move too much data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.plans.node import BROADCAST, DATA_SIZE, EXCHANGE, Node, columns, without_ids
from spark_events.diagnosis.thresholds import (
    CROSS_JOIN,
    EXPLODING_JOIN,
    LARGE_BROADCAST,
    MISSING_BROADCAST,
    Thresholds,
)

_EQUAL = ("SortMergeJoin", "BroadcastHashJoin", "ShuffledHashJoin")
_ALL_PAIRS = ("CartesianProduct", "BroadcastNestedLoopJoin")
_ALWAYS_SHUFFLED = ("SortMergeJoin", "ShuffledHashJoin")
_LARGER_SIDE = 8
"""How many times as large the other side is at least, so that it is worth a broadcast of the small one."""
_KEYS = re.compile(r"^\w+ (\[[^\]]*\]), (\[[^\]]*\])")
_IDENTIFIER = re.compile(r"[\w.]+")
_BUILD_MS = ("time to build", "time to broadcast")
_CAN_BROADCAST = {
    "Inner": (0, 1),
    "Cross": (0, 1),
    "LeftOuter": (1,),
    "LeftSemi": (1,),
    "LeftAnti": (1,),
    "RightOuter": (0,),
}
"""By the type of a join, which of its sides Spark can broadcast."""


def joins(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield what is wrong with the joins of an SQL execution."""
    for node in execution.nodes():
        if node.name in _EQUAL:
            yield from _exploding(node, execution, thresholds)
        if node.name in _ALL_PAIRS:
            yield from _all_pairs(node, execution, thresholds)
        if node.name in _ALWAYS_SHUFFLED:
            yield from _missing_broadcast(node, execution, thresholds)
        if node.name == BROADCAST:
            yield from _large_broadcast(node, execution, thresholds)


def _exploding(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """A join whose keys repeat on both sides makes many more rows than it reads."""
    rows, read = node.rows, [child.rows for child in node.children]
    if rows is None or len(read) != 2 or None in read:
        return
    most = max(1, *(side or 0 for side in read))
    if rows < max(thresholds.explosion_factor * most, thresholds.explosion_rows):
        return
    stages = _stages_of_rows(node, rows)
    tables, keys = node.tables(), _keys(node)
    yield Issue(
        EXPLODING_JOIN,
        f"{EXPLODING_JOIN} {keys}",
        execution.wall_ms(stages) * (rows - most) // rows,
        None,
        f"the join{_of(tables)} on {keys} makes {rows:,} rows of {read[0]:,} and {read[1]:,}",
        f"Many rows of both sides have the same {keys}: add what is missing to the condition, remove "
        "duplicates from one side before the join, or aggregate before it.",
        evidence={
            "join.keys": keys,
            "join.rows": rows,
            "join.leftRows": read[0] or 0,
            "join.rightRows": read[1] or 0,
        },
        stages=stages,
    )


def _stages_of_rows(node: Node, rows: int) -> frozenset[int]:
    """Return the stages in which the rows of a join are, until there are far fewer of them."""
    stages, above = node.stages, node.parent
    while above is not None and (above.rows or 0) > rows // 2:
        stages |= above.stages
        above = above.parent
    return stages


def _all_pairs(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """A join whose condition is no equality compares each row of one side with each of the other."""
    left, right = (child.rows or 0 for child in node.children) if len(node.children) == 2 else (0, 0)
    pairs = left * right
    if pairs < thresholds.explosion_rows:
        return
    tables, condition = node.tables(), _condition(node)
    yield Issue(
        CROSS_JOIN,
        f"{CROSS_JOIN} {condition}",
        execution.wall_ms(node.stages),
        None,
        f"the join{_of(tables)} compares each of {left:,} rows with each of {right:,}: {pairs:,} pairs"
        + (
            f", because its condition on {condition} is no equality" if condition else ", without a condition"
        ),
        "Join by a column that is equal on both sides; for ranges, add an equality on a bucket of the value "
        "(an hour of a time, say), so that only rows of one bucket are compared.",
        evidence={"join.pairs": pairs, "join.leftRows": left, "join.rightRows": right},
        stages=node.stages,
    )


def _large_broadcast(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """The driver collects a large table, and sends it to every executor."""
    data = node.metrics.get(DATA_SIZE, 0)
    if data < thresholds.broadcast_bytes:
        return
    below = frozenset().union(*(child.stages for child in node.children))
    collected_ms = max(0, node.metrics.get("time to collect", 0) - execution.wall_ms(below))
    lost_ms = collected_ms + sum(node.metrics.get(name, 0) for name in _BUILD_MS)
    tables = node.tables()
    yield Issue(
        LARGE_BROADCAST,
        f"{LARGE_BROADCAST} {', '.join(tables)}",
        lost_ms,
        None,
        f"the driver collects {size(data)} ({node.rows or 0:,} rows{_of(tables)}), and sends them to all "
        f"executors; that takes it {duration(lost_ms)}",
        "Let Spark shuffle this join: remove the hint, or set spark.sql.autoBroadcastJoinThreshold below "
        f"{size(data)}; or filter and select columns before the join, so that less is sent.",
        evidence={"broadcast.bytes": data, "broadcast.rows": node.rows or 0},
    )


def _missing_broadcast(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
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
    keys, name = _keys(node), ", ".join(node.children[small].tables())
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
    """Return how long writing and sorting the large side took: the join itself would be done anyway."""
    written_in = [execution.stages[stage] for stage in _written_in(large) if stage in execution.stages]
    sort_ms = sum(below.metrics.get("sort time", 0) for below in node.within_stage() if below.name == "Sort")
    sorted_ms = 0
    for stage in node.stages & execution.stages.keys():
        run_ms = execution.stages[stage].run_ms
        sorted_ms += execution.stages[stage].wall_ms * min(sort_ms, run_ms) // run_ms if run_ms else 0
    return sorted_ms + sum(_write_ms(stage) for stage in written_in)


def _write_ms(stage: ExecutedStage) -> int:
    return stage.wall_ms * min(stage.shuffle_write_ms, stage.run_ms) // stage.run_ms if stage.run_ms else 0


def _exchange(node: Node) -> Node | None:
    """Return the shuffle that a side of a join comes from; None if there is none right below it."""
    while node.name in ("Sort", "AQEShuffleRead", "Project", "Filter") and node.children:
        node = node.children[0]
    return node if node.name == EXCHANGE else None


def _written_in(exchange: Node) -> frozenset[int]:
    return frozenset().union(*(child.stages for child in exchange.children))


def _keys(node: Node) -> str:
    """Return the columns by which a join compares, such as ``k = customer_id``."""
    match = _KEYS.match(node.text)
    if match is None:
        return "its condition"
    sides = [", ".join(columns(side)) or without_ids(side)[1:-1] for side in match.groups()]
    return sides[0] if sides[0] == sides[1] else f"{sides[0]} = {sides[1]}"


def _condition(node: Node) -> str:
    return ", ".join(columns(node.text.partition(" ")[2]))


def _of(tables: list[str]) -> str:
    return f" of {' and '.join(tables[:3])}" if tables else ""

"""The rules about joins: those that make far too many rows, compare all with all, or move too much data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.plans.node import (
    BROADCAST,
    CUT,
    DATA_SIZE,
    EXCHANGE,
    Node,
    columns,
    items,
    listed,
    outputs,
    without_ids,
)
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
_LONG_BYTES = 8
"""Of a column that Spark describes with an L at its end, and of what each row has besides."""
_KEYS = re.compile(r"^\w+ (\[[^\]]*\]), (\[[^\]]*\])")
_IDENTIFIER = re.compile(r"[\w.]+")
_BUILD_MS = ("time to build", "time to broadcast")
_INNER = "Inner"
_ID = re.compile(r"#(\d+)", re.ASCII)
_SCAN_TIME = "scan time"
_CALLED = re.compile(r"([A-Za-z_]\w*)\(")
_LIGHT = frozenset(
    ["isnotnull", "isnull", "cast", "coalesce", "IN", "NOT", "AND", "OR"]
    + [f"{way}{name}" for way in ("", "partial_", "merge_") for name in ("count", "sum", "min", "max", "avg")]
)
_COMMANDS, _SINKS = ("WriteFiles", "Sort"), ("Execute", "Overwrite", "Append", "WriteToDataSource")
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
        f"the join{_of(tables or _sides(node))} compares each of {left:,} rows with each of {right:,}: "
        f"{pairs:,} pairs"
        + (
            f", because its condition on {condition} is no equality" if condition else ", without a condition"
        ),
        "Join by a column that is equal on both sides; for ranges, add an equality on a bucket of the value "
        "(an hour of a time, say), so that only rows of one bucket are compared.",
        evidence={"join.pairs": pairs, "join.leftRows": left, "join.rightRows": right},
        stages=node.stages,
    )


def _sides(node: Node) -> list[str]:
    """Return the first columns of each side of a join, which say what it is where no table has a name."""
    return [", ".join(names[:2]) for child in node.children if (names := outputs(child))]


def _large_broadcast(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """The driver collects a large table, and sends it to every executor."""
    data = node.metrics.get(DATA_SIZE, 0)
    if data < thresholds.broadcast_bytes:
        return
    below = frozenset().union(*(child.stages for child in node.children))
    collected_ms = max(0, node.metrics.get("time to collect", 0) - execution.wall_ms(below))
    lost_ms = collected_ms + sum(node.metrics.get(name, 0) for name in _BUILD_MS)
    tables, join = node.tables(), node.parent if node.parent is not None else node
    keys = f", for a join on {_keys(join)}" if join.name in _EQUAL else ""
    advice = (
        "Let Spark shuffle this join: remove the hint, or set spark.sql.autoBroadcastJoinThreshold below "
        f"{size(data)}; or filter and select columns before the join, so that less is sent."
    )
    computed_ms, other_rows, other_bytes = _computed_for_nothing(node, join, execution)
    if other_rows:
        smaller = "" if other_bytes else ", if that is smaller"
        advice = (
            f"Broadcast the other side of the join instead, which has {other_rows:,} rows{smaller}: hint "
            "that one."
        )
    yield Issue(
        LARGE_BROADCAST,
        f"{LARGE_BROADCAST} {', '.join(tables)}",
        lost_ms + computed_ms,
        None,
        f"the driver collects {size(data)} ({node.rows or 0:,} rows{_of(tables)}), and sends them to all "
        f"executors{keys}; that takes it {duration(lost_ms)}",
        advice,
        evidence={
            "broadcast.bytes": data,
            "broadcast.rows": node.rows or 0,
            "broadcast.driverMs": lost_ms,
        },
        driver_ms=lost_ms,
        driver_span_ms=_between(below, join.stages, execution),
    )


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
    """Return how long writing, reading and sorting the large side took, and what else a broadcast would save.

    Of the rows that the join drops, next to nothing is computed where they meet the broadcast of the small
    side; here, each of them is computed, written, read and sorted. Of the others, the time to write and to
    sort is measured.
    """
    written_in = [execution.stages[stage] for stage in _written_in(large) if stage in execution.stages]
    dropped = _dropped(node, large)
    of_large = dropped * (1 - _reading_share(node, large, written_in))
    write_ms = sum(max(_write_ms(stage), int(of_large * stage.wall_ms)) for stage in written_in)
    sort_ms = sum(below.metrics.get("sort time", 0) for below in node.within_stage() if below.name == "Sort")
    of_join = dropped if all(map(_is_light, _above(node))) else 0.0
    join_ms = 0
    for stage in node.stages & execution.stages.keys():
        run_ms, wall_ms = execution.stages[stage].run_ms, execution.stages[stage].wall_ms
        sorted_ms = wall_ms * min(sort_ms, run_ms) // run_ms if run_ms else 0
        join_ms += max(sorted_ms, int(of_join * wall_ms))
    return join_ms + write_ms


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
    keys = _key_ids(join)
    for below in (node for child in large.children for node in child.within_stage()):
        if keys is None:
            return 1.0
        if below.name == "Range":
            return 0.0
        if _SCAN_TIME in below.metrics and run_ms:
            return min(1.0, below.metrics[_SCAN_TIME] / run_ms)
        if below.name == "Project":
            keys = _made_of(keys, below)
        elif not _is_light(below):
            return 1.0
    return 1.0


def _above(node: Node) -> Iterator[Node]:
    """Yield what is done with the rows of a join within its stage."""
    while node.parent is not None and not node.parent.is_exchange:
        node = node.parent
        yield node


def _is_light(node: Node) -> bool:
    """Return whether what a node does takes next to no time: no function that might take long is called."""
    if node.name in ("Project", "Filter", "HashAggregate"):
        return _calls_light(node.text.partition(" ")[2])
    return node.name in _COMMANDS or node.name.startswith(_SINKS)


def _calls_light(text: str) -> bool:
    """Return whether no function is called that might take long."""
    return all(function in _LIGHT for function in _CALLED.findall(text))


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


def _key_ids(node: Node) -> set[str] | None:
    """Return the ids of the columns by which a join compares; None if these may take long to compute."""
    match = _KEYS.match(node.text)
    if match is None or not _calls_light(node.text[: match.end()]):
        return None
    return set(_ID.findall(match[0]))


def _made_of(keys: set[str], project: Node) -> set[str] | None:
    """Return the ids of the columns out of which a projection makes keys; None if that may take long."""
    if CUT in project.text:
        return None
    below: set[str] = set()
    for item in items(project.text):
        *of, made = _ID.findall(item) or [""]
        if made in keys:
            if not _calls_light(item) or item.count("(") != item.count(")"):  # a text may have brackets
                return None
            below.update(of or [made])
    return below


def _condition(node: Node) -> str:
    return ", ".join(columns(node.text.partition(" ")[2]))


def _of(tables: list[str]) -> str:
    return f" of {' and '.join(tables[:3])}" if tables else ""

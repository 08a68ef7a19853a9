"""The rule about joins by equal keys whose further condition throws away nearly all pairs of rows.

Spark counts neither pairs nor keys. What tells them is how long tasks had a CPU: a join without such pairs
takes a few microseconds for each row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.api.toolkit.formatting import duration, micros
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, fills_cache
from spark_events.diagnosis.plans.join_keys import EQUAL, calls_light, join_keys, of_tables
from spark_events.diagnosis.plans.node import (
    BROADCAST,
    DATA_SIZE,
    IN_MEMORY,
    Node,
    columns,
)
from spark_events.diagnosis.plans.work_in_stage import SCAN_TIME, WorkInStages, is_light
from spark_events.diagnosis.thresholds import EXPLODING_JOIN, Thresholds

_CONDITION = re.compile(r"^\w+ \[[^\]]*\], \[[^\]]*\], \w+(?:, Build\w+)?, (\(.+\))")
_ROW_NS = 2_000
"""What a join without such pairs takes for each row that goes in or comes out, and what is next to it."""
_FACTOR, _FACTOR_OF_FUNCTIONS = 5, 50
"""So many times as long, rows take because of pairs; more where functions are called that may take long."""
_FACTOR_OF_RANGES, _LOOKS_UP, _FACTOR_OF_MANY, _AT_MOST = 1.5, 1.5, 2, 4
"""The same of a condition on a range, of which a key may have many, if it keeps no more rows than it looks
up, and if it keeps more; then joining and writing may be that much quicker."""
_RANGE = re.compile(r"[^<>=]>=? .*[^<>=]<=? |[^<>=]<=? .*[^<>=]>=? ")
"""A condition with two limits, such as ``((at >= from) AND (at < until))``."""
_COLD_MS = 2_000
"""What the first tasks of a stage take in all for code that is not compiled yet."""
_BYTES_PER_MS = {DATA_SIZE: 50_000, "written output": 5_000, "size of files read": 5_000}
"""How fast tasks at least shuffle and write rows, or read those whose time nobody measures."""
_PAIR_NS = 25
_MOST_PAIR_NS = 1_000
"""What a pair takes, and at most: so many there must be at least."""
_MEASURED = (SCAN_TIME, "sort time")
_QUICK_SCANS = ("Range", "LocalTableScan", "AQEShuffleRead", "ReusedExchange")
_CALLING = ("Project", "Filter", "HashAggregate")


class PairsTried:
    """Finds such joins in the plans of one SQL execution."""

    def __init__(self, execution: EndedExecution, thresholds: Thresholds) -> None:
        self._execution = execution
        self._thresholds = thresholds
        self._work: WorkInStages | None = None

    def issues(self, node: Node) -> Iterator[Issue]:
        """Yield it of a join by equal keys."""
        condition, rows, read = condition_besides(node), node.rows, [child.rows for child in node.children]
        if not condition or rows is None or len(read) != 2 or None in read or len(node.stages) != 1:
            return
        few, many = sorted(side or 0 for side in read)
        (number,) = node.stages
        stage = self._execution.stages.get(number)
        if stage is None or not stage.cpu_ms or few < self._thresholds.explosion_factor:
            return
        besides = list(_besides(node))
        are_known = all(map(_is_known, besides))
        if not are_known and not all(_is_known(other) or other.name in _CALLING for other in besides):
            return
        # The machine's other work slows the join, and what tasks do besides, by as much.
        slowed = max(1.0, stage.run_ms / stage.cpu_ms)
        bytes_ms = sum(map(_bytes_ms, besides))
        own_ms = (stage.run_ms - sum(map(_measured_ms, besides))) / slowed - bytes_ms
        all_rows = rows + few + many + sum(each.rows or 0 for each in besides if each.name in EQUAL)
        plain_ms = all_rows * _ROW_NS / 1e6
        factor = _FACTOR if are_known else _FACTOR_OF_FUNCTIONS
        if many * few < own_ms * 1e6 / _MOST_PAIR_NS:
            return
        if own_ms < factor * plain_ms + _COLD_MS:
            of_range = _FACTOR_OF_RANGES if rows <= _LOOKS_UP * many else _FACTOR_OF_MANY
            has_range = _RANGE.search(node.text) is not None
            if not are_known or not has_range or own_ms < of_range * plain_ms + 2 * _COLD_MS:
                return
            # Its rows may take so long for another reason: what it may have cost is an upper limit.
            own_ms, plain_ms = own_ms + bytes_ms - bytes_ms / _AT_MOST, plain_ms / _AT_MOST
            are_known = False
        self._work = self._work or WorkInStages(self._execution)
        share = (own_ms - plain_ms) * slowed / stage.run_ms
        lost_ms = round(self._work.freed_ms(node.stages) * share)
        yield _issue(node, condition, (few, many), own_ms, lost_ms, are_known)


def _issue(
    node: Node, condition: str, sides: tuple[int, int], own_ms: float, lost_ms: int, is_known: bool
) -> Issue:
    few, many = sides
    rows, keys = node.rows or 0, join_keys(node)
    pairs = min(few, own_ms * 1e6 / _PAIR_NS / many)
    return Issue(
        EXPLODING_JOIN,
        f"{EXPLODING_JOIN} {keys} and {condition}",
        lost_ms if is_known else None,
        None,
        f"the join{of_tables(node.tables())} on {keys} takes {'' if is_known else 'up to '}"
        f"{micros(own_ms * 1_000 / many)} of a CPU for each of {many:,} rows, as long as to compare it with "
        f"{_about(pairs)} of the other {few:,}; of all these pairs with the same {keys}, its condition on "
        f"{condition} keeps {rows:,}: {duration(lost_ms)}",
        "Also join on a bucket of what the condition compares, such as the day of a time (on the side of the "
        "ranges, with a row for each bucket that a range covers): then only rows of one bucket are compared.",
        evidence={
            "join.keys": keys,
            "join.condition": condition,
            "join.rows": rows,
            "join.leftRows": node.children[0].rows or 0,
            "join.rightRows": node.children[1].rows or 0,
        },
        share_ms=None if is_known else lost_ms,
        stages=node.stages,
    )


def condition_besides(node: Node) -> str:
    """Return the columns that a join's further condition compares; empty if it has none, or a slow one."""
    match = _CONDITION.match(node.text)
    if match is None or node.is_cut or not calls_light(match[1]):
        return ""
    return ", ".join(columns(match[1]))


def _besides(join: Node) -> Iterator[Node]:
    """Yield what is done in the stage of a join besides it."""
    top = join
    while top.parent is not None and not top.parent.is_exchange:
        top = top.parent
    if top.parent is not None:
        yield top.parent
    yield from (node for node in _in_stage(top) if node is not join)


def _in_stage(top: Node) -> Iterator[Node]:
    waiting = [top]
    while waiting:
        node = waiting.pop()
        yield node
        if not node.is_exchange and (node.name != IN_MEMORY or fills_cache(node)):
            waiting += node.children


def _is_known(node: Node) -> bool:
    """Return whether it is known how long a node takes at most, by Spark's metrics, or by rows and bytes."""
    if node.name in EQUAL:
        return node.rows is not None and not _CONDITION.match(node.text)
    if node.name.startswith(("Scan ", "BatchScan")):
        return any(name in node.metrics for name in (SCAN_TIME, "size of files read"))
    return node.is_exchange or node.name.startswith(_QUICK_SCANS) or is_light(node)


def _measured_ms(node: Node) -> int:
    return 0 if node.is_exchange else sum(node.metrics.get(name, 0) for name in _MEASURED)


def _bytes_ms(node: Node) -> float:
    """Return how long it takes at most to read or to write what nobody measures."""
    if SCAN_TIME in node.metrics or node.name == BROADCAST:
        return 0
    return sum(node.metrics.get(name, 0) / speed for name, speed in _BYTES_PER_MS.items())


def _about(number: float) -> str:
    """Return the order of a number of pairs, as if each took ten times as long: nobody knows more."""
    for least, word in ((1e6, "millions"), (1e3, "thousands"), (1e2, "hundreds")):
        if number >= 10 * least:
            return word
    return "dozens"

"""The rules about joins: those that make far too many rows, compare all with all, or move too much data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.costly_nodes.aligned_frames import is_of_one_table
from spark_events.diagnosis.costly_nodes.broadcasts import large_broadcast, missing_broadcast
from spark_events.diagnosis.costly_nodes.dropped_duplicates import FACTOR, duplicates_dropped_of
from spark_events.diagnosis.costly_nodes.pairs_tried import PairsTried, condition_besides
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.alternatives import advice_on_or
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import EQUAL, OF_STREAMS, has_range, join_keys, of_tables
from spark_events.diagnosis.plans.node import BROADCAST, Node, columns, outputs, without_ids
from spark_events.diagnosis.plans.slow_functions import calls_unknown, slow_in
from spark_events.diagnosis.plans.work_in_stage import (
    MEASURED_TIMES,
    freed_besides_ms,
    is_accounted_for,
    over,
    stages_of_rows,
    tasks_time,
)
from spark_events.diagnosis.thresholds import CROSS_JOIN, EXPLODING_JOIN, Thresholds

_ALL_PAIRS = ("CartesianProduct", "BroadcastNestedLoopJoin")
_NOT_IN = re.compile(r", LeftAnti, .*?(\(.+? = .+?\)) OR isnull\(\1\)", re.DOTALL)
"""An equality that is also true where it is neither true nor false."""
_ON_EQUAL_COLUMNS = (
    "Join by a column that is equal on both sides; for ranges, add an equality on a bucket of the value (an "
    "hour of a time, a cell of a grid, the first bytes of an address), so that only rows of one bucket are "
    "compared; a range that reaches into several buckets has to be there once for each: "
    "explode(sequence(…))."
)
_ON_PARTS_OF_TEXT = (
    "Join by a column that is equal on both sides: where a text is to contain another one, compare its "
    "words, or sequences of some of them (explode(split(…))), and look only at the pairs that have one in "
    "common."
)
_NOT_EXISTS = (
    "Write NOT EXISTS, or a left anti join, which compare equal values alone (NULL is equal to none); or "
    "leave out rows with NULL on both sides (IS NOT NULL) before NOT IN."
)
_FEWER_ROWS = (
    "Many rows of both sides have the same {keys}: count the rows of each value (GROUP BY … ORDER BY "
    "count(*) DESC), and leave out those that say nothing (unknown, test, a robot); or add what is missing "
    "to the condition, remove duplicates from one side before the join, or aggregate before it."
)
_ONE_ROW_OF_EACH = (
    "Many rows of one side have the same {keys}. Leave out values that stand for none (unknown, default, "
    "empty) before the join, and keep one row of each other value there (dropDuplicates, or a filter on the "
    "row that is valid), instead of dropping the copies of the other side's rows after it. If which one it "
    "is depends on both sides (the nearest, the best), join by a finer bucket. If you need no column of that "
    "side, a left semi join adds no rows."
)
_DROPS_FIRST = (
    "Many rows of both sides have the same {keys}: look which values these are (unknown, default, empty), "
    "and leave them out before the join; or do the one first that keeps few rows."
)
_OF_ITSELF = (
    "Both sides are the same rows, and n rows with the same {keys} make n² pairs. Count the rows of each "
    "{keys} (GROUP BY … ORDER BY count(*) DESC), and leave out those that have most (unknown, shared or "
    "test values), or keep some of their rows only, before the join. To find the row before each, or the "
    "latest value, a window by {keys} (lag, last) makes no pairs."
)
_OF_STATE = (
    "Each new row of one stream meets all rows with the same {keys} that the state keeps of the other. Count "
    "the rows of each value, and leave out those that say nothing (unknown, test, a robot); drop duplicates "
    "(dropDuplicatesWithinWatermark), or aggregate one stream, before the join; or let its condition leave a "
    "shorter time between the rows that meet: the state then keeps fewer."
)
_FEW_KEPT, _PAIRS_A_ROW = 100, 10_000
"""If a join keeps one pair of so many, that is many. So many take as long as a row of a slow function."""
_COMPARES = re.compile(r"#\d+L? [<>]")
_STARTS = re.compile(r"\bStartsWith\(| LIKE concat\([^%]*, %\)")
_OF_PREFIX = (
    "For a text that begins with another one, join by as many of its first characters (left(column, n)), "
    "which are equal then; if these have several lengths, once for each length."
)
_IN_ARRAY = re.compile(r"\b(?:array_contains|arrays_overlap|array_position)\((\w+)#\d+L?, \w+#")
"""That a column is in an array, or two have an element in common; not that one has a constant."""
_ELEMENTS = (
    "Explode the array (explode({array})) before the join, so that each element has a row, and join where "
    "these are equal; where a pair may have several elements in common, dropDuplicates() of the pairs."
)
_OF_TEXT = re.compile(r"\b(?:LIKE|RLIKE|ILIKE|Contains|StartsWith|EndsWith|instr|locate|levenshtein)\b")
"""How conditions look for a text in another one."""
_IF_NOT_ALL = "Unless each pair is needed:"
_OF_LATEST = (
    "Its condition on {condition} leaves many rows for each {keys}. To find the latest row before each (as "
    "of), put the rows of both sides together (unionByName), and take last(…, ignorenulls=True) over a "
    "window by {keys}, in the order of their times; or, if rows say until when they hold, let the condition "
    "have that limit, too. For other ranges, also join on a bucket of what is compared."
)
_MEASURED = (*MEASURED_TIMES, "time to start Python workers", "time to initialize Python workers")
_FEW_ROWS, _FEW_OF_ALL = 10, 0.1
_FEW_FOR_EACH, _MOST_PAIR_US = 100, 2
"""So few rows are meant to be there for each; and what a pair takes of a CPU at most, with no condition."""
_SOME_TASKS, _FAR_LONGER = 4, 5
"""Of as many tasks, one has most to do that runs for so many times as long as each other, on average."""
_ALWAYS_SHUFFLED = ("SortMergeJoin", "ShuffledHashJoin")


def joins(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield what is wrong with the joins of an SQL execution."""
    tried = PairsTried(execution, thresholds)
    for node in execution.nodes():
        if node.name in EQUAL:
            exploding = list(_exploding(node, execution, thresholds))
            yield from exploding or tried.issues(node)
        if node.name == OF_STREAMS:
            yield from _exploding(node, execution, thresholds)
        if node.name in _ALL_PAIRS:
            yield from _all_pairs(node, execution, thresholds)
        if node.name in _ALWAYS_SHUFFLED and not is_of_one_table(node):
            yield from missing_broadcast(node, execution, thresholds)
        if node.name == BROADCAST and not (node.parent is not None and is_of_one_table(node.parent)):
            yield from large_broadcast(node, execution, thresholds)


def _exploding(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """A join whose keys repeat on both sides makes many more rows than it reads."""
    rows, read = node.rows, [child.rows for child in node.children]
    if rows is None or len(read) != 2 or None in read or rows < thresholds.explosion_rows:
        return
    most, factor = max(1, *(side or 0 for side in read)), thresholds.explosion_factor
    if rows < min(FACTOR, factor) * most:
        return
    dropped, drops = duplicates_dropped_of(node), _next_that_drops(node, rows)
    if dropped is None and drops is None and rows < factor * most:
        return
    stages = stages_of_rows(node, rows)
    tables, keys = node.tables(), join_keys(node)
    left, advice, kept, keys_and = "", _FEWER_ROWS, None, keys
    if dropped is not None:
        advice, kept = _ONE_ROW_OF_EACH, dropped.kept
        left = f", of which {kept:,} are left once one of each {dropped.columns} is kept"
    elif drops is not None:
        advice, kept = _DROPS_FIRST, drops.rows or 0
        left = f", of which the next join, on {join_keys(drops)}, keeps {kept:,}"
    if node.name == OF_STREAMS:
        advice = _OF_STATE
    elif drops is None and has_range(node) and (condition := condition_besides(node)):
        keys_and = f"{keys}, and on {condition},"
        advice = _OF_LATEST.replace("{condition}", condition)
    if dropped is None and drops is None and _is_of_itself(node):
        advice = _OF_ITSELF
    new = " new ones" if node.name == OF_STREAMS else ""
    uneven = _by_one_task(node, keys, execution)
    yield Issue(
        EXPLODING_JOIN,
        f"{EXPLODING_JOIN} {keys}",
        execution.wall_ms(stages) * (rows - most) // rows,
        None,
        f"the join{of_tables(tables)} on {keys_and} makes {rows:,} rows of {read[0]:,} and {read[1]:,}"
        f"{new}{left}{uneven}",
        advice.format(keys=keys),
        evidence={
            "join.keys": keys,
            "join.rows": rows,
            "join.leftRows": read[0] or 0,
            "join.rightRows": read[1] or 0,
            **({} if kept is None else {"join.keptRows": kept}),
        },
        stages=stages,
    )


def _by_one_task(join: Node, keys: str, execution: EndedExecution) -> str:
    """Say that one task runs longer than all others, if keys divide the rows between them: one has most."""
    if len(join.stages) != 1 or join.name not in _ALWAYS_SHUFFLED:
        return ""
    stage = execution.stages.get(next(iter(join.stages)))
    if stage is None or stage.tasks < _SOME_TASKS:
        return ""
    others_ms = stage.run_ms - stage.longest_ms
    if stage.longest_ms < others_ms or stage.longest_ms * (stage.tasks - 1) < _FAR_LONGER * others_ms:
        return ""
    return (
        f"; one of its {stage.tasks} tasks runs for {duration(stage.longest_ms)}, the others for "
        f"{duration(others_ms)} in all: one value of {keys}, or a few, seem to make most of them"
    )


def _is_of_itself(join: Node) -> bool:
    """Return whether both sides of a join are the same rows of the same tables, by number and filters."""
    left, right = join.children
    return left.rows == right.rows and _reads(left) == _reads(right) != []


def _reads(side: Node) -> list[tuple[str, str]]:
    """Return the tables that a side reads, and its filters, in an order of their own."""
    scans = [
        (node.table(), str(node.metadata.get("PartitionFilters"))) for node in side.walk() if node.table()
    ]
    filters = [("", node.text) for node in side.walk() if node.name == "Filter"]
    return sorted((table, without_ids(text)) for table, text in (*scans, *filters)) if scans else []


def _next_that_drops(join: Node, rows: int) -> Node | None:
    """Return the next join of a join's rows, if it keeps few of them; None if something else comes first."""
    above = over(join, ("Project",))
    if above is None or above.name not in EQUAL or above.rows is None or above.rows > _FEW_OF_ALL * rows:
        return None
    return above


def _all_pairs(node: Node, execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """A join whose condition is not an equality compares each row of one side with each of the other."""
    left, right = (child.rows or 0 for child in node.children) if len(node.children) == 2 else (0, 0)
    pairs = left * right
    # To compare each row with a few others, such as a total, takes no longer than any condition.
    if pairs < thresholds.explosion_rows or min(left, right) < _FEW_ROWS:
        return
    tables, condition = node.tables(), _condition(node)
    if not condition and min(left, right) < _FEW_FOR_EACH:
        return  # such as the weeks of a forecast, which each row is to have
    because, advice, verb = ", without a condition", f"{_IF_NOT_ALL} {_ON_EQUAL_COLUMNS}", "pairs"
    if condition:
        advice, verb = _ON_EQUAL_COLUMNS, "compares"
        because = f", because its condition on {condition} is not an equality"
    starts, compares = _STARTS.search(node.text), _COMPARES.search(node.text)
    looks = _OF_TEXT.search(_STARTS.sub("", node.text))
    if looks and not compares:
        advice = _ON_PARTS_OF_TEXT
    if starts:
        advice = f"{_OF_PREFIX} {advice}" if looks or compares else _OF_PREFIX
    if in_array := _IN_ARRAY.search(node.text):
        advice = _ELEMENTS.format(array=in_array[1])
    if on_or := advice_on_or(node):
        because, advice = f", because its condition on {condition} is equalities joined by OR", on_or
    if _NOT_IN.search(node.text):
        because = f", because NOT IN on {condition} is no equality where a value may be NULL"
        advice = _NOT_EXISTS
    beside = _beside(node, execution)
    took_ms = freed_besides_ms(execution, node.stages, beside, _MEASURED)
    if not condition and not any(slow_in(other.text) or calls_unknown(other.text) for other in beside):
        took_ms *= _share_of_pairs(node, pairs, execution)
    # What is done with the pairs themselves is for these, too, if most are kept.
    keeps = (node.rows or 0) * _FEW_KEPT >= pairs
    is_known = keeps or not any(_may_matter(other, pairs) for other in beside)
    yield Issue(
        CROSS_JOIN,
        f"{CROSS_JOIN} {condition}",
        round(took_ms) if is_known else None,
        None,
        f"the join{of_tables(tables or _sides(node))} {verb} each of {left:,} rows with each of {right:,}: "
        f"{pairs:,} pairs{because}",
        advice,
        evidence={"join.pairs": pairs, "join.leftRows": left, "join.rightRows": right},
        share_ms=None if is_known else round(took_ms),
        stages=node.stages,
    )


def _share_of_pairs(node: Node, pairs: int, execution: EndedExecution) -> float:
    """Return how much of their CPU time the stages of a join without a condition can take for its pairs."""
    _, cpu_ms = tasks_time(node, execution)
    return min(1.0, pairs * _MOST_PAIR_US / 1_000 / cpu_ms) if cpu_ms else 1.0


def _may_matter(other: Node, pairs: int) -> bool:
    """Return whether what a node does beside a join of all pairs may take a notable part of its stage."""
    return (
        not is_accounted_for(other) and other.name not in EQUAL and (other.rows or 0) * _PAIRS_A_ROW >= pairs
    )


def _beside(node: Node, execution: EndedExecution) -> list[Node]:
    """Return what else its stages do, of which Spark measures the time of some."""
    return [other for other in execution.nodes() if other is not node and other.stages & node.stages]


def _sides(node: Node) -> list[str]:
    """Return the first columns of each side of a join, which say what it is where no table has a name."""
    return [", ".join(names[:2]) for child in node.children if (names := outputs(child))]


def _condition(node: Node) -> str:
    return ", ".join(columns(node.text.partition(" ")[2]))

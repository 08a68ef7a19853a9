"""The rule about aggregations for which several rows are made of each.

Spark makes one for each set of columns whose distinct values are counted, one for each grouping set, or one
for each sliding window that a row is in: an Expand node. A program makes one for each day of a period, say,
by ``explode(sequence())``, or for each of some constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.nested_again import exploded_columns, nested_again
from spark_events.diagnosis.plans.node import LONGEST_TEXT, MOVES, ROWS, Node, columns, first_of, items
from spark_events.diagnosis.plans.work_in_stage import freed_besides_ms, stages_of_rows
from spark_events.diagnosis.thresholds import EXPANDED_ROWS, Thresholds

_EXPAND = "Expand"
_GENERATE, _OF_SEQUENCE = "Generate", re.compile(r"Generate explode\(sequence\(.* \[(\w+#\d+)L?\]$", re.ASCII)
_OF_CONSTANTS = re.compile(r"Generate explode\(\[[^\]]*\]\), .* \[(\w+#\d+)L?\]$", re.ASCII)
"""An array that is the same for each row: Spark has computed it when it planned."""
_LEAST_COPIES, _LEAST_OF_SEQUENCE = 3, 5
_MOST_NAMES, _MOST_STAGES = 6, 20
_OF_DISTINCT = re.compile(r"\bgid#\d+", re.ASCII)
_OF_SETS = re.compile(r"\bspark_grouping_id#\d+", re.ASCII)
_CASE = re.compile(r"CASE WHEN .*? THEN ", re.ASCII)
"""The condition under which a value counts."""
_NO_COUNT = re.compile(r"(?:sum|avg)\(CASE WHEN ", re.ASCII)
"""An aggregate of such values that is more than their number."""
_MARKS = ("gid", "spark_grouping_id")
"""What Spark calls the column that tells the copies of a row apart."""
_OF_ALL_VALUES = "0"
"""What Spark puts into that column of the copy whose values are not distinct ones."""
_NEEDED_SETS = (
    "Name the sets that are needed, GROUPING SETS ((a), (a, b), ()): each of those that nobody reads costs a "
    "row for each row."
)
_NOT_ADDED_UP = (
    " Counts of distinct values, of {columns}, cannot be added up so; sketches of them can (hll_sketch_agg, "
    "hll_union_agg)."
)
_OF_WINDOWS = re.compile(r"^Expand \[\[named_struct\(start, .*?\(([A-Za-z_][\w.]*)#\d+", re.ASCII)


def expanded(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each aggregation that makes at least three rows of each that it reads.

    How long another way would take is not known: ``share_ms`` is the part of the additional rows in the time
    of the stages that hash, shuffle and aggregate them.
    """
    for node in execution.nodes():
        if node.name not in (_EXPAND, _GENERATE) or len(node.children) != 1:
            continue
        made, of = node.metrics.get(ROWS) or 0, _read_by(node).rows or 0
        if not of or made < max(_LEAST_COPIES * of, thresholds.explosion_rows):
            continue
        said = _said(node, made, of) if node.name == _EXPAND else _said_of_array(node, made, of)
        needed = of
        if said is None and node.name == _GENERATE:
            # On the array itself, nothing would have to be moved and aggregated, not even a row for each.
            said, needed = nested_again(node, made, of), 0
        if said is not None:
            yield _issue(node, execution, made, of, said, (made - needed) / made)


def _issue(
    node: Node, execution: EndedExecution, made: int, of: int, said: tuple[str, str], share: float
) -> Issue:
    stages = stages_of_rows(node, 2 * of)  # until there are no more than without the copies
    below = _read_by(node).within_stage()
    sentence, advice = said
    return Issue(
        EXPANDED_ROWS,
        f"{EXPANDED_ROWS} {', '.join(_names(node))}",
        None,
        None,
        sentence,
        advice,
        evidence={
            "expand.rows": made,
            "expand.ofRows": of,
            "expand.columns": ", ".join(_names(node)),
            "expand.stages": ", ".join(map(str, sorted(stages)[:_MOST_STAGES])),
        },
        share_ms=round(freed_besides_ms(execution, stages, below) * share),
        stages=stages,
    )


def _read_by(node: Node) -> Node:
    """Return what an Expand makes its rows of; for distinct values in grouping sets, one is on another."""
    (read,) = node.children
    return read.children[0] if _is_of_sets(node, read) else read


def _is_of_sets(node: Node, below: Node) -> bool:
    """Return whether an Expand for distinct values takes its rows from one that makes grouping sets."""
    is_both = node.name == below.name == _EXPAND and len(below.children) == 1
    return is_both and bool(_OF_SETS.search(_keys(node))) and not _OF_WINDOWS.search(below.text)


def _said(node: Node, made: int, of: int) -> tuple[str, str] | None:
    """Return a sentence and what to do; None where nothing says what the rows are made for."""
    names = _names(node)
    what = first_of(names, _MOST_NAMES)
    around = " ".join((node.text, *(each.text for each in _aggregates(node))))
    if _OF_WINDOWS.search(node.text):
        return (
            f"for sliding windows of {what}, Spark makes {made:,} rows of {of:,}: one for each window that a "
            "row is in",
            "Let windows slide further. Or aggregate first by windows that do not overlap, as long as these "
            "slide, and then make long ones of their results: sums of sums, and sums of counts.",
        )
    if _is_of_sets(node, node.children[0]):
        sets = node.children[0]
        number, by = round((sets.metrics.get(ROWS) or 0) / of), first_of(_names_of_sets(node), _MOST_NAMES)
        return (
            f"for {number:,} grouping sets (CUBE, ROLLUP) of {by}, and in each the distinct values of "
            f"{what}, Spark makes {made:,} rows of {of:,} before it aggregates them",
            f"{_NEEDED_SETS} approx_count_distinct() needs one row for each set only; sketches "
            "(hll_sketch_agg, hll_union_agg) can be added up from set to set.",
        )
    if _OF_DISTINCT.search(around):
        more = ", …" if len(node.text) >= LONGEST_TEXT and len(names) <= _MOST_NAMES else ""
        return (
            f"to aggregate distinct values of {what}{more} at once, Spark makes {made:,} rows of {of:,}, and "
            "divides them among tasks by these values",
            _one_step_before(node, names)
            + "approx_count_distinct() needs no such rows; nor does size(collect_set()), which is exact, "
            "where each group has few values. Filter before, and count no column of which nobody needs it.",
        )
    if _OF_SETS.search(around):
        distinct = [name for name in columns(_keys(node)) if name not in (*names, *_MARKS)]
        not_added = _NOT_ADDED_UP.format(columns=", ".join(distinct)) if distinct else ""
        return (
            f"for the grouping sets (CUBE, ROLLUP) of {what}, Spark makes {made:,} rows of {of:,} before it "
            "aggregates them",
            f"{_NEEDED_SETS} Where far fewer rows are left then, group by all of these columns first, and "
            f"make the grouping sets of the result: sums of sums, and sums of counts.{not_added}",
        )
    return None


def _said_of_array(node: Node, made: int, of: int) -> tuple[str, str] | None:
    """Return the same of a sequence, or of constants, that is exploded; None if nothing aggregates by it."""
    constants = _OF_CONSTANTS.match(node.text)
    array = constants or _OF_SEQUENCE.match(node.text)
    if array is None or made < _LEAST_OF_SEQUENCE * of or not _is_grouped_by(array[1], node, made):
        return None
    if constants and _is_chosen_by(array[1], node):
        return None
    if constants:
        return (
            f"explode() of constants makes {made:,} rows of {of:,}, which are then aggregated by these "
            "constants",
            "Aggregate first, without them, and explode the few rows of the result: what is computed with "
            "each constant can be computed of the sums. To make rows of several columns, aggregate all of "
            "these columns, and unpivot() the result.",
        )
    return (
        f"explode(sequence()) makes {made:,} rows of {of:,}, which are then aggregated by the values of the "
        "sequence",
        "For figures of the last days, aggregate by day first, and use a window with a frame: RANGE BETWEEN "
        "n PRECEDING AND CURRENT ROW (size(collect_set()) counts distinct values in it). To count what is "
        "going on at a time, add 1 at each start and -1 at each end, and sum that up in a window.",
    )


def _is_grouped_by(column: str, node: Node, made: int) -> bool:
    """Return whether rows are aggregated by a column, and far fewer are left."""
    above = node.parent
    while above is not None:
        if above.name.endswith("Aggregate") and (above.rows or made) <= made // 2:
            keys = above.text.partition("keys=[")[2].partition("]")[0]
            return any(key.strip().removesuffix("L") == column for key in items(f"[{keys}]"))
        above = above.parent
    return False


def _is_chosen_by(column: str, node: Node) -> bool:
    """Return whether a filter or a join chooses among the rows that are made, as by salted keys."""
    above = node.parent
    while above is not None and not above.name.endswith("Aggregate"):
        chooses = above.name == "Filter" or "Join" in above.name
        if chooses and re.search(rf"\b{column}\b", above.text, re.ASCII):
            return True
        above = above.parent
    return False


def _aggregates(node: Node) -> Iterator[Node]:
    """Yield what aggregates the rows of a node, before and after they are shuffled.

    Where columns are many, their texts are cut, and only one that merges names the column of the copies.
    """
    above = node.parent
    while above is not None and (above.name.endswith("Aggregate") or above.name in MOVES):
        yield above
        above = above.parent


def _names(node: Node) -> list[str]:
    """Return the columns that are in some of the copies of a row and not in all; or the time of windows.

    Of a sequence, those of which it is made; of constants, the one that has them.
    """
    if constants := _OF_CONSTANTS.match(node.text):
        return columns(constants[1])
    if node.name == _GENERATE:
        return exploded_columns(node)
    if windows := _OF_WINDOWS.search(node.text):
        return [windows[1]]
    texts = [item for item in items(node.text) if item.endswith("]")]
    copies = [columns(text) for text in texts]
    in_all = set(copies[0]).intersection(*copies) if copies else set()
    if _OF_SETS.search(_keys(node)) and not _is_of_sets(node, node.children[0]):
        of_sets = _names_of_sets(node)
        # The others are columns whose distinct values are counted.
        return [name for name in of_sets if name not in in_all or node.is_cut] or of_sets
    counted = (_CASE.sub("", item) for item in _distinct_items(node))
    return sorted({name for item in counted for name in columns(item)} - {*_MARKS})


def _names_of_sets(node: Node) -> list[str]:
    """Return the columns of grouping sets: they come before the mark, those of distinct values after it."""
    return columns(_OF_SETS.split(_keys(node))[0])


def _distinct_items(node: Node) -> list[str]:
    """Return what the copies of a row have whose distinct values are aggregated: not all have the same."""
    texts = [item for item in items(node.text) if item.endswith("]")]
    copies = [[item.strip() for item in items(text)] for text in texts]
    in_all = set(copies[0]).intersection(*copies) if copies else set()
    # The first copy may be for aggregates of all values, of which none is left out.
    of_distinct = copies[bool(copies) and _OF_ALL_VALUES in copies[0] :]
    return [item for copy in of_distinct for item in copy if item not in in_all]


def _one_step_before(node: Node, names: list[str]) -> str:
    """Return what to do where the values of one column are counted under several conditions."""
    if len(names) != 1 or not any(_CASE.search(item) for item in _distinct_items(node)):
        return ""
    if any(_NO_COUNT.search(each.text) for each in _aggregates(node)):
        return ""
    return (
        f"It counts {names[0]} under several conditions: group by {names[0]}, too, with the max() of each "
        "condition as 1 or 0, and then add these up. "
    )


def _keys(node: Node) -> str:
    """Return by what the rows are aggregated."""
    return node.parent.text.partition("keys=[")[2].partition("]")[0] if node.parent is not None else ""

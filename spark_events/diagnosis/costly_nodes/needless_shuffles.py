"""The rule about shuffles that the next one undoes: rows are divided or sorted, and then moved again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import functions_of
from spark_events.diagnosis.plans.node import AGGREGATES, DATA_SIZE, EXCHANGE, REUSED, Node, columns, first_of
from spark_events.diagnosis.plans.work_in_stage import WorkInStages, is_light, over
from spark_events.diagnosis.thresholds import NEEDLESS_SHUFFLE, Thresholds

_ASKED_FOR, _SORTS = ", REPARTITION_BY_", "rangepartitioning("
"""How texts of exchanges say that the program has asked for them, and that they are a sort's first step."""
_PASSES = ("AQEShuffleRead", "Sort", "Project", "Filter")
_MOST_NAMES = 4
_QUICK = re.compile(
    "count|sum|min|max|avg|first|last|max_by|min_by|count_if|stddev|variance|cast|coalesce|isnotnull|isnull|IN|"
    "NOT|AND|OR|CASE|if|keys|functions|length|lower|upper|trim|substring|concat|hash|xxhash64|round|abs|pmod|"
    "year|month|dayofmonth|hour|minute|trunc|date_trunc|struct|named_struct"
)
"""Functions that take little for a row, besides those that any rule takes for light."""
_COLLECTS = re.compile("collect_list|collect_set")
"""Functions that take less for a row than sorting all rows does, and for which rows are often sorted."""
_LEAVE_OUT = (
    "Leave repartition() out where a join, an aggregation or a window follows: that moves the rows in any "
    "case, and repartition() helps only before functions and writes that take long in too few tasks."
)
_SORT_LAST = (
    "Sort last: a join, an aggregation or a window after orderBy() moves the rows again, and keeps no order. "
    "For the first or the latest row of each group, use a window, min_by() or max_by()."
)


def undone_by(shuffle: Node, execution: EndedExecution, thresholds: Thresholds) -> Node | None:
    """Return the next shuffle of the same rows, if it undoes one of the program's; None if that is of use.

    One that other branches of the plan read, too, spares computing what is below it again.
    """
    is_asked_for = shuffle.name == EXCHANGE and (_ASKED_FOR in shuffle.text or _SORTS in shuffle.text)
    is_large = (shuffle.rows or 0) >= thresholds.explosion_rows
    if not (is_asked_for and is_large and _has_all_cores(shuffle, execution)):
        return None
    following = _next_shuffle(shuffle)
    return None if following is None or _is_reused(shuffle, execution) else following


def needless_shuffles(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each shuffle by ``repartition`` or ``orderBy`` of rows that are only shuffled again after it.

    How long it takes is not measured apart: ``share_ms`` is the time to write them, to sample them for a
    sort, and, besides what the next shuffle takes to write, that of the stage that reads them.
    """
    for node in execution.nodes():
        following = undone_by(node, execution, thresholds)
        if following is not None:
            yield _issue(node, following, execution)


def _is_reused(shuffle: Node, execution: EndedExecution) -> bool:
    """Return whether another branch of the plan reads what a shuffle has written, whose text it has."""
    text = shuffle.text.partition(", [plan_id")[0]
    return any(node.name in REUSED and text in node.text for node in execution.nodes())


def _has_all_cores(shuffle: Node, execution: EndedExecution) -> bool:
    """Return whether rows come from as many tasks as there are cores: no core is idle without the shuffle."""
    tasks = [execution.stages[stage].tasks for stage in shuffle.measured_in if stage in execution.stages]
    return bool(tasks) and min(tasks) >= execution.cores > 0


def _next_shuffle(shuffle: Node) -> Node | None:
    """Return the next shuffle of the same rows; None if something before it uses how they are divided."""
    node, aggregates, sorts = shuffle.parent, 0, _ASKED_FOR not in shuffle.text
    while node is not None and node.name != EXCHANGE:
        if node.name in AGGREGATES:
            aggregates += 1
            if aggregates > 1 or not _is_partial(node):
                return None
        elif node.name not in _PASSES:
            return None
        if not _is_quick(node, sorts):
            return None
        node = node.parent
    return node


def _is_quick(node: Node, after_sort: bool) -> bool:
    """Return whether what a node does takes little, whichever task does it; after a sort, less than that."""
    if node.name == "AQEShuffleRead" or is_light(node):
        return True
    functions = (each.removeprefix("partial_") for each in functions_of(node.text.partition(" ")[2]))
    return not node.is_cut and all(
        _QUICK.fullmatch(name) or (after_sort and _COLLECTS.fullmatch(name)) for name in functions
    )


def _is_partial(aggregate: Node) -> bool:
    """Return whether an aggregate only reduces what another one gets, as far as its text says it."""
    if "functions=[]" not in aggregate.text:
        return "partial_" in aggregate.text and "merge_" not in aggregate.text
    final = over(aggregate, ("Project",))
    return (
        aggregate.parent is not None
        and aggregate.parent.name == EXCHANGE
        and (final is not None and final.name in AGGREGATES)
    )


def _issue(shuffle: Node, following: Node, execution: EndedExecution) -> Issue:
    work = WorkInStages(execution)
    rows, moved = shuffle.rows or 0, shuffle.metrics.get(DATA_SIZE, 0)
    of = first_of(shuffle.tables(), _MOST_NAMES)
    by = first_of(columns(following.text), _MOST_NAMES)
    sorts, by_range = _ASKED_FOR not in shuffle.text, _SORTS in shuffle.text
    method = "orderBy()" if sorts else "repartitionByRange()" if by_range else "repartition()"
    read_in = following.measured_in & execution.stages.keys()
    written_in = shuffle.measured_in & execution.stages.keys()
    # To find out which values there are, Spark computes what it sorts once more, for a sample.
    below = (node.stages for child in shuffle.children for node in child.within_stage())
    sampled = frozenset().union(*below) & execution.stages.keys() - written_in
    return Issue(
        NEEDLESS_SHUFFLE,
        f"{NEEDLESS_SHUFFLE} {method} {by}",
        None,
        None,
        f"{method} {'sorts' if sorts else 'moves'} {rows:,} rows{f' ({size(moved)})' if moved else ''}"
        f"{f' of {of}' if of else ''}, and the next step moves them again{f', by {by}' if by else ''}",
        _SORT_LAST if sorts else _LEAVE_OUT,
        evidence={
            "needlessShuffle.rows": rows,
            "needlessShuffle.bytes": moved,
            "needlessShuffle.stages": ", ".join(map(str, sorted(read_in))),
        },
        share_ms=_moved_ms(written_in, read_in, execution, work) + work.freed_ms(sampled),
        stages=read_in | written_in | sampled,
    )


def _moved_ms(
    written_in: frozenset[int], read_in: frozenset[int], execution: EndedExecution, work: WorkInStages
) -> int:
    """Return how long rows are written for a shuffle, and read, with all that is done before the next one."""
    ms = 0.0
    for stages, is_read in ((written_in, False), (read_in, True)):
        run_ms = sum(execution.stages[stage].run_ms for stage in stages)
        writes_ms = sum(execution.stages[stage].shuffle_write_ms for stage in stages)
        written = min(1.0, writes_ms / run_ms) if run_ms else 0.0
        ms += work.freed_ms(stages) * (1 - written if is_read else written)
    return round(ms)

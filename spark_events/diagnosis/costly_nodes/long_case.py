"""The rule about CASE expressions with so many conditions that each row takes long."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.api.toolkit.formatting import micros
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import AGGREGATES, CONDITIONS, Node, columns, first_of
from spark_events.diagnosis.plans.slow_functions import calls_unknown, slow_in
from spark_events.diagnosis.plans.work_in_stage import (
    MEASURED_TIMES,
    USUAL_FOR_A_ROW_US,
    cpu_us_of_row,
    freed_besides_ms,
    in_stage_with,
    is_accounted_for,
    measured_ms,
    parses,
    tasks_time,
)
from spark_events.diagnosis.thresholds import LONG_CASE, Thresholds

_NODES = ("Project", "Filter", *AGGREGATES)
_CONDITION = re.compile(r"\bWHEN (.*?) THEN ", re.DOTALL)
_COUNTED = re.compile(re.escape(CONDITIONS) + r"(\d+)\]$", re.ASCII)
_LEAST_ROWS, _LONG_FOR_A_ROW_US = 10_000, 5
_CONDITION_US = 0.04
"""What a condition takes of a CPU, twice as long as usual: if all of them cannot take as long as a row does,
something else takes most of that."""
_MOST_NAMES = 3
_PIVOT = (
    "If they turn the values of a column into columns, pivot() with a list of these values makes a group "
    "for each value: each row belongs to one of them, and is compared with none."
)
_LOOK_UP = (
    "If they turn values into others, put these into a table of two columns, and join it (with broadcast(), "
    "if it is small): looking a value up takes as long, however many there are."
)


def long_case(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield nodes that try many conditions for each row, in stages that do nothing else that may be slow."""
    known: set[frozenset[int]] = set()
    for node in execution.nodes():
        conditions, rows = _conditions(node), node.children[0].rows if node.children else None
        if not conditions or node.stages in known or not rows or rows < _LEAST_ROWS:
            continue
        around = in_stage_with(node)
        if not all(each is node or is_accounted_for(each) or parses(each) for each in around):
            continue
        _, cpu_ms = tasks_time(node, execution)
        besides_ms = measured_ms(around) if cpu_ms else 0  # else it is left out already
        each_us = cpu_us_of_row(node, rows, execution) - besides_ms * 1_000 / rows
        if _LONG_FOR_A_ROW_US <= each_us <= conditions * _CONDITION_US:
            known.add(node.stages)
            took_ms = freed_besides_ms(execution, node.stages, around, MEASURED_TIMES)
            share_ms = int(took_ms * (1 - USUAL_FOR_A_ROW_US / each_us))
            yield _issue(node, conditions, rows, each_us, share_ms)


def _conditions(node: Node) -> int:
    """Return how many conditions a node has that calls no functions that may be slow; 0 if these are few."""
    counted = _COUNTED.search(node.text) if node.name in _NODES else None
    if counted is None or calls_unknown(node.text) or slow_in(node.text):
        return 0
    return int(counted[1])


def _issue(node: Node, conditions: int, rows: int, each_us: float, share_ms: int) -> Issue:
    compared = [name for text in _CONDITION.findall(node.text) for name in columns(text)]
    of = first_of(list(dict.fromkeys(compared)), _MOST_NAMES)
    is_aggregate = node.name in AGGREGATES
    tries = "aggregates with CASE try up to" if is_aggregate else "CASE tries up to"
    return Issue(
        LONG_CASE,
        f"{LONG_CASE} {of}",
        None,
        None,
        f"{tries} {conditions:,} conditions{f' on {of}' if of else ''} for each of {rows:,} rows, "
        f"which takes {micros(each_us)} of a CPU for a row",
        _PIVOT if is_aggregate else _LOOK_UP,
        evidence={"case.conditions": conditions, "case.columns": of, "case.rows": rows},
        share_ms=share_ms,
        stages=node.stages,
    )

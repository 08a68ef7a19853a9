"""The rule about regular expressions that take long for each row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from spark_events.api.toolkit.formatting import micros
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import functions_of
from spark_events.diagnosis.plans.node import DATA_SIZE, EXCHANGE, Node, columns, first_of
from spark_events.diagnosis.plans.slow_functions import PATTERNS, calls_unknown, slow_in
from spark_events.diagnosis.plans.work_in_stage import (
    MEASURED_TIMES,
    cpu_us_of_row,
    freed_besides_ms,
    in_stage_with,
    is_accounted_for,
    parses,
)
from spark_events.diagnosis.thresholds import SLOW_PATTERN, Thresholds

_NODES = ("Project", "Filter")
_RLIKE = " RLIKE "
_LEAST_ROWS, _LONG_FOR_A_ROW_US = 1_000, 200
"""What a row takes of a CPU from here on: a pattern that goes through a line once takes a few µs."""
_OF_FILES, _NS_FOR_A_BYTE, _NS_FOR_A_BYTE_OF_FILES = "size of files read", 50, 500
"""What a pattern that goes through a text once takes for a byte at most; those of files are compressed."""
_NESTED = re.compile(r"\((?:\?:)?[^()]*[*+][^()]*\)(?:[*+]|\{\d*,)")
"""A repetition of what repeats itself: where a text does not match, all ways to divide it are tried."""
_MOST_NAMES = 3
_ONE_REPETITION = (
    "The pattern repeats a part that repeats something itself, as (.*)* and (a+)+ do: where a text does not "
    "match, all ways to divide it are tried. One repetition does the same. "
)
_ADVICE = (
    "Say what is between the parts that are looked for ([^ ]*, \\d+) instead of .*, begin the pattern with ^ "
    "if it has to match from the beginning, and drop rows before that cannot match (contains(), "
    "startswith())."
)


def slow_patterns(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield the patterns that take long for each row, in stages that do nothing else that may."""
    known: set[frozenset[int]] = set()
    for node in execution.nodes():
        rows = node.children[0].rows if node.children else None
        if not _looks_for_patterns(node) or node.stages in known or not rows or rows < _LEAST_ROWS:
            continue
        around = in_stage_with(node)
        searching = [each for each in around if _looks_for_patterns(each)]
        # What parses lines takes a few µs for each.
        if not all(each in searching or is_accounted_for(each) or parses(each) for each in around):
            continue
        each_us = cpu_us_of_row(node, rows, execution)
        is_nested = any(_NESTED.search(each.text) for each in searching)
        if each_us >= max(_LONG_FOR_A_ROW_US, 0 if is_nested else _once_us(node, rows)):
            known.add(node.stages)
            took_ms = freed_besides_ms(execution, node.stages, around, MEASURED_TIMES)
            advice = _ONE_REPETITION + _ADVICE if is_nested else _ADVICE
            yield _issue(searching, rows, each_us, int(took_ms), advice, node.stages)


def _looks_for_patterns(node: Node) -> bool:
    """Return whether a node calls functions with patterns, and no others that may take long."""
    if node.name not in _NODES or calls_unknown(node.text):
        return False
    slow = slow_in(node.text)
    return (bool(slow) or _RLIKE in node.text) and slow <= PATTERNS


def _once_us(node: Node, rows: int) -> float:
    """Return what it takes at most to go through a row's text once, in µs; endless if its size is unknown."""
    below = [*node.within_stage()]
    shuffled = (child for each in below for child in each.children if child.name == EXCHANGE)
    all_ns = sum(each.metrics.get(DATA_SIZE, 0) * _NS_FOR_A_BYTE for each in shuffled)
    all_ns += sum(each.metrics.get(_OF_FILES, 0) * _NS_FOR_A_BYTE_OF_FILES for each in below)
    return all_ns / rows / 1_000 if all_ns else math.inf


def _issue(
    searching: Sequence[Node], rows: int, each_us: float, took_ms: int, advice: str, stages: frozenset[int]
) -> Issue:
    called = [name for node in searching for name in functions_of(node.text) if name.lower() in PATTERNS]
    called += ["rlike"] * any(_RLIKE in node.text for node in searching)
    functions = first_of(list(dict.fromkeys(called)), _MOST_NAMES)
    below = [name for node in searching for name in columns(node.text)]
    made = {name for node in searching for item in node.text.split(" AS ")[1:] for name in columns(item)[:1]}
    of = first_of([name for name in dict.fromkeys(below) if name not in made], _MOST_NAMES)
    return Issue(
        SLOW_PATTERN,
        f"{SLOW_PATTERN} {functions} {of}",
        None,
        None,
        f"{functions}{f' of {of}' if of else ''} takes {micros(each_us)} of a CPU for each of {rows:,} rows",
        advice,
        evidence={"pattern.functions": functions, "pattern.columns": of, "pattern.rows": rows},
        share_ms=took_ms,
        stages=stages,
    )

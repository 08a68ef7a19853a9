"""The rule about micro-batches that several actions in ``foreachBatch`` compute, each anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import CUT, EXCHANGE, EXISTING_RDD, Node, columns, listed, without_ids
from spark_events.diagnosis.thresholds import RECOMPUTATION

OF_BATCH = f"{RECOMPUTATION} batch"
_SCANS = ("Scan ", "MicroBatchScan")
_SAME_COLUMNS = (EXCHANGE, "AQEShuffleRead", "Filter", "Sort")


class _Computed(NamedTuple):
    """One time that an action has computed the batch."""

    stages: frozenset[int]
    rows: int


def computed_again(execution: EndedExecution) -> Iterator[Issue]:
    """Yield that the actions of a micro-batch computed it more often than once.

    What each of them does besides is not measured, nor so what computing it takes: at most as long as the
    quickest.

    Args:
        execution: of a micro-batch, with the plans of all actions in it.
    """
    text = _batch(execution)
    by_stages: dict[frozenset[int], _Computed] = {}
    for node in execution.nodes():
        stages = frozenset(node.measured_in & execution.stages.keys())
        if text and node.text == text and stages and node.rows:
            by_stages[stages] = _Computed(stages, node.rows)
    most = max((each.rows for each in by_stages.values()), default=0)
    whole = [each for each in by_stages.values() if each.rows == most]  # not a few rows only
    if len(whole) > 1:
        yield _issue(text, whole, execution)


def batch_scans(execution: EndedExecution) -> set[str]:
    """Return the texts of the scans by which actions get the batch; empty if nobody knows which they are.

    They get it as the rows of an RDD, which each of them computes. Rows that the program has made, such as a
    table of codes, are scanned in the same way. Those of the batch have the columns of the micro-batch's own
    plan, which is the first one, if that says its columns. An action that uses the batch twice has two scans
    of it, each with its own ids.
    """
    nodes = (node for plan in execution.plans for node in plan.walk())  # also what a cache was filled with
    scans = {node.text for node in nodes if node.name.startswith(EXISTING_RDD)}
    of_batch = _described(execution.plans[0]) if execution.plans else ""
    if of_batch:
        return {text for text in scans if _same_columns(of_batch, text)}
    return scans if len({without_ids(text) for text in scans}) == 1 else set()


def _batch(execution: EndedExecution) -> str:
    """Return the text of the only scan of the batch; empty if there are several, or if nobody knows it."""
    scans = batch_scans(execution)
    return scans.pop() if len(scans) == 1 else ""


def _described(node: Node) -> str:
    """Return the text of the node that says which columns come out of a plan; empty if none does."""
    while node.name in _SAME_COLUMNS and len(node.children) == 1:
        node = node.children[0]
    return node.text if node.name == "Project" or node.name.startswith(_SCANS) else ""


def _same_columns(*texts: str) -> bool:
    first, second = ([without_ids(name) for name in listed(text)] for text in texts)
    if any(CUT in text for text in texts):
        return all(first_name == second_name for first_name, second_name in zip(first, second, strict=False))
    return first == second


def _issue(text: str, computed: list[_Computed], execution: EndedExecution) -> Issue:
    once_ms = min(execution.wall_ms(each.stages) for each in computed)
    times, of = len(computed), ", ".join(columns(text)[:5]) or without_ids(text)
    tables = execution.plans[0].tables()  # the micro-batch's own plan; what actions read and write is not its
    named = f" of {', '.join(tables[:3])}" if tables else ""
    return Issue(
        RECOMPUTATION,
        OF_BATCH,
        None,
        None,
        f"code in foreachBatch computes its batch{named} ({of}) {times} times; the quickest of these actions "
        f"takes {duration(once_ms)}",
        "cache() or persist() the batch before its first use in foreachBatch, or what all of these actions "
        "make of it first (joined, without duplicates), and unpersist() it at the end.",
        evidence={
            "recomputation.times": times,
            "recomputation.cached": False,
            "recomputation.what": f"the micro-batch ({of})",
        },
        share_ms=(times - 1) * once_ms,
        stages=frozenset().union(*(each.stages for each in computed)),
    )

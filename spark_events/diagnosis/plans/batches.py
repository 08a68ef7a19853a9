"""The rule about micro-batches that several actions in ``foreachBatch`` compute, each anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import columns, without_ids
from spark_events.diagnosis.thresholds import RECOMPUTATION

_BATCH = "Scan ExistingRDD"
"""How ``foreachBatch`` gets its batch: as the rows of an RDD, which each action computes."""


class _Computed(NamedTuple):
    """One time that an action has computed the batch."""

    stages: frozenset[int]
    rows: int


def computed_again(execution: EndedExecution) -> Iterator[Issue]:
    """Yield that the actions of a micro-batch computed it more often than once.

    What each of them does besides is not measured; that the quickest takes, all of them do.

    Args:
        execution: of a micro-batch, with the plans of all actions in it.
    """
    by_text: dict[str, dict[frozenset[int], _Computed]] = {}
    for node in execution.nodes():
        stages = frozenset(node.measured_in & execution.stages.keys())
        if node.name.startswith(_BATCH) and stages and node.rows:
            by_text.setdefault(node.text, {})[stages] = _Computed(stages, node.rows)
    for text, computed in by_text.items():
        most = max(each.rows for each in computed.values())
        whole = [each for each in computed.values() if each.rows == most]  # not a few rows only
        if len(whole) > 1:
            yield _issue(text, whole, execution)


def _issue(text: str, computed: list[_Computed], execution: EndedExecution) -> Issue:
    once_ms = min(execution.wall_ms(each.stages) for each in computed)
    times, of = len(computed), ", ".join(columns(text)[:5]) or without_ids(text)
    tables = execution.tables()
    named = f" of {', '.join(tables[:3])}" if tables else ""
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} batch",
        (times - 1) * once_ms,
        None,
        f"code in foreachBatch computes its batch{named} ({of}) {times} times, {duration(once_ms)} each",
        "cache() or persist() the batch before its first use in foreachBatch, and unpersist() it at the end.",
        evidence={
            "recomputation.times": times,
            "recomputation.cached": False,
            "recomputation.what": f"the micro-batch ({of})",
        },
        stages=frozenset().union(*(each.stages for each in computed)),
    )

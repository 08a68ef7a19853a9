"""The rules about functions, and other work, that one SQL execution does twice for the same rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from spark_events.diagnosis.costly_nodes.needless_shuffles import undone_by
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import BROADCAST, EXCHANGE, IN_MEMORY, Node, columns
from spark_events.diagnosis.plans.work_in_stage import WorkInStages, is_accounted_for
from spark_events.diagnosis.thresholds import RECOMPUTATION, Thresholds

CALLING = "EvalPython"
"""How the names of nodes end that call functions for each of their rows, and keep these."""
_IN_PYTHON = (CALLING, "InPandas", "InArrow")
CALL = re.compile(r"([A-Za-z_<][\w<>]*)\([^()]*\)(#\d+)", re.ASCII)
"""A call in the text of such a node: the function, its columns, and its result."""
_RANGES = re.compile(r"rangepartitioning\((.*), \d+\)", re.ASCII)
_MOST_NAMES = 3
_ALL, _WAITS = (
    "time to run Python workers",
    ("time to start Python workers", "time to initialize Python workers"),
)
_CAUSE = f"{RECOMPUTATION} call "
CALLS_OF = "recomputation.callsOf"
"""The evidence of which calls are made again, with the ids of their columns and results."""


def is_of_calls(issue: Issue) -> bool:
    """Return whether an issue is about functions that are called twice."""
    return issue.cause.startswith(_CAUSE)


def called_twice(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield the functions that are called again for rows whose result is there already.

    Spark may move a filter on a function's result below the function, which then is called for the filter and
    for the result; and it computes what it sorts once more, to find out which values there are.
    """
    work = WorkInStages(execution)
    for node in execution.nodes():
        if node.name.endswith(CALLING):
            yield from _for_filter(node, work)
        elif node.name == EXCHANGE and (sorts := _RANGES.search(node.text)):
            if undone_by(node, execution, thresholds) is not None:
                continue  # the sample is a part of what that costs
            yield from _for_sample(node, sorts[1], work)


def _for_filter(node: Node, work: WorkInStages) -> Iterator[Issue]:
    calls = _calls(node)
    for below in _below(node):
        again = calls.keys() & _calls(below).keys() if below is not node else set()
        rows, rows_below = node.rows or 0, below.rows or 0
        if not again or not rows or not rows_below or not _is_filtered(below, node):
            continue
        names = ", ".join(sorted({calls[call] for call in again}))
        time = work.time(node)
        known = time.is_known and len(again) == len(calls) == len(_calls(below))
        # In one stage, the upper one's workers load while those below it do.
        is_one_stage = below.stages == node.stages
        of_all = rows / (rows + rows_below * is_one_stage)
        calling = _calling_share([below if is_one_stage else node])
        yield _issue(
            names,
            node.stages,
            round(time.time_ms * of_all * calling),
            known,
            f"{names} is called twice for the same rows, for {rows_below:,} and again for {rows:,}: Spark "
            "calls it for a filter on its result, and again for the result",
            "cache() or persist() the result before it is filtered. Or, if nothing else needs it, call "
            "asNondeterministic() on the function: Spark then moves no filter below it, so write those on "
            "other columns before it.",
            ", ".join(call for call in calls_in([node]) if call.endswith(tuple(again))),
        )
        return


def _below(node: Node) -> Iterator[Node]:
    """Yield the nodes whose rows a node gets, but for those that the driver sends to all executors."""
    waiting = [node]
    while waiting:
        below = waiting.pop()
        yield below
        waiting += [child for child in reversed(below.children) if child.name != BROADCAST]


def functions_in(nodes: Iterable[Node]) -> list[str]:
    """Return the names of the functions in Python that some nodes call, each once."""
    return list(dict.fromkeys(name for node in nodes for name in _calls(node).values()))


def calls_in(nodes: Iterable[Node]) -> list[str]:
    """Return the calls of functions in Python that some nodes make, as their texts have them, each once."""
    in_python = (node for node in nodes if node.name.endswith(CALLING))
    return list(dict.fromkeys(match[0] for node in in_python for match in CALL.finditer(node.text)))


def _is_filtered(below: Node, above: Node) -> bool:
    """Return whether a filter is between two nodes of a stage."""
    node = below.parent
    while node is not None and node is not above:
        if node.name == "Filter":
            return True
        node = node.parent
    return False


def _for_sample(exchange: Node, by: str, work: WorkInStages) -> Iterator[Issue]:
    nodes = [node for child in exchange.children for node in child.within_stage()]
    # One that fills a cache meanwhile runs once.
    twice = [node for node in nodes if node.stages & exchange.stages]
    functions = [node for node in twice if node.name.endswith(_IN_PYTHON)]
    if not functions and not any(node.name == IN_MEMORY for node in nodes):
        functions = [node for node in twice if not is_accounted_for(node)]
    sampled = frozenset().union(*(node.stages for node in functions)) - exchange.stages
    if not sampled or not exchange.stages:
        return
    names = ", ".join(functions_in(functions))
    kinds = ", ".join(list(dict.fromkeys(node.name for node in functions))[:_MOST_NAMES])
    what = f"what is sorted by {', '.join(columns(by)[:3])}"
    yield _issue(
        names or what,
        sampled,
        int(min(work.freed_ms(sampled), work.freed_ms(exchange.stages)) * _calling_share(functions)),
        True,
        f"{what} is computed twice, first to find out which values there are: {names or kinds} runs for all "
        "rows each time",
        "cache() or persist() what is sorted, before; and unpersist() it afterwards. If rows need to be in "
        "order within each file only, sortWithinPartitions() finds out nothing first.",
    )


def _calls(node: Node) -> dict[str, str]:
    """Return the names of the functions that a node calls, by the result of the call."""
    if not node.name.endswith(_IN_PYTHON):
        return {}
    if not node.name.endswith(CALLING):
        return {name: name for name, _ in CALL.findall(node.text)}
    return {result: name for name, result in CALL.findall(node.text)}


def _calling_share(functions: list[Node]) -> float:
    """Return for how much of their time functions are called, and not loaded; 1 if unknown."""
    all_ms = sum(node.metrics.get(_ALL, 0) for node in functions)
    waited_ms = sum(node.metrics.get(name, 0) for node in functions for name in _WAITS)
    return max(0.0, 1 - waited_ms / all_ms) if all_ms else 1.0


def _issue(
    what: str,
    stages: frozenset[int],
    lost_ms: int,
    is_known: bool,
    sentence: str,
    advice: str,
    calls: str = "",
) -> Issue:
    return Issue(
        RECOMPUTATION,
        f"{_CAUSE}{what}",
        lost_ms if is_known else None,
        None,
        sentence,
        advice,
        evidence={
            "recomputation.times": 2,
            "recomputation.what": what,
            **({CALLS_OF: calls} if calls else {}),
        },
        share_ms=None if is_known else lost_ms,
        stages=stages,
    )

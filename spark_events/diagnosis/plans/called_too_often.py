"""The rule about functions in Python that several SQL executions call for the same rows.

What they are called for may be filtered in another way each time, so that no part of their plans is the same.
But a table has only so many rows: a function that is called more often was called for some of them before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.called_twice import CALL, CALLING
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import ids_of
from spark_events.diagnosis.plans.node import CUT, FILES, IN_PYTHON, MOVES, Node
from spark_events.diagnosis.plans.plan_part import MOST_PLACES, named_places
from spark_events.diagnosis.plans.work_in_stage import WorkInStages
from spark_events.diagnosis.thresholds import RECOMPUTATION

CALLS = "recomputation.calls"
"""What only its issues have as evidence: for how many rows the function is called, in all."""
CALLS_TABLE, CALLS_MS = f"{CALLS}Table", f"{CALLS}Ms"
"""The table from which the rows come; and all that the calls cost, what other issues tell of it included."""
_OF_ONE_ROW_EACH = ("Project", "Filter", *MOVES)
"""Nodes out of which come no more rows than go into them, besides calls of functions in Python."""
_FILTERS = ("DataFilters", "PartitionFilters")
_MOST_FUNCTIONS = 500
_OFTEN = 1.5
"""How many times as many calls as rows are told."""


class _Called(NamedTuple):
    """A function that is called for columns of a table as it was once.

    Attributes:
        call: with the id of its result, which is another one wherever a program writes a call: two functions
            may have one name.
    """

    name: str
    call: str
    table: str
    files: tuple[int | None, ...]


@dataclass(slots=True)
class _Calls:
    """What is known of the calls of a function.

    Attributes:
        rows: for how many it was called.
        executions: how many SQL executions called it.
        time_ms: how much sooner these would have ended without the calls.
        of_table: how many rows the table has; 0 if unknown.
    """

    rows: int = 0
    executions: int = 0
    time_ms: float = 0.0
    of_table: int = 0
    places: dict[str, None] = field(default_factory=dict)

    @property
    def are_too_many(self) -> bool:
        """Whether several executions call it, and more often than the table has rows."""
        return self.executions > 1 and self.of_table > 0 and self.rows >= _OFTEN * self.of_table


class CalledTooOften:
    """Finds such functions in the SQL executions of an application."""

    def __init__(self) -> None:
        self._calls: dict[_Called, _Calls] = {}

    def take(self, execution: EndedExecution, place: str) -> Iterator[Issue]:
        """Called with each SQL execution that has ended; yields what its functions have lost so far.

        Args:
            execution: it.
            place: in the user's code that it is for; empty if unknown.
        """
        time_ms = _times(execution)
        called: dict[_Called, _Calls] = {}
        for node in execution.nodes():
            scan = _scan_below(node) if node.name.endswith(CALLING) else None
            if scan is None or not node.rows or id(node) not in time_ms:
                continue
            for function in _called(node, scan):
                calls = self._calls.get(function)
                if calls is None and len(self._calls) < _MOST_FUNCTIONS:
                    calls = self._calls[function] = _Calls()
                if calls is not None:
                    calls.executions += function not in called
                    called[function] = calls
                    calls.rows += node.rows
                    calls.time_ms += time_ms[id(node)]
                    if all(scan.metadata.get(name) == "[]" for name in _FILTERS):
                        calls.of_table = max(calls.of_table, scan.rows or 0)
                    if place and len(calls.places) < MOST_PLACES:
                        calls.places[place] = None
        yield from (_issue(function, calls) for function, calls in called.items() if calls.are_too_many)


def _called(node: Node, scan: Node) -> Iterator[_Called]:
    """Yield the functions that a node calls for columns of a scan alone."""
    files = tuple(scan.metrics.get(name) for name in FILES)
    columns, closed, _ = scan.text.partition("]")
    for match in CALL.finditer(node.text) if closed and CUT not in columns else ():
        own = ids_of(match[0].removesuffix(match[2]))
        if own and own <= ids_of(columns):
            yield _Called(match[1], match[0], scan.table(), files)


def _scan_below(node: Node) -> Node | None:
    """Return the scan whose rows a node gets, each at most once; None if it gets others, or more of them."""
    while len(node.children) == 1:
        node = node.children[0]
        if node.children and not (node.name in _OF_ONE_ROW_EACH or node.name.endswith(CALLING)):
            return None
    return node if not node.children and node.table() else None


def _times(execution: EndedExecution) -> dict[int, float]:
    """Return how much sooner an execution would end without each node that calls functions, in ms, by its id.

    The calls of one task may wait for each other: together they take no longer than the task.
    """
    work, times = WorkInStages(execution), defaultdict[int, float](float)
    for stage, nodes in execution.nodes_by_stage().items():
        measured = {id(node): node.metrics.get(IN_PYTHON, 0) for node in nodes}
        executed = execution.stages.get(stage)
        whole_ms = max(sum(measured.values()), executed.run_ms if executed else 0)
        for node, time_ms in measured.items():
            if time_ms:
                times[node] += work.freed_ms([stage]) * time_ms / whole_ms
    return times


def _issue(function: _Called, calls: _Calls) -> Issue:
    lost_ms = round(calls.time_ms * (calls.rows - calls.of_table) / calls.rows)
    places = f", for {named_places(calls.places)}" if calls.places else ""
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} calls {function.call} {function.table}",
        lost_ms,
        None,
        f"{function.name} is called for {calls.rows:,} rows in {calls.executions} SQL executions{places}: "
        f"{function.table}, from which they come, has {calls.of_table:,}",
        "cache() or persist() the result of the function before its first use, or write it to a table once, "
        "and read that.",
        evidence={
            "recomputation.what": function.name,
            "recomputation.times": round(calls.rows / calls.of_table),
            CALLS: calls.rows,
            CALLS_TABLE: function.table,
            CALLS_MS: lost_ms,
        },
    )

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
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import ids_of
from spark_events.diagnosis.plans.node import CUT, FILES, IN_PYTHON, MOVES, Node
from spark_events.diagnosis.plans.plan_part import MOST_PLACES, named_places
from spark_events.diagnosis.plans.work_in_stage import WorkInStages
from spark_events.diagnosis.repeated_work.called_twice import CALL, CALLING, CALLS_OF, calls_in, functions_in
from spark_events.diagnosis.thresholds import RECOMPUTATION

CALLS = "recomputation.calls"
"""What only its issues have as evidence: for how many rows the function is called, in all."""
CALLS_MS = f"{CALLS}Ms"
"""All that the calls cost that were not needed, what other issues tell of it included."""
_OF_ONE_ROW_EACH = ("Project", "Filter", *MOVES)
"""Nodes out of which come no more rows than go into them, besides calls of functions in Python."""
_FILTERS = ("DataFilters", "PartitionFilters")
_LIMIT, _FIRST_ROWS = "Limit", ("CollectTail", "TakeOrdered")
"""What is in the names of nodes that may leave rows unread, and how those of others begin."""
_MOST_FUNCTIONS = 500
_OFTEN = 1.5
"""How many times as many calls as rows are told."""


class _Called(NamedTuple):
    """Functions that one node calls for columns of a table as it was once; their time is known together.

    Attributes:
        call: with the ids of the results, which are others wherever a program writes a call: two functions
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
        scanned: how many rows of the table were read at once, at most.
        reads_all: whether all of them were, once.
    """

    rows: int = 0
    executions: int = 0
    time_ms: float = 0.0
    scanned: int = 0
    reads_all: bool = False
    places: dict[str, None] = field(default_factory=dict)

    @property
    def of_table(self) -> int:
        """How many rows the table has; 0 if unknown."""
        return self.scanned if self.reads_all else 0

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
            function = _called(node, scan)
            if function is None or (function not in self._calls and len(self._calls) >= _MOST_FUNCTIONS):
                continue
            calls = self._calls.setdefault(function, _Calls())
            calls.executions += function not in called
            called[function] = calls
            calls.rows += node.rows
            calls.time_ms += time_ms[id(node)]
            calls.scanned = max(calls.scanned, scan.rows or 0)
            calls.reads_all = calls.reads_all or _reads_all(scan)
            if place and len(calls.places) < MOST_PLACES:
                calls.places[place] = None
        yield from (_issue(function, calls) for function, calls in called.items() if calls.are_too_many)


def _called(node: Node, scan: Node) -> _Called | None:
    """Return the functions that a node calls, if it calls all of them for columns of a scan; else None."""
    columns, closed, _ = scan.text.partition("]")
    matches, results = [*CALL.finditer(node.text)], node.text.partition("], [")[2].partition("]")[0]
    of_scan = ids_of(columns) if closed and CUT not in columns else set()
    own = [ids_of(match[0].removesuffix(match[2])) for match in matches]
    # Of a call within another, or of one that is cut off, the text names the result alone.
    if not own or len(own) != results.count("#") or not all(ids and ids <= of_scan for ids in own):
        return None
    files = tuple(scan.metrics.get(name) for name in FILES)
    return _Called(", ".join(functions_in([node])), ", ".join(calls_in([node])), scan.table(), files)


def _reads_all(scan: Node) -> bool:
    """Return whether a scan reads all rows: no filter is pushed down to it, and nothing needs only some."""
    if any(scan.metadata.get(name) != "[]" for name in _FILTERS):
        return False
    above: Node | None = scan
    while above is not None:
        if _LIMIT in above.name or above.name.startswith(_FIRST_ROWS):
            return False
        above = above.parent
    return True


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
            CALLS_OF: function.call,
            CALLS_MS: lost_ms,
        },
    )

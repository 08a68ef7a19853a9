"""The rules about the state of a streaming query that grows, from its progress."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.node import Node, columns
from spark_events.diagnosis.thresholds import STATE_GROWTH

_MOST_OPERATORS = 100
_STATEFUL = {
    "StreamingDeduplicate": "dedupe",
    "StreamingDeduplicateWithinWatermark": "dedupeWithinWatermark",
    "StateStoreSave": "stateStoreSave",
    "StreamingSymmetricHashJoin": "symmetricHashJoin",
    "SessionWindowStateStoreSave": "sessionWindowStateStoreSave",
}
"""The names of plans' nodes that keep state, and of their operators in a query's progress."""
_TITLES = {
    "stateStoreSave": "the aggregation",
    "sessionWindowStateStoreSave": "the aggregation by sessions",
    "dedupe": "dropDuplicates()",
    "dedupeWithinWatermark": "dropDuplicatesWithinWatermark()",
    "symmetricHashJoin": "the join of streams",
}
_BY_KEYS = ("StreamingDeduplicate", "StateStoreSave")
_LEAST_BATCHES, _LEAST_ROWS = 10, 10_000
_SIZE_OF_ROWS = "stateOnCurrentVersionSizeBytes"
"""What Spark's own state store says of its rows; RocksDB has caches and files instead, which grow anyway."""
_SAME_ROWS, _TIMES_AS_LARGE, _LARGE_BYTES = 1.5, 4, 1 << 20
_EVENT_TIME = re.compile(r"-T\d+ms", re.ASCII)
"""How Spark marks a column that has a watermark."""
_NOT_CLEANED = "state cleanup [ left = null, right = null ]"
_NO_WATERMARK = (
    "If new keys keep coming, it grows until it no longer fits: set a watermark on an event time by which "
    "the operator groups or joins (withWatermark), or a timeout or TTL of the state."
)
_WITH_KEYS = (
    "There is a watermark, but the keys do not have its event time, so that Spark never knows that a key is "
    "done: group by a window of it, or give the state a timeout or TTL."
)
_IN_VAIN = {
    "symmetricHashJoin": "There is a watermark, but the join's condition limits no event time of one side by "
    "that of the other: compare the columns themselves (clicked_at BETWEEN shown_at AND shown_at + INTERVAL "
    "10 MINUTES), both with a watermark, and not numbers made of them.",
    "dedupe": "There is a watermark, but the keys do not have its event time: use "
    "dropDuplicatesWithinWatermark(), or add the event time to the keys, if duplicates have the same.",
}


def operator_title(name: str) -> str:
    """Return what of a program an operator of a query's progress is of, or its name if that is unknown."""
    return _TITLES.get(name, name)


@dataclass(slots=True)
class _State:
    """The rows of the state of one operator, over the micro-batches of a run."""

    first: int
    last: int
    batches: int = 0
    grew: int = 0


class StateGrowth:
    """Finds state of which nothing is ever removed."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, str], _State] = {}
        self._keys: dict[str, str] = {}
        self._kept: set[str] = set()

    def knows(self, nodes: Iterable[Node]) -> None:
        """Called with the nodes of a micro-batch's plan, which say by which columns state is kept."""
        if self._keys:
            return
        are_cleaned: set[str] = set()
        for node in nodes:
            if (operator := _STATEFUL.get(node.name)) and (keys := columns(node.text.partition("], ")[0])):
                self._keys.setdefault(operator, ", ".join(keys[:3]))
                if not _is_kept(node):
                    are_cleaned.add(operator)  # progress does not say which of two joins it is about
        self._kept = self._keys.keys() - are_cleaned

    def take(self, progress: Mapping[str, Any]) -> Iterator[Issue]:
        """Yield what a query's progress shows."""
        watermark = "watermark" in (progress.get("eventTime") or {})
        for place, operator in enumerate(progress.get("stateOperators") or ()):
            issue = self._take(place, operator, watermark)
            if issue is not None:
                yield issue

    def _take(self, place: int, operator: Mapping[str, Any], watermark: bool) -> Issue | None:
        name, rows = str(operator.get("operatorName") or "state"), int(operator.get("numRowsTotal") or 0)
        if (place, name) not in self._states and len(self._states) >= _MOST_OPERATORS:
            return None
        state = self._states.setdefault((place, name), _State(rows, rows))
        state.batches += 1
        state.grew += rows > state.last
        if int(operator.get("numRowsRemoved") or 0) or rows < state.last:
            self._states[place, name] = _State(rows, rows)
            return None
        state.last = rows
        if watermark and name not in self._kept:
            return None
        if state.batches < _LEAST_BATCHES or rows < max(_LEAST_ROWS, 2 * state.first):
            return None
        if state.grew * 10 < state.batches * 9:
            return None
        used = int(operator.get("memoryUsedBytes") or 0)
        keys = f" by {self._keys[name]}" if name in self._keys else ""
        return Issue(
            STATE_GROWTH,
            f"{STATE_GROWTH} {place} {name}",
            None,
            None,
            f"the state of {operator_title(name)}{keys} has grown in {state.grew} of {state.batches} "
            f"micro-batches, from {state.first:,} to {rows:,} rows, and nothing was removed",
            _IN_VAIN.get(name, _WITH_KEYS) if watermark else _NO_WATERMARK,
            Severity.WARN,
            {"state.operator": name, "state.firstRows": state.first, "state.rows": rows, "state.bytes": used},
        )


class StateRowsGrow:
    """Finds state whose rows grow, though there are no more of them: a function that keeps all that comes."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[int, str], _Sizes] = {}

    def take(self, progress: Mapping[str, Any]) -> Iterator[Issue]:
        """Yield what a query's progress shows."""
        for place, operator in enumerate(progress.get("stateOperators") or ()):
            name, rows = str(operator.get("operatorName") or "state"), int(operator.get("numRowsTotal") or 0)
            custom = operator.get("customMetrics") or {}
            used = int(custom.get(_SIZE_OF_ROWS) or 0)
            is_full = len(self._sizes) >= _MOST_OPERATORS and (place, name) not in self._sizes
            if not rows or not used or is_full:
                continue
            sizes = self._sizes.setdefault((place, name), _Sizes(rows, used / rows, used / rows))
            if rows > _SAME_ROWS * sizes.rows or rows * _SAME_ROWS < sizes.rows:
                self._sizes[place, name] = _Sizes(rows, used / rows, used / rows)
                continue
            sizes.batches += 1
            sizes.grew += used / rows > sizes.last
            sizes.last = used / rows
            if sizes.grows and used >= _LARGE_BYTES:
                yield _rows_grow(place, name, sizes, used, rows)


@dataclass(slots=True)
class _Sizes:
    """How many bytes a row of the state of one operator has, while there are about as many rows."""

    rows: int
    first: float
    last: float
    batches: int = 0
    grew: int = 0

    @property
    def grows(self) -> bool:
        """Whether it has grown in nearly all micro-batches, to several times as much."""
        often = self.batches >= _LEAST_BATCHES and self.grew * 10 >= self.batches * 8
        return often and self.last >= _TIMES_AS_LARGE * self.first


def _rows_grow(place: int, name: str, sizes: _Sizes, used: int, rows: int) -> Issue:
    return Issue(
        STATE_GROWTH,
        f"{STATE_GROWTH} rows {place} {name}",
        None,
        None,
        f"each row of the state of {operator_title(name)} has grown, in {sizes.grew} of {sizes.batches} "
        f"micro-batches, from {size(sizes.first)} to {size(sizes.last)}, while there are {rows:,} rows",
        "Each micro-batch reads and writes the whole row of each key that it has: let the function keep "
        "figures of what has come (a count, a sum, the latest ones), and not all of it.",
        Severity.WARN,
        {"state.operator": name, "state.rows": rows, "state.bytes": used},
    )


def _is_kept(node: Node) -> bool:
    """Return whether an operator keeps its state forever, also where there is a watermark."""
    if node.name == "StreamingSymmetricHashJoin":
        return _NOT_CLEANED in node.text
    return node.name in _BY_KEYS and not _EVENT_TIME.search(node.text.partition("], ")[0])

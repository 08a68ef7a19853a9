"""What plans of SQL executions, and the driver's metrics of them, say; live, see ``ExecutionPlans.java``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.diagnosis.plans.node import CONDITIONS, LONGEST_TEXT, PLAN_METRICS
from spark_events.listeners import spark_records
from spark_events.listeners.record_fields import EXECUTION_ID, ROOT_EXECUTION_ID

_MOST_EXECUTIONS = 10_000
_MOST_NODES = 10_000
_FIELDS = {
    "number of files read": "Read",
    "size of files read": "Read Bytes",
    "number of written files": "Written",
    "written output": "Written Bytes",
    "number of dynamic part": "Written Parts",
}
"""Spark's metrics, and the fields of the record of an execution's end."""
_STATE, _LONGEST_OF_STATE = ", state cleanup [", 200
_CONDITION, _MANY_CONDITIONS, _ALL_SHOWN = " WHEN ", 50, 20
_MORE_AGGREGATES = re.compile(r"functions=\[.*\.\.\. (\d{1,5}) more fields\]", re.ASCII)
_IN_WINDOW = "precisetimestampconversion("
_WINDOW = re.compile(r"named_struct\(start, (?:knownnullable\()?precisetimestampconversion\(")
_COLUMN, _BRACKET = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*#[0-9]+"), re.compile(r"[()]")
_UNPLANNED = (0, 1, 2, 3, 5)
_NUMBER = re.compile(r" \(\d+\)$", re.ASCII)
_MOST_PLANS_TOLD = 20
_MOST_NODES_TOLD = 1_000
_METADATA = ("Location", "PartitionFilters", "DataFilters")
_TOLD = {name: index for index, name in enumerate(PLAN_METRICS)}
Plan = Mapping[str, Any]
"""A node of a plan, as Spark's ``SparkPlanInfo`` is written."""


@dataclass(slots=True)
class _Execution:
    """An execution that runs; one that is a part of another shares the sums and the plans of that."""

    sums: dict[str, int]
    plans: dict[int, Plan]
    driver: dict[int, int]
    begun_ms: int
    whole: _Execution | None = None
    parts_ms: int = 0
    metrics: dict[int, str] = field(default_factory=dict)


class ExecutionPlans:
    """The SQL executions of one application that run.

    Attributes:
        handlers: by the name of a record: adds to it, or keeps what it says until the execution's end.
    """

    def __init__(self) -> None:
        self._executions: dict[int, _Execution] = {}
        self.handlers: Mapping[str, Callable[[dict[str, Any]], None]] = {
            spark_records.SQL_EXECUTION_START: self._begin,
            spark_records.SQL_EXECUTION_REPLANNED: self._replan,
            spark_records.SQL_DRIVER_METRICS: self._add,
            spark_records.SQL_EXECUTION_END: self._end,
        }

    def _begin(self, record: dict[str, Any]) -> None:
        """Add the plan's shape to an SQLExecutionStart; mark one that the driver bridge does not report."""
        root, plan = record.get(ROOT_EXECUTION_ID), record.get("sparkPlanInfo")
        whole = self._executions.get(int(root)) if root is not None else None
        if len(self._executions) < _MOST_EXECUTIONS:
            begun_ms = int(record["time"])
            execution = (
                _Execution(whole.sums, whole.plans, whole.driver, begun_ms, whole)
                if whole
                else _Execution(dict.fromkeys(_FIELDS.values(), 0), {}, {}, begun_ms)
            )
            number = int(record[EXECUTION_ID])
            self._executions[number] = execution
            _follow(number, execution, plan)
        if root in (None, record[EXECUTION_ID]):
            record["Plan Shape"] = _shape(plan)
        else:
            record["Event"] = spark_records.NESTED_EXECUTION

    def _replan(self, record: dict[str, Any]) -> None:
        # The nodes of the new plan may have other metrics.
        execution = self._executions.get(int(record[EXECUTION_ID]))
        if execution is not None:
            _follow(int(record[EXECUTION_ID]), execution, record.get("sparkPlanInfo"))

    def _add(self, record: dict[str, Any]) -> None:
        execution = self._executions.get(int(record[EXECUTION_ID]))
        if execution is None:
            return
        updates = {int(metric): int(value) for metric, value in record.get("accumUpdates") or ()}
        if not updates.keys() & execution.metrics.keys():
            _add_unplanned(execution.sums, updates)
        for metric, value in updates.items():
            name = execution.metrics.get(metric)
            if name is None:
                continue
            if name in execution.sums:
                execution.sums[name] += value
            execution.driver[metric] = execution.driver.get(metric, 0) + value

    def _end(self, record: dict[str, Any]) -> None:
        """Add the files of an execution to its SQLExecutionEnd, and its plans, if it has any."""
        execution = self._executions.pop(int(record[EXECUTION_ID]), None)
        if execution is None:
            return
        if execution.whole is not None:  # which tells of its parts
            execution.whole.parts_ms += max(0, int(record["time"]) - execution.begun_ms)
            return
        if execution.parts_ms:
            record["Parts Time"] = execution.parts_ms
        if execution.sums["Read"] + execution.sums["Written"]:
            record["Files"] = execution.sums
        if execution.plans:
            record["Plans"] = plans = []
            left = _MOST_NODES_TOLD
            for plan in execution.plans.values():
                plans.append(_nodes_of(plan, left))
                left -= len(plans[-1])
            record["Driver Metrics"] = {
                str(metric): execution.driver[metric] for metric in sorted(execution.driver)
            }


def _add_unplanned(sums: dict[str, int], updates: Mapping[int, int]) -> None:
    """Add what the sink of a streaming query has written, whose metrics no plan has.

    Spark's ``BasicWriteJobStatsTracker`` makes six, one after the other, and tells all of them but the fifth.
    """
    first = min(updates, default=0)
    if sorted(updates) == [first + place for place in _UNPLANNED]:
        sums["Written"] += updates[first]
        sums["Written Bytes"] += updates[first + 1]
        sums["Written Parts"] += updates[first + 3]


def _shape(plan: Mapping[str, Any] | None) -> str | None:
    """Return a digest of the names of a plan's nodes, each before its children: the same in each run."""
    if not plan:
        return None
    digest = hashlib.sha256()
    for node in _nodes(plan):
        name = _NUMBER.sub("", str(node.get("nodeName")))
        digest.update(f"{name} {len(node.get('children') or ())}\n".encode(errors="replace"))
    return digest.hexdigest()[:16]


def _follow(number: int, execution: _Execution, plan: Plan | None) -> None:
    """Keep the newest plan of an execution, and which of Spark's metrics its nodes have."""
    if not plan:
        return
    if number in execution.plans or len(execution.plans) < _MOST_PLANS_TOLD:
        execution.plans[number] = plan
    for node in _nodes(plan):
        for metric in node.get("metrics") or ():
            if (name := metric.get("name")) in _TOLD:
                execution.metrics[int(metric["accumulatorId"])] = _FIELDS.get(name, "")


def _with_short_windows(text: str) -> str:
    """Return a node's text with ``window(ts#1)`` in place of the long text that Spark makes of that."""
    if _IN_WINDOW not in text:
        return text
    parts, done = [], 0
    while (match := _WINDOW.search(text, done)) is not None:
        end = _end_of_call(text, match.start() + len("named_struct("))
        if end < 0:
            break
        column = _COLUMN.search(text, match.end(), end)
        parts += [text[done : match.start()], f"window({column[0] if column else ''})"]
        done = end
    return "".join(parts) + text[done:]


def _end_of_call(text: str, begin: int) -> int:
    """Return where a call ends whose arguments begin there; -1 if it does not."""
    depth = 1
    for bracket in _BRACKET.finditer(text, begin):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.end()
    return -1


def _beginning(text: str) -> str:
    """Return the beginning of a node's text; what it says of state far behind; how many conditions it has."""
    text = _with_short_windows(text)
    place = text.find(_STATE, LONGEST_TEXT)
    of_state = "" if place < 0 else text[place : place + _LONGEST_OF_STATE]
    conditions = _conditions(text) if len(text) > LONGEST_TEXT else 0
    of_case = f"{CONDITIONS}{conditions}]" if conditions >= _MANY_CONDITIONS else ""
    return text[:LONGEST_TEXT] + of_state + of_case


def _conditions(text: str) -> int:
    """Return how many conditions of CASE a node has; of many aggregates, Spark shows the first 24."""
    shown, more = text.count(_CONDITION), _MORE_AGGREGATES.search(text)
    return shown + (int(more[1]) if more and shown >= _ALL_SHOWN else 0)


def _nodes_of(plan: Plan, most: int) -> list[list[Any]]:
    """Return so many nodes of a plan, each before its children: depth, name, text, metadata, metrics' ids."""
    nodes: list[list[Any]] = []
    waiting = [(0, plan)]
    while waiting and len(nodes) < most:
        depth, node = waiting.pop()
        metadata = node.get("metadata") or {}
        nodes.append(
            [
                depth,
                str(node.get("nodeName"))[:LONGEST_TEXT],
                _beginning(str(node.get("simpleString"))),
                {key: str(metadata[key])[:LONGEST_TEXT] for key in _METADATA if key in metadata},
                [
                    [_TOLD[metric["name"]], int(metric["accumulatorId"])]
                    for metric in node.get("metrics") or ()
                    if metric.get("name") in _TOLD
                ],
            ]
        )
        waiting += [(depth + 1, child) for child in reversed(node.get("children") or ())]
    return nodes


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a plan, each before its children."""
    waiting, seen = [plan], 0
    while waiting and seen < _MOST_NODES:
        node = waiting.pop()
        seen += 1
        yield node
        waiting += reversed(node.get("children") or ())

"""What plans of SQL executions, and the driver's metrics of them, say; live, see ``ExecutionPlans.java``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.listeners import spark_records
from spark_events.listeners.record_fields import EXECUTION_ID, ROOT_EXECUTION_ID

_MOST_EXECUTIONS = 10_000
_MOST_NODES = 10_000
_FIELDS = {
    "number of files read": "Read",
    "size of files read": "Read Bytes",
    "number of written files": "Written",
    "written output": "Written Bytes",
}
"""Spark's metrics, and the fields of the record of an execution's end."""
_NUMBER = re.compile(r" \(\d+\)$", re.ASCII)


@dataclass(slots=True)
class _Execution:
    """An execution that runs; one that is a part of another adds to the sums of that."""

    sums: dict[str, int]
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
            execution = _Execution(whole.sums if whole else dict.fromkeys(_FIELDS.values(), 0))
            self._executions[int(record[EXECUTION_ID])] = execution
            _follow(execution, plan)
        if root in (None, record[EXECUTION_ID]):
            record["Plan Shape"] = _shape(plan)
        else:
            record["Event"] = spark_records.NESTED_EXECUTION

    def _replan(self, record: dict[str, Any]) -> None:
        # The nodes of the new plan may have other metrics.
        execution = self._executions.get(int(record[EXECUTION_ID]))
        if execution is not None:
            _follow(execution, record.get("sparkPlanInfo"))

    def _add(self, record: dict[str, Any]) -> None:
        execution = self._executions.get(int(record[EXECUTION_ID]))
        if execution is None:
            return
        for metric, value in record.get("accumUpdates") or ():
            if (name := execution.metrics.get(int(metric))) is not None:
                execution.sums[name] += int(value)

    def _end(self, record: dict[str, Any]) -> None:
        """Add the files of an execution to its SQLExecutionEnd, if it has any."""
        execution = self._executions.pop(int(record[EXECUTION_ID]), None)
        if execution is not None and execution.sums["Read"] + execution.sums["Written"]:
            record["Files"] = execution.sums


def _shape(plan: Mapping[str, Any] | None) -> str | None:
    """Return a digest of the names of a plan's nodes, each before its children: the same in each run."""
    if not plan:
        return None
    digest = hashlib.sha256()
    for node in _nodes(plan):
        name = _NUMBER.sub("", str(node.get("nodeName")))
        digest.update(f"{name} {len(node.get('children') or ())}\n".encode(errors="replace"))
    return digest.hexdigest()[:16]


def _follow(execution: _Execution, plan: Mapping[str, Any] | None) -> None:
    for node in _nodes(plan or {}):
        for metric in node.get("metrics") or ():
            if (name := _FIELDS.get(metric.get("name"))) is not None:
                execution.metrics[int(metric["accumulatorId"])] = name


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a plan, each before its children."""
    waiting, seen = [plan], 0
    while waiting and seen < _MOST_NODES:
        node = waiting.pop()
        seen += 1
        yield node
        waiting += reversed(node.get("children") or ())

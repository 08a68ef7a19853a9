"""Plans of SQL executions as the record of an execution's end tells them, made up for tests of diagnoses."""

from __future__ import annotations

import re
from typing import Any

from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.plans.node import PLAN_METRICS, MetricValue, Node
from spark_events.diagnosis.plans.recorded_plans import read_plans

S = 1_000


class Plan:
    """A plan that grows from its root; each node's metrics get accumulators of their own."""

    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []
        self.measured: dict[int, MetricValue] = {}
        self.driver: dict[str, int] = {}

    def __call__(
        self,
        depth: int,
        text: str,
        stage: int | None = None,
        metadata: dict[str, str] | None = None,
        **of: int,
    ) -> Plan:
        """Add a node; its name is its first word, but for a scan and a command.

        Args:
            depth: 0 for the root.
            text: how Spark describes it.
            stage: in which its metrics were measured; None for the driver.
            metadata: what Spark says of a scan.
            of: its metrics, with ``_`` for blanks; ``rows`` is the number of output rows.
        """
        metrics = []
        for name, value in of.items():
            number = 1_000 * len(self.nodes) + len(metrics)
            metrics.append(
                [
                    PLAN_METRICS.index("number of output rows" if name == "rows" else name.replace("_", " ")),
                    number,
                ]
            )
            if stage is None:
                self.driver[str(number)] = value
            else:
                self.measured[number] = MetricValue(value, frozenset((stage,)))
        name = text.partition(" [")[0] if text.startswith("Scan ") else re.split(r"[ (]", text, maxsplit=1)[0]
        if name == "Execute":
            name = " ".join(text.split()[:2])
        self.nodes.append([depth, name, text, metadata or {}, metrics])
        return self

    def root(self) -> Node:
        """Return it as diagnoses see it."""
        (root,) = read_plans({"Plans": [self.nodes], "Driver Metrics": self.driver}, self.measured)
        return root


def executed(
    *plans: Plan, cores: int = 4, lasted_ms: int = 100 * S, **stages: tuple[int, int]
) -> EndedExecution:
    """Return an SQL execution that has ended.

    Args:
        plans: of it.
        cores: of all executors.
        lasted_ms: how long it took.
        stages: by ``s`` and the id, when each began and ended, in s.
    """
    of_stages = {
        int(name[1:]): ExecutedStage(int(name[1:]), 8, begun * S, ended * S, 4 * (ended - begun) * S, 0, 0)
        for name, (begun, ended) in stages.items()
    }
    return EndedExecution(0, lasted_ms, cores, tuple(plan.root() for plan in plans), of_stages)

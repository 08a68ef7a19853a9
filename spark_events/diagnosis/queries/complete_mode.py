"""The rule about queries that put out their whole result in each micro-batch, of which little has changed."""

from __future__ import annotations

import re

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import ROWS, UPDATED_STATE_ROWS
from spark_events.diagnosis.thresholds import REWRITE

_SAVES = "StateStoreSave"
_COMPLETE = re.compile(r", Complete, ", re.ASCII)
_LEAST_BATCHES, _LEAST_RATIO = 3, 4
"""So many micro-batches, and half of them, put out so many times as many rows as have changed."""


class CompleteMode:
    """Finds that micro-batches put out all rows of an aggregation, though few have changed.

    Complete mode reads all of the state, and hands each row of it to the sink: what a micro-batch takes in
    the stages that do so is for each row the same, whether it has changed or not.
    """

    def __init__(self) -> None:
        self._batches = self._wasteful = self._lost_ms = self._rows = self._changed = 0

    def take(self, execution: EndedExecution) -> None:
        """Called with the SQL execution of each micro-batch."""
        for node in execution.plans[0].walk() if execution.plans else ():
            if not node.name.startswith(_SAVES) or not _COMPLETE.search(node.text):
                continue
            rows, changed = node.metrics.get(ROWS, 0), node.metrics.get(UPDATED_STATE_ROWS)
            if changed is None or not rows:
                continue
            self._batches += 1
            self._wasteful += rows >= _LEAST_RATIO * changed
            self._rows += rows
            self._changed += changed
            self._lost_ms += execution.wall_ms(node.stages) * max(0, rows - changed) // rows

    def issue(self) -> Issue | None:
        """Return what that has cost so far; None if there is no sign of it, or not yet."""
        if self._wasteful < max(_LEAST_BATCHES, self._batches / 2):
            return None
        rows, changed = self._rows // self._batches, self._changed // self._batches
        return Issue(
            REWRITE,
            f"{REWRITE} complete",
            self._lost_ms,
            None,
            f"outputMode('complete') puts out all rows of the result in each micro-batch, {rows:,} on "
            f"average, of which {changed:,} have changed",
            "Use outputMode('update'), and let the sink replace rows by their key (MERGE, an upsert in "
            "foreachBatch); complete mode is for results of few rows.",
            evidence={"rewrite.rows": rows, "rewrite.changedRows": changed, "rewrite.batches": self._batches},
        )

"""The rule about what each micro-batch computes anew, though no rows of the stream go into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import OF_PROGRAM
from spark_events.diagnosis.plans.recomputation import Recomputation
from spark_events.diagnosis.thresholds import RECOMPUTATION

_OF_STREAM = ("MicroBatchScan", "StateStore", "StreamingRelation")
_ADVICE = (
    "If the table does not change while the query runs, cache() or persist() what is made of it before you "
    "start the query. If it does, write what is made of it to a table whenever it changes, and join that."
)


class StaticSides:
    """Finds static tables of which each micro-batch of a query makes the same rows."""

    def __init__(self) -> None:
        self._recomputation = Recomputation((*OF_PROGRAM, *_OF_STREAM))

    def take(self, execution: EndedExecution) -> None:
        """Called with the SQL execution of each micro-batch, whose own plan is its first."""
        self._recomputation.take_parts(replace(execution, plans=execution.plans[:1]), "")
        self._recomputation.forget_single(execution.stages.keys())

    def issues(self) -> Iterator[Issue]:
        """Yield what was computed more than once so far, however little that cost."""
        for issue in self._recomputation.again():
            yield replace(
                issue,
                cause=f"{RECOMPUTATION} static {issue.cause}",
                sentence=f"{issue.sentence} by micro-batches, though no new rows of the stream go into it",
                advice=_ADVICE,
            )

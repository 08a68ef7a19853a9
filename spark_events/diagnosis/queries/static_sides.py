"""The rule about what each micro-batch computes anew, though no rows of the stream go into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import OF_PROGRAM, Node
from spark_events.diagnosis.rdds.schema_reads import SchemaRead, file_scan
from spark_events.diagnosis.repeated_work.recomputation import OF_COLUMNS, Recomputation
from spark_events.diagnosis.thresholds import RECOMPUTATION

_OF_STREAM = ("MicroBatchScan", "StateStore", "StreamingRelation")
_MOST_SCHEMAS = 100
_MOST_UNKNOWN = 0.2
"""Of a cost that is told as known: what else its stages do may take as much of that."""
_ADVICE = (
    "If the table does not change while the query runs, cache() or persist() what is made of it before you "
    "start the query. If it does, write what is made of it to a table whenever it changes, and join that."
)
_GIVE_SCHEMA = (
    "Say what the columns are: spark.read.schema(…), without inferSchema; or read the files once, before you "
    "start the query, if they do not change while it runs."
)


class StaticSides:
    """Finds static tables of which each micro-batch of a query makes the same rows."""

    def __init__(self) -> None:
        self._recomputation = Recomputation((*OF_PROGRAM, *_OF_STREAM))
        # Of the last micro-batch, by the digests of nodes: what each is a part of, and its stages.
        self._above: dict[str, str] = {}
        self._stages: dict[str, frozenset[int]] = {}
        self._reads: dict[str, set[str]] = {}
        # How long stages looked for the columns of files, by their paths, and how often.
        self._of_schema: dict[str, tuple[int, int]] = {}
        # Of what is told as a part of something else, what that is: what it has cost was told.
        self._wholes: dict[str, str] = {}

    def take(self, execution: EndedExecution) -> None:
        """Called with the SQL execution of each micro-batch, whose plans are its own and of foreachBatch."""
        digests, _ = self._recomputation.take_parts(execution, "")
        self._recomputation.forget_single(execution.stages.keys())
        self._above, self._stages, self._reads = {}, {}, {}
        self._take_schemas(execution)
        for plan, of_plan in zip(execution.plans, digests, strict=True):
            self._take_places(plan, of_plan)

    def issues(self) -> Iterator[Issue]:
        """Yield what was computed more than once so far, however little that cost.

        The parts of one side, before and after a shuffle, are one: with the name of the whole, and the cost
        of all.
        """
        # The files of one micro-batch are computed anew by its own actions, which is told of these.
        again = {issue.cause: issue for issue in self._recomputation.again(executions=2)}
        self._wholes = {cause: self._whole(cause, again) for cause in again}
        by_whole: dict[str, list[str]] = {}
        for cause, whole in self._wholes.items():
            by_whole.setdefault(whole, []).append(cause)
        schemas = dict(self._of_schema)  # what one side has looked for, another has not
        for whole, causes in by_whole.items():
            known_ms, share_ms = self._cost(causes, again)
            is_known = share_ms <= _MOST_UNKNOWN * (known_ms + share_ms)
            issue = again[whole]
            sentence = f"{issue.sentence} by micro-batches, though no new rows of the stream go into it"
            if schema_ms := self._schemas_again_ms(whole, schemas):
                known_ms += schema_ms
                sentence += f"; to find each time what columns it has takes {duration(schema_ms)} of that"
            yield replace(
                issue,
                cause=f"{RECOMPUTATION} static {issue.cause}",
                sentence=sentence,
                advice=_GIVE_SCHEMA if f"same {OF_COLUMNS} of" in issue.sentence else _ADVICE,
                lost_ms=known_ms + share_ms if is_known else None,
                share_ms=None if is_known else known_ms + share_ms,
            )

    def _take_schemas(self, execution: EndedExecution) -> None:
        """Add up the stages that look for columns of files of which a scan has read as much."""
        of_schema = [stage for stage in execution.stages.values() if stage.of_schema]
        if not of_schema:
            return
        scans = {scan for node in execution.nodes() if (scan := file_scan(node)) is not None}
        for stage in of_schema:
            read = SchemaRead("", stage.wall_ms, stage.read_bytes, tasks=stage.tasks)
            paths = {scan.path for scan in scans if read.is_of(scan)}
            if len(paths) != 1:
                continue
            (path,) = paths
            if path in self._of_schema or len(self._of_schema) < _MOST_SCHEMAS:
                times, wall_ms = self._of_schema.get(path, (0, 0))
                self._of_schema[path] = times + 1, wall_ms + stage.wall_ms

    def _schemas_again_ms(self, cause: str, schemas: dict[str, tuple[int, int]]) -> int:
        """Take what a part reads from the schemas that were looked for; return how long that took again."""
        paths = self._reads.get(cause, set()) & schemas.keys()
        looked = [schemas.pop(path) for path in paths]
        return sum(wall_ms * (times - 1) // times for times, wall_ms in looked)

    def _take_places(self, plan: Node, digests: Mapping[int, str]) -> None:
        for node in plan.walk():
            if (digest := digests.get(id(node))) is None:
                continue
            cause = _cause(digest)
            self._stages[cause] = self._stages.get(cause, frozenset()) | node.stages
            if self._of_schema:
                self._reads.setdefault(cause, set()).update(node.tables())
            if node.parent is not None and id(node.parent) in digests:
                self._above.setdefault(cause, _cause(digests[id(node.parent)]))

    def _whole(self, cause: str, again: Mapping[str, Issue]) -> str:
        """Return the largest part that is computed again of which another one is a part, or that one."""
        if (known := self._wholes.get(cause, cause)) != cause and known in again:
            return known
        whole = above = cause
        while (above := self._above.get(above, "")) and above != cause:
            whole = above if above in again else whole
        return whole

    def _cost(self, causes: list[str], again: Mapping[str, Issue]) -> tuple[int, int]:
        """Return what parts have cost together, in ms, as far as it is known, and at most besides.

        Of those that ran in the same stages, the costliest counts.
        """
        taken: set[int] = set()
        known_ms = share_ms = 0
        for cause in sorted(causes, key=lambda cause: -again[cause].time_ms):
            stages = self._stages.get(cause, frozenset())
            if taken.isdisjoint(stages):
                known_ms += again[cause].lost_ms or 0
                share_ms += again[cause].share_ms or 0
            taken |= stages
        return known_ms, share_ms


def _cause(digest: str) -> str:
    return f"{RECOMPUTATION} {digest}"

"""The rule about state of a streaming query that is divided into far more parts than there are cores."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.plans.join_keys import functions_of
from spark_events.diagnosis.plans.node import Node
from spark_events.diagnosis.plans.work_in_stage import is_accounted_for
from spark_events.diagnosis.queries.state_rules import operator_title
from spark_events.diagnosis.thresholds import TASK_COUNT

PARTS = "state.parts"
_MANY_PARTS, _FEW_ROWS = 4, 100
"""So many times as many parts of a state as cores are too many, if on average so few rows of each change."""
_ROW_US, _KEPT_ROW_US, _LEAST_SHARE = 50, 5, 3
"""What a row takes at most in a state, and in an aggregation, and one that is only looked at, in µs; tasks
that take three times as long as all of their rows take most of that for themselves."""
_KEEPS = (
    "StateStoreSave",
    "SessionWindowStateStoreSave",
    "StreamingDeduplicate",
    "StreamingSymmetricHashJoin",
)
_COALESCE = "Coalesce"
_OF_STREAMS = (
    *_KEEPS,
    "StateStoreRestore",
    "SessionWindowStateStoreRestore",
    "EventTimeWatermark",
    _COALESCE,
)
"""How the names of nodes begin that keep the state of streams, and that do next to nothing else for a row."""
_LOOK_UP = "BroadcastHashJoin"
_STEP = re.compile("^(?:partial|merge)_")
_QUICK = frozenset((
    "any_value", "approx_count_distinct", "avg", "bool_and", "bool_or", "cast", "coalesce", "corr", "count",
    "count_if", "covar_pop", "covar_samp", "first", "if", "isnotnull", "isnull", "kurtosis", "last", "max",
    "max_by", "min", "min_by", "skewness", "stddev", "stddev_pop", "stddev_samp", "sum", "var_pop",
    "var_samp", "variance",
))  # fmt: skip
"""Functions in an aggregation that take no longer for a row the more rows there were."""


class _Keeping(NamedTuple):
    """A stage that keeps state; what its rows take at most, in µs; and whether its tasks have many parts."""

    stage: ExecutedStage
    rows_us: int
    is_coalesced: bool


class ManyStateParts:
    """Finds state that is divided into far more parts than there are cores, for few rows.

    In each micro-batch, each part has a task of its own, and is committed even if none of its rows changes. A
    sink of files gets a file of each that has any. After ``coalesce``, a task has several parts, one by one.
    """

    def __init__(self) -> None:
        self._lost_ms = 0
        self._longest: Mapping[str, Any] = {}
        self._keep: list[_Keeping] = []

    def ran(self, execution: EndedExecution) -> None:
        """Called with the SQL execution of each micro-batch, before its progress."""
        self._keep = [
            _Keeping(execution.stages[number], _rows_us(nodes), any(node.name == _COALESCE for node in nodes))
            for number, nodes in execution.nodes_by_stage().items()
            if number in execution.stages
            and any(node.name.startswith(_KEEPS) for node in nodes)
            and all(
                node.name.startswith(_OF_STREAMS)
                or is_accounted_for(node)
                or _is_quick_aggregation(node)
                or _looks_up(node)
                for node in nodes
            )
        ]

    def _for_parts_ms(self, progress: Mapping[str, Any], cores: int) -> int:
        """Return how much shorter the stages of a micro-batch would be with a part for each core, in ms.

        If a stage keeps state, takes far longer than its rows need, and does nothing else that may take long,
        the rest is for its tasks: to start them, and to load and commit their parts.
        """
        operators = progress.get("stateOperators") or ()
        kept = sum(int(each.get("numRowsTotal") or 0) for each in operators)
        lost_ms = 0
        for stage, rows_us, is_coalesced in self._keep:
            rows_ms = (rows_us + kept * _KEPT_ROW_US) // 1_000
            parts = max((_parts(each) for each in operators), default=0) if is_coalesced else stage.tasks
            if stage.run_ms and 0 < _MANY_PARTS * cores <= parts and _LEAST_SHARE * rows_ms <= stage.run_ms:
                own_ms = stage.wall_ms * (stage.run_ms - rows_ms) // stage.run_ms
                lost_ms += own_ms * (parts - cores) // parts
        return lost_ms

    def take(self, progress: Mapping[str, Any], cores: int, files: Iterable[Issue] = ()) -> Issue | None:
        """Return what the parts have cost so far that are not needed, as far as that is known.

        Args:
            progress: of a query.
            cores: of all executors; 0 if unknown.
            files: that the micro-batch has written many small files of such parts; see ``makes``.
        """
        for_parts_ms = self._for_parts_ms(progress, cores)
        many = [
            each for each in progress.get("stateOperators") or () if _is_needless(each, cores, for_parts_ms)
        ]
        self._keep = []
        if not many:
            return None
        # Of all micro-batches: the last one may be empty.
        # Where many rows change, commits are for these, too.
        few = [each for each in many if _has_few_rows(each)]
        worst = self._longest = max(self._longest, *(few or many), key=_commit_ms)
        parts, rows = _parts(worst), int(worst.get("numRowsUpdated") or 0)
        written = next(iter(files), None)
        commits_ms = sum(_commit_ms(each) // cores * (_parts(each) - cores) // _parts(each) for each in few)
        files_ms = (written.lost_ms or 0) * (parts - cores) // parts if written else 0
        # The same stages commit the state and write the files.
        self._lost_ms += max(commits_ms, files_ms, for_parts_ms)
        operators = [each.get("operatorName") or "the query" for each in (worst, *(few or many))]
        state_of = " and ".join(dict.fromkeys(operator_title(str(name)) for name in operators))
        of_files = f"; {written.evidence['files']} tasks write a file each" if written else ""
        return Issue(
            TASK_COUNT,
            f"{TASK_COUNT} state",
            self._lost_ms,
            None,
            f"the state of {state_of} is kept in {parts:,} parts, for {cores} cores: in the "
            f"micro-batch whose commits took longest, {rows:,} rows changed, and its tasks took "
            f"{duration(_commit_ms(worst))} to commit them{of_files}",
            "Set spark.sql.shuffle.partitions to about the number of cores. A query keeps the number of its "
            "first start, so it needs a new checkpoint.",
            evidence={PARTS: parts, "state.updatedRows": rows, "cores": cores},
        )

    def makes(self, written: Issue, progress: Mapping[str, Any], cores: int) -> bool:
        """Return whether small files are one of nearly each part of a state that has too many.

        Args:
            written: that a micro-batch has written them.
            progress: of that micro-batch.
            cores: of all executors; 0 if unknown.
        """
        files = written.evidence["files"]
        assert isinstance(files, int)
        operators = progress.get("stateOperators") or ()
        ms = self._for_parts_ms(progress, cores)
        return any(
            _is_needless(each, cores, ms) and _parts(each) // 2 < files <= _parts(each) for each in operators
        )


def _rows_us(nodes: Collection[Node]) -> int:
    """Return what the rows of a stage may take at most, in µs, by the most that one of its nodes has."""
    rows = max((each.rows or 0 for node in nodes for each in (node, *node.children)), default=0)
    steps = 1 if all(node.name.startswith(_OF_STREAMS) or is_accounted_for(node) for node in nodes) else 2
    return rows * steps * _ROW_US


def _is_quick_aggregation(node: Node) -> bool:
    """Return whether a node adds rows up by functions that take as long for the last row as for the first."""
    if "Aggregate(" not in node.text or node.is_cut:
        return False
    called = {_STEP.sub("", function) for function in functions_of(node.text.partition("(")[2])}
    return called <= _QUICK


def _looks_up(node: Node) -> bool:
    """Return whether a node looks rows up in a table that each task has, and makes no more of them.

    Of one that has made none, as before a watermark has passed, there is no number.
    """
    rows = sum(child.rows or 0 for child in node.children if not child.is_exchange)
    return node.name == _LOOK_UP and (node.rows or 0) <= rows


def fixed_commit_ms(progress: Mapping[str, Any], cores: int) -> int:
    """Return how long a micro-batch commits state that hardly changes, so that more rows take no longer.

    Args:
        progress: of a query; state of far too many parts is left out, for that is an issue of its own.
        cores: of all executors; 0 if unknown.
    """
    few = [each for each in progress.get("stateOperators") or () if _parts(each) and _has_few_rows(each)]
    own = [each for each in few if not _is_many(each, cores)]
    return sum(_commit_ms(each) // min(_parts(each), cores) for each in own) if cores else 0


def _has_few_rows(operator: Mapping[str, Any]) -> bool:
    return int(operator.get("numRowsUpdated") or 0) <= _FEW_ROWS * _parts(operator)


def _is_many(operator: Mapping[str, Any], cores: int) -> bool:
    """Return whether an operator has several times as many parts as cores, and little to do for each."""
    return _has_many_parts(operator, cores) and _has_few_rows(operator)


def _is_needless(operator: Mapping[str, Any], cores: int, for_parts_ms: int) -> bool:
    """Return whether an operator has far too many parts: for its few rows, or for what its stage does."""
    return _has_many_parts(operator, cores) if for_parts_ms else _is_many(operator, cores)


def _has_many_parts(operator: Mapping[str, Any], cores: int) -> bool:
    return 0 < _MANY_PARTS * cores <= _parts(operator)


def _parts(operator: Mapping[str, Any]) -> int:
    """Return into how many parts rows are divided; a join of streams has four stores in each."""
    return int(operator.get("numShufflePartitions") or 0)


def _commit_ms(operator: Mapping[str, Any]) -> int:
    return int(operator.get("commitTimeMs") or 0)

"""What SQL executions cost their driver because they are the first of their kind: no issue.

The driver loads the classes of the planner, of the compiler of generated code and of the sources then, and
nothing of it is compiled yet; on a busy machine that takes many seconds. The first execution loads most,
and each one that does something new loads more.
"""

from __future__ import annotations

import re

from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import CUT, LONGEST_TEXT, Node, items
from spark_events.diagnosis.times.pauses import Pauses

_MANY_NODES, _MANY_FIELDS, _MANY_FILES = 100, 100, 1_000
"""With so many, planning takes long the second time, too."""
_FEW_ITEMS = 3
_MOST_PAUSES, _MOST_KINDS = 100, 1_000
_FILES = "number of files read"
_MORE = re.compile(r"(\d+)" + re.escape(CUT), re.ASCII)


class FirstUse:
    """Takes off what the first SQL executions with a stage cost the driver before their stages.

    Those are the first one, and each whose plan has nodes of a kind that none before had.

    Args:
        usual_ms: how long that takes at most, in all; whatever takes longer has another reason.

    Attributes:
        usual_ms: it; longer where Spark took long to start.
    """

    def __init__(self, usual_ms: int) -> None:
        self.usual_ms = usual_ms
        self._pauses: list[Pauses] = []
        self._kinds: set[str] = set()
        self._taken_ms = 0
        self._plans_much, self._is_new = False, True

    def add(self, pause: Pauses) -> None:
        """Called with the pause before each stage that begins while an SQL execution runs."""
        if len(self._pauses) < _MOST_PAUSES and self._taken_ms < self.usual_ms:
            self._pauses.append(pause)

    def planned(self, execution: EndedExecution) -> None:
        """Called before the end of each SQL execution: its plan may be what takes long, or is new."""
        if self._taken_ms >= self.usual_ms:
            return
        self._plans_much = self._plans_much or plans_much(execution)
        kinds = {" ".join(node.name.split()[:2]) for node in execution.nodes()}
        if len(self._kinds) < _MOST_KINDS:
            self._is_new = self._is_new or not kinds <= self._kinds
            self._kinds |= kinds

    def ended(self) -> None:
        """Called when no SQL execution runs any more: takes off what nothing but the first use explains."""
        if not self._pauses:
            return  # it had no stage
        for pause in self._pauses if self._is_new and not self._plans_much else ():
            self._taken_ms += pause.take(min(self.usual_ms - self._taken_ms, pause.within_ms))
        self._pauses.clear()
        self._plans_much = self._is_new = False


def plans_much(execution: EndedExecution) -> bool:
    """Return whether to plan an SQL execution takes long: by many nodes, expressions or files."""
    nodes = list(execution.nodes())
    return len(nodes) >= _MANY_NODES or any(map(_is_large, nodes))


def has_many_columns(execution: EndedExecution) -> bool:
    """Return whether an SQL execution has so many nodes or columns that a loop may have added them.

    What is kept of a text ends before Spark says how many columns it leaves out.
    """
    nodes = list(execution.nodes())
    return len(nodes) >= _MANY_NODES or any(_has_many_fields(node) or _is_cut_project(node) for node in nodes)


def computes_many_columns(execution: EndedExecution) -> bool:
    """Return whether a plan has a hundred columns, and computes most of those of which the text is kept."""
    nodes = list(execution.nodes())
    return any(map(_has_many_fields, nodes)) and any(map(_computes_most, nodes))


def _computes_most(node: Node) -> bool:
    if not _is_cut_project(node):
        return False
    whole = items(node.text)[:-1]
    computed = sum(" AS " in item for item in whole)
    return computed >= _FEW_ITEMS and 2 * computed >= len(whole)


def _has_many_fields(node: Node) -> bool:
    return any(int(more) >= _MANY_FIELDS for more in _MORE.findall(node.text))


def _is_large(node: Node) -> bool:
    if node.metrics.get(_FILES, 0) >= _MANY_FILES:
        return True
    if _has_many_fields(node):
        return True
    # One expression that alone is as long as what is kept of the text: made of itself in a loop.
    return _is_cut_project(node) and len(items(node.text)) <= _FEW_ITEMS


def _is_cut_project(node: Node) -> bool:
    return node.name == "Project" and len(node.text) >= LONGEST_TEXT

"""How many tasks of each stage attempt run, by the latest record of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spark_events.listeners import spark_records

_Attempt = tuple[int, int]


class TasksThatRun(NamedTuple):
    """Tasks that have begun and not ended.

    Attributes:
        since_ms: when the first of the stage was launched, in ms since the epoch.
        number: how many.
    """

    since_ms: int
    number: int


class RunningTasks:
    """Counts them; of stages that have not begun or have ended it knows nothing."""

    def __init__(self) -> None:
        self._of: dict[_Attempt, TasksThatRun] = {}

    def changed(self, record: Mapping[str, Any]) -> None:
        """Called with each record of a stage's tasks."""
        attempt, number = spark_records.stage_attempt(record), int(record.get("Running") or 0)
        if not number:
            self._of.pop(attempt, None)
            return
        self._of[attempt] = TasksThatRun(int(record["First Launch Time"]), number)

    def assume(self, attempt: _Attempt, info: Mapping[str, Any], cores: int) -> None:
        """Called where a log ends before a stage does: its tasks have the cores that others do not have."""
        free = cores - sum(tasks.number for tasks in self._of.values())
        number = min(int(info.get("Number of Tasks") or 0), free)
        if attempt not in self._of and number > 0:
            self._of[attempt] = TasksThatRun(int(info["Submission Time"]), number)

    def pop(self, attempt: _Attempt) -> TasksThatRun | None:
        """Return what runs of a stage that ends; None if nothing does."""
        return self._of.pop(attempt, None)

"""Whether all tasks of the active stages are running or finished (Flink's allSubTasksRunningOrFinished)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from spark_events.listeners.application.job_status import Stays, register_stays
from spark_events.runtime.scope import ScopeGroup

Attempt = tuple[int, int]
_BASE = "allSubTasksRunningOrFinished"


class AllSubtasks:
    """Tracks this for the application and for each streaming query."""

    def __init__(self) -> None:
        self._active: dict[str, dict[Attempt, bool]] = {}
        self._stays: dict[str, Stays] = {}

    def register(self, group: ScopeGroup, query_name: str, enabled: Collection[str]) -> None:
        """Register the metrics of a query, or, with an empty name, of the application."""
        described_as = "all tasks of the active stages have been running or finished"
        register_stays(group, _BASE, self._stays.setdefault(query_name, Stays()), True, described_as, enabled)

    def changed(self, attempt: Attempt, of_query: Mapping[str, str], all_run: bool, time_ms: int) -> None:
        """Called when an attempt begins, and when whether all of its tasks run or have finished changes."""
        for name in _names(of_query):
            self._active.setdefault(name, {})[attempt] = all_run
            self._update(name, time_ms)

    def completed(self, attempt: Attempt, of_query: Mapping[str, str], time_ms: int) -> None:
        """Called when a stage attempt has ended."""
        for name in _names(of_query):
            active = self._active.get(name, {})
            active.pop(attempt, None)
            if not active:
                self._active.pop(name, None)
            self._update(name, time_ms)

    def forget(self, query_name: str) -> None:
        """Called when the metrics of a query have been removed."""
        self._stays.pop(query_name, None)

    def _update(self, name: str, time_ms: int) -> None:
        active = self._active.get(name, {})
        if name in self._stays:
            self._stays[name].enter(bool(active) and all(active.values()), time_ms)


def _names(of_query: Mapping[str, str]) -> set[str]:
    return {"", of_query.get("query_name", "")}

"""Executors: how many there are, and why those that are gone went."""

from __future__ import annotations

import re
from typing import Any

from spark_events.api import Counter, Gauge
from spark_events.listeners.context import ListenerContext

# Spark's reasons are sentences with hosts, ids and exit codes in them; as labels they would be endless.
_REASONS = (
    ("decommissioned", re.compile(r"(?i)decommission")),
    ("preempted", re.compile(r"(?i)preempt")),
    ("out_of_memory", re.compile(r"(?i)\boom|out ?of ?memory|memory limit|(code|status):? (137|52)\b")),
    ("heartbeat_timeout", re.compile(r"(?i)heartbeat")),
    ("killed_by_driver", re.compile(r"(?i)killed by driver|idle|request(ed)? by (the )?driver")),
    ("connection_lost", re.compile(r"(?i)disassociated|disconnected|connection")),
    ("exited", re.compile(r"(?i)exit")),
    ("worker_lost", re.compile(r"(?i)worker|node|host|machine")),
    ("shutdown", re.compile(r"(?i)shut ?down|stopp")),
)
OTHER = "other"


def reason_class(reason: str) -> str:
    """Return in one word why an executor was removed, by Spark's sentence."""
    return next((name for name, pattern in _REASONS if pattern.search(reason)), OTHER)


class ExecutorListener:
    """Follows the executors of one application."""

    def __init__(self, context: ListenerContext) -> None:
        self._cores: dict[str, int] = {}
        group = context.scopes.application()
        group.register("executors", Gauge(lambda: len(self._cores), "{executor}", "Executors that live."))
        described = "Cores of all executors that live."
        group.register("executorCores", Gauge(lambda: sum(list(self._cores.values())), "{core}", described))
        self._added = group.register("executorsAdded", Counter("{executor}", "Executors that were added."))
        self._group = group
        self._removed: dict[str, Counter] = {}

    def on_added(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle ExecutorAdded; one that is known was found at attach."""
        executor = str(record["Executor ID"])
        if executor not in self._cores:
            self._added.inc()
        self._cores[executor] = int((record.get("Executor Info") or {}).get("Total Cores") or 0)

    def on_removed(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle ExecutorRemoved."""
        if self._cores.pop(str(record["Executor ID"]), None) is None:
            return
        reason = reason_class(str(record.get("Removed Reason") or ""))
        if reason not in self._removed:
            labelled = self._group.child(components=("removed", reason), variables={"reason": reason})
            counter = Counter("{executor}", "Executors that are gone, by reason.")
            self._removed[reason] = labelled.register("executorsRemoved", counter)
        self._removed[reason].inc()

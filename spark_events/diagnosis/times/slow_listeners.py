"""The rule about listeners that handle Spark's events more slowly than these come."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import SLOW_LISTENERS

_QUEUES = {
    "EventLoggingListener": "eventLog",
    "AppStatusListener": "appStatus",
    "StreamingQueryListenerBus": "streams",
    "ExecutorAllocation": "executorManagement",
    "HeartbeatReceiver": "executorManagement",
    "io.sparkevents.": "sparkEvents",
}
"""By a part of the names of listeners' classes."""
_SHARED = "shared"
_LEAST_BUSY = 0.5
"""Of the application's time, so that events that wait are not a burst."""
_LEAST_WAITING = 10
_OF_QUERIES, _EVENT_LOG = "StreamingQueryListenerBus", "EventLoggingListener"
_OF_PYTHON = ("$Proxy", "jdk.proxy")
_RETURN = (
    "Let it hand events to a thread of its own and return at once, or handle fewer of them. Spark waits at "
    "its end until all events are handled. Those that are dropped are missing in what other listeners of "
    "that queue show and decide, such as Spark's UI; a larger "
    "spark.scheduler.listenerbus.eventqueue.capacity only helps against bursts."
)
_BURST = (
    "It works for less than half of the time, so that events came in a burst: a larger "
    "spark.scheduler.listenerbus.eventqueue.capacity (10,000 by default) keeps them. Those that were dropped "
    "are missing in what the listeners of that queue show and decide, such as Spark's UI."
)
_FASTER_LOG = (
    "Spark's event log is written more slowly than events come: write it to faster storage "
    "(spark.eventLog.dir), and leave out spark.eventLog.logBlockUpdates.enabled and "
    "spark.eventLog.logStageExecutorMetrics if nobody needs these. What is dropped is missing in the log."
)


def slow_listeners(
    dropped: Mapping[str, int], waiting: Mapping[str, int], busy_ms: Mapping[str, int], lasted_ms: int
) -> Issue | None:
    """Return that a listener does not keep up; None if all do.

    What that costs is not known: it works beside the jobs. ``share_ms`` is the time of the slowest.

    Args:
        dropped: how many events each queue has dropped so far.
        waiting: how many wait in each.
        busy_ms: how long each listener has handled events so far, in ms, by its class.
        lasted_ms: how long the application runs, in ms.
    """
    fullest = max(waiting, key=lambda name: (dropped.get(name, 0), waiting[name]), default="")
    slowest = max(busy_ms, key=lambda name: (_queue_of(name) == fullest, busy_ms[name]), default="")
    lost, wait = dropped.get(fullest, 0), waiting.get(fullest, 0)
    is_busy = bool(slowest) and busy_ms[slowest] >= _LEAST_BUSY * lasted_ms
    if not slowest or not (lost or (is_busy and wait >= _LEAST_WAITING)):
        return None
    so_far = f"has dropped {lost:,} events" if lost else f"has {wait:,} events that wait"
    return Issue(
        SLOW_LISTENERS,
        SLOW_LISTENERS,
        None,
        None,
        f"{_named(slowest)} takes {duration(busy_ms[slowest])} to handle Spark's events; the queue {fullest} "
        f"{so_far}",
        _BURST if not is_busy else _FASTER_LOG if _EVENT_LOG in slowest else _RETURN,
        evidence={
            "listener.class": slowest,
            "listener.busyMs": busy_ms[slowest],
            "listener.queue": fullest,
            "listener.droppedEvents": lost,
            "listener.waitingEvents": wait,
        },
        share_ms=busy_ms[slowest],
    )


def _queue_of(listener: str) -> str:
    """Return the queue in which Spark, or our bridge, puts a listener; those of programs share one."""
    return next((queue for part, queue in _QUEUES.items() if part in listener), _SHARED)


def _named(listener: str) -> str:
    """Return what a sentence calls a listener."""
    if _OF_QUERIES in listener:
        return "a StreamingQueryListener of the program"
    if any(part in listener for part in _OF_PYTHON):
        return "a listener of the program, in Python,"
    return f"the listener {listener}"

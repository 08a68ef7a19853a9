"""The series of applications that have ended: they stay for a while, for whoever looks in the morning."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from spark_events.api import ApplicationInfo
from spark_events.runtime.registry import Registry
from spark_events.sources.event_log.followed_application import steady_ms

_MOST = 500
"""Of how many applications that have ended the series stay at most."""


class _Ended(NamedTuple):
    since_ms: int
    application: ApplicationInfo
    registry: Registry


class EndedSeries:
    """Keeps the registries of applications that have ended, by the names of their logs."""

    def __init__(self) -> None:
        self._by_log: OrderedDict[str, _Ended] = OrderedDict()

    def keep(self, log: str, application: ApplicationInfo, registry: Registry) -> None:
        """Keep the series of an application that ends now."""
        self._by_log[log] = _Ended(steady_ms(), application, registry)

    def remove(self, log: str) -> None:
        """Remove the series of the application of a log, if there are any."""
        if log in self._by_log:
            self._by_log.pop(log).registry.remove_series()

    def remove_of(self, application: ApplicationInfo) -> None:
        """Remove those of an earlier run, as of the attempt before on YARN: they have the same labels."""
        for log, ended in list(self._by_log.items()):
            if is_earlier(ended.application, application):
                self.remove(log)

    def has_later(self, application: ApplicationInfo) -> bool:
        """Return whether there are series of a later run of the application."""
        return any(is_earlier(application, ended.application) for ended in self._by_log.values())

    def remove_due(self, metrics: Registry, retention_ms: int) -> None:
        """Remove the series of those that ended long enough ago, or before many others.

        Args:
            metrics: has the reporters; while they are busy, nothing is removed.
            retention_ms: how long they stay, in ms; not at all if nobody reads them.
        """
        time_ms = steady_ms()
        while self._by_log and not metrics.crowded:
            log, ended = next(iter(self._by_log.items()))
            stays = time_ms < ended.since_ms + retention_ms and metrics.workers
            if stays and len(self._by_log) <= _MOST:
                break
            self.remove(log)


def is_earlier(application: ApplicationInfo, other: ApplicationInfo) -> bool:
    """Return whether an application is the same as another, in an earlier attempt; or in the same one."""
    return application.id == other.id and _attempt(application) <= _attempt(other)


def _attempt(application: ApplicationInfo) -> int:
    return int(application.attempt_id) if application.attempt_id.isdecimal() else 0

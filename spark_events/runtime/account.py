"""What one reporter's errors come to: counted, and logged once for each kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_events.api import SparkEventsError
from spark_events.runtime.log_once import OnceLog
from spark_events.runtime.stats import ReporterStats


@dataclass(frozen=True, slots=True)
class ReporterAccount:
    """What the parts of one reporter's worker share to count and to log.

    Attributes:
        title: how messages call the reporter.
        log: where errors go, once for each kind.
        stats: what became of the items.
    """

    title: str
    log: OnceLog
    stats: ReporterStats = field(default_factory=ReporterStats)

    def count_raised(self, method: str, error: Exception, items: int = 1) -> None:
        """Count and log that the reporter raised in one of its methods, which cost so many items."""
        self.stats.failed.inc(items)
        message = f"{self.title} raised in {method}: {describe(error)}"
        self.log.error((self.title, method, type(error).__name__), message, error)


def describe(error: BaseException) -> str:
    """Return an error as one line: our own by their message, others with their type."""
    return str(error) if isinstance(error, SparkEventsError) else f"{type(error).__name__}: {error}"

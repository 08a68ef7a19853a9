"""What became of all that was handed to one reporter."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.api import Counter
from spark_events.api.event import now_ms

DROP_CAUSES = ("queue_full", "not_open", "close")


class ReporterStats:
    """Counters of one reporter. Reported + dropped + failed + still queued is all that was offered to it.

    Attributes:
        reported: items that the reporter took and flushed.
        failed: items on which the reporter raised.
        dropped_by_cause: items that never reached the reporter: its queue was full, it could not be
            opened, or the end came first.
        last_success_ms: when the last flush succeeded, in ms since the epoch; None where none did.
    """

    def __init__(self) -> None:
        self.reported = Counter(description="Items that the reporter took and flushed.")
        self.failed = Counter(description="Items on which the reporter raised.")
        self.dropped_by_cause: Mapping[str, Counter] = {
            cause: Counter(description="Items that never reached the reporter.") for cause in DROP_CAUSES
        }
        self.last_success_ms: int | None = None

    def drop(self, cause: str, count: int = 1) -> None:
        """Count items that never reached the reporter; the cause is one of ``DROP_CAUSES``."""
        self.dropped_by_cause[cause].inc(count)

    def succeed(self, count: int) -> None:
        """Count items as reported."""
        self.reported.inc(count)
        self.last_success_ms = now_ms()

    @property
    def dropped(self) -> int:
        """Items that never reached the reporter, of all causes."""
        return sum(counter.count for counter in self.dropped_by_cause.values())

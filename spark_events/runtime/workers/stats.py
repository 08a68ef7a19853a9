"""The counted fate of everything handed to one reporter, and its errors, logged once for each kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from spark_events.api import Counter
from spark_events.api.event import now_ms
from spark_events.api.toolkit.formatting import counted
from spark_events.api.toolkit.own_process import end_child
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.workers.answers import check_done, described

DROP_CAUSES: Mapping[str, str] = {
    "queue_full": "the queue in memory was full (queue.max-items, queue.max-bytes)",
    "not_open": "the reporter could not be opened",
    "close": "they were not delivered before the application ended (spark.events.close.timeout)",
    "journal_full": "the journal was full (journal.max-bytes)",
    "journal_age": "they were older than journal.max-age",
    "journal_damaged": "the journal was damaged; each damaged place counts as one",
    "dead_letters_full": "the file of refused records was full",
}
LOSS_CAUSES: Mapping[str, str] = {
    **DROP_CAUSES,
    "refused": "the destination refused them for good; its answer is in the log (with journal.dir, "
    "which events and spans may have, also in refused.jsonl)",
}
_DROPPED, _TOLD = "dropped.", "told."
_JOURNAL_FULL = f"{_DROPPED}journal_full"


class ReporterStats:
    """Counters of one reporter.

    Reported + failed + refused + dropped + still queued is everything it was ever offered. With a journal,
    the counters outlive the process.

    Attributes:
        reported: items that the reporter took and flushed, or that its destination has acknowledged.
        failed: items on which the reporter raised.
        refused: items that the destination will never take.
        dropped_by_cause: items that never reached their destination, by cause.
        retries: requests that have to be sent again.
        told_at_close: how many of those dropped at the end an error of its own has told.
        save: called when the ``totals`` should outlive the process as they are now.
        last_success_ms: when a flush or request last succeeded, in ms since the epoch; None if none has.
    """

    def __init__(self) -> None:
        self.reported = Counter(description="Items that the reporter delivered.")
        self.failed = Counter(description="Items for which the reporter raised an error.")
        self.refused = Counter(description="Items that the destination refused for good.")
        self.dropped_by_cause: Mapping[str, Counter] = {
            cause: Counter(description="Items that never reached their destination.") for cause in DROP_CAUSES
        }
        self.retries = Counter(description="Requests to send again.")
        self.last_success_ms: int | None = None
        self.told_at_close = 0
        self.save: Callable[[], None] = lambda: None
        self._lasting = {"reported": self.reported, "failed": self.failed, "refused": self.refused}
        self._lasting |= {_DROPPED + cause: counter for cause, counter in self.dropped_by_cause.items()}
        self._inherited: dict[str, int] = {}
        # By cause, what earlier processes lost and did not tell; how much of that this one has not told yet,
        # either; and what it has told in all.
        self._earlier: dict[str, int] = {}
        self._untold: dict[str, int] = {}
        self._told: dict[str, int] = {}

    def drop(self, cause: str, count: int = 1) -> None:
        """Count items that never reached their destination; the cause is one of ``DROP_CAUSES``."""
        self.dropped_by_cause[cause].inc(count)

    def succeed(self, count: int) -> None:
        """Count items as reported."""
        self.reported.inc(count)
        self.last_success_ms = now_ms()

    @property
    def dropped(self) -> int:
        """Items that never reached their destination, of all causes."""
        return sum(counter.count for counter in self.dropped_by_cause.values())

    def dropped_here(self) -> dict[str, int]:
        """Return what this process lost, by cause, except for a reporter that is not open: already logged."""
        return {
            cause: self._lasting[name].count - self._inherited.get(name, 0) for name, cause in self._causes()
        }

    def losses(self) -> dict[str, int]:
        """Return what is to be told as lost, by cause: all but what an error of its own has told already."""
        lost = self.dropped_here()
        lost["close"] -= self.told_at_close
        return {cause: count + self._earlier.get(cause, 0) for cause, count in lost.items()}

    def note_told(self, cause: str, count: int) -> int:
        """Note how many ``losses`` of a cause are told; return how many of them an earlier process had."""
        self._told[cause] = count
        self.save()
        return self._untold.pop(cause, 0)

    def tell_lost(self, title: str, count: int, reason: object = "") -> None:
        """Log that items were lost at the end, and why.

        Args:
            title: the reporter's name in messages.
            count: how many, all of which count as dropped.
            reason: what the destination's last answer was; empty where that was logged.
        """
        self.told_at_close += count
        logger.error(
            "%s lost %s: the destination did not take them before the application ended "
            "(spark.events.close.timeout)%s",
            title,
            counted(count, "item"),
            f": {reason}" if reason else "",
        )

    def totals(self, undecided: int = 0) -> dict[str, int]:
        """Return the counters that outlive the process, by name, and how many of the losses are told.

        Args:
            undecided: how many items the journal dropped while they were being sent: they count as dropped
                until it is known what became of them, which it never is if this process is killed.
        """
        totals = {name: counter.count for name, counter in self._lasting.items() if counter.count}
        if undecided:
            totals[_JOURNAL_FULL] = totals.get(_JOURNAL_FULL, 0) + undecided
        reported = {
            _TOLD + cause: self._inherited.get(name, 0)
            - self._earlier.get(cause, 0)
            + self._told.get(cause, 0)
            for name, cause in self._causes()
            if name in totals
        }
        return totals | reported

    def restore(self, *cursors: Mapping[str, int]) -> None:
        """Add what earlier processes counted, by their ``totals``; what they did not tell is told here."""
        for totals in cursors:
            for name, counter in self._lasting.items():
                counter.inc(totals.get(name, 0))
                self._inherited[name] = self._inherited.get(name, 0) + totals.get(name, 0)
            for name, cause in self._causes():
                # Cursors of old say nothing of that.
                untold = totals.get(name, 0) - totals.get(_TOLD + cause, totals.get(name, 0))
                if untold > 0 and cause != "close":  # at the end, an error of its own told it
                    for counts in (self._earlier, self._untold):
                        counts[cause] = counts.get(cause, 0) + untold

    def _causes(self) -> list[tuple[str, str]]:
        """Return the counters of losses, by their names and causes."""
        told_elsewhere = ("reported", "failed", _DROPPED + "not_open")
        return [(name, name.removeprefix(_DROPPED)) for name in self._lasting if name not in told_elsewhere]


@dataclass(frozen=True, slots=True)
class ReporterAccount:
    """What the parts of one reporter's worker share for counting and logging, and for its calls.

    Each call of the reporter is made within its account: a child that the call forks, and that comes back
    from it, ends there, and does not report for a second time.

    Attributes:
        title: what messages call the reporter.
        log: takes them.
        stats: what is counted.
        process: the id of the process that makes the calls.
    """

    title: str
    log: OnceLog
    stats: ReporterStats
    process: int = field(default_factory=os.getpid)

    def call(self, method: Callable[..., object], *arguments: object) -> None:
        """Call a method of the reporter that returns nothing.

        Raises:
            TypeError: it returns what was to do its work.
            BaseException: what it raises.
        """
        with self:
            answer = method(*arguments)
        if answer is not None:
            check_done(answer)

    def __enter__(self) -> None:
        """Begin a call."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        """End a call."""
        if os.getpid() != self.process:
            end_child(error)

    def count_raised(self, method: str, error: BaseException, items: int = 1) -> None:
        """Count and log that the reporter raised in one of its methods, losing this many items."""
        self.stats.failed.inc(items)
        message = f"{self.title} raised in {method}: {described(error)}"
        self.log.error((self.title, method, type(error).__name__), message, error)

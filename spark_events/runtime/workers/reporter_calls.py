"""The calls of a reporter that its destination may refuse for now, and the pauses between tries."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator

from spark_events.api import PartlyRefused, Refused, Reporter, RetryLater, Scheduled
from spark_events.api.toolkit.formatting import counted
from spark_events.runtime.log_once import TroubleLog, logger
from spark_events.runtime.workers.answers import described, pause_ms_of, reason_of, refused_of
from spark_events.runtime.workers.inbox import Inbox
from spark_events.runtime.workers.stats import ReporterAccount

_FIRST_S = 0.2
_LONGEST_S = 10.0
_LONGEST_ASKED_S = 900.0
_LAST_TRIES_S = 1.0
GIVE_UP_BEFORE_S = 0.2
"""How long before the deadline retrying ends, so that closing has time."""


class Backoff:
    """The pauses of one piece of work that retries something; whoever closes it wakes that work.

    Attributes:
        tries: how many tries in a row have failed.
    """

    def __init__(self) -> None:
        self.tries = 0
        self._closing = False
        self._deadline = float("inf")
        self._since = 0.0

    @property
    def closing(self) -> bool:
        """Whether shutdown has begun."""
        return self._closing

    @property
    def elapsed_s(self) -> float:
        """How long the tries have been failing, in s."""
        return time.monotonic() - self._since

    def close(self, deadline: float) -> None:
        """Begin shutdown: from now on, no pause extends past ``deadline``, a time of ``time.monotonic``."""
        self._deadline = deadline
        self._closing = True

    def failed(self) -> int:
        """Count a failed try, and return how many in a row have failed."""
        if not self.tries:
            self._since = time.monotonic()
        self.tries += 1
        return self.tries

    def succeeded(self) -> None:
        """Go back to short pauses."""
        self.tries = 0

    def pause(self, asked_ms: int | None) -> Generator[float, None, bool]:
        """Wait before the next try, in turns, and return whether there is time for it.

        Args:
            asked_ms: the pause that the destination asked for, in ms.
        """
        doubled = _FIRST_S * 2 ** min(self.tries - 1, 10)
        seconds = min(doubled, _LONGEST_S) * random.uniform(0.8, 1.2)
        if asked_ms is not None:
            # Never less than without it: "Retry-After: 0" would be a busy loop.
            asked = min(asked_ms / 1000, _LONGEST_ASKED_S) * random.uniform(1.0, 1.1)
            seconds = max(seconds, asked)
        until = time.monotonic() + seconds
        while not self._closing and (left := until - time.monotonic()) > 0:
            yield left
        if not self._closing:
            return True
        give_up_at = self._deadline - GIVE_UP_BEFORE_S
        until = min(time.monotonic() + min(seconds, _LAST_TRIES_S), give_up_at)
        while (left := until - time.monotonic()) > 0:
            yield left
        return time.monotonic() < give_up_at


class Flusher:
    """Flushes one reporter. Only its turns use this, except that others may close the backoff.

    Args:
        reporter: it.
        inbox: what it is given comes from there.
        backoff: the pauses between tries.
        account: its counts.
        succeed: called with how many items have got through.
    """

    def __init__(
        self,
        reporter: Reporter,
        inbox: Inbox,
        backoff: Backoff,
        account: ReporterAccount,
        succeed: Callable[[int], None],
    ) -> None:
        self._reporter = reporter
        self._succeeded = succeed
        self._inbox = inbox
        self._backoff = backoff
        self._account = account
        self._trouble = TroubleLog()

    def flush(self, items: int) -> Generator[float, None, bool]:
        """Flush, in turns, until the reporter has no reason to try again. Never raises.

        Args:
            items: how many it was given since the last flush; they count as reported, failed or dropped.

        Returns:
            False if nothing gets through and shutdown leaves no time for another try.
        """
        while True:
            try:
                self._account.call(self._reporter.flush)
            except RetryLater as later:
                self._backoff.failed()
                title = self._account.title
                self._trouble.goes_on(
                    "",
                    "%s could not send %s yet and is retrying: %s",
                    title,
                    counted(items, "item"),
                    reason_of(later),
                )
                if not (yield from self._backoff.pause(pause_ms_of(later))):
                    self._give_up(items, later)
                    return False
            except BaseException as error:
                self._account.count_raised("flush", error, items)
                return True
            else:
                self._succeed(items)
                return True

    def _succeed(self, items: int) -> None:
        if items:
            self._succeeded(items)
        self._trouble.over("%s delivers again, after %d tries", self._account.title, self._backoff.tries)
        self._backoff.succeeded()

    def _give_up(self, items: int, reason: RetryLater) -> None:
        left = self._inbox.give_up(items)
        if left is not None:
            self._account.stats.tell_lost(self._account.title, left, reason_of(reason))


class PeriodicReports:
    """Lets a reporter report once per interval from now on. Only the reporter's thread uses this.

    A report that does not get through is not repeated: the next one is more up to date.
    """

    def __init__(self, reporter: Scheduled, interval_ms: int, account: ReporterAccount) -> None:
        self._reporter = reporter
        self._interval_s = interval_ms / 1000
        self._account = account
        self._due = time.monotonic() + self._interval_s
        self._missed = self._noted = 0
        self._failure = ""
        self._trouble = TroubleLog()

    def note(self, items: int) -> None:
        """Count items as reported once the next report gets through."""
        self._noted += items

    @property
    def due_in_s(self) -> float:
        """The time until the next report, in s; 0 if it is overdue."""
        return max(0.0, self._due - time.monotonic())

    def report_if_due(self) -> None:
        """Report if the interval is over; after a late report, skip the missed intervals."""
        if time.monotonic() >= self._due:
            asked_s = self.report()
            self._due = time.monotonic() + max(self._interval_s, asked_s)

    def report_last(self) -> None:
        """Report a last time; if that fails, log that the destination keeps older values. Never raises."""
        self._failure = ""
        self.report()
        if self._failure:
            message = "%s could not report the last values, and its destination may show older ones: %s"
            logger.error(message, self._account.title, self._failure)

    def report(self) -> float:
        """Report now, and return for how long the destination asks to be left alone, in s. Never raises."""
        title, stats = self._account.title, self._account.stats
        try:
            self._account.call(self._reporter.report)
        except RetryLater as later:
            self._miss(later)
            return min((pause_ms_of(later) or 0) / 1000, _LONGEST_ASKED_S)
        except (Refused, PartlyRefused) as refused:
            count = 1 if isinstance(refused, Refused) else refused_of(refused, unsaid=1)
            stats.refused.inc(count)
            self._account.log.error((title, "report"), f"{title}: {reason_of(refused)}")
            if isinstance(refused, Refused):
                self._failure = reason_of(refused)
                return 0.0
        except BaseException as error:
            self._account.count_raised("report", error)
            self._failure = described(error)
            return 0.0
        noted, self._noted = self._noted, 0
        stats.succeed(noted)
        self._trouble.over("%s reports again, after %s", title, counted(self._missed, "missed report"))
        self._missed = 0
        return 0.0

    def _miss(self, later: RetryLater) -> None:
        self._account.stats.retries.inc()
        self._missed += 1
        self._failure = reason_of(later)
        message = "%s cannot report; it retries at each interval: %s"
        self._trouble.goes_on("", message, self._account.title, reason_of(later))

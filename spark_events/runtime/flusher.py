"""Flushes a reporter, and retries while its destination is unavailable."""

from __future__ import annotations

from collections.abc import Generator

from spark_events.api import Reporter, RetryLater
from spark_events.runtime.backoff import Backoff
from spark_events.runtime.inbox import Inbox
from spark_events.runtime.log_once import logger
from spark_events.runtime.stats import ReporterAccount


class Flusher:
    """Flushes one reporter. Only its turns use this, except that others may close the backoff."""

    def __init__(self, reporter: Reporter, inbox: Inbox, backoff: Backoff, account: ReporterAccount) -> None:
        self._reporter = reporter
        self._inbox = inbox
        self._backoff = backoff
        self._account = account

    def flush(self, items: int) -> Generator[float, None, bool]:
        """Flush, in turns, until the reporter has no reason to try again. Never raises.

        Args:
            items: how many it was given since the last flush; they count as reported, failed or dropped.

        Returns:
            False if nothing gets through and shutdown leaves no time for another try.
        """
        while True:
            try:
                self._reporter.flush()
            except RetryLater as later:
                if self._backoff.failed() == 1:
                    title = self._account.title
                    logger.warning("%s holds back %d item(s) and tries again: %s", title, items, later)
                if not (yield from self._backoff.pause(later.after_ms)):
                    self._give_up(items, later)
                    return False
            except Exception as error:
                self._account.count_raised("flush", error, items)
                return True
            else:
                self._succeed(items)
                return True

    def _succeed(self, items: int) -> None:
        if items:
            self._account.stats.succeed(items)
        if self._backoff.tries:
            logger.warning("%s delivers again, after %d tries", self._account.title, self._backoff.tries)
        self._backoff.succeeded()

    def _give_up(self, items: int, reason: RetryLater) -> None:
        left = self._inbox.give_up(items)
        if left is not None:
            title = self._account.title
            logger.error("%s could not deliver %d item(s) before the end: %s", title, left, reason)

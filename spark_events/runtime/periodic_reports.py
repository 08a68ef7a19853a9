"""The schedule of a metric reporter that pushes, and the outcome of its reports."""

from __future__ import annotations

import time

from spark_events.api import PartlyRefused, Refused, RetryLater, Scheduled
from spark_events.runtime.log_once import logger
from spark_events.runtime.stats import ReporterAccount


class PeriodicReports:
    """Lets a reporter report once per interval from now on. Only the reporter's thread uses this.

    A report that does not get through is not repeated: the next one is more up to date.
    """

    def __init__(self, reporter: Scheduled, interval_ms: int, account: ReporterAccount) -> None:
        self._reporter = reporter
        self._interval_s = interval_ms / 1000
        self._account = account
        self._due = time.monotonic() + self._interval_s
        self._missed = 0

    @property
    def due_in_s(self) -> float:
        """The time until the next report, in s; 0 if it is overdue."""
        return max(0.0, self._due - time.monotonic())

    def report_if_due(self) -> None:
        """Report if the interval is over; after a late report, skip the missed intervals."""
        if time.monotonic() >= self._due:
            self.report()
            self._due = time.monotonic() + self._interval_s

    def report(self) -> None:
        """Report now. Never raises."""
        title, stats = self._account.title, self._account.stats
        try:
            self._reporter.report()
        except RetryLater as later:
            self._miss(later)
            return
        except (Refused, PartlyRefused) as refused:
            stats.refused.inc(refused.count if isinstance(refused, PartlyRefused) else 1)
            self._account.log.error((title, "report"), f"{title}: {refused}", refused)
            if isinstance(refused, Refused):
                return
        except Exception as error:
            self._account.count_raised("report", error)
            return
        stats.succeed(0)
        if self._missed:
            logger.warning("%s reports again, after %d missed report(s)", title, self._missed)
            self._missed = 0

    def _miss(self, later: RetryLater) -> None:
        self._account.stats.retries.inc()
        self._missed += 1
        if self._missed == 1:
            logger.warning("%s cannot report, and tries again every interval: %s", self._account.title, later)

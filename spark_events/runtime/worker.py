"""The thread and the bounded queue of one reporter: whatever the reporter does, it does it there alone."""

from __future__ import annotations

import os
import threading
import time

from spark_events.api import (
    ConfigError,
    PartlyRefused,
    Refused,
    Reporter,
    RetryLater,
    Scheduled,
    SendingReporter,
    SparkEventsError,
)
from spark_events.runtime.backoff import GIVE_UP_BEFORE_S, Backoff
from spark_events.runtime.bounded_queue import BoundedQueue, Item
from spark_events.runtime.delivery import Delivery
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.setup import ReporterSetup
from spark_events.runtime.stats import ReporterStats

_BATCH = 512
_SETTLE_S = 1.0


class Worker:
    """Creates, opens, feeds and closes one reporter, on a daemon thread.

    Daemon, because a reporter that blocks for ever must not keep the user's process from ending.

    Args:
        setup: the reporter as it is configured.
        log: where errors go, once for each kind.

    Attributes:
        stats: what became of the items.
        error: why the reporter could not be opened; None while it can.
        destination: where what is reported can be found, once it is open.
        delivery: what a sending reporter has around it; None for others, and before ``open``.
    """

    def __init__(self, setup: ReporterSetup, log: OnceLog) -> None:
        self.setup = setup
        self.stats = ReporterStats()
        self.error: BaseException | None = None
        self.destination = ""
        self.delivery: Delivery | None = None
        self._log = log
        self._queue = BoundedQueue(setup.queue)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = False
        self._idle = False
        self._backoff = Backoff()
        self._opened = threading.Event()
        self._deadline = float("inf")
        self._in_flight = 0
        self._left_behind = False
        self._report_at: float | None = None
        self._missed_reports = 0
        self._process = os.getpid()
        name = f"spark-events-{setup.kind.name}-{setup.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def title(self) -> str:
        """How messages call the reporter."""
        return f"{self.setup.kind.title} {self.setup.name!r}"

    @property
    def where(self) -> str:
        """Where it reports to, or why it does not."""
        if self.error is not None:
            return f"{self.title} (failed: {describe(self.error)})"
        return f"{self.title} to {self.destination}" if self.destination else self.title

    @property
    def depth(self) -> int:
        """How many items wait or are in flight."""
        spooled = self.delivery.spool.pending if self.delivery else 0
        return len(self._queue) + self._in_flight + spooled

    @property
    def at_risk(self) -> int:
        """How many items would be lost with the process: what is in no journal, and not delivered."""
        spooled = self.delivery.spool.in_memory if self.delivery else 0
        return len(self._queue) + self._in_flight + spooled

    @property
    def journaled(self) -> int:
        """How many items its journals hold that are not delivered."""
        return self.delivery.spool.pending - self.delivery.spool.in_memory if self.delivery else 0

    @property
    def crowded(self) -> bool:
        """Whether its queue, or its journal, is more than half full."""
        return self._queue.crowded or bool(self.delivery and self.delivery.spool.crowded)

    @property
    def queue_bytes(self) -> int:
        """What the items in the queue take in memory, roughly, in bytes."""
        return self._queue.bytes

    @property
    def journal_bytes(self) -> int | None:
        """What the journals hold, in bytes; None where there is none."""
        spool = self.delivery.spool if self.delivery else None
        return spool.journal_bytes if spool is not None and spool.durable else None

    @property
    def oldest_age_ms(self) -> int | None:
        """How old the oldest record is that is not delivered, in ms; None for what does not send."""
        return self.delivery.spool.oldest_age_ms if self.delivery else None

    def start(self) -> None:
        """Start the thread; the reporter is created and opened there."""
        self._thread.start()

    def offer(self, item: Item) -> None:
        """Queue a call of the reporter's method. Never blocks; a full queue drops as it is configured to."""
        if os.getpid() != self._process:
            return  # a forked child has no such thread, and nothing to report
        if self._closing or self.error is not None:
            self.stats.drop("close" if self._closing else "not_open")
            return
        with self._lock:
            if self._idle:
                self._idle = False
                self._changed.notify()
            if dropped := self._queue.put(item):
                self.stats.drop("queue_full", dropped)

    def wait_opened(self, timeout_s: float) -> bool:
        """Wait until ``open`` has returned or failed; tell whether it did in time."""
        return self._opened.wait(timeout_s)

    def request_close(self, deadline: float) -> None:
        """Let the thread hand over what is queued, and close, until a time of ``time.monotonic``."""
        with self._changed:
            self._deadline = deadline
            self._closing = True
            self._backoff.close(deadline)
            self._changed.notify()

    def join(self) -> None:
        """Wait until the thread has ended or the deadline has passed, and say what was left behind."""
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        if not self._thread.is_alive():
            return
        with self._changed:
            self._left_behind = True
            left = len(self._queue) + self._in_flight
        self.stats.drop("close", left)
        logger.error(
            "%s did not close in time and is left behind; not delivered: %d item(s)", self.title, left
        )

    # -- on the reporter's thread --------------------------------------------------------------------

    def _run(self) -> None:
        reporter = self._open()
        if reporter is not None and self.error is None:
            if isinstance(reporter, Scheduled):
                self._report_at = time.monotonic() + self.setup.settings.interval_ms / 1000
            self._serve(reporter)
            self._report(reporter)  # the last values, also of what was shorter than an interval
        may_close = True
        if self.delivery is not None:
            may_close = self.delivery.finish(self._deadline - GIVE_UP_BEFORE_S)
        if reporter is not None and may_close:
            self._close(reporter)

    def _open(self) -> Reporter | None:
        reporter: Reporter | None = None
        try:
            reporter = self.setup.factory.create(self.setup.config)
            if not isinstance(reporter, self.setup.kind.reporter):
                raise ConfigError(f"its factory made a {type(reporter).__name__}, no {self.setup.kind.title}")
            if isinstance(reporter, SendingReporter):
                self.delivery = Delivery(reporter, self.setup, self.stats, self.title, self._log)
            reporter.open()
            if self.delivery is not None:
                self.delivery.start()
            self.destination = reporter.destination
            logger.info("%s reports to %s", self.title, self.destination or "its own place")
        except BaseException as error:
            self.error = error
            shown = None if isinstance(error, ConfigError) else error
            logger.error("%s is not used: %s", self.title, describe(error), exc_info=shown)
            with self._changed:
                self.stats.drop("not_open", self._queue.clear())
        finally:
            self._opened.set()
        return reporter

    def _serve(self, reporter: Reporter) -> None:
        while batch := self._next_batch(reporter):
            taken = self._hand_over(reporter, batch)
            if self.delivery is not None:
                self.delivery.spool.commit()
            if not self._flush(reporter, 0 if self.delivery is not None else taken):
                return
            self._in_flight = 0

    def _hand_over(self, reporter: Reporter, batch: list[Item]) -> int:
        """Call the reporter for each item, and return for how many it did not raise."""
        taken = len(batch)
        for item in batch:
            try:
                getattr(reporter, item.method)(*item.arguments)
            except Exception as error:
                taken -= 1
                self._count_failed(item.method, error)
        return taken

    def _next_batch(self, reporter: Reporter) -> list[Item]:
        """Return what is queued, waiting for it; empty at the end."""
        settled = False
        while True:
            self._report_in_time(reporter)
            with self._changed:
                if not self._queue and not self._closing:
                    self._idle = True
                    self._changed.wait(self._longest_wait(settled))
                if self._queue or self._closing:
                    batch = self._queue.take(_BATCH)
                    self._in_flight = len(batch)
                    return batch
            # Nothing came for a while: what was put off, as syncing the disk, is done now.
            if self.delivery is not None:
                self.delivery.spool.keep()
            elif not settled:
                self._flush(reporter, 0)
                settled = True

    def _longest_wait(self, settled: bool) -> float | None:
        """Return after how many seconds there is something to do although nothing comes."""
        wait = None if settled else _SETTLE_S
        if self._report_at is None:
            return wait
        until = max(0.0, self._report_at - time.monotonic())
        return until if wait is None else min(wait, until)

    def _report_in_time(self, reporter: Reporter) -> None:
        """Let a pushing reporter report when its interval is over; one that is late skips what it missed."""
        if self._report_at is not None and time.monotonic() >= self._report_at:
            self._report(reporter)
            self._report_at = time.monotonic() + self.setup.settings.interval_ms / 1000

    def _report(self, reporter: Reporter) -> None:
        if not isinstance(reporter, Scheduled):
            return
        try:
            reporter.report()
        except RetryLater as later:
            self._miss_report(later)
            return
        except (Refused, PartlyRefused) as refused:
            self.stats.refused.inc(refused.count if isinstance(refused, PartlyRefused) else 1)
            self._log.error((self.title, "report"), f"{self.title}: {refused}", refused)
            if isinstance(refused, Refused):
                return
        except Exception as error:
            self._count_failed("report", error)
            return
        self.stats.succeed(0)
        if self._missed_reports:
            logger.warning("%s reports again, after %d missed", self.title, self._missed_reports)
            self._missed_reports = 0

    def _miss_report(self, later: RetryLater) -> None:
        self.stats.retries.inc()
        self._missed_reports += 1
        if self._missed_reports == 1:
            logger.warning("%s cannot report, and tries again each interval: %s", self.title, later)

    def _flush(self, reporter: Reporter, taken: int) -> bool:
        """Flush until the reporter has no reason to try again; tell whether to go on after that."""
        while True:
            try:
                reporter.flush()
            except RetryLater as later:
                if self._backoff.failed() == 1:
                    logger.warning("%s holds back %d item(s) and tries again: %s", self.title, taken, later)
                if not self._backoff.pause(later.after_ms):
                    self._give_up(taken, later)
                    return False
            except Exception as error:
                self.stats.failed.inc(taken)
                self._log.error(
                    (self.title, "flush", type(error).__name__), self._raised("flush", error), error
                )
                return True
            else:
                if taken:
                    self.stats.succeed(taken)
                if self._backoff.tries:
                    logger.warning("%s delivers again, after %d tries", self.title, self._backoff.tries)
                self._backoff.succeeded()
                return True

    def _give_up(self, taken: int, reason: RetryLater) -> None:
        with self._changed:
            if self._left_behind:
                return  # all of it was counted already
            left = taken + self._queue.clear()
            self._in_flight = 0
        self.stats.drop("close", left)
        logger.error("%s could not deliver %d item(s) before the end: %s", self.title, left, reason)

    def _close(self, reporter: Reporter) -> None:
        try:
            reporter.close()
        except Exception as error:
            self._count_failed("close", error)

    def _count_failed(self, method: str, error: Exception) -> None:
        self.stats.failed.inc()
        self._log.error((self.title, method, type(error).__name__), self._raised(method, error), error)

    def _raised(self, method: str, error: BaseException) -> str:
        return f"{self.title} raised in {method}: {describe(error)}"


def describe(error: BaseException) -> str:
    """Return an error as one line: our own by their message, others with their type."""
    return str(error) if isinstance(error, SparkEventsError) else f"{type(error).__name__}: {error}"

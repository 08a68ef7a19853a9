"""The turns of one reporter, in which everything the reporter does happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator

from spark_events.api import ConfigError, Reporter, Scheduled, SendingReporter
from spark_events.api.toolkit.formatting import counted
from spark_events.runtime.foreign_errors import describe
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.plugins import METRICS, create_reporter
from spark_events.runtime.sending.delivery import Delivery
from spark_events.runtime.sending.spool import Spool
from spark_events.runtime.setup import ReporterSetup
from spark_events.runtime.workers.inbox import Inbox, Item
from spark_events.runtime.workers.reporter_calls import GIVE_UP_BEFORE_S, Backoff, Flusher, PeriodicReports
from spark_events.runtime.workers.stats import ReporterAccount, ReporterStats
from spark_events.runtime.workers.turns import FOREVER, OWN_THREADS, Threads, Turns

_BATCH = 512
_LOOK_S = 0.005
_QUIET_S = 1.0
"""After so long without an item, what was put off is done."""


class Worker:
    """Creates, opens, feeds and closes one reporter, in turns.

    They are turns of daemon threads so that a reporter that blocks forever cannot keep the user's process
    alive; usually of a thread of its own, but applications that are followed share a few.

    The rules of its threads:

    * Any thread may offer items, and read the figures, which may be slightly out of date.
    * The thread that owns the worker starts, closes and joins it.
    * Only the reporter's turns call the reporter, one at a time. What they share with the others is in
      ``Inbox``, under its lock. A sending reporter has turns of a second kind, ``Sender``; the two share
      ``Spool``.

    Args:
        threads: run the turns.
        before_opening: waits, in the first of them, until the reporter may open; None if it may at once.

    Attributes:
        variables: those that the reporter sees.
        title: the reporter's name in messages.
        error: why the reporter could not be opened; None if nothing has gone wrong.
        destination: where the reported data can be found, once the reporter is open.
        delivery: the parts around a sending reporter; None for others, and before ``open``.
    """

    def __init__(
        self,
        setup: ReporterSetup,
        log: OnceLog,
        threads: Threads = OWN_THREADS,
        before_opening: Callable[[], None] | None = None,
    ) -> None:
        self.setup = setup
        self._before_opening = before_opening
        self.variables = setup.variables
        self.title = f"{setup.kind.title} {setup.name!r}"
        self.stats = ReporterStats()
        self.error: BaseException | None = None
        self.destination = ""
        self.delivery: Delivery | None = None
        self._account = ReporterAccount(self.title, log, self.stats)
        self._threads = threads
        self._backoff = Backoff()
        self._opened = threading.Event()
        self._deadline = float("inf")
        name = f"spark-events-{setup.kind.name}-{setup.name}"
        self._runner = threads.reporter(name, self._run())
        self._inbox = Inbox(setup.queue, self.stats, self._runner.wake)

    # -- figures, on any thread ----------------------------------------------------------------------

    @property
    def where(self) -> str:
        """Where it reports to, or why it cannot."""
        if self.error is not None:
            return f"{self.title} (failed: {describe(self.error)})"
        return f"{self.title} to {self.destination}" if self.destination else self.title

    @property
    def depth(self) -> int:
        """How many items wait or are in flight."""
        return self._inbox.pending + (self._spool.pending if self._spool else 0)

    @property
    def at_risk(self) -> int:
        """How many items would be lost if the process died now: in no journal, and not delivered."""
        return self._inbox.pending + (self._spool.in_memory if self._spool else 0)

    @property
    def journaled(self) -> int:
        """How many undelivered items its journals hold."""
        return self._spool.pending - self._spool.in_memory if self._spool else 0

    @property
    def crowded(self) -> bool:
        """Whether its queue, or its journal, is more than half full."""
        return self._inbox.crowded or bool(self._spool and self._spool.crowded)

    @property
    def queue_bytes(self) -> int:
        """Roughly how much memory the items in the queue take, in bytes."""
        return self._inbox.bytes

    @property
    def journal_bytes(self) -> int | None:
        """What the journals hold, in bytes; None where there is none."""
        return self._spool.journal_bytes if self._spool and self._spool.durable else None

    @property
    def oldest_age_ms(self) -> int | None:
        """The age of the oldest undelivered record, in ms; None for a reporter that does not send."""
        return self._spool.oldest_age_ms if self._spool else None

    @property
    def _spool(self) -> Spool | None:
        return self.delivery.spool if self.delivery else None

    @property
    def ended(self) -> bool:
        """Whether it has ended, so that nothing of it runs any more."""
        return self._runner.ended

    @property
    def keeps_history(self) -> bool:
        """Whether what it reports is read later."""
        return bool(getattr(self.setup.factory, "keeps_history", False))

    # -- offering on any thread; the rest on the one that owns the worker ----------------------------

    def offer(self, item: Item) -> None:
        """Queue a call of the reporter's method. Never blocks; a full queue drops as it is configured to."""
        self._inbox.put(item)

    def start(self) -> None:
        """Let its turns begin; the reporter is created and opened there."""
        self._runner.start()

    def wait_opened(self, timeout_s: float) -> bool:
        """Wait until ``open`` has returned or failed, and return whether it did so in time."""
        return self._opened.wait(timeout_s)

    def wait_journaled(self, timeout_s: float) -> None:
        """Wait until nothing is in memory alone, the reporter is not used, or the time is over."""
        until = time.monotonic() + timeout_s
        while self.error is None and self.at_risk and time.monotonic() < until:
            time.sleep(_LOOK_S)

    def request_close(self, deadline: float) -> None:
        """Make it hand over what is queued and close by ``deadline`` (``time.monotonic``)."""
        self._deadline = deadline
        self._backoff.close(deadline)
        self._inbox.close()

    def join(self) -> None:
        """Wait until it has ended or the deadline has passed, and log what was left behind."""
        if not self._runner.join(self._deadline - time.monotonic()):
            left = self._inbox.abandon()
            lost = counted(left, "item") if left else "what it was about to report, if anything"
            logger.error("%s did not close in time and is left behind; not delivered: %s", self.title, lost)

    # -- in the reporter's turns ---------------------------------------------------------------------

    def _run(self) -> Turns:
        reporter = self._open()
        if reporter is not None and self.error is None:
            try:
                yield from self._serve(reporter)
            except Exception as error:  # a bug of ours; what is given to the reporter from now on is lost
                left = self._inbox.fail()
                message = f"{self.title} failed unexpectedly, is over, and lost {counted(left, 'item')}"
                logger.exception("%s: %s", message, describe(error))
        may_close = True
        if self.delivery is not None:
            may_close = yield from self.delivery.finish(self._deadline - GIVE_UP_BEFORE_S)
        if reporter is not None and may_close:
            try:
                self._account.call(reporter.close)
            except BaseException as error:
                self._account.count_raised("close", error, 0)

    def _open(self) -> Reporter | None:
        """Create and open the reporter; if that fails, set ``error`` to the reason."""
        reporter: Reporter | None = None
        try:
            if self._before_opening is not None:
                self._before_opening()
            with self._account:
                reporter = create_reporter(self.setup.kind, self.setup.factory, self.setup.config)
            if isinstance(reporter, SendingReporter):
                wake = self._runner.wake
                self.delivery = Delivery(reporter, self.setup, self._account, self._threads, wake)
            self._account.call(reporter.open)
            if self.delivery is not None:
                self.delivery.start()
            self.destination = reporter.destination
            logger.info("%s reports to %s", self.title, self.destination or "its destination")
        except BaseException as error:
            self.error = error
            shown = None if isinstance(error, ConfigError) else error
            logger.error("%s is not used: %s", self.title, describe(error), exc_info=shown)
            self._inbox.refuse()
        finally:
            self._opened.set()
        return reporter

    def _serve(self, reporter: Reporter) -> Turns:
        """Hand over and flush what is queued, and report periodically, until shutdown."""
        reports = None
        succeed: Callable[[int], None] = self._account.stats.succeed
        if isinstance(reporter, Scheduled):
            reports = PeriodicReports(reporter, self.setup.settings.interval_ms, self._account)
            # It is given series, and sends their values.
            succeed = reports.note if self.setup.kind is METRICS else succeed
        flusher = Flusher(reporter, self._inbox, self._backoff, self._account, succeed)
        at_rest, busy_at = False, time.monotonic()
        while True:
            if reports is not None:
                reports.report_if_due()
            batch = self._inbox.take(_BATCH)
            if batch is None:
                quiet_in_s = busy_at + _QUIET_S - time.monotonic()
                if quiet_in_s <= 0 and not at_rest:
                    at_rest = yield from self._rest(reporter, flusher)
                    busy_at = time.monotonic()
                    continue
                yield min(FOREVER if at_rest else quiet_in_s, reports.due_in_s if reports else FOREVER)
            elif batch and (yield from self._deliver(reporter, flusher, batch)):
                at_rest, busy_at = False, time.monotonic()
                if self._threads.shared:
                    self._let_rest(reporter)
                    yield 0.0
            else:
                break
        if reports is not None:
            reports.report_last()  # including the values of a run shorter than an interval

    def _rest(self, reporter: Reporter, flusher: Flusher) -> Generator[float, None, bool]:
        """Do what was put off, because nothing came for a while; return whether that was all."""
        if self._spool is not None:
            self._spool.keep()
            return not self._spool.restless
        if not (yield from flusher.flush(0)):
            return False
        if self._threads.shared:
            self._let_rest(reporter)
        return True

    def _let_rest(self, reporter: Reporter) -> None:
        """Let it give back files, which are fewer than the applications; a sender does that by itself."""
        if self._spool is None:
            try:
                self._account.call(reporter.rest)
            except BaseException as error:
                self._account.count_raised("rest", error, 0)

    def _deliver(
        self, reporter: Reporter, flusher: Flusher, batch: list[Item]
    ) -> Generator[float, None, bool]:
        """Hand over a batch and flush it; return whether there is time for more."""
        taken, call = 0, self._account.call
        for item in batch:
            try:
                call(getattr(reporter, item.method), *item.arguments)
                taken += 1
            except BaseException as error:  # sys.exit, too, costs it this item alone
                self._account.count_raised(item.method, error)
        if self._spool is not None:
            self._spool.commit()
            taken = 0  # the sender counts what it delivers
        if not (yield from flusher.flush(taken)):
            return False
        self._inbox.finish_batch()
        return True

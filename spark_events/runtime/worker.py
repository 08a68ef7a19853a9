"""The thread of one reporter, on which everything the reporter does happens."""

from __future__ import annotations

import threading
import time

from spark_events.api import ConfigError, Reporter, Scheduled, SendingReporter
from spark_events.runtime.backoff import GIVE_UP_BEFORE_S, Backoff
from spark_events.runtime.bounded_queue import Item
from spark_events.runtime.delivery import Delivery
from spark_events.runtime.flusher import Flusher
from spark_events.runtime.inbox import Inbox
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.periodic_reports import PeriodicReports
from spark_events.runtime.setup import ReporterSetup
from spark_events.runtime.spool import Spool
from spark_events.runtime.stats import ReporterAccount, ReporterStats, describe

_BATCH = 512
_LOOK_S = 0.005
_QUIET_S = 1.0
"""After so long without an item, what was put off is done."""


class Worker:
    """Creates, opens, feeds and closes one reporter, on a daemon thread.

    It is a daemon thread so that a reporter that blocks forever cannot keep the user's process alive.

    The rules of its threads:

    * Any thread may offer items, and read the figures, which may be slightly out of date.
    * The thread that owns the worker starts, closes and joins it.
    * Only the reporter's own thread calls the reporter. What it shares with the others is in ``Inbox``,
      under its lock. A sending reporter has a second thread, ``Sender``; the two share ``Spool``.

    Attributes:
        title: the reporter's name in messages.
        error: why the reporter could not be opened; None if nothing has gone wrong.
        destination: where the reported data can be found, once the reporter is open.
        delivery: the parts around a sending reporter; None for others, and before ``open``.
    """

    def __init__(self, setup: ReporterSetup, log: OnceLog) -> None:
        self.setup = setup
        self.title = f"{setup.kind.title} {setup.name!r}"
        self.stats = ReporterStats()
        self.error: BaseException | None = None
        self.destination = ""
        self.delivery: Delivery | None = None
        self._account = ReporterAccount(self.title, log, self.stats)
        self._inbox = Inbox(setup.queue, self.stats)
        self._backoff = Backoff()
        self._opened = threading.Event()
        self._deadline = float("inf")
        name = f"spark-events-{setup.kind.name}-{setup.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

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
    def keeps_history(self) -> bool:
        """Whether what it reports is read later."""
        return bool(getattr(self.setup.factory, "keeps_history", False))

    # -- offering on any thread; the rest on the one that owns the worker ----------------------------

    def offer(self, item: Item) -> None:
        """Queue a call of the reporter's method. Never blocks; a full queue drops as it is configured to."""
        self._inbox.put(item)

    def start(self) -> None:
        """Start the thread; the reporter is created and opened there."""
        self._thread.start()

    def wait_opened(self, timeout_s: float) -> bool:
        """Wait until ``open`` has returned or failed, and return whether it did so in time."""
        return self._opened.wait(timeout_s)

    def wait_journaled(self, timeout_s: float) -> None:
        """Wait until nothing is in memory alone, the reporter is not used, or the time is over."""
        until = time.monotonic() + timeout_s
        while self.error is None and self.at_risk and time.monotonic() < until:
            time.sleep(_LOOK_S)

    def request_close(self, deadline: float) -> None:
        """Tell the thread to hand over what is queued and close by ``deadline`` (``time.monotonic``)."""
        self._deadline = deadline
        self._inbox.close()
        self._backoff.close(deadline)

    def join(self) -> None:
        """Wait until the thread has ended or the deadline has passed, and log what was left behind."""
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        if self._thread.is_alive():
            left = self._inbox.abandon()
            logger.error(
                "%s did not close in time and is left behind; not delivered: %d item(s)", self.title, left
            )

    # -- on the reporter's thread --------------------------------------------------------------------

    def _run(self) -> None:
        reporter = self._open()
        if reporter is not None and self.error is None:
            self._serve(reporter)
        may_close = True
        if self.delivery is not None:
            may_close = self.delivery.finish(self._deadline - GIVE_UP_BEFORE_S)
        if reporter is not None and may_close:
            try:
                reporter.close()
            except Exception as error:
                self._account.count_raised("close", error)

    def _open(self) -> Reporter | None:
        """Create and open the reporter; if that fails, set ``error`` to the reason."""
        reporter: Reporter | None = None
        try:
            reporter = self.setup.factory.create(self.setup.config)
            wanted = self.setup.kind.reporter
            if not isinstance(reporter, wanted):
                raise ConfigError(
                    f"its factory created {type(reporter).__name__}; expected {wanted.__name__}"
                )
            if isinstance(reporter, SendingReporter):
                self.delivery = Delivery(reporter, self.setup, self._account)
            reporter.open()
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

    def _serve(self, reporter: Reporter) -> None:
        """Hand over and flush what is queued, and report periodically, until shutdown."""
        flusher = Flusher(reporter, self._inbox, self._backoff, self._account)
        reports = None
        if isinstance(reporter, Scheduled):
            reports = PeriodicReports(reporter, self.setup.settings.interval_ms, self._account)
        at_rest = False
        while True:
            if reports is not None:
                reports.report_if_due()
            batch = self._inbox.take(_BATCH, _longest_wait(at_rest, reports))
            if batch is None and self._spool is not None:
                self._spool.keep()
            elif batch is None:
                at_rest = at_rest or flusher.flush(0)
            elif batch and self._deliver(reporter, flusher, batch):
                at_rest = False
            else:
                break
        if reports is not None:
            reports.report()  # the last values, including those of a run shorter than an interval

    def _deliver(self, reporter: Reporter, flusher: Flusher, batch: list[Item]) -> bool:
        """Hand over a batch and flush it; return whether there is time for more."""
        taken = 0
        for item in batch:
            try:
                getattr(reporter, item.method)(*item.arguments)
                taken += 1
            except Exception as error:
                self._account.count_raised(item.method, error)
        if self._spool is not None:
            self._spool.commit()
            taken = 0  # the sender counts what it delivers
        if not flusher.flush(taken):
            return False
        self._inbox.finish_batch()
        return True


def _longest_wait(at_rest: bool, reports: PeriodicReports | None) -> float | None:
    """Return after how many seconds there is something to do even if no item comes; None for never."""
    waits = [] if at_rest else [_QUIET_S]
    if reports is not None:
        waits.append(reports.due_in_s)
    return min(waits, default=None)

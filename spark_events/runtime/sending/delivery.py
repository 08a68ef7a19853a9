"""The parts around a sending reporter: its journals, its spool, its sender, its refused records."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Generator

from spark_events.api import ConfigError, SendingReporter
from spark_events.api.reporter import JOURNAL_DIR
from spark_events.api.toolkit.formatting import counted
from spark_events.runtime.journal import Claim, DeliveryJournal, claim
from spark_events.runtime.journal.folder import Lock
from spark_events.runtime.log_once import logger
from spark_events.runtime.sending.dead_letters import DeadLetters
from spark_events.runtime.sending.sender import Sender
from spark_events.runtime.sending.spool import MemoryRecords, Spool
from spark_events.runtime.setup import ReporterSetup
from spark_events.runtime.workers.stats import ReporterAccount
from spark_events.runtime.workers.turns import Threads

_DEAD_LETTERS = "refused.jsonl"
_DEAD_LETTERS_SHARE = 8


def _check(reporter: SendingReporter) -> None:
    """Raise a ConfigError if a reporter does not say what it has to say of its requests."""
    name = type(reporter).__qualname__
    for bound in ("max_request_records", "max_request_bytes"):
        value: object = getattr(reporter, bound)
        if not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name}.{bound}: {value!r} is no whole number from 1 on")
    if not isinstance(reporter.context, bytes):
        raise ConfigError(f"{name}.context: {reporter.context!r} is not of bytes")


class Delivery:
    """Everything between a sending reporter's ``notify`` and its ``send``.

    If a journal cannot be opened, only durability is lost: records wait in memory until it can.

    Args:
        threads: run the turns of sending.
        on_end: called when sending has ended.
    """

    def __init__(
        self,
        reporter: SendingReporter,
        setup: ReporterSetup,
        account: ReporterAccount,
        threads: Threads,
        on_end: Callable[[], None],
    ) -> None:
        _check(reporter)
        self._title = account.title
        self._stats = account.stats
        self._setup = setup
        self._context, self._readable = reporter.context, reporter.readable
        self._locks: list[Lock] = []
        self._letters: DeadLetters | None = None
        self._cannot_be_used = ""
        self._lost_opening: Counter[str] | None = None
        memory = MemoryRecords(setup.queue.max_bytes, setup.queue.drop_oldest, account.stats.drop)
        self.spool = Spool(
            self._open_journals if setup.journal_dir else None, memory, reporter.context, self._warn
        )
        reporter.outbox = self.spool
        self._stats.save = self.spool.save
        self._sender = Sender(reporter, self.spool, lambda: self._letters, account, threads, on_end)

    def start(self) -> None:
        """Start sending."""
        self._sender.start()

    def finish(self, deadline: float) -> Generator[float, None, bool]:
        """Send what is left until ``deadline``, a time of ``time.monotonic``, and log what stays unsent.

        Returns:
            Whether sending has ended, so that the reporter may be closed.
        """
        ended = yield from self._sender.finish(deadline)
        self.spool.close()
        for lock in self._locks:
            lock.release()
        left, lost = self.spool.pending, self.spool.in_memory
        if lost:
            self._stats.drop("close", lost)
            self._stats.tell_lost(self._title, lost)
        if left > lost:
            logger.warning(
                "%s leaves %s in %s; the next start of this application sends them",
                self._title,
                counted(left - lost, "item"),
                self._setup.journal_dir,
            )
        return ended

    def _open_journals(self) -> list[DeliveryJournal]:
        """Return those that ended drivers left behind, and then this driver's own; none if they cannot be."""
        journals: list[DeliveryJournal] = []
        self._lost_opening = Counter()
        try:
            claimed = self._claim()
            for lock in (*claimed.orphans, claimed.own):
                journal = DeliveryJournal(
                    lock.folder, self._setup.journal, self._context, self._drop, lock=lock
                )
                journals.append(journal)
                journal.open()
        except OSError as error:
            for journal in journals:
                journal.abandon()
            for lock in self._locks:
                lock.release()
            self._tell_that_none_opens(error)
            return []
        lost, self._lost_opening = self._lost_opening, None
        for cause, count in lost.items():
            self._stats.drop(cause, count)
        self._tell_of_opened(journals)
        self._continue_counters(journals)
        share = self._setup.journal.max_bytes // _DEAD_LETTERS_SHARE
        path = journals[-1].folder / _DEAD_LETTERS
        self._letters = DeadLetters(path, share, self._readable, self._stats.drop)
        return journals

    def _continue_counters(self, journals: list[DeliveryJournal]) -> None:
        """Take over what earlier drivers counted: from here on, this driver's own cursor has all of it."""
        self._stats.restore(*(journal.restored for journal in journals))
        *left_behind, own = journals
        try:
            own.save_totals(self._stats.totals)
            for journal in left_behind:
                journal.save_totals(lambda undecided: {})
        except OSError as error:
            self._warn(f"cannot write the cursor, so counters may be continued twice: {error}")

    def _drop(self, cause: str, count: int) -> None:
        """Count what a journal has lost; while it is opened, only if that succeeds, for it is tried again."""
        if self._lost_opening is not None:
            self._lost_opening[cause] += count
        else:
            self._stats.drop(cause, count)

    def _tell_that_none_opens(self, error: OSError) -> None:
        if str(error) == self._cannot_be_used:
            return  # it is tried again and again
        self._cannot_be_used = str(error)
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        logger.error(
            "%s: '%s' cannot be used (%s); %s. Until then records wait in memory, and are lost if this "
            "process dies",
            self._setup.config.key(JOURNAL_DIR.name),
            self._setup.journal_dir,
            error,
            "make room there" if is_full else "give a folder that the user who runs Spark can write to",
        )

    def _tell_of_opened(self, journals: list[DeliveryJournal]) -> None:
        if self._cannot_be_used:
            self._warn(f"the journal in {self._setup.journal_dir} can be used now")
        for journal in journals:
            if journal.torn:
                torn = counted(journal.torn, "byte")
                self._warn(f"cut off {torn} of an incomplete record at the end of {journal.folder}")
        if left := sum(journal.pending for journal in journals):
            logger.info(
                "%s first sends %s that an earlier run left behind", self._title, counted(left, "item")
            )

    def _claim(self) -> Claim:
        setup = self._setup
        assert setup.journal_dir is not None
        claimed = claim(setup.journal_dir, f"{setup.kind.name}-{setup.name}", setup.config.application.name)
        self._locks = [claimed.own, *claimed.orphans]
        if claimed.busy:
            logger.warning(
                "%s found %s of this application in use in %s, by other drivers or by an application of this "
                "process that is closing; its own is in %s",
                self._title,
                counted(claimed.busy, "other journal"),
                setup.journal_dir,
                claimed.own.folder,
            )
        return claimed

    def _warn(self, sentence: str) -> None:
        logger.warning("%s: %s", self._title, sentence)

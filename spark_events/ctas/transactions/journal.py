"""The journal, in which each state of a transaction is a file that only one process can create.

``<txid>.<number>.json`` is one entry, written atomically. If two processes want to write the same number, one
wins. So whoever takes the next step owns the transaction, and a driver that was assumed dead cannot go on.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from enum import Enum, auto
from typing import Any

import orjson

from spark_events.api.event import now_ms
from spark_events.ctas.errors import CommitConflictError, FencedError, JournalError
from spark_events.ctas.settings import CtasSettings
from spark_events.ctas.transactions.entries import ENTRY, Damage, EntryFiles
from spark_events.ctas.transactions.transaction import State, Transaction
from spark_events.spark.owner import Owner

_LEASE, _COLLECT, _HELD, _LOCK = ".lease", ".collect", ".held", "lock."
_PASSING = (".clock-", ".new-")
"""What files are called that are there for a moment only."""
_LEASES_UNTIL_LEFT = 2
_LOCK_POLL_S = 0.1
End = Callable[[Transaction], object]
"""Ends a transaction whose owner is gone."""
_in_hand: set[str] = set()
"""The transactions that this process is at work on; it may have several sessions, and a journal for each."""


class _Outcome(Enum):
    """What came of trying to take the lock of a table: it is ours, or another commits, or removes remains."""

    TAKEN = auto()
    COMMITTING = auto()
    COLLECTING = auto()


class TransactionJournal:
    """The transactions of one warehouse.

    Args:
        storage: ``Storage.java``.
        leases: ``Leases.java``.
        settings: where it is, and how long things last.
        owner: this process.
    """

    def __init__(self, storage: Any, leases: Any, settings: CtasSettings, owner: Owner) -> None:
        self._storage = storage
        self._leases = leases
        self._settings = settings
        self._owner = owner
        self.folder = settings.journal_dir.rstrip("/")
        self._entries = EntryFiles(storage, self.folder)

    def begin(self, transaction: Transaction) -> None:
        """Write the first entry, and hold the transaction's lease from now on.

        Raises:
            JournalError: the folder cannot be written to.
        """
        from py4j.protocol import Py4JJavaError

        _in_hand.add(transaction.txid)
        lease = self._path(transaction.txid + _LEASE)
        try:
            self._leases.hold(lease, str(transaction.owner))
            self._append(transaction)
        except Py4JJavaError as error:
            self.let_go(transaction)
            with suppress(Py4JJavaError):  # it is renewed no more, even if its file cannot be removed now
                self._leases.release(lease)
            raise JournalError(
                f"cannot write to the journal at {self.folder} ({error.java_exception.toString()}): "
                "set spark.events.ctas.journal.dir to a folder that Spark can write to"
            ) from error

    def let_go(self, transaction: Transaction) -> None:
        """Stop working on a transaction in this process, whether or not it is over."""
        _in_hand.discard(transaction.txid)

    def adopt(self, transaction: Transaction, catalog_id: str) -> Transaction:
        """Become the owner of a transaction whose own is gone.

        Raises:
            FencedError: somebody else was faster.
        """
        adopted = self.advance(transaction, transaction.state, owner=self._owner, catalog_id=catalog_id)
        _in_hand.add(transaction.txid)
        self._leases.hold(self._path(transaction.txid + _LEASE), str(self._owner))
        return adopted

    def advance(self, transaction: Transaction, state: State, **changes: Any) -> Transaction:
        """Take the next step; whoever took it first owns the transaction.

        Raises:
            FencedError: somebody else has.
        """
        following = transaction.advanced(state, **changes)
        if following.collect_after_ms:
            self._storage.put(self._path(transaction.txid + _COLLECT), "")
        if not self._append(following):
            winner = self.read(transaction.txid)
            self._stop_renewing(transaction, winner.state)
            raise FencedError(
                f"transaction {transaction.txid} of {transaction.path} was taken on by another process, "
                f"session or thread meanwhile, as it is when its driver, {winner.owner}, is gone, or silent "
                f"for longer than spark.events.ctas.lease.duration ({self._settings.lease_ms} ms): it is "
                f"{winner.state.value}"
            )
        # Whoever forgets a transaction removes its last entry last: what follows it may be free to write.
        if not self._storage.exists(self._entry(transaction)):
            for name in (self._entry(following), self._path(transaction.txid + _COLLECT)):
                self._storage.delete(name)
            self._stop_renewing(transaction, State.ABORTED)
            raise FencedError(
                f"transaction {transaction.txid} of {transaction.path} was ended and forgotten by another "
                f"process, whose clock is ahead, or because its driver was silent for longer than "
                f"spark.events.ctas.transactions.retention ({self._settings.retention_ms} ms)"
            )
        if state.terminal:
            self._leases.release(self._path(transaction.txid + _LEASE))
        if transaction.collect_after_ms and not following.collect_after_ms:
            self._storage.delete(self._path(transaction.txid + _COLLECT))
        return following

    def read(self, txid: str) -> Transaction:
        """Return a transaction as it is now.

        Raises:
            JournalError: there is none of this id, or all its entries are damaged.
        """
        transaction = self._latest(txid, self._names())
        if transaction is None:
            for damage in self.damage():
                if damage.txid == txid:
                    raise JournalError(str(damage))
            raise JournalError(f"the journal at {self.folder} has no transaction {txid!r}")
        return transaction

    def damage(self) -> list[Damage]:
        """Return the damaged entries among those read so far, by the names of their files."""
        return sorted(self._entries.damage.values(), key=lambda damage: damage.file)

    def all(self) -> list[Transaction]:
        """Return all transactions, the oldest first, but those of which all entries are damaged."""
        names = self._names()
        return self._latest_of({_txid_of(name) for name in names if _is_entry(name)}, names)

    def unfinished(self) -> list[Transaction]:
        """Return the transactions that are not over, or have left something to remove."""
        names = self._names()
        return self._latest_of(_unfinished_txids(names), names)

    def forget_old(self) -> None:
        """Remove what ended longer ago than the retention time, and files of processes that are gone."""
        names = self._names()
        kept = _unfinished_txids(names)
        oldest = datetime.fromtimestamp((now_ms() - self._settings.retention_ms) / 1000, timezone.utc)
        oldest_txid = f"{oldest:%Y%m%dT%H%M%S}"
        for name in sorted(names):
            if _is_entry(name) and name < oldest_txid and _txid_of(name) not in kept:
                self._storage.delete(self._path(name))
            elif name.endswith(_HELD):
                self._is_renewed(name)
        self._remove_left_files(names)

    def _remove_left_files(self, names: Iterable[str]) -> None:
        """Remove what a process leaves that is killed in a step: no transaction tells of it."""
        begun = {_txid_of(name) for name in names if _is_entry(name)}
        left = [name for name in names if name.startswith(_PASSING) or _is_lease_of_none(name, begun)]
        if not left:
            return
        # Of one that lives, none is this old: it renews its leases more often.
        oldest = int(self._storage.now(self.folder)) - _LEASES_UNTIL_LEFT * self._settings.lease_ms
        for name in left:
            if 0 <= int(self._storage.modified(self._path(name))) < oldest:
                self._storage.delete(self._path(name))

    def is_abandoned(self, transaction: Transaction) -> bool:
        """Return whether the owner is gone: its process has ended, or its lease has expired."""
        if transaction.owner == self._owner:
            return transaction.txid not in _in_hand
        if transaction.owner.is_dead:
            return True
        renewed = int(self._storage.modified(self._path(transaction.txid + _LEASE)))
        return renewed < 0 or int(self._storage.now(self.folder)) - renewed > self._settings.lease_ms

    # -- one commit to a table at a time -----------------------------------------------------------------

    def lock(self, transaction: Transaction, end: End) -> None:
        """Keep other transactions from committing to the same table until this one is over.

        Args:
            transaction: the one that commits.
            end: ends another transaction whose owner is gone.

        Raises:
            CommitConflictError: another one holds the table for too long.
        """
        self._lock(transaction, end, held="")

    @contextmanager
    def collecting(self, transaction: Transaction, end: End) -> Iterator[None]:
        """Keep others from committing to the same table while the remains of a committed one are removed.

        They wait for as long as that takes, unless this process is frozen for longer than its lease.

        Raises:
            CommitConflictError: another one holds the table for too long.
        """
        # Before the lock, which is its only for as long as this is renewed.
        held = f"{transaction.txid}.{uuid.uuid4().hex}{_HELD}"
        self._leases.hold(self._path(held), str(self._owner))
        try:
            self._lock(transaction, end, held)
            yield
        finally:
            self._leases.release(self._path(held))

    def _lock(self, transaction: Transaction, end: End, held: str) -> None:
        """Take the lock; it is a transaction's until that is over, or a file's until that is not renewed."""
        timeout_s = self._settings.lock_timeout_ms / 1000
        prefix = _LOCK + hashlib.sha256(str(transaction.path).lower().encode()).hexdigest()[:16] + "."
        deadline = time.monotonic() + timeout_s
        while (outcome := self._try_lock(prefix, transaction, end, held)) is not _Outcome.TAKEN:
            if outcome is _Outcome.COLLECTING:
                deadline = time.monotonic() + timeout_s
            if time.monotonic() > deadline:
                advice = (
                    "the next statement, or spark-events ctas recover, removes what is left of the table "
                    "that was replaced"
                    if held
                    else "nothing was changed, run the statement again"
                )
                raise CommitConflictError(
                    f"another transaction has been committing to {transaction.path} for longer than "
                    f"spark.events.ctas.lock.timeout ({self._settings.lock_timeout_ms} ms); {advice}"
                )
            time.sleep(_LOCK_POLL_S)

    def _try_lock(self, prefix: str, transaction: Transaction, end: End, held: str) -> _Outcome:
        """Try once to take the lock."""
        numbers = sorted(_numbers(prefix, self._names()))
        last = self._path(f"{prefix}{numbers[-1]:08d}{ENTRY}") if numbers else ""
        if last and self._collects(last):
            return _Outcome.COLLECTING
        holder = self._holder(last) if last else None
        if holder is not None and holder.txid == transaction.txid and not held:
            return _Outcome.TAKEN
        if holder is not None and not holder.state.terminal:
            if not self.is_abandoned(holder):
                return _Outcome.COMMITTING
            with suppress(FencedError):  # it has come further since it was read
                end(holder)  # a slow catalog takes longer for it than anybody waits for a lock
            ended = self._latest(holder.txid, self._names())
            is_over = ended is None or ended.state.terminal
            return self._try_lock(prefix, transaction, end, held) if is_over else _Outcome.COMMITTING
        number = numbers[-1] + 1 if numbers else 0
        own = self._path(f"{prefix}{number:08d}{ENTRY}")
        values = {"txid": transaction.txid, "table": str(transaction.path), "held": held}
        if not self._storage.putIfAbsent(own, orjson.dumps(values).decode()):
            return _Outcome.COMMITTING
        # Since the names were listed, others of this number may have come and gone, removed by a later one.
        if max(_numbers(prefix, self._names()), default=number) > number:
            self._storage.delete(own)
            return _Outcome.COMMITTING
        for older in numbers:
            self._storage.delete(self._path(f"{prefix}{older:08d}{ENTRY}"))
        return _Outcome.TAKEN

    def _holder(self, lock: str) -> Transaction | None:
        txid = str(self._entries.lock(lock).get("txid") or "")
        return self._latest(txid, self._names()) if txid else None

    def _collects(self, lock: str) -> bool:
        """Return whether a lock is held for a collection, by a process that lives."""
        held = str(self._entries.lock(lock).get("held") or "")
        return bool(held) and self._is_renewed(held)

    def _is_renewed(self, held: str) -> bool:
        """Return whether a collector lives; remove what one that is gone has left."""
        renewed = int(self._storage.modified(self._path(held)))
        if renewed < 0:
            return False
        if int(self._storage.now(self.folder)) - renewed <= self._settings.lease_ms:
            return True
        self._storage.delete(self._path(held))
        return False

    # -- files -------------------------------------------------------------------------------------------

    def _stop_renewing(self, transaction: Transaction, state: State) -> None:
        """Renew the lease of a transaction no more that another process has ended, or is ending."""
        lease = self._path(transaction.txid + _LEASE)
        if state.terminal:
            self._leases.release(lease)  # it may have been renewed since the other process removed it
        else:
            self._leases.leave(lease)  # if that process dies, the lease tells of what is left

    def _append(self, transaction: Transaction) -> bool:
        return bool(self._storage.putIfAbsent(self._entry(transaction), transaction.to_json()))

    def _entry(self, transaction: Transaction) -> str:
        return self._path(f"{transaction.txid}.{transaction.number:04d}{ENTRY}")

    def _latest_of(self, txids: Iterable[str], names: Iterable[str]) -> list[Transaction]:
        by_txid: dict[str, list[str]] = defaultdict(list)
        for name in names:
            by_txid[_txid_of(name)].append(name)
        latest = (self._latest(txid, by_txid[txid]) for txid in txids)
        there = [transaction for transaction in latest if transaction is not None]
        return sorted(there, key=lambda transaction: (transaction.begun_ms, transaction.txid))

    def _latest(self, txid: str, names: Iterable[str]) -> Transaction | None:
        return self._entries.latest(txid, _numbers(f"{txid}.", names))

    def _names(self) -> list[str]:
        return list(self._storage.list(self.folder))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"


def _is_entry(name: str) -> bool:
    return name.endswith(ENTRY) and not name.startswith((_LOCK, "."))


def _is_lease_of_none(name: str, begun: set[str]) -> bool:
    return name.endswith(_LEASE) and _txid_of(name) not in begun


def _txid_of(name: str) -> str:
    return name.split(".")[0]


def _unfinished_txids(names: Iterable[str]) -> set[str]:
    return {_txid_of(name) for name in names if name.endswith((_LEASE, _COLLECT))}


def _numbers(prefix: str, names: Iterable[str]) -> list[int]:
    """Return the numbers of entries; a file that somebody else has put there, a copy say, has none."""
    entries = (name for name in names if name.startswith(prefix) and name.endswith(ENTRY))
    numbers = (name.removeprefix(prefix).removesuffix(ENTRY) for name in entries)
    return [int(number) for number in numbers if number.isascii() and number.isdecimal()]

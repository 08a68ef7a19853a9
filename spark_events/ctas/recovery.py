"""What recovery does with a transaction that was left, and why; ``transactions.py`` does it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from spark_events.ctas.transaction import State, Transaction


class RecoveryRequest(enum.Enum):
    """How much somebody wants a transaction to be ended."""

    SWEEP = "sweep"
    """Whatever was left is to be ended; nobody has named a transaction."""
    NAMED = "named"
    """This transaction is to be ended, if its owner is gone."""
    FORCED = "forced"
    """It is to be ended, even if its owner is alive."""


class OwnerStatus(enum.Enum):
    """Whether somebody is at work on a transaction."""

    SELF = "self"
    """This process is."""
    ALIVE = "alive"
    """Another process is."""
    GONE = "gone"
    """Nobody is: its process has ended, or its lease is over."""


class CatalogStatus(enum.Enum):
    """Whether this session can change the catalog of a transaction."""

    IN_REACH = "in reach"
    ELSEWHERE = "elsewhere"
    """It is not one of this session's; another configuration may have it."""
    LOST = "lost"
    """It was in the memory of a driver, and so was the table."""


class RecoveryAction(enum.Enum):
    """What is done with a transaction."""

    IGNORE = "ignore"
    """Nothing, and there is nothing to say."""
    LEAVE = "leave"
    """Nothing, for a reason that people should know."""
    COLLECT = "collect"
    """Remove what a committed transaction has left of the table before."""
    ROLL_BACK = "roll back"
    RESOLVE = "resolve"
    """Commit it or roll it back, as far as it was."""


@dataclass(frozen=True, slots=True)
class RecoveryDecision:
    """What is done with a transaction, and why; the reason is empty where the action says it all."""

    action: RecoveryAction
    reason: str = ""

    @property
    def changes_catalog(self) -> bool:
        """Whether it can be done only where the transaction's catalog is in reach."""
        return self.action in (RecoveryAction.COLLECT, RecoveryAction.RESOLVE)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a transaction that was left.

    Attributes:
        transaction: as it is now.
        done: one phrase: what was done, or why nothing.
        failed: whether it could not be ended, and is left as it was.
    """

    transaction: Transaction
    done: str
    failed: bool = False


_IGNORE = RecoveryDecision(RecoveryAction.IGNORE)
_RESUMABLE = "its statement, run again, goes on from its checkpoint; given its id, it is rolled back"


def decide(
    transaction: Transaction, owner: OwnerStatus, request: RecoveryRequest, now_ms: int
) -> RecoveryDecision:
    """Return what is to be done, as far as the journal can tell: ``consider_catalog`` decides the rest."""
    if transaction.state is State.ABORTED:
        return _IGNORE
    if transaction.state is State.COMMITTED:
        is_due = 0 < transaction.collect_after_ms <= now_ms
        return RecoveryDecision(RecoveryAction.COLLECT) if is_due else _IGNORE
    if owner is OwnerStatus.SELF and request is not RecoveryRequest.FORCED:
        return _IGNORE
    if owner is OwnerStatus.ALIVE and request is not RecoveryRequest.FORCED:
        return RecoveryDecision(RecoveryAction.LEAVE, "its owner is alive")
    if transaction.is_resumable and request is RecoveryRequest.SWEEP:
        return RecoveryDecision(RecoveryAction.LEAVE, _RESUMABLE)
    return RecoveryDecision(RecoveryAction.RESOLVE)


def consider_catalog(
    decision: RecoveryDecision, transaction: Transaction, catalog: CatalogStatus
) -> RecoveryDecision:
    """Return what is done of a decision that changes the catalog.

    It is asked after ``decide``, because a catalog may be a service that answers slowly: of transactions
    that are left alone nobody asks it.
    """
    if decision.action is RecoveryAction.COLLECT:
        if catalog is CatalogStatus.ELSEWHERE:
            reason = "the files of the table before stay: its catalog is not in reach"
            return RecoveryDecision(RecoveryAction.LEAVE, reason)
        return decision
    if catalog is CatalogStatus.LOST:
        reason = "its catalog was in the memory of its driver, which is gone"
        return RecoveryDecision(RecoveryAction.ROLL_BACK, reason)
    if catalog is CatalogStatus.ELSEWHERE:
        return RecoveryDecision(
            RecoveryAction.LEAVE,
            f"its catalog {transaction.path.catalog!r} ({transaction.catalog_id or 'unknown'}) is not "
            "one of this session's: recover it with the configuration of the application that began it",
        )
    return decision


def note_on(transaction: Transaction, owner: OwnerStatus) -> str:
    """Return what to tell people of a transaction besides its state; empty where there is nothing."""
    if transaction.state.terminal:
        return (
            "the files before wait for their readers" if transaction.collect_after_ms else transaction.reason
        )
    if owner is OwnerStatus.GONE:
        return "its owner is gone: recover ends it"
    return "its owner is alive"

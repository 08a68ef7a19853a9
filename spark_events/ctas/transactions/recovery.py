"""Decides what recovery does with an abandoned transaction; ``session_transactions.py`` carries it out."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from spark_events.ctas.transactions.transaction import State, Transaction


class RecoveryRequest(enum.Enum):
    """How strongly somebody wants a transaction to be ended."""

    SWEEP = "sweep"
    """End whatever was abandoned; no particular transaction was named."""
    NAMED = "named"
    """End this transaction if its owner is gone."""
    FORCED = "forced"
    """End it even if its owner is alive."""


class OwnerStatus(enum.Enum):
    """Whether anybody is working on a transaction."""

    SELF = "self"
    """This process is."""
    ALIVE = "alive"
    """Another process is."""
    GONE = "gone"
    """Nobody is: its process has ended, or its lease has expired."""


class CatalogStatus(enum.Enum):
    """Whether this session can change the catalog of a transaction."""

    IN_REACH = "in reach"
    ELSEWHERE = "elsewhere"
    """It is not one of this session's; another configuration may have it."""
    LOST = "lost"
    """The catalog was in the memory of a driver, and so was the table."""


class RecoveryAction(enum.Enum):
    """What is done with a transaction."""

    IGNORE = "ignore"
    """Do nothing, and report nothing."""
    LEAVE = "leave"
    """Nothing, for a reason that people should know."""
    COLLECT = "collect"
    """Remove what a committed transaction left of the previous table."""
    ROLL_BACK = "roll back"
    RESOLVE = "resolve"
    """Commit it or roll it back, depending on how far it was."""


@dataclass(frozen=True, slots=True)
class RecoveryDecision:
    """What is done with a transaction, and why; the reason is empty if the action is clear enough."""

    action: RecoveryAction
    reason: str = ""

    @property
    def changes_catalog(self) -> bool:
        """Whether it needs access to the transaction's catalog."""
        return self.action in (RecoveryAction.COLLECT, RecoveryAction.RESOLVE)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of an abandoned transaction.

    Attributes:
        transaction: its current state.
        done: one phrase: what was done, or why nothing was.
        failed: whether it could not be ended, and stays as it was.
    """

    transaction: Transaction
    done: str
    failed: bool = False


_IGNORE = RecoveryDecision(RecoveryAction.IGNORE)
_RESUMABLE = "run its statement again to continue from its checkpoint, or pass its id to roll it back"


def decide(
    transaction: Transaction, owner: OwnerStatus, request: RecoveryRequest, now_ms: int
) -> RecoveryDecision:
    """Return what to do, as far as the journal shows; ``consider_catalog`` decides the rest."""
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
    """Return what becomes of a decision that changes the catalog.

    It is called after ``decide``, because a catalog may be a slow service: for transactions that are left
    alone, nobody needs to ask it.
    """
    if decision.action is RecoveryAction.COLLECT:
        if catalog is CatalogStatus.ELSEWHERE:
            reason = "the files of the previous table stay: its catalog is out of reach"
            return RecoveryDecision(RecoveryAction.LEAVE, reason)
        return decision
    if catalog is CatalogStatus.LOST:
        reason = "its catalog was in the memory of its driver, which is gone"
        return RecoveryDecision(RecoveryAction.ROLL_BACK, reason)
    if catalog is CatalogStatus.ELSEWHERE:
        return RecoveryDecision(
            RecoveryAction.LEAVE,
            f"its catalog {transaction.path.catalog!r} ({transaction.catalog_id or 'unknown'}) is not "
            "one of this session's: recover it with the configuration of the application that started it",
        )
    return decision


def note_on(transaction: Transaction, owner: OwnerStatus) -> str:
    """Return a remark for people on a transaction, in addition to its state; empty if there is none."""
    if transaction.state.terminal:
        return (
            "the files of the previous table stay for their readers"
            if transaction.collect_after_ms
            else transaction.reason
        )
    if owner is OwnerStatus.GONE:
        return "its owner is gone: recover ends it"
    return "its owner is alive"

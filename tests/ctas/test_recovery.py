"""What is decided for each transaction that was left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.ctas.transactions.journaled_table import first_line
from spark_events.ctas.transactions.recovery import (
    CatalogStatus,
    OwnerStatus,
    RecoveryAction,
    RecoveryDecision,
    RecoveryRequest,
    consider_catalog,
    decide,
    note_on,
)
from spark_events.ctas.transactions.transaction import Level, Purpose, State, TablePath, Transaction
from spark_events.spark.owner import Owner

NOW_MS = 1_000
LEFT = Transaction(
    txid="20261123T000000-0a0b0c0d",
    state=State.INTENT,
    number=0,
    at_ms=1,
    begun_ms=1,
    owner=Owner("host", 7, "1", "space", "app-1"),
    publisher="files",
    catalog_id="hive",
    level=Level.POINTER,
    purpose=Purpose.CREATE,
    path=TablePath("spark_catalog", "default", "t"),
    table={},
)
STREAM = replace(LEFT, checkpoint="/warehouse/.ctas/checkpoint")
COMMITTED = replace(LEFT, state=State.COMMITTED)
SWEEP, NAMED, FORCED = RecoveryRequest.SWEEP, RecoveryRequest.NAMED, RecoveryRequest.FORCED
SELF, ALIVE, GONE = OwnerStatus.SELF, OwnerStatus.ALIVE, OwnerStatus.GONE
IGNORE, LEAVE = RecoveryAction.IGNORE, RecoveryAction.LEAVE
COLLECT, RESOLVE, ROLL_BACK = RecoveryAction.COLLECT, RecoveryAction.RESOLVE, RecoveryAction.ROLL_BACK


@pytest.mark.parametrize("request_", list(RecoveryRequest))
@pytest.mark.parametrize("owner", list(OwnerStatus))
@pytest.mark.parametrize(
    ("transaction", "action"),
    [
        (replace(LEFT, state=State.ABORTED), IGNORE),
        (COMMITTED, IGNORE),
        (replace(COMMITTED, collect_after_ms=NOW_MS + 1), IGNORE),
        (replace(COMMITTED, collect_after_ms=NOW_MS), COLLECT),
    ],
)
def test_a_transaction_that_is_over_leaves_at_most_files(
    transaction: Transaction, action: RecoveryAction, owner: OwnerStatus, request_: RecoveryRequest
) -> None:
    assert decide(transaction, owner, request_, NOW_MS) == RecoveryDecision(action)


@pytest.mark.parametrize("state", [state for state in State if not state.terminal])
@pytest.mark.parametrize(
    ("owner", "request_", "action", "reason"),
    [
        (SELF, SWEEP, IGNORE, ""),
        (SELF, NAMED, IGNORE, ""),
        (SELF, FORCED, RESOLVE, ""),
        (ALIVE, SWEEP, LEAVE, "its owner is alive"),
        (ALIVE, NAMED, LEAVE, "its owner is alive"),
        (ALIVE, FORCED, RESOLVE, ""),
        (GONE, SWEEP, RESOLVE, ""),
        (GONE, NAMED, RESOLVE, ""),
        (GONE, FORCED, RESOLVE, ""),
    ],
)
def test_a_transaction_that_is_not_over(
    state: State, owner: OwnerStatus, request_: RecoveryRequest, action: RecoveryAction, reason: str
) -> None:
    decision = decide(replace(LEFT, state=state), owner, request_, NOW_MS)
    assert decision == RecoveryDecision(action, reason)


@pytest.mark.parametrize(
    ("state", "owner", "request_", "action"),
    [
        (State.INTENT, GONE, SWEEP, LEAVE),
        (State.INTENT, GONE, NAMED, RESOLVE),
        (State.INTENT, ALIVE, NAMED, LEAVE),
        (State.INTENT, ALIVE, FORCED, RESOLVE),
        (State.PREPARED, GONE, SWEEP, RESOLVE),
        (State.ABORTING, GONE, SWEEP, RESOLVE),
    ],
)
def test_a_stream_that_can_go_on_is_rolled_back_by_name_only(
    state: State, owner: OwnerStatus, request_: RecoveryRequest, action: RecoveryAction
) -> None:
    decision = decide(replace(STREAM, state=state), owner, request_, NOW_MS)
    assert decision.action is action
    assert ("to continue from its checkpoint" in decision.reason) == (action is LEAVE and owner is GONE)


@pytest.mark.parametrize(
    ("action", "catalog", "expected", "reason"),
    [
        (RESOLVE, CatalogStatus.IN_REACH, RESOLVE, ""),
        (
            RESOLVE,
            CatalogStatus.LOST,
            ROLL_BACK,
            "its catalog was in the memory of its driver, which is gone",
        ),
        (RESOLVE, CatalogStatus.ELSEWHERE, LEAVE, "its catalog 'spark_catalog' (hive) is not one of"),
        (COLLECT, CatalogStatus.IN_REACH, COLLECT, ""),
        (COLLECT, CatalogStatus.LOST, COLLECT, ""),
        (COLLECT, CatalogStatus.ELSEWHERE, LEAVE, "the files of the previous table stay"),
    ],
)
def test_the_catalog_has_the_last_word(
    action: RecoveryAction, catalog: CatalogStatus, expected: RecoveryAction, reason: str
) -> None:
    decision = RecoveryDecision(action)
    assert decision.changes_catalog
    final = consider_catalog(decision, LEFT, catalog)
    assert final.action is expected
    assert final.reason.startswith(reason)
    assert bool(final.reason) == bool(reason)


@pytest.mark.parametrize("action", [IGNORE, LEAVE, ROLL_BACK])
def test_other_decisions_need_no_catalog(action: RecoveryAction) -> None:
    assert not RecoveryDecision(action).changes_catalog


@pytest.mark.parametrize(
    ("transaction", "owner", "note"),
    [
        (LEFT, GONE, "its owner is gone: recover ends it"),
        (LEFT, ALIVE, "its owner is alive"),
        (LEFT, SELF, "its owner is alive"),
        (COMMITTED, GONE, ""),
        (
            replace(COMMITTED, collect_after_ms=1),
            GONE,
            "the files of the previous table stay for their readers",
        ),
        (replace(LEFT, state=State.ABORTED, reason="cancelled"), GONE, "cancelled"),
    ],
)
def test_what_people_are_told(transaction: Transaction, owner: OwnerStatus, note: str) -> None:
    assert note_on(transaction, owner) == note


def test_when_it_entered_its_state() -> None:
    """What is done for a table that is committed, such as to remove the one before it, does not commit it anew."""
    committed = LEFT.advanced(State.COMMITTED, collect_after_ms=7)
    assert committed.at_ms > LEFT.at_ms
    collected = replace(committed, at_ms=5).advanced(State.COMMITTED, collect_after_ms=0)
    assert (collected.at_ms, collected.number) == (5, committed.number + 1)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            RuntimeError(
                "An error occurred while calling o129.put.\n: java.io.IOException: No space left\n\tat x"
            ),
            "java.io.IOException: No space left",
        ),
        (
            RuntimeError("An error occurred while calling o129.put."),
            "An error occurred while calling o129.put.",
        ),
        (RuntimeError("no\nyes"), "no"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_the_line_that_says_why(error: Exception, line: str) -> None:
    assert first_line(error) == line

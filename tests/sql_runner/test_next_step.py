"""What an application does next with a query: the tables of its two decisions."""

from __future__ import annotations

import pytest

from spark_events.api import JobStatus
from spark_events.sql_runner.host.next_step import HeldOrder, Step, next_step, state_after_failure
from spark_events.sql_runner.store.host_files import RUN, STOP, Order

START = Order("new", RUN, {})
HALT = Order("new", STOP, {})
SAVE = Order("new", STOP, {}, savepoint="s")
RUNS, OVER, REFUSED = HeldOrder("old", False), HeldOrder("old", True), HeldOrder("old", True, is_refused=True)


@pytest.mark.parametrize(
    ("order", "held", "expected"),
    [
        # Of a query that the application knows nothing of.
        (None, None, Step.NOTHING),
        (START, None, Step.BEGIN),
        (HALT, None, Step.BEGIN),
        (SAVE, None, Step.BEGIN),
        # The order is in hand already.
        (START, HeldOrder("new", False), Step.NOTHING),
        (START, HeldOrder("new", True), Step.NOTHING),
        (SAVE, HeldOrder("new", True), Step.NOTHING),
        (START, HeldOrder("new", True, is_refused=True), Step.NOTHING),
        # A new order while the query runs: it stops before it starts anew.
        (START, RUNS, Step.MAKE_WAY),
        (HALT, RUNS, Step.STOP),
        (SAVE, RUNS, Step.STOP),
        # A new order after it is over: a savepoint takes a thread, a stop alone does not.
        (START, OVER, Step.BEGIN),
        (SAVE, OVER, Step.BEGIN),
        (HALT, OVER, Step.STOP),
        # A new order after one that was not understood.
        (START, REFUSED, Step.BEGIN),
        (SAVE, REFUSED, Step.BEGIN),
        (HALT, REFUSED, Step.BEGIN),
        # The order was taken away.
        (None, RUNS, Step.MAKE_WAY),
        (None, OVER, Step.FORGET),
        (None, REFUSED, Step.FORGET),
    ],
)
def test_the_next_step(order: Order | None, held: HeldOrder | None, expected: Step) -> None:
    assert next_step(order, held) is expected


@pytest.mark.parametrize(
    ("stopping", "restarts", "attempts", "expected"),
    [
        (False, 0, 0, JobStatus.FAILED),
        (False, 0, 1, JobStatus.RESTARTING),
        (False, 1, 1, JobStatus.FAILED),
        (False, 1, 2, JobStatus.RESTARTING),
        (True, 0, 1, JobStatus.CANCELLING),
        (True, 1, 1, JobStatus.CANCELLING),
    ],
)
def test_the_state_after_a_failure(stopping: bool, restarts: int, attempts: int, expected: JobStatus) -> None:
    assert state_after_failure(stopping=stopping, restarts=restarts, attempts=attempts) is expected

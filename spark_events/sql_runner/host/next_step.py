"""Decides what an application does next with a query, without side effects."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from spark_events.api import JobStatus
from spark_events.sql_runner.store.host_files import RUN, Order


class Step(enum.Enum):
    """Everything that the application can do with a query in one turn."""

    NOTHING = "nothing"
    BEGIN = "begin to carry out the order"
    STOP = "stop it, as its order says"
    MAKE_WAY = "stop it without an order: a later turn begins the new order, or forgets the query"
    FORGET = "forget it"


@dataclass(frozen=True, slots=True)
class HeldOrder:
    """The order that the application is carrying out for a query.

    Attributes:
        is_over: whether the query has completely ended.
        is_refused: whether the application could not understand the order.
    """

    id: str
    is_over: bool
    is_refused: bool = False


def next_step(order: Order | None, held: HeldOrder | None) -> Step:
    """Return what to do with a query.

    Args:
        order: its current order; None if there is none any more.
        held: the order being carried out; None if the application does not know the query.
    """
    if held is None:
        return Step.NOTHING if order is None else Step.BEGIN
    if order is None:
        return Step.FORGET if held.is_over else Step.MAKE_WAY
    if order.id == held.id:
        return Step.NOTHING
    if not held.is_over:
        return Step.MAKE_WAY if order.action == RUN else Step.STOP
    if held.is_refused or order.action == RUN or order.savepoint:
        return Step.BEGIN
    return Step.STOP


def state_after_failure(*, stopping: bool, restarts: int, attempts: int) -> JobStatus:
    """Return the state of a query that has failed.

    Args:
        stopping: whether it was asked to stop.
        restarts: how often it has been restarted since its order.
        attempts: how often it may be restarted.
    """
    if stopping:
        return JobStatus.CANCELLING
    return JobStatus.FAILED if restarts >= attempts else JobStatus.RESTARTING

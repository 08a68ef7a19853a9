"""Decides what a deployment does with a query, and why: flink-sql-runner's diagram."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.sql_runner.store.savepoints import QueryState


class Action(enum.Enum):
    """Everything that a deployment can do with a query."""

    START = "start"
    NOTHING = "nothing"
    RECORD = "record"
    RESTART = "restart"
    RESUME = "resume"
    REPLACE = "replace"
    STOP = "stop"
    FAIL = "error"


WORDS = {
    Action.START: "start with a clean state",
    Action.NOTHING: "nothing",
    Action.RECORD: "record the interrupted deployment",
    Action.RESTART: "stop with a savepoint, and start from it",
    Action.RESUME: "start from the latest state",
    Action.REPLACE: "stop with a savepoint, and start the new version with a clean state",
    Action.STOP: "stop with a savepoint",
    Action.FAIL: "error",
}
"""What a plan calls them."""
WITHOUT_SAVEPOINT = {
    **WORDS,
    Action.RESTART: "stop, and start from the latest state",
    Action.REPLACE: "stop, and start the new version with a clean state",
    Action.STOP: "stop",
}
"""What they are called where no savepoint was made: nobody asked for one, or the query did not run."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A query, as deployed and as in its manifest, with everything that a decision depends on.

    Attributes:
        deployed_version: the version that is, or is being, deployed; None if the query is new.
        pending: whether its deployment was interrupted after the order but before it was recorded.
        running: whether it is running.
        query_changed: the changes of the query; empty for none.
        configuration_changed: the changes of its configuration; empty for none.
        state: the state from which it would resume; None if there is none.
        next_version: the version that a changed query would get.
        clean: whether the user wants to start without state.
        unproven: whether no micro-batch of this version may ever have begun, because its deployment was
            interrupted.
        without_effect: changes that a restart does not bring about, because the state fixes the properties.
        notes: what else is to be said of the state: which were passed over, and which rows come twice.
    """

    deployed_version: int | None
    pending: bool
    running: bool
    query_changed: str
    configuration_changed: tuple[str, ...]
    state: QueryState | None
    next_version: int
    clean: bool = False
    unproven: bool = False
    without_effect: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """An action on a query, the version that runs afterwards, and the reason, for people to read."""

    action: Action
    version: int
    reason: str


def decide(now: Situation) -> Decision:
    """Return what to do with a query that is in this situation."""
    if now.deployed_version is None:
        return Decision(Action.START, now.next_version, "it is new")
    if now.clean or now.query_changed:
        action, state = (Action.REPLACE, "it runs") if now.running else (Action.START, "it is stopped")
        reason = "a clean state was requested" if now.clean else f"{now.query_changed}; {state}"
        return Decision(action, now.next_version, reason)
    if now.running:
        return _of_running(now, now.deployed_version)
    return _of_stopped(now, now.deployed_version)


def _of_running(now: Situation, version: int) -> Decision:
    if now.configuration_changed:
        return Decision(Action.RESTART, version, "changed: " + "; ".join(now.configuration_changed))
    if now.pending:
        return Decision(Action.RECORD, version, "it runs as requested, but was not recorded as deployed")
    if now.without_effect:
        changes = "; ".join(now.without_effect)
        reason = f"it runs; fixed in its checkpoint, and so without effect: {changes}"
        return Decision(Action.NOTHING, version, reason)
    return Decision(Action.NOTHING, version, "it runs and has not changed")


def _of_stopped(now: Situation, version: int) -> Decision:
    changed = "; changed: " + "; ".join(now.configuration_changed) if now.configuration_changed else ""
    notes = "".join(f"; {note}" for note in now.notes)
    if now.state is None and now.unproven:
        reason = f"the deployment of version {version} was interrupted before its first micro-batch"
        return Decision(Action.START, now.next_version, reason)
    if now.state is None:
        return Decision(
            Action.FAIL,
            version,
            f"it is stopped, and there is no savepoint or checkpoint of version {version} to start from"
            f"{changed}{notes}; deploy-one --clean starts a new version with a clean state",
        )
    return Decision(Action.RESUME, version, f"it is stopped; there is {now.state}{changed}{notes}")


def differences(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> tuple[str, ...]:
    """Return what differs between two mappings, each key with its values before and after."""
    changes: list[str] = []
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            changes += differences(old or {}, new or {}, f"{prefix}{key}.")
        elif old != new:
            changes.append(f"{prefix}{key}: {_shown(old)} -> {_shown(new)}")
    return tuple(changes)


def _shown(value: Any) -> str:
    return "unset" if value is None else repr(value) if isinstance(value, str) else str(value)

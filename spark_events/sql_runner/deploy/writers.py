"""One writer per folder: Spark's file sink keeps one log there, keyed by the number of the batch.

A second query in a folder loses rows of both. So a deployment holds what it wants to start against everything
that the store wants to run, also what has no manifest in this deployment, or none any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter


@dataclass(frozen=True, slots=True)
class FolderClaim:
    """The folder that a query writes into before a deployment, and after it.

    Attributes:
        name: the query's.
        now: the folder before; empty if it does not run, or has no folder of its own.
        after: the folder after; empty likewise.
        refusable: whether the deployment can still leave the query as it is.
    """

    name: str
    now: str
    after: str
    refusable: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """A query that stays as it is, because another one writes into its folder.

    Attributes:
        other: the other query.
        in_a_ring: whether queries wait for each other's folders.
    """

    folder: str
    other: str
    in_a_ring: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """Who may write.

    Attributes:
        refused: by name, the queries that stay as they are.
        leave_first: by name, the queries that have to leave the folder before the query starts.
    """

    refused: dict[str, Refusal]
    leave_first: dict[str, tuple[str, ...]]


def settle(claims: Iterable[FolderClaim]) -> Settled:
    """Decide who may write into which folder; a query that is in its folder already comes first."""
    by_name = {claim.name: claim for claim in claims}
    refused: dict[str, Refusal] = {}
    while refused_next := _second_writer(by_name) or _ring(by_name):
        name, refusal = refused_next
        refused[name] = refusal
        # It keeps the folder that it has, which somebody else may have counted on.
        by_name[name] = replace(by_name[name], after=by_name[name].now, refusable=False)
    return Settled(refused, {name: leavers for name in by_name if (leavers := _leavers(name, by_name))})


def _second_writer(by_name: Mapping[str, FolderClaim]) -> tuple[str, Refusal] | None:
    first: dict[str, str] = {}
    for claim in sorted(by_name.values(), key=_precedence):
        writer = first.setdefault(claim.after, claim.name) if claim.after else claim.name
        if writer != claim.name and claim.refusable:
            return claim.name, Refusal(claim.after, writer)
    return None


def _precedence(claim: FolderClaim) -> tuple[bool, bool, str]:
    return claim.refusable, claim.now != claim.after, claim.name


def _leavers(name: str, by_name: Mapping[str, FolderClaim]) -> tuple[str, ...]:
    folder = by_name[name].after
    return tuple(
        other.name
        for other in by_name.values()
        if folder and other.name != name and other.now == folder and other.after != folder
    )


def _ring(by_name: Mapping[str, FolderClaim]) -> tuple[str, Refusal] | None:
    try:
        TopologicalSorter({name: _leavers(name, by_name) for name in by_name}).prepare()
    except CycleError as error:
        # Each name in the ring is the predecessor of the next.
        other, name, *_ = error.args[1]
        return name, Refusal(by_name[name].after, other, in_a_ring=True)
    return None

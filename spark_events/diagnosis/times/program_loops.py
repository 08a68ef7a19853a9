"""Loops of the program, as SQL executions show them: of one shape each time, or with plans that grow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from spark_events.diagnosis.plans.execution import EndedExecution

_PARTITIONS = re.compile(r"/[^/=]+=.*")
"""What a path has besides its table's: such as ``/day=2026-11-29``."""
_MOST_KINDS, _MOST_CHAINS = 500, 100
_PASSES, _GROWS, _TIMES_AS_LARGE, _LEAST_NODES = 3, 1.2, 5, 100
"""A plan grows in a loop if it does so in so many passes, by that factor each, until it is that large."""


@dataclass(slots=True)
class ExecutionKind:
    """What SQL executions of the same shape have in common.

    Attributes:
        writes: the first table or path that they write; empty if they write none.
        reads: the first that they read.
        reads_others: whether some read something else.
    """

    writes: str
    reads: str
    reads_others: bool = False

    @property
    def label(self) -> str:
        """What people know them by; each may read another part of a folder."""
        if self.writes:
            return f"the write into {self.writes}"
        return f"the query of {self.parts_of or self.reads}"

    @property
    def parts_of(self) -> str:
        """The folder of which each reads another part; empty if all read the same, or nobody knows."""
        folder, _, _ = self.reads.rpartition("/")
        return folder if self.reads_others else ""


class KindsOfExecutions:
    """The SQL executions of an application by their shape: the names of their plans' nodes."""

    def __init__(self) -> None:
        self._kinds: dict[str, ExecutionKind] = {}

    def take(self, execution: EndedExecution) -> str:
        """Return the key of what an execution is one of; empty if it reads no table, or there are too many.

        Args:
            execution: that has ended, with its plans.
        """
        written = execution.written()
        read = [table for table in execution.tables() if table not in written]
        if not read:
            return ""
        names = "\n".join(node.name for node in execution.nodes())
        key = f"{bool(written)} {sha256(names.encode(errors='replace')).hexdigest()[:16]}"
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                return ""
            root = _PARTITIONS.sub("", written[0]) if written else ""
            self._kinds[key] = ExecutionKind(root, read[0])
        elif kind.reads != read[0] and not kind.reads_others:
            kind.reads_others = True
        return key

    def get(self, key: str) -> ExecutionKind | None:
        """Return the kind of a key; None if that is none."""
        return self._kinds.get(key)


@dataclass(slots=True)
class _Chain:
    """The executions that read the same tables, each with a larger plan than the one before."""

    first: int
    last: int
    passes: int = 0
    driver_ms: int = 0


class GrowingPlans:
    """Finds that plans grow from pass to pass of a loop, as where each uses what the one before has made."""

    def __init__(self) -> None:
        self._chains: dict[tuple[str, ...], _Chain] = {}

    def take(self, execution: EndedExecution) -> None:
        """Called with each SQL execution that has ended, with its plans."""
        written = set(execution.written())
        key = tuple(sorted({*execution.tables()} - written))[:10]
        nodes = sum(1 for _ in execution.nodes())
        chain = self._chains.get(key)
        if not key or (chain is None and len(self._chains) >= _MOST_CHAINS):
            return
        if chain is None:
            self._chains[key] = _Chain(nodes, nodes)
            return
        if nodes >= _GROWS * chain.last:
            chain.passes += 1
        if nodes >= chain.last:
            chain.last = nodes
            chain.driver_ms += max(0, execution.lasted_ms - execution.wall_ms(execution.stages))

    def most(self) -> tuple[int, int, int]:
        """Return the nodes of the first and the last plan of a loop, and how long the driver worked on these.

        Of the loop that takes it longest, in ms, without its first pass; zeros if there is none.
        """
        grown = [
            (chain.driver_ms, chain.first, chain.last)
            for chain in self._chains.values()
            if chain.passes >= _PASSES and chain.last >= max(_LEAST_NODES, _TIMES_AS_LARGE * chain.first)
        ]
        driver_ms, first, last = max(grown, default=(0, 0, 0))
        return first, last, driver_ms

"""Plans that grow from pass to pass of a loop in the program, as each uses what the one before has made."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from spark_events.diagnosis.plans.execution import EndedExecution

_MOST_CHAINS, _MOST_TABLES = 100, 10
_PASSES, _GROWS, _TIMES_AS_LARGE, _LEAST_NODES = 3, 1.2, 5, 100
"""A plan grows in a loop if it does so in so many passes, by that factor each, until it is that large."""
_CONTAINED = 0.9
"""Of the nodes of a plan, so many are in the next one, if that is made of it; Spark may merge a few."""


@dataclass(slots=True)
class _Chain:
    """The executions that read the same tables, one after the other, each of which contains the one before.

    Attributes:
        first: how many nodes the plan of the first one has.
        last: the names of the last one's, and how many there are of each.
        passes: how often it grew.
        driver_ms: for how long no stage of them ran, without that of the first.
    """

    first: int
    last: Counter[str] = field(default_factory=Counter)
    passes: int = 0
    driver_ms: int = 0

    @property
    def grew(self) -> bool:
        """Whether nothing but a loop makes such plans."""
        return self.passes >= _PASSES and self.last.total() >= max(_LEAST_NODES, _TIMES_AS_LARGE * self.first)


class GrowingPlans:
    """Finds loops whose plans grow."""

    def __init__(self) -> None:
        self._chains: dict[tuple[str, ...], _Chain] = {}
        self._ended: list[_Chain] = []

    def take(self, execution: EndedExecution) -> None:
        """Called with each SQL execution that has ended, with its plans."""
        written = set(execution.written())
        key = tuple(sorted({*execution.tables()} - written))[:_MOST_TABLES]
        nodes = Counter(node.name for node in execution.nodes())
        chain = self._chains.get(key)
        if not key or (chain is None and len(self._chains) >= _MOST_CHAINS):
            return
        if chain is None or (nodes & chain.last).total() < _CONTAINED * chain.last.total():
            if chain is not None and chain.grew and len(self._ended) < _MOST_CHAINS:
                self._ended.append(chain)
            self._chains[key] = _Chain(nodes.total(), nodes)
            return
        chain.passes += nodes.total() >= _GROWS * chain.last.total()
        chain.last = max(nodes, chain.last, key=Counter.total)
        chain.driver_ms += max(0, execution.lasted_ms - execution.wall_ms(execution.stages))

    @property
    def passes(self) -> int:
        """How often plans have grown in a loop, at most; 0 if there is none."""
        return max((chain.passes for chain in self._grown()), default=0)

    def most(self) -> tuple[int, int, int]:
        """Return the nodes of the first and the last plan of a loop, and how long the driver worked on these.

        Of the loop that takes it longest, in ms, without its first pass; zeros if there is none.
        """
        grown = ((chain.driver_ms, chain.first, chain.last.total()) for chain in self._grown())
        driver_ms, first, last = max(grown, default=(0, 0, 0))
        return first, last, driver_ms

    def _grown(self) -> list[_Chain]:
        return [chain for chain in (*self._ended, *self._chains.values()) if chain.grew]

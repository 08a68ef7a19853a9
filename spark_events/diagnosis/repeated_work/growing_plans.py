"""Plans that grow from pass to pass of a loop in the program, as each uses what the one before has made."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.diagnosis.plans.execution import EndedExecution

_MOST_CHAINS = 100
_PASSES, _GROWS, _TIMES_AS_LARGE, _LEAST_NODES = 3, 1.2, 5, 100
"""A plan grows in a loop if it does so in so many passes, by that factor each, until it is that large."""


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

    @property
    def passes(self) -> int:
        """How often plans have grown in a loop, at most; 0 if there is none."""
        return max((chain.passes for chain in self._grown()), default=0)

    def _grown(self) -> list[_Chain]:
        return [
            chain
            for chain in self._chains.values()
            if chain.passes >= _PASSES and chain.last >= max(_LEAST_NODES, _TIMES_AS_LARGE * chain.first)
        ]

    def most(self) -> tuple[int, int, int]:
        """Return the nodes of the first and the last plan of a loop, and how long the driver worked on these.

        Of the loop that takes it longest, in ms, without its first pass; zeros if there is none.
        """
        grown = ((chain.driver_ms, chain.first, chain.last) for chain in self._grown())
        driver_ms, first, last = max(grown, default=(0, 0, 0))
        return first, last, driver_ms

"""The rule about what several SQL executions of an application compute again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import IN_MEMORY, EndedExecution
from spark_events.diagnosis.plans.node import Node, without_ids
from spark_events.diagnosis.thresholds import RECOMPUTATION

_MOST_PARTS = 20_000
_MOST_TOLD = 20
_MOST_PLACES = 3


@dataclass(slots=True)
class _Part:
    """A part of plans that is the same in each: the stages that computed it, and how long each took, in ms.

    Attributes:
        size: how many nodes it has.
        cached: whether a cache was to keep it.
        wholes: the digests of the plans that it is a part of.
    """

    title: str
    size: int
    cached: bool
    stages: dict[tuple[int, ...], int] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)
    wholes: set[str] = field(default_factory=set)

    @property
    def is_again(self) -> bool:
        """Whether it was computed more often than it had to be.

        An application that does the same thing twice may want to; one that does it three times could keep it.
        """
        return len(self.stages) > (1 if len(self.wholes) > 1 or self.cached else 2)

    @property
    def lost_ms(self) -> int:
        """What all times but one have cost."""
        times = len(self.stages)
        return sum(self.stages.values()) * (times - 1) // times


class Recomputation:
    """Finds parts of plans that are computed more than once, though a cache could keep them."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}

    def take(self, execution: EndedExecution, place: str) -> None:
        """Called with each SQL execution that has ended, and the place in the code that it is for."""
        for plan in execution.plans:
            whole = sha256(plan.signature().encode(errors="replace")).hexdigest()[:16]
            self._take(plan, execution, place, whole, False)

    def issues(self) -> Iterator[Issue]:
        """Yield what was computed more than once so far, however little that cost."""
        again = [part for part in self._parts.items() if part[1].is_again]
        taken: set[tuple[int, ...]] = set()
        for digest, part in sorted(again, key=lambda each: (-each[1].lost_ms, -each[1].size))[:_MOST_TOLD]:
            if taken.intersection(part.stages):
                continue  # it is within a larger part, or around a smaller one that costs as much
            taken.update(part.stages)
            yield _issue(digest, part)

    def _take(
        self, node: Node, execution: EndedExecution, place: str, whole: str, cached: bool
    ) -> tuple[str, int, bool]:
        """Take a node after those below it; return its digest, its size, and whether it can be compared."""
        if node.name == IN_MEMORY:
            filled = any(below.measured_in for child in node.children for below in child.walk())
            for child in node.children if filled else ():
                self._take(child, execution, place, whole, True)
            return "", 0, False  # what is above reads it from the cache
        below = [self._take(child, execution, place, whole, cached) for child in node.children]
        digest = sha256()
        for part in (without_ids(node.text), node.metadata.get("Location", ""), *(each[0] for each in below)):
            digest.update(part.encode(errors="replace") + b"\n")
        name, size = digest.hexdigest()[:16], 1 + sum(each[1] for each in below)
        comparable = all(each[2] for each in below) and not node.name.startswith(("Reused", "Subquery"))
        if comparable and size > 1 and not node.is_exchange:
            self._add(name, size, node, execution, place, whole, cached)
        return name, size, comparable

    def _add(
        self,
        digest: str,
        size: int,
        node: Node,
        execution: EndedExecution,
        place: str,
        whole: str,
        cached: bool,
    ) -> None:
        stages = tuple(sorted(node.stages & execution.stages.keys()))
        part = self._parts.get(digest)
        if not stages or (part is None and len(self._parts) >= _MOST_PARTS):
            return
        if part is None:
            part = self._parts[digest] = _Part(_title(node), size, cached)
        if stages not in part.stages:
            part.stages[stages] = execution.wall_ms(stages)
        part.cached = part.cached or cached
        if len(part.wholes) < 2:
            part.wholes.add(whole)
        if place and len(part.places) < _MOST_PLACES:
            part.places[place] = None


def _issue(digest: str, part: _Part) -> Issue:
    times = len(part.stages)
    places = f", for {', '.join(part.places)}" if part.places else ""
    if part.cached:
        sentence = (
            f"{part.title} is computed {times} times{places}, though it is cached: it does not stay there"
        )
        advice = (
            "It does not fit: cache fewer columns or rows, use MEMORY_AND_DISK, give executors more memory "
            "(spark.executor.memory), or unpersist() what is no longer needed."
        )
    else:
        sentence = f"{part.title} is computed {times} times{places}"
        advice = "cache() or persist() it before its first use, or write it to a table once, and read that."
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} {digest}",
        part.lost_ms,
        None,
        sentence,
        advice,
        evidence={"recomputation.times": times, "recomputation.cached": part.cached},
    )


def _title(node: Node) -> str:
    """Return what a part of a plan is, for a sentence."""
    tables = node.tables()
    names = list(dict.fromkeys(each.name for each in node.walk() if each.children and not each.is_exchange))
    return f"the same {', '.join(names[:3])}" + (f" of {', '.join(tables[:3])}" if tables else "")

"""A part of plans that is the same in several SQL executions, and how often it was computed."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_PASSES = 100


class Pass(NamedTuple):
    """One time that a part of a plan was computed.

    Attributes:
        stages: that computed it.
        time_ms: how long that took.
        functions: the number of the functions in Python that it called; see ``Digest``.
    """

    stages: frozenset[int]
    time_ms: int
    functions: int = 0


MOST_PLACES = 4
"""So many places are kept: one more than is said, to say that there are others."""
_MOST_NAMED = MOST_PLACES - 1
_CALLED_AS = {"showString": "show"}
"""What people call methods by that Spark names otherwise."""


@dataclass(slots=True)
class PlanPart:
    """A part of plans that is the same in each execution.

    Attributes:
        size: how many nodes it has.
        cached: whether a cache is to keep it.
        times: how often it was computed.
        total_ms: how long that took, in all.
        passes: how long each time took, of the first hundred, with the stages.
        caches: the RDDs that were to keep it, each the latest of its time, for the first hundred times.
        of_program: whether it is made of rows of the program's, which may be others each time.
        is_known: whether it took as long; else that is an upper limit.
        last: the stages that computed it last.
        executions: in how many SQL executions it was computed; a micro-batch is one, with all of its actions.
        last_execution: the number of the latest of them.
        wholes: the digests of two of the plans that it is a part of.
        rows_of_caches: how many rows were computed for each cache, by its RDD, in all; by None where unknown.
        kept_rows: how many the cache has, by a scan of all of it; 0 if nobody has read all of it.
        scans: how often a cache was read, by the execution that filled it, too: once by each stage.
        other_columns: whether each time may have needed other columns of it.
        calls: those of functions in Python that it makes, as texts of plans have them.
        after_release: how often it was computed after a cache that held it was released.
        sources: the tables that it reads, each once.
        functions: the numbers of the functions in Python that it called, of the first hundred.
    """

    digest: str
    title: str
    size: int
    cached: bool
    of_program: bool
    times: int = 0
    total_ms: int = 0
    passes: list[Pass] = field(default_factory=list)
    caches: set[int] = field(default_factory=set)
    is_known: bool = True
    last: tuple[int, ...] = ()
    executions: int = 0
    last_execution: int = 0
    places: dict[str, None] = field(default_factory=dict)
    wholes: set[str] = field(default_factory=set)
    rows_of_caches: dict[int | None, int] = field(default_factory=dict)
    kept_rows: int = 0
    scans: int = 0
    other_columns: bool = False
    calls: str = ""
    after_release: int = 0
    sources: tuple[str, ...] = ()
    functions: set[int] = field(default_factory=set)

    def take(self, each: Pass) -> None:
        """Take one time that it was computed."""
        self.times += 1
        self.total_ms += each.time_ms
        if len(self.passes) < MOST_PASSES:
            self.passes.append(each)
            self.functions.add(each.functions)

    def count_rows(self, cache: int | None, rows: int) -> None:
        """Take how many rows were computed so far for a cache, by its RDD; None if nobody knows which.

        Spark has one plan of a cache, whose metrics go on from one execution to the next. One of which the
        RDD is not known is taken for the last that is.
        """
        counted = self.rows_of_caches
        if cache is None:
            cache = next(reversed(counted), None)
        elif None in counted:
            counted[cache] = counted.pop(None)
        if cache in counted or len(counted) < MOST_PASSES:
            counted[cache] = max(counted.get(cache, 0), rows)

    @property
    def rows(self) -> int:
        """How many rows were computed for caches, in all."""
        return sum(self.rows_of_caches.values())

    @property
    def is_again(self) -> bool:
        """Whether it was computed more often than it had to be.

        A cache may be filled bit by bit: then no more rows are computed than it has. An application that does
        the same thing twice may want to; one that does it three times could keep it.
        """
        if self.cached:
            if (self.of_program and len(self.caches) > 1) or (self.is_anew and self._grows):
                return False
            return self.times > 1 and 0 < self.kept_rows < self.rows
        return self.was_released or self.times - self._needed > (0 if len(self.wholes) > 1 else 1)

    @property
    def was_released(self) -> bool:
        """Whether a cache held it before it was computed the first time without one."""
        return self.times > 0 and self.after_release == self.times

    @property
    def _grows(self) -> bool:
        """Whether no two caches had as many rows: of a table that has grown, something else is computed."""
        counted = self.rows_of_caches.values()
        return len(set(counted)) == len(counted) > 1

    @property
    def is_anew(self) -> bool:
        """Whether each time another cache was to keep it."""
        return self.cached and len(self.caches) == min(self.times, MOST_PASSES)

    @property
    def may_differ(self) -> bool:
        """Whether it may have done something else each time, by functions in Python of the same names."""
        return not self.cached and 1 < len(self.functions) == len(self.passes)

    @property
    def is_certain(self) -> bool:
        """Whether it was the same each time, and is known to have taken as long."""
        return self.is_known and not self.may_differ

    def again(self, needed: Set[int] = frozenset()) -> list[Pass]:
        """Return the passes but for one, which is needed, of those that called the same functions.

        That is one of the stages that are needed anyway; else the first, or the longest where all need other
        columns. If a cache held it, that has taken the one.
        """
        if self.was_released:
            return self.passes
        kept = {id(self._kept(passes, needed)) for passes in self._turns()}
        return [each for each in self.passes if id(each) not in kept]

    @property
    def _needed(self) -> int:
        """How often it has to be computed, if nothing has kept it before."""
        return 1 if self.may_differ else max(1, len(self.functions))

    def _turns(self) -> Iterable[list[Pass]]:
        if self.may_differ:
            return [self.passes]
        turns: dict[int, list[Pass]] = {}
        for each in self.passes:
            turns.setdefault(each.functions, []).append(each)
        return turns.values()

    def _kept(self, passes: list[Pass], needed: Set[int]) -> Pass:
        default = max(passes, key=lambda each: each.time_ms) if self.other_columns else passes[0]
        return next((each for each in passes if not needed.isdisjoint(each.stages)), default)

    @property
    def lost_ms(self) -> int:
        """What was computed again has cost, or may have at most.

        Where its stages did other work, too, it took no longer each time than the shortest of them.
        """
        needed = 0 if self.was_released else self._needed
        if not self.is_known and not self.cached and self.passes:
            return min(each.time_ms for each in self.passes) * (self.times - needed)
        if self.other_columns and self.times == len(self.passes):
            return sum(each.time_ms for each in self.again())
        if self.is_anew:
            return self.total_ms * (self.times - 1) // self.times
        if self.cached:
            lost_ms = self.total_ms * (self.rows - self.kept_rows) // self.rows
            # The first pass was needed, and is slower where it starts what the others find started.
            later_ms = sum(each.time_ms for each in self.passes[1:])
            return min(lost_ms, later_ms) if self.times == len(self.passes) else lost_ms
        return self.total_ms * (self.times - needed) // self.times


def named_places(places: Iterable[str]) -> str:
    """Return the first places in the user's code, for a sentence; of those without a line, their method."""
    named = [f"{_CALLED_AS.get(place, place)}()" if place.isidentifier() else place for place in places]
    others = " and others" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + others

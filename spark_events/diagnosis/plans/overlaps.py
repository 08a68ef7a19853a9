"""What parts of plans that contain each other cost together: no stage loses the same time twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spark_events.diagnosis.plans.plan_part import Pass, PlanPart

_LEAST_TURNS = 3


@dataclass(slots=True)
class PartGroup:
    """Parts that contain each other.

    Attributes:
        parts: the costliest first.
        lost_ms: what it has cost to compute them again.
        differing: how often those were computed that make it cost more than the costliest alone.
    """

    parts: list[PlanPart]
    lost_ms: int
    differing: set[int] = field(default_factory=set)

    @property
    def grows(self) -> bool:
        """Whether each is made of one that was computed before, as in a loop."""
        turns = len(self.differing)
        return turns >= _LEAST_TURNS and max(self.differing) - min(self.differing) == turns - 1


class _Overlaps:
    """Adds up the time of stages, each moment once; a larger part takes the time of those in it."""

    def __init__(self) -> None:
        # How long stages were taken for, which are in one of these only.
        self._by_stage: dict[int, Pass] = {}

    def take(self, passes: Iterable[Pass]) -> int:
        """Take the time of some stages, and return how much of it was not taken before, in ms."""
        gained_ms = 0
        for each in passes:
            before = {self._by_stage[stage] for stage in each.stages if stage in self._by_stage}
            taken_ms = sum(earlier.time_ms for earlier in before)
            gained_ms += max(0, each.time_ms - taken_ms)
            stages = each.stages.union(*(earlier.stages for earlier in before))
            whole = Pass(stages, max(each.time_ms, taken_ms))
            self._by_stage.update(dict.fromkeys(stages, whole))
        return gained_ms


def groups_of(parts: list[PlanPart]) -> list[PartGroup]:
    """Return the parts in groups whose costs do not overlap; each is computed a first time in any case."""
    groups: list[PartGroup] = []
    by_stage: dict[int, PartGroup] = {}
    overlaps = _Overlaps()
    taken: set[tuple[int, ...]] = set()
    for part in parts:
        again = part.passes[1:]
        if part.cached or not part.is_known or len(part.passes) < part.times:
            if part.last not in taken:  # else it is in a larger part, or around one that costs as much
                groups.append(PartGroup([part], part.lost_ms))
        else:
            stages = [stage for each in again for stage in each.stages]
            group = next((by_stage[stage] for stage in stages if stage in by_stage), None)
            lost_ms = overlaps.take(again)
            if group is None:
                group = PartGroup([], 0)
                groups.append(group)
            group.parts.append(part)
            group.lost_ms += lost_ms
            if lost_ms:
                group.differing.add(part.times)
            by_stage.update(dict.fromkeys(stages, group))
        taken.add(part.last)
    return groups

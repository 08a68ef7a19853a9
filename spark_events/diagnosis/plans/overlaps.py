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
        cause: what tells the group from others, however it grows.
        parts: the costliest first.
        lost_ms: what it has cost to compute them again.
        differing: how often those were computed that make it cost more than the costliest alone.
    """

    cause: str
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


def groups_of(parts: list[PlanPart], causes: dict[str, str]) -> list[PartGroup]:
    """Return the parts in groups whose costs do not overlap; each is computed a first time in any case.

    Args:
        parts: the costliest first.
        causes: by the digest of each part that was in a group before, what tells its group from others: it
            stays in that one, for what it has cost was told. The parts' are added.
    """
    known = [part for part in parts if part.digest in causes]
    by_stage = {stage: causes[part.digest] for part in known for stage in _stages_again(part)}
    groups: dict[str, PartGroup] = {}
    overlaps = _Overlaps()
    taken: set[int] = set()
    for part in parts:
        if part.cached or not part.is_known or len(part.passes) < part.times:
            # Else it is in a larger part, or around one that costs as much.
            if not taken.issuperset(_stages(part)):
                groups[part.digest] = PartGroup(part.digest, [part], part.lost_ms)
        else:
            stages = _stages_again(part)
            of_stages = next((by_stage[stage] for stage in stages if stage in by_stage), part.digest)
            cause = causes.setdefault(part.digest, of_stages)
            lost_ms = overlaps.take(part.again)
            group = groups.setdefault(cause, PartGroup(cause, [], 0))
            group.parts.append(part)
            group.lost_ms += lost_ms
            if lost_ms:
                group.differing.add(part.times)
            for stage in stages:
                by_stage.setdefault(stage, cause)
        taken.update(_stages(part))
    return list(groups.values())


def _stages(part: PlanPart) -> set[int]:
    return {stage for each in part.passes for stage in each.stages} | set(part.last)


def _stages_again(part: PlanPart) -> list[int]:
    return [stage for each in part.again for stage in each.stages]

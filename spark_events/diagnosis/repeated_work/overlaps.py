"""What parts of plans that contain each other cost together: no stage loses the same time twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

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
        besides_ms: what other parts of the same frames have cost of that, which neither contain these nor are
            in them.
    """

    cause: str
    parts: list[PlanPart]
    lost_ms: int
    differing: set[int] = field(default_factory=set)
    besides_ms: int = 0

    @property
    def grows(self) -> bool:
        """Whether each is made of one that was computed before, as in a loop."""
        turns = sorted(self.differing)
        if len(turns) > 1 and turns[-1] - turns[-2] > 1:
            turns.pop()  # what all turns read, in several places, is computed more often than they are
        return len(turns) >= _LEAST_TURNS and turns[-1] - turns[0] == len(turns) - 1


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
    needed: set[int] = set()
    taken: set[int] = set()
    for part in parts:
        if part.cached or not part.is_certain or len(part.passes) < part.times:
            # Else it is in a larger part, or around one that costs as much.
            if not taken.issuperset(_stages(part)):
                groups[part.digest] = PartGroup(part.digest, [part], part.lost_ms)
        else:
            stages = _stages_again(part)
            of_stages = next((by_stage[stage] for stage in stages if stage in by_stage), part.digest)
            cause = causes.setdefault(part.digest, of_stages)
            lost_ms = overlaps.take(_again(part, needed))
            group = groups.setdefault(cause, PartGroup(cause, [], 0))
            group.parts.append(part)
            group.lost_ms += lost_ms
            if lost_ms:
                group.differing.add(part.times)
            for stage in stages:
                by_stage.setdefault(stage, cause)
        taken.update(_stages(part))
    return list(groups.values())


def frames_of(groups: list[PartGroup], leaders: dict[str, str]) -> list[PartGroup]:
    """Return the groups, those as one that read the same sources for the same places: a cache may hold both.

    Args:
        groups: whose costs do not overlap.
        leaders: by the cause of each group that was here before, that of the one it is in: it stays there,
            for what it has cost was told. The groups' are added.
    """
    for group in groups:
        if group.cause not in leaders:
            leads = (each for each in groups if leaders.get(each.cause) == each.cause)
            leaders[group.cause] = next((each.cause for each in leads if _is_alike(each, group)), group.cause)
    here = {group.cause for group in groups}
    frames: dict[str, list[PartGroup]] = {}
    for group in groups:
        leader = leaders[group.cause]
        frames.setdefault(leader if leader in here else group.cause, []).append(group)
    return [_as_one(cause, of_frame) for cause, of_frame in frames.items()]


def _as_one(cause: str, groups: list[PartGroup]) -> PartGroup:
    """Return the first of some groups with what all of them have cost."""
    first, *others = groups
    besides_ms = sum(group.lost_ms for group in others)
    turns = [group for group in groups if _places(group) == _places(first)]
    sizes: dict[int, int] = {}
    for group in turns:
        sizes.setdefault(group.parts[0].times, group.parts[0].size)
    in_turn = [sizes[times] for times in sorted(sizes, reverse=True)]
    # What is made of others is larger, and was computed less often.
    are_turns = in_turn == sorted(set(in_turn))
    differing = set[int]().union(*(group.differing for group in turns)) if are_turns else first.differing
    lost_ms = first.lost_ms + besides_ms
    return replace(first, cause=cause, lost_ms=lost_ms, besides_ms=besides_ms, differing=differing)


def _is_alike(leader: PartGroup, other: PartGroup) -> bool:
    """Return whether groups read the same sources for the same places, and their costs are known."""
    ours, theirs = leader.parts[0], other.parts[0]
    is_plain = all(part.is_certain and not part.cached and not part.was_released for part in (ours, theirs))
    is_here = not _places(leader).isdisjoint(_places(other))
    return is_plain and ours.sources == theirs.sources != () and is_here


def _places(group: PartGroup) -> set[str]:
    return {place for part in group.parts for place in part.places}


def _again(part: PlanPart, needed: set[int]) -> list[Pass]:
    """Return when a part was computed again, and add the stages of what is needed of it.

    Of parts that contain each other, one pass gives all of them: not another one for each.
    """
    again = part.again(needed)
    needed.update(*(each.stages for each in part.passes if each not in again))
    return again


def _stages(part: PlanPart) -> set[int]:
    return {stage for each in part.passes for stage in each.stages} | set(part.last)


def _stages_again(part: PlanPart) -> list[int]:
    return [stage for each in part.again() for stage in each.stages]

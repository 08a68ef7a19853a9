"""What is told of parts of plans that are computed again and again, or cached and never read."""

from __future__ import annotations

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.plan_part import PlanPart, named_places
from spark_events.diagnosis.repeated_work.called_twice import CALLS_OF
from spark_events.diagnosis.repeated_work.overlaps import PartGroup
from spark_events.diagnosis.thresholds import RECOMPUTATION, UNREAD_CACHE

_BEGIN_ANEW = "Let each turn begin with rows that are there: localCheckpoint() them, or write and read them."
_MOST_STAGES = 20
_WORTH_A_WORD = 0.1


def computed_again(group: PartGroup, in_growing_plans: int = 0) -> Issue:
    """Return that the costliest part of a group was computed more often than it had to be.

    Args:
        group: it.
        in_growing_plans: how often the plans of a loop have grown, each with more nodes than the one before;
            0 if none have.
    """
    part, lost_ms = group.parts[0], group.lost_ms
    sentence, advice = _of_cache(part) if part.cached or part.was_released else _of_group(group)
    if group.grows:
        sentence += ", and so are others, each of which is made of one before, as in a loop"
        advice = _BEGIN_ANEW
    elif not part.cached and not part.was_released and part.times > in_growing_plans > 0:
        sentence += "; plans grow from one to the next, as in a loop whose turns use what the one before made"
        advice = (
            f"{_BEGIN_ANEW} A cache of each turn alone leaves the plan to grow. If it is no loop: {advice}"
        )
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} {group.cause}",
        lost_ms if part.is_certain else None,
        None,
        sentence,
        advice,
        evidence={
            "recomputation.times": part.times,
            "recomputation.cached": part.cached,
            "recomputation.what": part.title,
            **({CALLS_OF: part.calls} if part.calls else {}),
        },
        share_ms=None if part.is_certain else lost_ms,
    )


def _of_cache(part: PlanPart) -> tuple[str, str]:
    """Return what is said of a part that a cache keeps, or has kept, and what to do."""
    if part.is_anew:
        return (
            f"{part.title} is cached {part.times} times, each time anew, and computed for that{_for(part)}: "
            "Spark finds what is cached by its plan alone",
            "Cache it once, and use that DataFrame: a function in Python that is defined again makes another "
            "plan, and what was unpersisted is gone.",
        )
    if part.cached:
        return (
            f"{part.title} is cached and has {part.kept_rows:,} rows, and yet {part.rows:,} are computed, "
            f"in {part.times} SQL executions{_for(part)}: the cache does not keep them",
            "It does not fit: cache fewer columns or rows, use MEMORY_AND_DISK, give executors more memory "
            "(spark.executor.memory), or unpersist() what is no longer needed.",
        )
    more = "once more" if part.times == 1 else f"{part.times} more times"
    return (
        f"{part.title} was cached, and is computed {more}{_for(part)}: the cache was released before",
        "Call unpersist(), or clearCache(), only after the last action that needs what is cached.",
    )


def _of_group(group: PartGroup) -> tuple[str, str]:
    """Return what is said of parts that nothing has cached, and what to do."""
    part, columns = group.parts[0], ", with other columns" if group.parts[0].other_columns else ""
    sentence = f"{part.title} is computed {part.times} times{columns}{_for(part)}"
    advice = "cache() or persist() it before its first use, or write it to a table once, and read that."
    if part.may_differ:
        sentence += (
            ", if its functions in Python are the same each time: plans have no more than their names, and "
            "these were made, or applied, anew"
        )
        advice = f"If they are: {advice}"
    if group.besides_ms > _WORTH_A_WORD * group.lost_ms and not group.grows:
        sentence += "; so are other parts of the same sources"
        advice += (
            " Best is the last DataFrame that all of these actions use: whatever it is made of is then "
            "computed once, too."
        )
    return sentence, advice


def _for(part: PlanPart) -> str:
    return f", for {named_places(part.places)}" if part.places else ""


def never_read(part: PlanPart) -> Issue:
    """Return that a part is cached, and nothing reads the cache."""
    places = f", for {named_places(part.places)}," if part.places else ""
    stages = frozenset[int]().union(*(each.stages for each in part.passes))
    return Issue(
        UNREAD_CACHE,
        f"{UNREAD_CACHE} {part.digest}",
        None,
        None,
        f"{part.title.removeprefix('the same ')} is cached{places} and read from there by nothing else",
        "Remove cache() or persist(): it takes memory, and the time to write it there, for nothing.",
        evidence={
            "cache.rows": part.rows,
            "cache.stages": ", ".join(map(str, sorted(stages)[:_MOST_STAGES])),
        },
        share_ms=part.total_ms,
    )

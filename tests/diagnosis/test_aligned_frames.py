"""The rule about frames of one table that the pandas API joins by their index."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.costly_nodes.aligned_frames import aligned_frames
from spark_events.diagnosis.costly_nodes.joins import joins
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

JOIN = "SortMergeJoin [__this___index_level_0__#15L], [__that___index_level_0__#22L], LeftOuter"
NUMBERED = "AttachDistributedSequence[distributed_sequence_id#12L, hum#9] Index: distributed_sequence_id#12L"


def frames(*tables: str, join: str = JOIN) -> Plan:
    """Return a plan that joins a frame of the first table with one of the second, and that with others."""
    plan = Plan()(0, "HashAggregate(keys=[g#1L])", 9, rows=9)
    for depth in range(1, len(tables)):
        plan(depth, join, 8, rows=900)
    for place, table in enumerate(tables):
        depth = len(tables) - max(1, place) + 1
        plan(depth, "Exchange hashpartitioning(distributed_sequence_id#12L, 8)", place + 1)
        plan(depth + 1, NUMBERED, place + 1, rows=900)
        plan(depth + 2, f"Scan parquet {table} [hum#9]", place + 1, rows=900)
    return plan


def told(plan: Plan) -> list[Issue]:
    """Return what is told if all stages below the joins take 60 s, one after the other, and the last 5 s."""
    stages = {"s1": (0, 15), "s2": (15, 30), "s3": (30, 45), "s8": (45, 60), "s9": (60, 65)}
    return list(aligned_frames(executed(plan, **stages), Thresholds()))


def test_three_frames_of_one_table() -> None:
    (issue,) = told(frames("lab.sensor", "lab.sensor", "lab.sensor"))
    assert (issue.kind, issue.lost_ms, issue.stages) == ("recomputation", 45 * S, {1, 2, 3, 8})
    assert issue.sentence.startswith(
        "3 frames of lab.sensor are read, numbered, shuffled and joined by their"
    )


@pytest.mark.parametrize(
    ("tables", "kinds"),
    [
        (("lab.sensor", "lab.sensor"), {"recomputation": 42 * S, "large-broadcast": None}),
        (("lab.sensor", "lab.rooms"), {"recomputation": None, "large-broadcast": 12 * S - 419}),
    ],
    ids=["of one table", "of two tables"],
)
def test_frames_that_the_driver_sends_to_all(tables: tuple[str, ...], kinds: dict[str, int | None]) -> None:
    """Nobody has asked for such a broadcast, and no setting helps: it is a part of what the join costs.

    A broadcast that somebody has asked for costs what it takes beyond a shuffle: of its bytes, 419 ms.
    """
    plan = Plan()(0, "HashAggregate(keys=[g#1L])", 9, rows=9)
    plan(1, JOIN.replace("SortMergeJoin", "BroadcastHashJoin"), 8, rows=900)
    for number, table in enumerate(tables, 1):
        if number == 2:
            sent = {"data_size": 200 << 20, "time_to_collect": 17 * S, "time_to_build": 10 * S}
            plan(2, "BroadcastExchange HashedRelationBroadcastMode", None, rows=900, **sent)
        plan(2 + (number == 2), NUMBERED, number, rows=900)
        plan(3 + (number == 2), f"Scan parquet {table} [hum#9]", number, rows=900)
    execution = executed(plan, s1=(0, 15), s2=(15, 30), s8=(45, 60), s9=(60, 65))
    found = [*aligned_frames(execution, Thresholds()), *joins(execution, Thresholds())]
    costs = {issue.kind: issue.lost_ms for issue in found}
    assert {kind: costs.get(kind) for kind in kinds} == kinds


def test_a_broadcast_that_is_built_while_other_frames_are_read() -> None:
    """The time of those stages counts as it is, and not once more: all of it is no more than the execution took."""
    plan = Plan()(0, "HashAggregate(keys=[g#1L])", 9, rows=9)
    plan(1, JOIN.replace("SortMergeJoin", "BroadcastHashJoin"), 8, rows=900)
    plan(2, NUMBERED, 1, rows=900)(3, "Scan parquet lab.sensor [hum#9]", 1, rows=900)
    plan(2, "BroadcastExchange HashedRelationBroadcastMode", None, rows=900, time_to_build=40 * S)
    plan(3, NUMBERED, 2, rows=900)(4, "Scan parquet lab.sensor [hum#9]", 2, rows=900)
    stages = {"s1": (0, 50), "s2": (0, 15), "s8": (53, 60), "s9": (60, 65)}
    (issue,) = aligned_frames(executed(plan, lasted_ms=65 * S, **stages), Thresholds())
    assert issue.driver_ms == 3 * S
    assert issue.lost_ms == (57 + 3 - 15) * S


def test_frames_of_two_tables_have_to_be_joined() -> None:
    assert told(frames("lab.sensor", "lab.rooms")) == []


def test_a_join_by_keys_of_the_user() -> None:
    assert told(frames("a.b", "a.b", join="SortMergeJoin [id#15L], [id#22L], LeftOuter")) == []

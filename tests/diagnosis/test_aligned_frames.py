"""The rule about frames of one table that the pandas API joins by their index."""

from __future__ import annotations

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.aligned_frames import aligned_frames
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


def test_frames_of_two_tables_have_to_be_joined() -> None:
    assert told(frames("lab.sensor", "lab.rooms")) == []


def test_a_join_by_keys_of_the_user() -> None:
    assert told(frames("a.b", "a.b", join="SortMergeJoin [id#15L], [id#22L], LeftOuter")) == []

"""Parts of plans that contain each other: what they cost together, and loops that compute all turns again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.plan_part import Pass, PlanPart, named_places
from spark_events.diagnosis.repeated_work.growing_plans import GrowingPlans
from spark_events.diagnosis.repeated_work.overlaps import PartGroup, frames_of, groups_of
from spark_events.diagnosis.repeated_work.recomputation import Recomputation
from tests.support.plans import Plan, S, executed


def again(*executions: EndedExecution) -> list[Issue]:
    recomputation = Recomputation()
    for execution in executions:
        recomputation.take(execution, "collect at a.py:3")
    return list(recomputation.issues())


def turn(number: int) -> EndedExecution:
    """Return an execution of a loop that computes all turns so far, in 2 s each."""
    plan = Plan()(0, f"HashAggregate(keys=[], functions=[max(label#{number})])", number, rows=1)
    for depth in range(1, number + 1):
        made = number + 1 - depth
        # Each turn makes the same of what the one before has made: only their depths differ.
        text = f"MapInPandas moved(id#{made}), [id#{made}, label#{made}]"
        plan(depth, text, number, rows=100, time_to_run_Python_workers=8 * S * made)
    plan(number + 1, "Range (0, 100, step=1, splits=4)", number, rows=100)
    return executed(plan, **{f"s{number}": (0, 2 * number)})


@pytest.mark.parametrize("turns", [4, 7])
def test_a_loop_that_begins_again_in_each_turn(turns: int) -> None:
    """Of all turns that are computed, each is needed once; the others are told as one issue."""
    (issue,) = again(*map(turn, range(1, turns + 1)))
    computed = turns * (turns + 1) // 2
    assert issue.lost_ms == 2 * S * (computed - turns)
    assert "as in a loop" in issue.sentence
    assert "localCheckpoint()" in issue.advice


@pytest.mark.parametrize("grows", [True, False])
def test_the_same_in_plans_that_grow(grows: bool) -> None:
    """A cache of it would leave the plans to grow."""
    plans = GrowingPlans()
    recomputation = Recomputation(growing=plans)
    for number in range(1, 7):
        plan, projects = Plan(), 10 * 2 ** (number - 1) if grows else 10
        for depth in range(projects):
            plan(depth, f"Project [a#{depth} AS a#{depth + 1}]", number)
        plan(projects, "MapInPandas moved(id#1), [id#1]", number, rows=100, time_to_run_Python_workers=8 * S)
        plan(projects + 1, "Scan parquet db.links [id#1]", number, rows=100)
        execution = executed(plan, **{f"s{number}": (0, 2)})
        plans.take(execution)
        recomputation.take(execution, "count at a.py:3")
    told = [(issue.sentence, issue.advice) for issue in recomputation.issues()]
    assert told
    for sentence, advice in told:
        assert ("plans grow from one to the next" in sentence) is grows
        assert advice.startswith("Let each turn begin" if grows else "cache() or persist()")


def joined(number: int, source: str = "Scan parquet db.links") -> EndedExecution:
    """Return a turn of a loop that joins its rows with what is cached, and does so for all turns before it.

    Each join has a stage of its own, of 2 s.
    """
    first = 10 * number
    plan = Plan()(0, f"HashAggregate(keys=[], functions=[sum(label#{number})])", first, rows=1)
    for turn in range(number, 0, -1):
        depth, stage = 2 * (number - turn) + 1, first + turn
        plan(depth, f"Exchange hashpartitioning(src#{turn}, 8)", stage, shuffle_records_written=50)
        plan(depth + 1, f"SortMergeJoin [dst#{turn}], [node#{turn + 90}], Inner", stage, rows=50)
        plan(depth + 2, f"InMemoryTableScan [src#{turn}, dst#{turn + 9}]", stage, rows=100)
        plan(depth + 3, source, None)
    plan(2 * number + 1, "Scan parquet db.labels [node#1, label#2]", first + 1, rows=100)
    stages = {f"s{first + turn}": (2 * turn - 2, 2 * turn) for turn in range(1, number + 1)}
    return executed(plan, **stages)


def test_a_loop_over_what_is_cached() -> None:
    """Each turn reads the same cache, and computes what the turns before have made of it."""
    (issue,) = again(*map(joined, range(1, 6)))
    assert issue.lost_ms == 2 * S * (15 - 5)
    assert "as in a loop" in issue.sentence
    assert again(*(joined(number, "Scan ExistingRDD[src#1, dst#2]") for number in range(1, 6))) == []


def test_a_cache_that_is_filled_each_time() -> None:
    """What reads it takes as long as to fill it: that it keeps too little is told of the cache."""
    turns = list(map(joined, range(1, 6)))
    for number, turn_of in enumerate(turns, 1):
        for node in turn_of.nodes():
            if node.name == "InMemoryTableScan":
                node.children[0].measured_in = frozenset((10 * number + 1,))
    assert [issue.sentence for issue in again(*turns) if "SortMergeJoin" in issue.sentence] == []


@pytest.mark.parametrize("again_filled", [True, False])
def test_a_cache_that_is_filled_anew_has_other_rows(again_filled: bool) -> None:
    """Tables that it was made of may have been written in between: nothing says that they were not."""
    filling = joined(1)
    for node in filling.nodes():
        if node.name == "InMemoryTableScan":
            node.children[0].measured_in = frozenset((11,))
    between = [filling] if again_filled else []
    assert bool(again(filling, joined(2), *between, joined(3))) is not again_filled


def test_what_only_reads_a_cache() -> None:
    """However often: that is what it is for."""
    plans = (
        Plan()(0, f"HashAggregate(keys=[k#{n}], functions=[])", n, rows=4)(
            1, "Filter (src#1 > 3)", n, rows=50
        )(2, "InMemoryTableScan [src#1, dst#2]", n, rows=100)(3, "Scan parquet db.links", None)
        for n in range(1, 6)
    )
    tops = ("max", "min", "avg", "sum", "count")
    executions = []
    for number, (plan, top) in enumerate(zip(plans, tops, strict=True), 1):
        plan.nodes[0][2] = f"HashAggregate(keys=[k#1], functions=[{top}(src#1)])"
        executions.append(executed(plan, **{f"s{number}": (0, 20)}))
    assert again(*executions) == []


def test_the_issue_of_a_loop_stays_the_same_one() -> None:
    recomputation = Recomputation()
    causes = set()
    for number in range(1, 8):
        recomputation.take(turn(number), "collect at a.py:3")
        causes |= {issue.cause for issue in recomputation.issues()}
    assert len(causes) == 1


def of_cache(caches: Mapping[int, int], source: str = "Scan parquet db.t") -> list[Issue]:
    """Return what is told of scores that are cached, by the RDD that is to keep them in each stage."""
    executions, computed = [], Counter[int]()
    for stage, rdd in caches.items():
        computed[rdd] += 50  # a cache's plan, and so its metrics, go on from one execution to the next
        plan = Plan()(0, f"InMemoryTableScan [score#{stage}]", stage, rows=50)
        plan(1, f"Project [slow(id#{stage}) AS score#{stage}]")
        plan(2, source, stage, rows=computed[rdd])
        execution = executed(plan, **{f"s{stage}": (0, 20)})
        of_stage = replace(execution.stages[stage], kept=frozenset({rdd}))
        executions.append(replace(execution, stages={stage: of_stage}))
    return again(*executions)


def test_what_is_cached_anew_each_time() -> None:
    """Nothing was evicted: each time, another RDD was to keep it."""
    (issue,) = of_cache({0: 7, 1: 23, 2: 36})
    assert issue.lost_ms == 40 * S
    assert "is cached 3 times, each time anew" in issue.sentence
    assert "memory" not in issue.advice


def test_rows_of_the_program_that_are_cached_may_be_others_each_time() -> None:
    assert of_cache({0: 7, 1: 23, 2: 36}, "Scan ExistingRDD[id#1]") == []
    (issue,) = of_cache({0: 7, 1: 7, 2: 7}, "Scan ExistingRDD[id#1]")
    assert "the cache does not keep them" in issue.sentence


def test_what_is_cached_anew_in_a_session_that_lasts() -> None:
    (issue,) = of_cache({stage: 1_000 + stage for stage in range(150)})
    assert "is cached 150 times, each time anew" in issue.sentence


def test_a_cache_that_is_gone_below_others_that_are_new() -> None:
    """Each time, another cache keeps what is made of the first one, which has lost its rows meanwhile."""
    executions = []
    for stage, rdd in ((0, 23), (1, 36), (2, 48)):
        plan = Plan()(0, f"InMemoryTableScan [n#{stage}]", stage, rows=50)
        plan(1, f"Project [(score#1 + {stage}) AS n#{stage}]")
        plan(2, "InMemoryTableScan [score#1]", stage, rows=50)(3, "Project [slow(id#1) AS score#1]")
        plan(4, "Scan parquet db.t", stage, rows=50 * (stage + 1))
        execution = executed(plan, **{f"s{stage}": (0, 20)})
        of_stage = replace(execution.stages[stage], kept=frozenset({7, rdd}))
        executions.append(replace(execution, stages={stage: of_stage}))
    sentences = [issue.sentence for issue in again(*executions)]
    assert sentences
    assert not [sentence for sentence in sentences if "anew" in sentence]


def test_what_the_same_cache_has_lost() -> None:
    (issue,) = of_cache({0: 7, 1: 7, 2: 7})
    assert "the cache does not keep them" in issue.sentence


@pytest.mark.parametrize("rdds", [(7, None), (None, 7), (None, None), (7, 7)])
def test_rows_of_a_cache_of_which_the_rdd_is_not_always_known(rdds: tuple[int | None, ...]) -> None:
    """A stage may keep other RDDs, too: what the metrics count so far is not added to what they did before."""
    computed = PlanPart("d", "the same Project", 2, True, False)
    for rdd, rows in zip(rdds, (50, 80), strict=True):
        computed.count_rows(rdd, rows)
    assert computed.rows == 80
    computed.count_rows(23, 40)
    assert computed.rows == (80 if rdds == (None, None) else 120)


def part(name: str, *passes: tuple[set[int], int]) -> PlanPart:
    all_ms = sum(time_ms for _, time_ms in passes)
    of = [Pass(frozenset(stages), time_ms) for stages, time_ms in passes]
    return PlanPart(name, name, 2, False, False, len(passes), all_ms, passes=of)


def test_parts_of_several_stages() -> None:
    """A larger part of two stages counts what it takes besides the smaller one in the first of them."""
    small = part("small", ({1}, 5), ({3}, 5))
    large = part("large", ({1, 2}, 8), ({3, 4}, 8))
    (group,) = groups_of([large, small], {})
    assert (group.lost_ms, group.parts) == (8, [large, small])
    (group,) = groups_of([small, large], {})
    assert group.lost_ms == 8
    other = part("other", ({5}, 4), ({6}, 4))
    assert [group.lost_ms for group in groups_of([large, other], {})] == [8, 4]


def test_one_pass_is_needed_of_parts_that_contain_each_other() -> None:
    """Whichever of them need other columns, and so may have another pass that takes longest."""
    passes = ({7}, 6), ({10}, 5), ({13}, 8)
    plain, columns = part("plain", *passes), replace(part("columns", *passes), other_columns=True)
    for parts, lost_ms in (([plain, columns], 13), ([columns, plain], 11)):
        (group,) = groups_of(parts, {})
        assert group.lost_ms == lost_ms


def test_two_that_are_a_part_of_a_third_later() -> None:
    """What each had cost before was told of it, and is not told again of the other."""
    causes: dict[str, str] = {}
    one, two = part("one", ({1}, 5), ({2}, 5)), part("two", ({3}, 5), ({4}, 5))
    assert {group.cause: group.lost_ms for group in groups_of([one, two], causes)} == {"one": 5, "two": 5}
    one = part("one", ({1}, 5), ({2}, 5), ({5}, 5), ({6}, 5))
    two = part("two", ({3}, 5), ({4}, 5), ({5}, 5), ({6}, 5))
    both = part("both", ({5}, 12), ({6}, 12))
    groups = {group.cause: group.lost_ms for group in groups_of([one, two, both], causes)}
    assert groups.keys() == {"one", "two"}
    # Of each the second and third time, and of what is made of both the second time.
    assert sum(groups.values()) == 5 + 5 + 5 + 12


def frame(name: str, source: str, place: str, lost_ms: int, **of: object) -> PartGroup:
    one = replace(part(name, ({1}, lost_ms), ({2}, lost_ms)), sources=(source,), places={place: None})
    return PartGroup(name, [replace(one, **of)], lost_ms)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (frame("b", "orders", "x.py:4", 6), {"a": 15, "c": 3}),
        (frame("b", "customers", "x.py:4", 6), {"a": 9, "b": 6, "c": 3}),
        (frame("b", "orders", "y.py:8", 6), {"a": 9, "b": 6, "c": 3}),
        (frame("b", "orders", "x.py:4", 6, is_known=False), {"a": 9, "b": 6, "c": 3}),
        (frame("b", "orders", "x.py:4", 6, cached=True), {"a": 9, "b": 6, "c": 3}),
    ],
    ids=["of one frame", "of another table", "at another place", "in unknown time", "of a cache"],
)
def test_parts_of_one_frame(other: PartGroup, told: dict[str, int]) -> None:
    """Each may cost less than is worth a word, and yet all of them much."""
    groups = [frame("a", "orders", "x.py:4", 9), other, frame("c", "items", "x.py:4", 3)]
    frames = frames_of(groups, {})
    assert {each.cause: each.lost_ms for each in frames} == told
    assert frames[0].besides_ms == told["a"] - 9


def turns_of(*of_parts: tuple[int, int, str]) -> list[PartGroup]:
    """Return groups of one part each, by how often that was computed, its size, and the place that it was for."""
    groups = []
    for number, (times, size, place) in enumerate(of_parts):
        group = frame(f"p{number}", "t", "x.py:4", 5)
        places = {"x.py:4": None, place: None}
        group.parts[0] = replace(group.parts[0], times=times, size=size, places=places)
        groups.append(replace(group, differing={times}))
    return groups


@pytest.mark.parametrize(
    ("groups", "grows"),
    [
        (turns_of((4, 3, "x.py:4"), (3, 6, "x.py:4"), (2, 9, "x.py:4")), True),
        (turns_of((4, 9, "x.py:4"), (3, 3, "x.py:4"), (2, 6, "x.py:4")), False),
        (turns_of((4, 3, "x.py:4"), (3, 6, "y.py:7"), (2, 9, "z.py:9")), False),
    ],
    ids=["each is made of the one before", "some are smaller", "for other places as well"],
)
def test_parts_of_one_frame_that_are_no_loop(groups: list[PartGroup], grows: bool) -> None:
    """However often each is computed: only what a loop makes grows by as much with each turn, at one place."""
    (one_frame,) = frames_of(groups, {})
    assert one_frame.lost_ms == 15
    assert one_frame.grows is grows


def test_a_part_stays_where_it_was_told_first() -> None:
    """However much each costs later: else something would be told twice."""
    leaders: dict[str, str] = {}
    first = frames_of([frame("a", "t", "x.py:4", 9), frame("b", "t", "y.py:8", 6)], leaders)
    assert [each.cause for each in first] == ["a", "b"]
    both = replace(frame("b", "t", "y.py:8", 20).parts[0], places={"x.py:4": None, "y.py:8": None})
    later = frames_of(
        [PartGroup("b", [both], 20), frame("a", "t", "x.py:4", 9), frame("c", "t", "x.py:4", 2)], leaders
    )
    assert {each.cause: each.lost_ms for each in later} == {"b": 22, "a": 9}


@given(st.lists(st.lists(st.tuples(st.sets(st.integers(0, 9), min_size=1), st.integers(0, 9)), max_size=5)))
def test_no_stage_is_lost_twice(of_parts: list[list[tuple[set[int], int]]]) -> None:
    """What groups have cost is no more than all stages took, if each part took no longer than its stages."""
    took_ms = 9
    fitting = [
        [(stages, min(time_ms, took_ms * len(stages))) for stages, time_ms in passes] for passes in of_parts
    ]
    groups = groups_of([part(str(number), *passes) for number, passes in enumerate(fitting)], {})
    stages = {stage for passes in fitting for each, _ in passes[1:] for stage in each}
    assert sum(group.lost_ms for group in groups) <= took_ms * len(stages)


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (["count at a.py:1", "count"], "count at a.py:1, count()"),
        (["count", "take", "show"], "count(), take(), show()"),
        (["count", "take", "show", "first"], "count(), take(), show() and others"),
    ],
)
def test_more_places_than_are_said(places: list[str], said: str) -> None:
    assert named_places(places) == said


def exploded(number: int) -> EndedExecution:
    """Return a turn of a loop that joins what the turns before have made with the same table, sent once.

    Each join has a stage of its own, of 2 s.
    """
    first = 10 * number
    plan = Plan()(0, f"HashAggregate(keys=[], functions=[sum(part#{number})])", first, rows=1)
    for turn in range(number, 0, -1):
        depth, stage = 2 * (number - turn) + 1, first + turn
        plan(depth, f"Exchange hashpartitioning(part#{turn}, 8)", stage, shuffle_records_written=50)
        plan(depth + 1, f"SortMergeJoin [part#{turn}], [of#{turn + 90}], Inner", stage, rows=50)
    plan(2 * number + 1, "Scan parquet db.plan [part#1]", first + 1, rows=100)
    for turn in range(1, number + 1):
        depth = 2 * (number - turn) + 3
        if turn > 1:
            plan(depth, f"ReusedExchange [of#{turn + 90}], Exchange hashpartitioning(of#91, 8)", None)
        plan(depth + (turn > 1), "Exchange hashpartitioning(of#91, 8)", first, shuffle_records_written=9)
        plan(depth + 1 + (turn > 1), "Scan parquet db.parts [of#91]", first, rows=9)
    stages = {f"s{first + turn}": (2 * turn, 2 * turn + 2) for turn in range(number + 1)}
    return executed(plan, **stages)


def test_a_loop_whose_turns_reuse_an_exchange() -> None:
    """What is reused is what the exchange has that is computed: the joins above it are the same each time."""
    issue = again(*map(exploded, range(1, 6)))[0]
    assert issue.lost_ms == 2 * S * (15 - 5)
    assert "as in a loop" in issue.sentence
    assert issue.sentence.startswith("the same SortMergeJoin of db.plan, db.parts is computed")

"""The rules about plans: each with a plan that has the issue, and a healthy one that differs in little."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from spark_events.diagnosis.costly_nodes.joins import joins
from spark_events.diagnosis.costly_nodes.one_task import why_few_tasks, windows_over_all
from spark_events.diagnosis.costly_nodes.scans import full_scans
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, read_stage
from spark_events.diagnosis.plans.node import MetricValue
from spark_events.diagnosis.plans.recorded_plans import read_plans
from spark_events.diagnosis.plans.work_in_stage import WorkInStages
from spark_events.diagnosis.repeated_work.batches import computed_again
from spark_events.diagnosis.repeated_work.parsed_again import parsed_again
from spark_events.diagnosis.repeated_work.recomputation import Recomputation
from spark_events.diagnosis.stages.python_time import FASTER_FUNCTIONS, SMALL_BATCH
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.writes.rewrites import rewrites
from spark_events.listeners.issues.executions import Executions, explained
from spark_events.listeners.issues.findings import named
from tests.support.plans import Plan, S, executed

MIB = 1 << 20
Rule = Callable[[EndedExecution, Thresholds], Iterator[Issue]]


def told(rule: Rule, execution: EndedExecution) -> dict[str, Issue]:
    return {issue.kind: issue for issue in rule(execution, Thresholds())}


def join(rows: int, text: str = "SortMergeJoin [key#1L], [id#2L], Inner", right: int = 1_000) -> Plan:
    """Return a join of two tables of 2,000 and of other rows, in stage 3."""
    return Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", 4, rows=1)(1, "WholeStageCodegen (3)")(
        2, text, 3, rows=rows
    )(3, "InputAdapter")(4, "Exchange hashpartitioning(key#1L, 8)", 1, shuffle_records_written=2_000)(
        5, "Scan parquet db.orders [key#1L]", 1, rows=2_000
    )(3, "ShuffleQueryStage 1")(4, "Exchange hashpartitioning(id#2L, 8)", 2, shuffle_records_written=right)(
        5, "Scan parquet db.customers [id#2L]", 2, rows=right
    )


def test_an_exploding_join() -> None:
    """It makes 500 times as many rows as its larger side has; without them, its stage would take no time."""
    issue = told(joins, executed(join(1_000_000), s1=(0, 5), s2=(0, 5), s3=(5, 45), s4=(45, 46)))[
        "exploding-join"
    ]
    assert issue.lost_ms == 40 * S * (1_000_000 - 2_000) // 1_000_000
    assert issue.stages == {3}
    assert "on key = id makes 1,000,000 rows of 2,000 and 1,000" in issue.sentence
    assert "orders" in issue.sentence


@pytest.mark.parametrize("rows", [1_000_000, 4_000])
def test_an_exploding_join_of_two_streams(rows: int) -> None:
    """Its new rows meet those that it keeps; what is advised can be done in a stream."""
    text = (
        "StreamingSymmetricHashJoin [key#1L], [id#2L], Inner, condition = [ leftOnly = null, rightOnly = null, "
        "both = (t#3-T7200000ms >= u#4-T7200000ms - INTERVAL '01' HOUR)]"
    )
    issues = told(joins, executed(join(rows, text), s1=(0, 5), s2=(0, 5), s3=(5, 45), s4=(45, 46)))
    assert ("exploding-join" in issues) is (rows == 1_000_000)
    for issue in issues.values():
        assert "on key = id makes 1,000,000 rows of 2,000 and 1,000 new ones" in issue.sentence
        assert "that the state keeps" in issue.advice
        assert "over a window" not in issue.advice


@pytest.mark.parametrize(
    ("longest_ms", "name", "said"),
    [
        (120 * S, "SortMergeJoin [key#1L], [id#2L]", True),
        (70 * S, "SortMergeJoin [key#1L], [id#2L]", False),
        (120 * S, "BroadcastHashJoin [key#1L], [id#2L]", False),
    ],
    ids=["of one task", "of several", "where keys divide no rows"],
)
def test_an_exploding_join_in_one_task(longest_ms: int, name: str, said: bool) -> None:
    """A value that many rows of both sides have makes one task late, which no other number of tasks helps."""
    execution = executed(join(1_000_000, name), s1=(0, 5), s2=(0, 5), s3=(5, 45))
    joined = replace(execution.stages[3], longest_ms=longest_ms)
    execution = replace(execution, stages={**execution.stages, 3: joined})
    sentence = told(joins, execution)["exploding-join"].sentence
    late = "; one of its 8 tasks runs for 2 min, the others for 40.0 s in all: one value of key = id"
    assert (late in sentence) is said


@pytest.mark.parametrize(
    ("right", "told_so"),
    [(("db.orders [id#2L]", 2_000), True), (("db.old_orders [id#2L]", 2_000), False)],
    ids=["the same rows", "another table"],
)
@pytest.mark.parametrize("further", ["", ", (a#5 < b#6)"])
def test_a_join_of_rows_with_themselves(right: tuple[str, int], told_so: bool, further: str) -> None:
    """Pairs of rows with the same key: what to do is another thing than for two tables."""
    plan = Plan()(0, f"SortMergeJoin [key#1L], [id#2L], Inner{further}", 3, rows=1_000_000)
    for number, (table, rows) in enumerate((("db.orders [key#1L]", 2_000), right), 1):
        plan = plan(1, "Exchange hashpartitioning(key, 8)", number, shuffle_records_written=rows)
        plan = plan(2, f"Scan parquet {table}", number, rows=rows)
    issue = told(joins, executed(plan, s1=(0, 5), s2=(0, 5), s3=(5, 45)))["exploding-join"]
    assert (
        issue.advice.startswith("Both sides are the same rows, and n rows with the same key = id make")
        == told_so
    )


def test_a_join_of_two_parts_of_a_table() -> None:
    """As many rows of another year are others."""
    plan = Plan()(0, "SortMergeJoin [key#1L], [id#2L], Inner", 3, rows=1_000_000)
    for number, year in enumerate((2023, 2024), 1):
        plan = plan(1, "Exchange hashpartitioning(key, 8)", number, shuffle_records_written=2_000)
        plan = plan(2, f"Filter (year#7 = {year})", number, rows=2_000)
        plan = plan(3, "Scan parquet db.orders [key#1L]", number, rows=4_000)
    issue = told(joins, executed(plan, s1=(0, 5), s2=(0, 5), s3=(5, 45)))["exploding-join"]
    assert issue.advice.startswith("Many rows of both sides have the same key = id")


def deduplicated(kept: int, rows: int = 300_000, steps: str = "first(day#3, false)", above: int = 0) -> Plan:
    """Return a join of 2,000 and 100,000 rows, of whose rows some are kept, one for each value of a column.

    Args:
        above: how many rows are left of a filter between the two; 0 for none.
    """
    partial = ", ".join(f"partial_{step}" for step in steps.split(", ") if step)
    plan = Plan()(0, f"SortAggregate(key=[line#4], functions=[{steps}])", 5, rows=kept)
    plan = plan(1, "Sort [line#4 ASC NULLS FIRST], false, 0", 5)(2, "AQEShuffleRead coalesced", 5)
    plan = plan(3, "Exchange hashpartitioning(line#4, 8)", 4, shuffle_records_written=rows)
    plan = plan(4, f"SortAggregate(key=[line#4], functions=[{partial}])", 3, rows=rows)(
        5, "Project [line#4]", 3
    )
    if above:
        plan = plan(5, "Filter (day#3 > 3)", 3, rows=above)
    plan = plan(6, "SortMergeJoin [key#1L], [id#2L], LeftOuter", 3, rows=rows)
    plan = plan(7, "Exchange hashpartitioning(key#1L, 8)", 1, shuffle_records_written=2_000)
    plan = plan(8, "Scan parquet db.orders [key#1L]", 1, rows=2_000)
    plan = plan(7, "Exchange hashpartitioning(id#2L, 8)", 2, shuffle_records_written=100_000)
    return plan(8, "Scan parquet db.customers [id#2L]", 2, rows=100_000)


@pytest.mark.parametrize("steps", ["first(day#3, false)", ""], ids=["dropDuplicates", "distinct"])
def test_a_join_whose_duplicates_are_dropped(steps: str) -> None:
    """Three times as many rows are enough where nobody needs them."""
    lasted = {"s1": (0, 5), "s2": (0, 5), "s3": (5, 35), "s5": (35, 36)}
    issue = told(joins, executed(deduplicated(2_000, steps=steps), **lasted))["exploding-join"]
    assert issue.lost_ms == 31 * S * 2 // 3
    assert issue.sentence.endswith("of which 2,000 are left once one of each line is kept")
    assert "dropDuplicates" in issue.advice
    assert issue.evidence["join.keptRows"] == 2_000


@pytest.mark.parametrize(
    ("made", "kept", "above", "told_so"),
    [
        (300_000, 2_000, "BroadcastHashJoin [id#2L], [id#9L], Inner, BuildRight", True),
        (300_000, 40_000, "BroadcastHashJoin [id#2L], [id#9L], Inner, BuildRight", False),
        (150_000, 2_000, "BroadcastHashJoin [id#2L], [id#9L], Inner, BuildRight", False),
        (300_000, 2_000, "Filter (day#3 > at#4)", False),
    ],
    ids=["nearly all", "some", "few rows more than it reads", "by a filter on both sides"],
)
def test_a_join_whose_rows_the_next_one_drops(made: int, kept: int, above: str, told_so: bool) -> None:
    """Of keys that stand for nothing, say: many rows of both sides have them, and no row of the next table."""
    plan = Plan()(0, above, 3, rows=kept)(1, "Project [id#2L]", 3)
    plan = plan(2, "SortMergeJoin [key#1L], [id#2L], Inner", 3, rows=made)
    for number, table in ((1, "beats [key#1L]"), (2, "sessions [id#2L]")):
        plan = plan(3, "Exchange hashpartitioning(key, 8)", number, shuffle_records_written=100_000)
        plan = plan(4, f"Scan parquet db.{table}", number, rows=100_000)
    if "Join" in above:
        plan = plan(1, "Exchange hashpartitioning(id#9L, 8)", 4, shuffle_records_written=900)
        plan = plan(2, "Scan parquet db.devices [id#9L]", 4, rows=900)
    found = told(joins, executed(plan, s1=(0, 5), s2=(0, 5), s3=(5, 35))).get("exploding-join")
    assert (found is not None) == told_so
    if found is not None:
        assert found.sentence.endswith("of which the next join, on id, keeps 2,000")
        assert found.lost_ms == 30 * S * 2 // 3


def pairs(kept: int, by: str) -> EndedExecution:
    """Return a join of a table of 100,000 lines of orders with itself, whose pairs are told apart by columns."""
    plan = Plan()(0, f"HashAggregate(keys=[{by}], functions=[])", 4, rows=kept)
    plan = plan(1, "Exchange hashpartitioning(p#2, 8)", 3, shuffle_records_written=kept)
    plan = plan(2, f"HashAggregate(keys=[{by}], functions=[])", 3, rows=kept)
    plan = plan(3, "SortMergeJoin [order#1], [order#3], Inner", 3, rows=500_000)
    for number, side in ((1, "order#1,p#2"), (2, "order#3,p#4")):
        plan = plan(4, "Exchange hashpartitioning(order, 8)", number, shuffle_records_written=100_000)
        plan = plan(5, f"Scan parquet db.lines [{side}]", number, rows=100_000)
    return executed(plan, s1=(0, 5), s2=(0, 5), s3=(5, 35))


@pytest.mark.parametrize(
    ("kept", "by", "told_so"),
    [
        (60_000, "p#2, p#4", False),
        (60_000, "order#1, p#2", True),
        (95_000, "p#2, p#4", True),
        (60_000, "", False),
    ],
    ids=["pairs of both", "of one side", "as many as one side has", "by nothing"],
)
def test_pairs_that_are_asked_for_are_no_copies(kept: int, by: str, told_so: bool) -> None:
    """Which products are bought together: no line can be left out before the join."""
    assert ("exploding-join" in told(joins, pairs(kept, by))) is told_so


@pytest.mark.parametrize(
    ("condition", "told_so"),
    [("", True), (", NOT (a#8 = b#9)", False), (", (valid_from#6 <= day#3)", True)],
    ids=["equal", "another condition", "until a time"],
)
def test_a_join_of_whose_rows_the_first_by_a_window_is_kept(condition: str, told_so: bool) -> None:
    """The last row until a time is found by a window alone, too."""
    limit = "WindowGroupLimit [line#4], [version#5 DESC NULLS LAST], row_number(), 1, "
    plan = Plan()(0, "Filter (rn#7 = 1)", 5, rows=2_000)(
        1, "Window [row_number() windowspecdefinition(line#4)]", 5
    )
    plan = plan(2, f"{limit}Final", 5)(
        3, "Exchange hashpartitioning(line#4, 8)", 4, shuffle_records_written=2_000
    )
    plan = plan(4, f"{limit}Partial", 3, rows=2_000)(5, "Sort [line#4 ASC NULLS FIRST], false, 0", 3)
    plan = plan(6, f"SortMergeJoin [key#1L], [id#2L], Inner{condition}", 3, rows=300_000)
    for number, rows in ((1, 2_000), (2, 100_000)):
        plan = plan(7, f"Exchange hashpartitioning(k#{number}, 8)", number, shuffle_records_written=rows)
        plan = plan(8, f"Scan parquet db.t{number} [k#{number}]", number, rows=rows)
    found = told(joins, executed(plan, s1=(0, 5), s2=(0, 5), s3=(5, 35)))
    assert ("exploding-join" in found) is told_so
    if told_so:
        assert found["exploding-join"].sentence.endswith("2,000 are left once one of each line is kept")
        assert ("ignorenulls" in found["exploding-join"].advice) is bool(condition)


@pytest.mark.parametrize(
    "plan",
    [
        deduplicated(2_000, rows=199_999),
        deduplicated(200_000),
        deduplicated(2_000, steps="sum(day#3)"),
        deduplicated(2_000, steps="first(day#3, false), sum(price#5)"),
        deduplicated(2_000, above=100_000),
    ],
    ids=[
        "few more rows",
        "most are kept",
        "all are needed",
        "all are needed for a sum",
        "a filter leaves some out",
    ],
)
def test_a_join_of_whose_rows_most_are_needed(plan: Plan) -> None:
    assert "exploding-join" not in told(joins, executed(plan, s1=(0, 5), s2=(0, 5), s3=(5, 35)))


def test_a_join_of_all_with_few() -> None:
    """With a total, say: however many rows the other side has, each is compared with nine at most."""
    name = "BroadcastNestedLoopJoin BuildRight, Inner, (a#1 < b#2)"
    plan = Plan()(0, name, 3, rows=9)
    for side, rows in ((1, 2_000_000), (2, 9)):
        plan(1, "BroadcastExchange" if side == 2 else "InputAdapter")(2, "Scan parquet db.t", side, rows=rows)
    assert "cross-join" not in told(joins, executed(plan, s1=(0, 5), s2=(0, 5), s3=(5, 45)))


@pytest.mark.parametrize(("rows", "right"), [(19_999, 1_000), (1_000_000, 100_001), (99_999, 10)])
def test_a_join_that_makes_few_rows_more(rows: int, right: int) -> None:
    assert "exploding-join" not in told(joins, executed(join(rows, right=right), s3=(5, 45)))


@pytest.mark.parametrize(
    "name", ["CartesianProduct", "BroadcastNestedLoopJoin BuildRight, Inner, (a#1 < b#2)"]
)
def test_a_join_of_all_with_all(name: str) -> None:
    issue = told(joins, executed(join(10, name), s3=(5, 45)))["cross-join"]
    assert issue.lost_ms == 40 * S
    assert "each of 2,000 rows with each of 1,000: 2,000,000 pairs" in issue.sentence
    assert ("condition on a, b is not an equality" in issue.sentence) == ("Nested" in name)
    assert "cross-join" not in told(joins, executed(join(10, name, right=49), s3=(5, 45)))


@pytest.mark.parametrize(
    ("condition", "of_text"),
    [
        ("body#1 LIKE concat(%, word#2, %)", True),
        ("Contains(body#1, word#2)", True),
        ("(likes#1 < b#2)", False),
        ("((at#1 >= from#2) AND StartsWith(machine#3, line#4))", False),
        ("number#1 LIKE concat(prefix#2, %)", None),
        ("StartsWith(number#1, prefix#2)", None),
    ],
)
def test_what_to_do_about_text_in_other_text(condition: str, of_text: bool | None) -> None:
    """No range of values has all texts that contain another one, nor need words where these begin alike."""
    name = f"BroadcastNestedLoopJoin BuildRight, Inner, {condition}"
    issue = told(joins, executed(join(10, name), s3=(5, 45)))["cross-join"]
    assert ("compare its words" in issue.advice) == (of_text is True)
    assert ("bucket of the value" in issue.advice) == (of_text is False)
    assert ("left(column, n)" in issue.advice) == ("StartsWith" in condition or "(prefix" in condition)


@pytest.mark.parametrize(
    "condition", ["array_contains(codes#6, code#1)", "((at#1 > at#2) AND arrays_overlap(codes#6, others#1))"]
)
def test_what_to_do_about_elements_of_arrays(condition: str) -> None:
    name = f"BroadcastNestedLoopJoin BuildRight, Inner, {condition}"
    issue = told(joins, executed(join(10, name), s3=(5, 45)))["cross-join"]
    assert issue.advice.startswith("Explode the array (explode(codes)) before the join")


def test_an_array_that_is_asked_for_a_constant_is_none_of_the_join() -> None:
    """An outer join keeps such a condition: what takes it long is the range."""
    name = "BroadcastNestedLoopJoin BuildRight, LeftOuter, ((at#1 > at#2) AND array_contains(codes#6, vip))"
    issue = told(joins, executed(join(10, name), s3=(5, 45)))["cross-join"]
    assert "bucket of the value" in issue.advice
    assert "Explode the array" not in issue.advice


@pytest.mark.parametrize(("rows", "is_known"), [(100, True), (900, False)])
@pytest.mark.parametrize(
    ("beside", "counts"),
    [
        (
            "ObjectHashAggregate(keys=[k#1], functions=[percentile_approx(v#3, 0.95, ... 2 more fields)])",
            True,
        ),
        ("HashAggregate(keys=[k#1], functions=[partial_sum(v#3)])", False),
        ("BroadcastHashJoin [k#1], [k#5], Inner, BuildRight", False),
    ],
    ids=["what may take long", "a sum", "a look-up"],
)
def test_what_is_done_beside_all_pairs(rows: int, is_known: bool, beside: str, counts: bool) -> None:
    """Where other work in the stage may take as long, nobody knows what the pairs take of it."""
    plan, kept = (Plan()(0, beside, 3, rows=of_join) for of_join in (rows, 400_000))
    for each, of_join in (
        (plan, rows),
        (kept, 400_000),
    ):  # most pairs are kept, and work on these is for them
        each(1, "BroadcastNestedLoopJoin BuildRight, Inner, (a#1 < b#2)", 3, rows=of_join)
        for side, of in ((1, 4_000), (2, 1_000)):
            each(2, "BroadcastExchange" if side == 2 else "InputAdapter")(
                2 + (side == 2), "Scan parquet db.t", 3 if side == 1 else 2, rows=of
            )
    issue = told(joins, executed(plan, s2=(0, 5), s3=(5, 45)))["cross-join"]
    is_known = is_known or not counts
    assert told(joins, executed(kept, s2=(0, 5), s3=(5, 45)))["cross-join"].lost_ms == 40 * S
    assert (issue.lost_ms, issue.share_ms) == ((40 * S, None) if is_known else (None, 40 * S))


def test_all_pairs_that_functions_in_python_take() -> None:
    """What these take is not the join's, such as to price each position in each scenario."""
    name = "BroadcastNestedLoopJoin BuildRight, Cross"
    plan = Plan()(0, "Project [pnl#5]", 3)
    plan(1, "ArrowEvalPython [price(a#1, b#2)#5], [pnl#5]", 3, time_to_run_Python_workers=28_000)
    plan(2, name, 3, rows=2_000_000)(3, "Scan parquet db.left [a#1]", 3, rows=2_000)
    plan(3, "BroadcastExchange HashedRelation", 2, rows=1_000)(
        4, "Scan parquet db.right [b#2]", 2, rows=1_000
    )
    execution = executed(plan, s2=(0, 5), s3=(5, 45))
    run_ms = execution.stages[103].run_ms if 103 in execution.stages else execution.stages[3].run_ms
    issue = told(joins, execution)["cross-join"]
    assert issue.lost_ms == pytest.approx(40 * S * (1 - 28_000 / run_ms), abs=2)
    assert "pairs each of 2,000 rows with each of 1,000" in issue.sentence
    assert issue.advice.startswith("Unless each pair is needed")


def test_the_latest_row_before_each() -> None:
    """An equal key and a limit: rows of one key are many, and nothing is missing in the condition."""
    name = "SortMergeJoin [k#1], [k#2], Inner, (at#3 <= ts#4)"
    issue = told(joins, executed(join(2_000_000, name), s3=(5, 45)))["exploding-join"]
    assert "on k, and on at, ts, makes 2,000,000 rows" in issue.sentence
    assert "last(…, ignorenulls=True) over a window by k" in issue.advice
    equal = told(joins, executed(join(2_000_000), s3=(5, 45)))["exploding-join"]
    assert "ignorenulls" not in equal.advice


@pytest.mark.parametrize(
    ("kind", "condition", "is_not_in"),
    [
        ("LeftAnti", "(((a#1 = b#2) OR isnull((a#1 = b#2))) AND ((c#3 = d#4) OR isnull((c#3 = d#4))))", True),
        ("LeftAnti", "(a#1 < b#2)", False),
        ("LeftAnti", "((a#1 < b#2) OR isnull((c#3 + d#4)))", False),
        ("LeftAnti", "((a#1 = cast(b#2 as int)) OR isnull((a#1 = cast(b#2 as int))))", True),
        ("Inner", "((a#1 = b#2) OR isnull((a#1 = b#2)))", False),
    ],
)
def test_not_in(kind: str, condition: str, is_not_in: bool) -> None:
    """Of values that may be NULL, it is no equality; NOT EXISTS is."""
    name = f"BroadcastNestedLoopJoin BuildRight, {kind}, {condition}"
    issue = told(joins, executed(join(10, name), s3=(5, 45)))["cross-join"]
    assert ("because NOT IN on a, b" in issue.sentence) is is_not_in
    assert issue.advice.startswith("Write NOT EXISTS") is is_not_in


@pytest.mark.parametrize(
    ("kind", "condition", "advice"),
    [
        ("Inner", "((a#1 = b#2) OR (c#3 = d#4))", "Write one join"),
        (
            "Inner",
            "(((a#1 = b#2) OR (lower(c#3) = lower(d#4))) OR (cast(e#5 as bigint) <=> b#2))",
            "Write one join",
        ),
        ("Inner", "((coalesce(a#1, ) = coalesce(b#2, )) OR ((c#3 = d#4) AND (c#3 < b#2)))", "Write one join"),
        ("Inner", "(((a#1 = b#2) OR (c#3 = d#4)) AND (c#3 < b#2))", "Write one join"),
        ("LeftSemi", "a#1 IN (b#2,d#4)", "Write one join"),
        ("LeftAnti", "((a#1 = b#2) OR (c#3 = d#4))", "Write one anti join"),
        ("LeftOuter", "((a#1 = b#2) OR (c#3 = d#4))", "Write one join"),
        ("Inner", "((a#1 = b#2) OR (c#3 < d#4))", "Join by a column"),
        ("Inner", "((a#1 = b#2) OR (c#3 = 7))", "Join by a column"),
        ("Inner", "((a#1 = c#3) OR (c#3 = d#4))", "Join by a column"),
        ("Inner", "((a#1 <= b#2) AND (c#3 >= d#4))", "Join by a column"),
        ("Inner", "((a#1 = b#2) OR (c#3 = d#4", "Join by a column"),
        ("Inner", "((a#1 < b#2) OR (concat(a#1,  = x OR y = ) < b#2))", "Join by a column"),
    ],
)
def test_equalities_joined_by_or(kind: str, condition: str, advice: str) -> None:
    """Spark looks rows up by equalities of which all hold; of others, it compares all pairs."""
    plan = Plan()(0, f"BroadcastNestedLoopJoin BuildRight, {kind}, {condition}", 3, rows=10)
    for side, of in ((1, "a#1,c#3,e#5"), (2, "b#2,d#4")):
        plan(1, "BroadcastExchange" if side == 2 else "InputAdapter")(
            2, f"Scan parquet db.t [{of}]", side, rows=2_000
        )
    issue = told(joins, executed(plan, s1=(0, 5), s2=(0, 5), s3=(5, 45)))["cross-join"]
    assert issue.advice.startswith(advice)
    assert ("is equalities joined by OR" in issue.sentence) is advice.startswith("Write")
    assert ("outer side" in issue.advice) is (kind == "LeftOuter")


def test_equalities_joined_by_or_without_a_broadcast() -> None:
    plan = join(10, "CartesianProduct ((a#1 = b#2) OR (c#3 = d#4))")
    issue = told(joins, executed(plan, s3=(5, 45)))["cross-join"]
    assert issue.sentence.endswith(" pairs, because its condition on a, b, c, d is equalities joined by OR")


SHUFFLED_MS = round(200 * MIB * 8e-6 / 4)
"""What 200 MiB take four cores at least, by their bytes alone."""


def test_a_large_broadcast() -> None:
    """What the driver collects counts without the stage whose rows these are, and beyond a shuffle."""
    times = {"time_to_collect": 9 * S, "time_to_build": 3 * S, "time_to_broadcast": 2 * S}

    def plan(data: int, rows: int = 9) -> Plan:
        return Plan()(0, "BroadcastHashJoin [a#1], [b#2], Inner", 2, rows=10)(
            1, "Scan csv db.small", 2, rows=rows
        )(1, "BroadcastExchange HashedRelationBroadcastMode", None, rows=rows, data_size=data, **times)(
            2, "Scan csv db.large", 1, rows=rows
        )

    issue = told(joins, executed(plan(200 * MIB), s1=(0, 5), s2=(15, 20)))["large-broadcast"]
    assert issue.lost_ms == (9 - 5 + 3 + 2) * S - SHUFFLED_MS
    assert "collects 200 MiB (9 rows of db.large)" in issue.sentence
    # To shuffle and to sort 8,000,000 rows of each side instead takes four cores 700 ns a row, too.
    issue = told(joins, executed(plan(200 * MIB, 8_000_000), s1=(0, 5), s2=(15, 20)))["large-broadcast"]
    assert issue.lost_ms == 9 * S - SHUFFLED_MS - 2_800
    # What Spark allocates for a handful of rows.
    assert told(joins, executed(plan(64 * MIB + 32), s1=(0, 5))) == {}


def shuffled(
    small: int,
    large: int = 500 * MIB,
    kind: str = "Inner",
    scan: str = "Scan parquet db.small",
    at: str = "",
    rows: int = 9,
) -> EndedExecution:
    plan = Plan()(0, f"SortMergeJoin [a#1], [b#2], {kind}", 3, rows=max(10, rows))(
        1, "Sort [a#1 ASC]", 3, sort_time=80 * S
    )(2, "Exchange hashpartitioning(a#1, 8)", 1, data_size=large)(3, "Scan parquet db.large", 1, rows=rows)(
        1, "Sort [b#2 ASC]", 3, sort_time=0
    )(2, "Exchange hashpartitioning(b#2, 8)", 2, data_size=small)(3, scan, 2, {"Location": at}, rows=9)
    return executed(plan, s1=(0, 10), s2=(0, 1), s3=(10, 50))


def test_a_missing_broadcast() -> None:
    """Half of the time of the join's tasks goes into sorting, which a broadcast of the small side saves."""
    issue = told(joins, shuffled(MIB))["missing-broadcast"]
    assert issue.lost_ms == 20 * S
    assert "though its other side (db.small) has 1 MiB only" in issue.sentence
    assert "/*+ BROADCAST(db.small) */" in issue.advice


@pytest.mark.parametrize(
    ("rows", "large", "lost_s"),
    [
        (100_000_000, 500 * MIB, 20),  # sorting them takes longer
        (180_000_000, 500_000_000, 32.5),
        (40_000_000, 20_000_000_000, 47),
        (900_000_000, 500 * MIB, 50),  # as long as the stages took
    ],
)
def test_what_spark_does_not_measure_of_a_shuffle_counts(rows: int, large: int, lost_s: float) -> None:
    """Serializing, fetching and merging: 0.7 µs for each row and 8 ns for each byte, on four cores."""
    assert told(joins, shuffled(MIB, large, rows=rows))["missing-broadcast"].lost_ms == lost_s * S


def test_the_hint_of_a_missing_broadcast_can_be_written() -> None:
    """A hint takes a table or an alias, and no path."""
    issue = told(joins, shuffled(MIB, scan="Scan parquet", at="InMemoryFileIndex(1 paths)[file:/s]"))[
        "missing-broadcast"
    ]
    assert "though its other side (file:/s) has 1 MiB only" in issue.sentence
    assert "/*+ BROADCAST(alias) */" in issue.advice


@pytest.mark.parametrize(
    "healthy",
    [
        shuffled(11 * MIB),
        shuffled(MIB, 7 * MIB),
        shuffled(0),
        shuffled(MIB, kind="FullOuter"),
        shuffled(MIB, kind="RightOuter"),
    ],
    ids=["too large", "both small", "nothing known", "both sides are kept", "the small side is looked up"],
)
def test_no_missing_broadcast(healthy: EndedExecution) -> None:
    assert told(joins, healthy) == {}


PROJECTED = "Project [a#1, sha2(cast(a#1 as string), 256) AS n#4]"


def selective(
    rows: int,
    *above: str,
    key: str = "a#1",
    project: tuple[str, ...] = (PROJECTED,),
    filtered: str = "Filter isnotnull(a#1)",
    scan_s: int | None = 4,
) -> EndedExecution:
    """Return a join that makes so many of its large side's 1,000 rows; reading those takes so many s of 40."""
    plan, depth = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand", 3), 1
    for text in above:
        plan, depth = plan(depth, text, 3), depth + 1
    scan = {} if scan_s is None else {"scan_time": scan_s * S}
    plan(depth, f"SortMergeJoin [{key}], [b#2], Inner", 3, rows=rows)(
        depth + 1, "Exchange hashpartitioning(a#1, 8)", 1, data_size=500 * MIB, shuffle_records_written=1_000
    )
    for number, text in enumerate(project):
        plan(depth + 2 + number, text, 1)
    below = depth + 2 + len(project)
    plan(below, filtered, 1, rows=1_000)(below + 1, "Scan parquet db.large", 1, rows=1_000, **scan)(
        depth + 1, "Exchange hashpartitioning(b#2, 8)", 2, data_size=MIB
    )(depth + 2, "Scan parquet db.small", 2, rows=9)
    return executed(plan, s1=(0, 10), s2=(0, 1), s3=(10, 50))


@pytest.mark.parametrize(
    ("execution", "lost_s"),
    [
        (selective(100), 36 + 8.1),
        (
            selective(100, "Project [a#1, n#4]", "HashAggregate(keys=[n#4], functions=[partial_count(1)])"),
            44.1,
        ),
        (selective(100, "Project [slow_function(a#1)]"), 8.1),
        (selective(100, "BatchEvalPython [f(a#1)#9], [x#8]"), 8.1),
        (selective(100, filtered="Filter slow_function(a#1)"), 36),
        (selective(100, scan_s=None), 36),
        (selective(100, scan_s=40), 36),
        (selective(1_000), 1.048),  # 500 MiB are moved
    ],
    ids=[
        "nine of ten rows are dropped",
        "little is done with the others",
        "a function that may take long",
        "a Python function",
        "a filter that may take long",
        "how long it reads is not known",
        "it only reads",
        "no row is dropped",
    ],
)
def test_a_broadcast_saves_what_is_done_with_rows_that_the_join_drops(
    execution: EndedExecution, lost_s: float
) -> None:
    assert told(joins, execution)["missing-broadcast"].lost_ms == round(lost_s * S)


@pytest.mark.parametrize(
    ("key", "project", "lost_s"),
    [
        ("k#4", "Project [sha2(cast(a#1 as string), 256) AS k#4]", 36),
        ("k#7", "Project [k#4 AS k#7]; Project [sha2(cast(a#1 as string), 256) AS k#4]", 36),
        ("k#4", "Project [sha2(concat(a#1, )), 256) AS k#4]", 36),
        ("k#4", "Project [a#1, ... 30 more fields]", 36),
        ("sha2(cast(a#1 as string), 256)", "Project [a#1]", 36),
        ("k#4L", "Project [(cast(a#1 as bigint) % 9) AS k#4L, sha2(b#2, 256) AS n#5]", 44.1),
        ("cast(a#1 as bigint)", PROJECTED, 44.1),
    ],
    ids=[
        "by a function that may take long",
        "which has another name by now",
        "with a bracket in a text",
        "nobody knows how",
        "at the shuffle",
        "in no time",
        "in no time, at the shuffle",
    ],
)
def test_the_keys_of_rows_that_a_join_drops_are_computed(key: str, project: str, lost_s: float) -> None:
    """A broadcast of the small side does not save that."""
    issue = told(joins, selective(100, key=key, project=tuple(project.split("; "))))["missing-broadcast"]
    assert issue.lost_ms == round(lost_s * S)


OTHER = "Broadcast the other side of the join instead, which has 9 rows"
SHUFFLE = "Let Spark shuffle this join"


@pytest.mark.parametrize(
    ("other", "bytes_of_other", "kind", "lost_s", "advice"),
    [
        ((9, "Scan csv db.calls[a#1L]"), 0, "Inner", 14.4, f"{OTHER}: hint"),
        ((9, "Exchange hashpartitioning(a#1, 8)"), 10 * MIB, "Inner", 14.4, f"{OTHER}: hint"),
        ((9, "Exchange hashpartitioning(a#1, 8)"), 99 * MIB, "Inner", 6 - SHUFFLED_MS / S, SHUFFLE),
        ((9, "Scan csv db.calls[a#1L,note#6]"), 0, "Inner", 6, f"{OTHER}, if that is smaller: hint"),
        (
            (9, "Scan csv db.calls[a#1L,... 30 more fields]"),
            0,
            "Inner",
            6,
            f"{OTHER}, if that is smaller: hint",
        ),
        ((9, "Scan csv db.calls[a#1L]"), 0, "LeftOuter", 6 - SHUFFLED_MS / S, SHUFFLE),
        ((900, "Scan csv db.calls[a#1L]"), 0, "Inner", 6 - SHUFFLED_MS / S, SHUFFLE),
    ],
    ids=[
        "the other side has a few numbers",
        "it is known to be small",
        "it has large rows",
        "it has texts",
        "it has columns that nobody knows",
        "it cannot be broadcast",
        "it has as many rows",
    ],
)
def test_the_wrong_side_is_broadcast(
    other: tuple[int, str], bytes_of_other: int, kind: str, lost_s: float, advice: str
) -> None:
    """Then its rows are computed although the join drops most of them: 9.99 s of 10 s, without reading them."""
    of_other = {"data_size": bytes_of_other} if bytes_of_other else {}
    plan = Plan()(0, f"BroadcastHashJoin [a#1], [b#2], {kind}", 2, rows=1)(
        1, other[1], 2, rows=other[0], **of_other
    )(
        1,
        "BroadcastExchange HashedRelationBroadcastMode",
        None,
        rows=1_000,
        data_size=200 * MIB,
        time_to_build=6 * S,
    )(2, "Project [b#2, sha2(b#2, 256) AS n#3]", 1)(
        3, "Scan parquet db.people", 1, rows=1_000, scan_time=6_366
    )
    issue = told(joins, executed(plan, s1=(0, 10), s2=(15, 20)))["large-broadcast"]
    assert issue.lost_ms is not None
    assert abs(issue.lost_ms - lost_s * S) <= 2
    assert (issue.driver_ms, issue.driver_span_ms) == (6 * S, (10 * S, 15 * S))
    assert "for a join on a = b" in issue.sentence
    assert issue.advice.startswith(advice)


def test_sides_without_a_name_are_told_by_their_columns() -> None:
    plan = Plan()(0, "CartesianProduct", 3)(1, "Project [id#1L AS buyer#2L]", 1, rows=2_000)(
        1, "Project [id#3L AS seller#4L, (seller#4L + 1) AS next#5L]", 2, rows=1_000
    )
    for node, rows in ((1, 2_000), (2, 1_000)):
        assert plan.measured[1_000 * node].value == rows
    issue = told(joins, executed(plan, s3=(5, 45)))["cross-join"]
    assert "the join of buyer and seller, next pairs" in issue.sentence


def actions(*computed: tuple[int, int, int], text: str = "Scan ExistingRDD[value#1L,score#2]") -> list[Issue]:
    """Return what is told of a micro-batch whose actions read so many rows, each in a stage of a time."""
    plans = [
        Plan()(0, "AppendData noop-table", number)(1, text, number, rows=rows)
        for number, (rows, _, _) in enumerate(computed)
    ]
    return list(computed_again(executed(*plans, **{f"s{n}": (a, b) for n, (_, a, b) in enumerate(computed)})))


def test_a_micro_batch_that_is_computed_several_times() -> None:
    """Each time takes at most as long as the quickest action, which may do much besides."""
    (issue,) = actions((90, 0, 10), (90, 10, 22), (90, 22, 40), (1, 40, 41))
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("recomputation", None, 20 * S)
    assert issue.sentence.endswith(
        "computes its batch (value, score) 3 times; the quickest of these actions takes 10.0 s"
    )
    assert issue.stages == {0, 1, 2}


def test_a_micro_batch_is_of_what_its_query_reads() -> None:
    """Not of what its actions write, nor of a table that one of them reads besides."""
    own = Plan()(0, "Project [value#1L, score#2]")(1, "Scan json shop.orders")
    batch, location = "Scan ExistingRDD[value#1L,score#2]", {"Location": "InMemoryFileIndex [file:/out/all]"}
    written = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand", metadata=location)(1, batch, 1, rows=90)
    joined = Plan()(0, "BroadcastHashJoin [value#1L], [id#3L]", 2)(1, batch, 2, rows=90)(
        1, "Scan parquet shop.codes", 2, rows=5
    )
    (issue,) = computed_again(executed(own, written, joined, s1=(0, 10), s2=(10, 20)))
    assert "computes its batch of shop.orders (value, score) 2 times" in issue.sentence


@pytest.mark.parametrize(
    "told",
    [actions((90, 0, 10)), actions((90, 0, 10), (1, 10, 20)), actions((0, 0, 10), (0, 10, 20)),
     actions((90, 0, 10), (90, 10, 20), text="InMemoryTableScan [value#1L]")],
    ids=["one action", "the other one needs few rows", "no rows", "it is cached"],
)  # fmt: skip
def test_a_micro_batch_that_is_computed_once(told: list[Issue]) -> None:
    assert told == []


VALUES = "Scan ExistingRDD[value#1L,score#2]"
CODES = "Scan ExistingRDD[code#3,label#4]"
SCORED = "Project [value#9L, concat(a#5, b#6, c#7) AS score#2]"


def with_codes(of_batch: str, own: str, codes: str = CODES, times: int = 2) -> list[str]:
    """Return the scans that are said to be of a micro-batch to which so many actions add rows of the program.

    Args:
        of_batch: how an action gets the batch; without it, none does.
        own: the root of the micro-batch's own plan; there is none without it.
        codes: the scan of the rows of the program.
        times: how many actions there are.
    """
    plans = [Plan()(0, own)] if own else []
    for action in range(times):
        plan = Plan()(0, "AppendData noop-table", action)(1, "Union", action)(2, codes, action, rows=30)
        if "InMemory" in of_batch:  # the first action fills the cache
            plan(2, of_batch, action, rows=90)(3, VALUES, 0, rows=90)
        elif of_batch:
            plan(2, of_batch, action, rows=90)
        plans.append(plan)
    stages = {f"s{action}": (10 * action, 10 * action + 10) for action in range(times)}
    return [str(issue.evidence["recomputation.what"]) for issue in computed_again(executed(*plans, **stages))]


@pytest.mark.parametrize(
    "own",
    [
        SCORED,
        f"{SCORED[:-1]}, ... 30 more fields]",
        "MicroBatchScan[value#9L, score#2] MemoryStreamDataSource",
    ],
)
def test_a_micro_batch_is_told_from_rows_of_the_program(own: str) -> None:
    assert with_codes(VALUES, own) == ["the micro-batch (value, score)"]


@pytest.mark.parametrize(
    "told",
    [
        with_codes("InMemoryTableScan [value#1L, score#2]", SCORED),
        with_codes("InMemoryTableScan [value#1L, score#2]", ""),
        with_codes("", SCORED),
        with_codes("", "MicroBatchScan[value#9L, score#2] MemoryStreamDataSource"),
        with_codes(VALUES, ""),
        with_codes(VALUES, SCORED, "Scan ExistingRDD[value#3L,score#4]"),
    ],
    ids=[
        "the batch is cached",
        "it is cached, and nothing says what its columns are",
        "no action reads it",
        "nor is it projected",
        "it is not cached, and nothing says which it is",
        "the rows of the program have the same columns",
    ],
)
def test_rows_of_the_program_are_no_micro_batch(told: list[str]) -> None:
    assert told == []


def scan(kept: int, conditions: str = "[]", partitions: int = 30) -> EndedExecution:
    where = {"Location": "InMemoryFileIndex(1 paths)[s3a://lake/sales]", "PartitionFilters": conditions}
    plan = Plan()(0, "Filter (to_date(ts#3) = 2026-01-01)", 1, rows=kept)(
        1, "FileScan parquet [ts#3,day#4]", 1, where, rows=1_000, number_of_partitions_read=partitions
    )
    plan.nodes[1][1] = "Scan parquet "
    return executed(plan, s1=(0, 40))


def test_a_scan_of_all_partitions() -> None:
    assert "full-scan" in told(full_scans, scan(100, "[isnotnull(day#4), dynamicpruningexpression(true)]"))
    issue = told(full_scans, scan(100))["full-scan"]
    assert issue.lost_ms == 36 * S
    assert "reads all 30 partitions of s3a://lake/sales, 1,000 rows" in issue.sentence
    assert "filter on ts keeps 100" in issue.sentence


@pytest.mark.parametrize(
    "healthy",
    [
        scan(501),
        scan(201, partitions=4),
        scan(100, "[isnotnull(day#4), (day#4 > 3)]"),
        scan(100, "[isnotnull(day#4), dynamicpruningexpression(day#4 IN dynamicpruning#9)]"),
        scan(100, partitions=1),
    ],
    ids=["keeps a half", "few partitions", "a condition on a partition", "pruned by a join", "one partition"],
)
def test_no_full_scan(healthy: EndedExecution) -> None:
    assert told(full_scans, healthy) == {}


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (
            "struct<ts:timestamp,place:struct<x:int,y:int>>",
            "The table is partitioned by day, and no condition",
        ),
        ("struct<ts:timestamp,place:struct<x:...", "No condition is on the columns by which"),
    ],
)
def test_the_columns_by_which_a_table_is_partitioned(schema: str, named: str) -> None:
    """They are those that its files lack; that a column has a value is no filter to speak of."""
    where = {"Location": "InMemoryFileIndex(1 paths)[s3a://lake/sales]", "PartitionFilters": "[]"}
    plan = Plan()(0, "Filter (isnotnull(shop#5) AND (to_date(ts#3) = 2026-01-01))", 1, rows=100)
    text = f"FileScan parquet [ts#3,place#4,day#5,file_path#6] Batched: true, ReadSchema: {schema}"
    plan(1, text, 1, where, rows=1_000, number_of_partitions_read=30)
    plan.nodes[1][1] = "Scan parquet "
    issue = told(full_scans, executed(plan, s1=(0, 40)))["full-scan"]
    assert issue.advice.startswith(named)
    assert "the filter on ts keeps 100" in issue.sentence


def test_a_scan_of_all_partitions_for_a_part_of_the_time() -> None:
    """What a condition on partitions would leave out is not known, for nothing says what these are of."""
    issue = told(full_scans, scan(250))["full-scan"]
    assert (issue.lost_ms, issue.share_ms) == (None, 30 * S)
    assert "of its 1,000 rows, the filter on ts, which names a time, keeps 250" in issue.sentence


def text_scan(
    condition: str = "(ts#3 >= 2026-01-01 00:00:00)",
    kind: str = "json",
    partitions: int = 30,
    rows: int = 100,
) -> EndedExecution:
    """Return the scan of a table of text, whose reader applies the filter itself."""
    where = {"Location": "InMemoryFileIndex(1 paths)[s3a://lake/clicks]", "PartitionFilters": "[]"}
    plan = Plan()(0, f"Filter (isnotnull(ts#3) AND {condition})", 1, rows=100)
    plan(1, f"Scan {kind} [ts#3,day#4]", 1, where, rows=rows, number_of_partitions_read=partitions)
    return executed(plan, s1=(0, 30))


@pytest.mark.parametrize("condition", ["(ts#3 >= 2026-01-01 00:00:00)", "(at#3 = 2026-01-01)"])
def test_a_scan_of_all_partitions_for_a_time(condition: str) -> None:
    """How many rows its reader drops, nobody knows: it may be all but those of one partition."""
    issue = told(full_scans, text_scan(condition))["full-scan"]
    assert (issue.lost_ms, issue.share_ms) == (None, 29 * S)
    assert "reads all 30 partitions of s3a://lake/clicks: the filter on" in issue.sentence


@pytest.mark.parametrize(
    "healthy",
    [text_scan("(user#4 = 17)"), text_scan(kind="parquet"), text_scan(partitions=4), text_scan(rows=101)],
    ids=["no time", "no text", "few partitions", "the reader drops nothing"],
)
def test_no_scan_for_a_time(healthy: EndedExecution) -> None:
    assert told(full_scans, healthy) == {}


def window(exchange: str, rows: int = 90_000, name: str = "Window") -> EndedExecution:
    plan = Plan()(0, f"{name} [row_number() AS n#5], [at#3 ASC NULLS FIRST]", 2)(
        1, "Sort [at#3 ASC NULLS FIRST]", 2, sort_time=5
    )(2, f"Exchange {exchange}, ENSURE_REQUIREMENTS", 1, shuffle_records_written=rows)(
        3, "Range", 1, rows=rows
    )
    return executed(plan, s1=(0, 1), s2=(1, 41))


def test_a_window_over_all_rows() -> None:
    issue = told(windows_over_all, window("SinglePartition"))["window"]
    assert issue.lost_ms == 30 * S
    assert "ordered by at, runs over all 90,000 rows in one task" in issue.sentence
    assert told(windows_over_all, window("hashpartitioning(k#1, 8)")) == {}


def test_a_window_of_so_many_functions_that_its_text_is_cut_off() -> None:
    """Nothing but the first of them says by what its rows are ordered."""
    frame = "windowspecdefinition(machine#0 ASC NULLS FIRST, ts#1 ASC NULLS FIRST, specifiedwindowframe(RowFrame, -1, -1))"
    functions = f"lag(state#2, -1, null) {frame} AS _we0#8, lead(ts#1, 1, null) {frame} AS _we1#9, lead(te"
    plan = Plan()(0, f"Window [{functions}", 2)(
        1, "Exchange SinglePartition", 1, shuffle_records_written=90_000
    )
    plan(2, "Range", 1, rows=90_000)
    issue = told(windows_over_all, executed(plan, s1=(0, 1), s2=(1, 41)))["window"]
    assert "ordered by machine, ts, runs over all" in issue.sentence


def test_a_window_whose_rows_have_no_order() -> None:
    """What its function is called is none."""
    frame = "specifiedwindowframe(RowFrame, unboundedpreceding$(), unboundedfollowing$())"
    plan = Plan()(0, f"Window [count(1) windowspecdefinition({frame}) AS c#5L]", 2)
    plan(1, "Exchange SinglePartition", 1, shuffle_records_written=90_000)(2, "Range", 1, rows=90_000)
    issue = told(windows_over_all, executed(plan, s1=(0, 1), s2=(1, 41)))["window"]
    assert "a window function without PARTITION BY runs over all 90,000 rows" in issue.sentence


@pytest.mark.parametrize(("name", "is_told"), [("Window", False), ("ArrowWindowPython", True)])
def test_a_window_over_few_rows(name: str, is_told: bool) -> None:
    """That takes no time, unless the function is the user's own."""
    assert ("window" in told(windows_over_all, window("SinglePartition", 13, name))) == is_told


@pytest.mark.parametrize(("above", "is_told"), [("(n#5 <= 10)", False), ("slow(n#5)", True)])
def test_what_is_done_with_few_rows_behind_a_window(above: str, is_told: bool) -> None:
    """A function that is called for each of them in one task may take long."""
    plan = Plan()(0, f"Filter {above}", 2, rows=9)(1, "Window [rank(n#5)], [at#3 ASC NULLS FIRST]", 2)(
        2, "Exchange SinglePartition", 1, shuffle_records_written=13
    )(3, "Range", 1, rows=13)
    assert ("window" in told(windows_over_all, executed(plan, s1=(0, 1), s2=(1, 41)))) == is_told


def test_a_scan_of_all_partitions_for_a_function_in_python() -> None:
    """Spark cannot leave out partitions by what only Python knows."""
    plan = Plan()(0, "Filter pythonUDF0#12: boolean", 1, rows=100)(
        1, "ArrowEvalPython [is_recent(day#3, 7)#4], [pythonUDF0#12], 101", 1, rows=1_000
    )(2, "Scan parquet [ts#3,day#4]", 1, rows=1_000, number_of_partitions_read=30)
    issue = told(full_scans, executed(plan, s1=(0, 40)))["full-scan"]
    assert "the filter on is_recent(day) keeps 100" in issue.sentence


def test_a_filter_by_one_of_two_functions_in_python() -> None:
    """Only the one that it is by is named, whatever stands between."""
    plan = Plan()(0, "Filter pythonUDF1#13: boolean", 1, rows=100)(1, "Project [pythonUDF1#13]", 1)(
        2, "ArrowEvalPython [risk(amount#2)#5, is_recent(day#3)#4], [pythonUDF0#12, pythonUDF1#13], 101", 1
    )(3, "Scan parquet [ts#3,day#4]", 1, rows=1_000, number_of_partitions_read=30)
    issue = told(full_scans, executed(plan, s1=(0, 40)))["full-scan"]
    assert "the filter on is_recent(day) keeps 100" in issue.sentence


@pytest.mark.parametrize(
    ("functions", "named"),
    [
        ("[is_recent(parsed(day#3)#4)#5], [pythonUDF0#12]", "is_recent(day)"),
        ("[risk(day#3)#4, risk(ts#5)#6, ... 30 more fields], [pythonUDF0#12]", "a function in Python"),
    ],
    ids=["of another function", "Spark has cut the list"],
)
def test_which_function_in_python_a_filter_is_by(functions: str, named: str) -> None:
    plan = Plan()(0, "Filter pythonUDF0#12: boolean", 1, rows=100)(1, f"BatchEvalPython {functions}", 1)
    plan(2, "ArrowEvalPython [other(ts#3)#4], [pythonUDF0#10], 101", 1)
    plan(3, "Scan parquet [ts#3,day#4]", 1, rows=1_000, number_of_partitions_read=30)
    assert (
        f"the filter on {named} keeps" in told(full_scans, executed(plan, s1=(0, 40)))["full-scan"].sentence
    )


def test_why_there_are_few_tasks() -> None:
    gz = {"Location": "InMemoryFileIndex(1 paths)[file:/data/all.csv.gz]"}
    packed = Plan()(0, "Project [a#1]")(1, "FileScan csv [a#1]", 1, gz, rows=9, number_of_files_read=1)
    packed.nodes[1][1] = "Scan csv "
    reason = why_few_tasks(executed(packed, s1=(0, 9)).nodes_by_stage()[1], 1)
    assert reason is not None
    assert "1 file of file:/data/all.csv.gz cannot be split" in reason.because

    coalesced = Plan()(0, "Coalesce 2")(1, "Range", 1, rows=9)
    nodes = executed(coalesced, s1=(0, 9)).nodes_by_stage()[1]
    reason = why_few_tasks(nodes, 2)
    assert reason is not None
    assert reason.because == "coalesce(2) runs all before it in 2 tasks, too"
    assert why_few_tasks(nodes, 1) is None  # there was one before it as well
    to_one = Plan()(0, "Coalesce 1")(1, "Range", 1, rows=9)
    reason = why_few_tasks(executed(to_one, s1=(0, 9)).nodes_by_stage()[1], 1)
    assert reason is not None
    assert reason.because == "coalesce(1) runs all before it in one task, too"
    called = Plan()(0, "ArrowEvalPython [nap(id#1L)#2], [pythonUDF0#3], 101", 1, rows=9)
    called(1, "Coalesce 1")(2, "Range", 1, rows=9)
    reason = why_few_tasks(executed(called, s1=(0, 9)).nodes_by_stage()[1], 1)
    assert reason is not None
    assert reason.because == "coalesce(1) leaves one task for all after it, as for what is before it"
    assert "Leave coalesce(1) out" in reason.advice
    assert why_few_tasks(executed(Plan()(0, "Range", 1, rows=9), s1=(0, 9)).nodes_by_stage()[1], 1) is None


CACHE, CACHED_TABLE = "InMemoryTableScan", "Scan In-memory table scores"


def scored(
    limit: int,
    stage: int,
    rows: int = 50,
    cached: str = "",
    of_cache: int = 50,
    computed: int = 50,
) -> EndedExecution:
    """Return an execution that keeps some of the scores that it computes, or reads from a cache.

    Args:
        limit: what a score is compared with.
        stage: it runs in this.
        rows: of the table.
        cached: what Spark calls the scan of a cache that is to keep the scores; empty for no cache.
        of_cache: how many it reads from there.
        computed: how many were computed so far because the cache had them not; 0 if none is now.
    """
    depth = 1 if cached else 0
    plan = Plan()(0, f"Filter (score#{stage} > {limit})", stage, rows=5)
    if cached:
        plan(1, f"{cached} [score#{stage}]", stage, rows=of_cache)
    computed = computed if cached else rows
    metrics = {"rows": computed} if computed else {}
    plan(depth + 1, f"Project [slow(id#{stage}) AS score#{stage}]")
    plan(depth + 2, "Scan parquet db.t", stage, **metrics)
    return executed(plan, **{f"s{stage}": (0, 20)})


def again(*executions: EndedExecution) -> list[Issue]:
    recomputation = Recomputation()
    for number, execution in enumerate(executions):
        recomputation.take(execution, f"collect at a.py:{number}")
    return list(recomputation.issues())


def test_rows_of_the_program_that_look_alike_may_differ() -> None:
    """As many rows of the same columns, each time made from another list: nothing is computed again."""

    def of_list(number: int) -> EndedExecution:
        plan = Plan()(0, f"Filter (id#{number} > 3)", number, rows=5)
        plan(1, f"Scan ExistingRDD[id#{number}]", number, rows=50)
        return executed(plan, **{f"s{number}": (0, 20)})

    assert again(*map(of_list, range(4))) == []


def test_what_is_computed_again() -> None:
    """Three executions filter the same scores, with other ids and limits: two of three times are lost."""
    (issue,) = again(*(scored(number, number) for number in range(3)))
    assert (issue.kind, issue.lost_ms) == ("recomputation", 40 * S)
    assert "the same Project of db.t is computed 3 times, for collect at a.py:0, collect" in issue.sentence


def called(number: int, result: int) -> EndedExecution:
    """Return an execution of 20 s that calls a function in Python, whose result has an id."""
    plan = Plan()(0, f"Filter (score#{number} > {number})", number, rows=5)
    plan(1, f"ArrowEvalPython [f(id#1, g(id#1)#7)#{result}L], [pythonUDF0#{number}L], 101", number, rows=9)
    return executed(plan(2, "Scan parquet db.t [id#1]", number, rows=9), **{f"s{number}": (0, 20)})


@pytest.mark.parametrize(
    ("results", "lost_ms", "share_ms"),
    [
        ([2, 2, 2], 40 * S, None),  # one DataFrame
        ([2, 3, 4], None, 40 * S),  # functions of one name that are made in a loop, or one that is used anew
        ([2, 2, 3, 3, 4, 4], 60 * S, None),  # each for two actions
        ([2, 3, 2], 20 * S, None),
    ],
)
def test_functions_of_the_same_name_may_be_others(
    results: list[int], lost_ms: int | None, share_ms: int | None
) -> None:
    (issue,) = again(*(called(number, result) for number, result in enumerate(results)))
    assert f"ArrowEvalPython of db.t is computed {len(results)} times" in issue.sentence
    assert (issue.lost_ms, issue.share_ms) == (lost_ms, share_ms)
    assert ("if its functions in Python are the same each time" in issue.sentence) is (lost_ms is None)
    assert issue.advice.startswith("If they are: ") is (lost_ms is None)


def joined(number: int, computed: str) -> EndedExecution:
    """Return an execution that joins what it reads, and computes of it, within one stage of 20 s."""
    plan = Plan()(0, f"HashAggregate(keys=[k#{number}], functions=[partial_sum(v#2)])", number, rows=1)
    plan(1, f"BroadcastHashJoin [k#{number}], [d#{number + 100}], Inner", number, rows=9)
    plan(2, f"{computed} [isnotnull(k#{number})]", number, rows=90)
    plan(3, f"Scan parquet db.t [k#{number}]", number, rows=90, scan_time=4 * S)
    plan(2, "BroadcastExchange")(3, f"Scan parquet db.d{number} [d#{number + 100}]", number + 100, rows=5)
    return executed(plan, **{f"s{number}": (0, 20), f"s{number + 100}": (0, 0)})


def test_what_is_read_again_costs_no_more_than_reading() -> None:
    """The joins above are other ones each time; of the stages' 20 s, a tenth is spent on reading."""
    (issue,) = again(*(joined(number, "Filter") for number in range(3)))
    run_ms = joined(0, "Filter").stages[0].run_ms
    assert "the same Filter of db.t is computed 3 times" in issue.sentence
    assert issue.lost_ms == 2 * (20 * S * 4 * S // run_ms)


def test_what_may_take_all_of_the_time_costs_so_much_at_most() -> None:
    """A generator, which nobody measures: it may be that, or the join."""
    (issue,) = again(*(joined(number, "Generate") for number in range(3)))
    assert (issue.lost_ms, issue.share_ms) == (None, 40 * S)


def test_what_is_sorted_above_is_the_time_of_the_sort() -> None:
    """Three quarters of 20 s are: a cache would save the rest of them at most."""

    def execution(number: int) -> EndedExecution:
        plan = Plan()(0, f"Sort [by_{number}#1 ASC NULLS FIRST]", number, sort_time=60 * S)
        plan(1, f"Project [slow(id#1) AS score#{number}]", number)
        return executed(plan(2, "Scan parquet db.t [id#1]", number, rows=9), **{f"s{number}": (0, 20)})

    (issue,) = again(*map(execution, (1, 2, 3)))
    assert "the same Project of db.t is computed 3 times" in issue.sentence
    assert issue.lost_ms == 2 * 5 * S


def test_stages_that_run_alone_for_a_while() -> None:
    """What a stage has for itself, whatever runs beside another one, and those that took no time."""
    stages = {"s1": (0, 20), "s2": (5, 10), "s3": (10, 30), "s4": (30, 30), "s5": (40, 45)}
    execution = executed(Plan()(0, "Range", 1, rows=1), **stages)
    assert execution.alone_ms() == {1: 5 * S, 3: 10 * S, 5: 5 * S}
    work = WorkInStages(execution)
    for stage in range(1, 6):
        others = execution.wall_ms(execution.stages.keys() - {stage})
        assert work.freed_ms({stage}) >= execution.wall_ms(execution.stages) - others


def test_of_stages_that_run_side_by_side_a_part_is_saved() -> None:
    """The small stage waits for cores that the large one has: without it, those would be free a little sooner."""

    def execution(number: int) -> EndedExecution:
        plan = Plan()(0, f"BroadcastHashJoin [k#{number}], [d#9], Inner", number)
        plan(1, f"Scan parquet db.large{number} [k#{number}]", number, rows=900)
        plan(1, "BroadcastExchange")(2, "Filter [isnotnull(d#9)]", number + 100, rows=9)
        plan(3, "Scan parquet db.small [d#9]", number + 100, rows=9)
        return executed(plan, **{f"s{number}": (0, 20), f"s{number + 100}": (0, 10)})

    one = execution(1)
    (issue,) = again(one, execution(2), execution(3))
    assert "the same Filter of db.small" in issue.sentence
    assert issue.lost_ms == 2 * (one.stages[101].run_ms // one.cores)


@pytest.mark.parametrize(
    "healthy",
    [
        [scored(0, 0, rows=50), scored(1, 1, rows=51), scored(2, 2, rows=52)],
        [scored(0, 0), scored(1, 1, cached=CACHE), scored(2, 2, cached=CACHE, computed=0)],
        [
            scored(0, 0, cached=CACHE, of_cache=10, computed=10),
            scored(1, 1, cached=CACHE, of_cache=30, computed=30),
            scored(2, 2, cached=CACHE, computed=50),
            scored(3, 3, cached=CACHE, computed=0),
        ],
        [
            scored(0, 0, cached=CACHED_TABLE),
            *(scored(n, n, cached=CACHED_TABLE, computed=0) for n in (1, 2, 3)),
        ],
        [scored(0, 0), scored(0, 1)],
    ],
    ids=[
        "a table that grows",
        "cached after the first time",
        "a cache that is filled bit by bit",
        "a table that is cached by its name",
        "twice the same",
    ],
)
def test_what_is_not_computed_again(healthy: list[EndedExecution]) -> None:
    assert again(*healthy) == []


def test_a_cache_that_does_not_keep_its_rows() -> None:
    """30 of 50 are computed a second time."""
    (issue,) = again(scored(0, 0, cached=CACHE), scored(1, 1, cached=CACHE, computed=80))
    assert issue.lost_ms == 40 * S * 30 // 80
    assert "is cached and has 50 rows, and yet 80 are computed, in 2 SQL executions" in issue.sentence


def test_plans_that_are_deeper_than_calls_of_python_may_be() -> None:
    """As those of a loop that adds a window to a DataFrame each time."""

    def deep(stage: int) -> EndedExecution:
        plan = Plan()
        for depth in range(998):
            plan(depth, f"Sort [k#{stage} AS k{depth}#{stage}]")
        return executed(plan(998, "Scan parquet db.t", stage, rows=9), **{f"s{stage}": (0, 20)})

    execution = deep(1)
    assert Executions(Thresholds()).issues(execution) == []
    assert len(execution.nodes_by_stage()[1]) == 999
    assert execution.plans[0].rows == 9
    assert len(execution.plans[0].signature().splitlines()) == 999
    assert len(list(execution.plans[0].within_stage())) == 999
    (issue,) = again(deep(1), deep(2), deep(3))
    assert "the same Sort of db.t is computed 3 times" in issue.sentence


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("Scan parquet db.t", "db.t"),
        ("Scan hive spark_catalog.default.übersicht", "spark_catalog.default.übersicht"),
        ("Scan JDBCRelation(public.orders) [numPartitions=1]", "public.orders"),
        ("Scan JDBCRelation(orders) [numPartitions=4] spark_catalog.default.o", "spark_catalog.default.o"),
        ("Scan JDBCRelation((select id from t where pin = '1') SPARK_GEN_SUBQ_0) [numPartitions=1]", ""),
        ("Scan JDBC v1 Relation from v2 scan h2.people", "h2.people"),
        ("Scan JDBC v1 Relation from v2 scan", ""),
        ("Scan ElasticsearchRelation(Map(user -> u, pass -> secret),SQLContext@1,None)", ""),
        ("Scan ElasticsearchRelation(Map(user -> u, pass -> secr", ""),
        ("Scan In-memory table scores", "scores"),
        ("InMemoryTableScan", ""),
        ("BatchScan spark_catalog.db.t", "spark_catalog.db.t"),
        ("BatchScan ", ""),
        ("Scan ExistingRDD", ""),
    ],
)
def test_the_table_of_a_scan(name: str, table: str) -> None:
    plan = {"Plans": [[[0, name, f"{name} [id#1]", {}, []]]]}
    (node,) = read_plans(plan, {})
    assert node.table() == table


@pytest.mark.parametrize(
    ("location", "table", "shown"),
    [
        ("InMemoryFileIndex(1 paths)[file:/d/a.csv]", "file:/d/a.csv", "file:/d/a.csv"),
        ("InMemoryFileIndex(3000 paths)[file:/d/a.csv, file:/d/b.csv, ...]", "file:/d/a.csv", "file:/d"),
        ("InMemoryFileIndex(2 paths)[file:/d/a.csv, file:/e/b.csv]", "file:/d/a.csv", "file:/d/a.csv"),
        ("InMemoryFileIndex(2 paths)[file:/d/v1.0, file:/d/v2.0]", "file:/d/v1.0", "file:/d/v1.0"),
        ("InMemoryFileIndex(2 paths)[file:/d/one, file:/d/two]", "file:/d/one", "file:/d/one"),
        ("InMemoryFileIndex(0 paths)[]", "", ""),
    ],
)
def test_the_folder_of_files_that_are_given_one_by_one(location: str, table: str, shown: str) -> None:
    """It is shown; a table that is known by it would be the same as one of other files, or as a sink."""
    plan = {"Plans": [[[0, "Scan csv ", "FileScan csv [id#1]", {"Location": location}, []]]]}
    (node,) = read_plans(plan, {})
    assert (node.table(), node.shown_table()) == (table, shown)


def test_what_is_written_again() -> None:
    """A cache could keep what is written, and not the write."""

    def written(stage: int) -> EndedExecution:
        plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out, false, Parquet")(
            1, "WriteFiles"
        )
        plan(2, f"Project [slow(id#{stage})]")(3, "Scan parquet db.t", stage, rows=50)
        return executed(plan, **{f"s{stage}": (0, 20)})

    (issue,) = again(written(1), written(2), written(3))
    assert "the same Project of db.t is computed 3 times" in issue.sentence


def test_the_same_action_three_times() -> None:
    assert len(again(scored(0, 0), scored(0, 1), scored(0, 2))) == 1


def test_a_session_that_lasts_forgets_nothing_and_grows_by_nothing() -> None:
    recomputation = Recomputation()
    for number in range(2_000):
        recomputation.take(scored(number % 7, number), f"collect at a.py:{number}")
    parts = recomputation._parts.values()
    assert len(parts) == 8
    assert max(part.times for part in parts) == 2_000
    assert all(len(part.places) <= 4 and len(part.wholes) <= 2 and len(part.last) == 1 for part in parts)


def test_what_measurements_of_tasks_are_is_no_result() -> None:
    """5,000 tasks of a shuffle send 2 KiB each of what they measured."""
    measured = {"Name": "internal.metrics.resultSize", "Value": 5_000 * 2_048}
    info = {"Stage ID": 1, "Number of Tasks": 5_000, "Accumulables": [measured]}
    assert read_stage(info, 0).collected_bytes == 0
    assert read_stage({**info, "Number of Tasks": 1}, 0).collected_bytes == 5_000 * 2_048 - (8 << 10)


def test_what_tasks_say_of_files_that_they_wrote_is_no_result() -> None:
    """A table of many partitions: each task names the files that the driver has to commit."""
    measured = [
        {"Name": f"internal.metrics.{name}", "Value": value}
        for name, value in (("resultSize", 40 << 20), ("output.bytesWritten", 9 << 20))
    ]
    info = {"Stage ID": 1, "Number of Tasks": 4, "Accumulables": measured}
    assert read_stage(info, 0).collected_bytes == 0
    assert read_stage({**info, "Accumulables": measured[:1]}, 0).collected_bytes > 0


@pytest.mark.parametrize(
    ("names", "scan", "looks"),
    [
        (("MapPartitionsRDD", "SQLExecutionRDD", "FileScanRDD"), "Scan text ", True),
        (("MapPartitionsRDD", "PythonRDD", "FileScanRDD"), "Scan text ", False),
        (("MapPartitionsRDD", "SQLExecutionRDD", "FileScanRDD"), "Scan json ", False),
        ((), "", False),
    ],
    ids=["a reader's", "a user's function", "rows", "nothing known"],
)
def test_a_stage_that_looks_for_the_columns_of_files(names: tuple[str, ...], scan: str, looks: bool) -> None:
    scopes = ["mapPartitions", "", scan]
    rdds = [
        {"Name": name, "Scope": json.dumps({"id": "7", "name": scope}, separators=(",", ":"))}
        for name, scope in zip(names, scopes, strict=False)
    ]
    assert read_stage({"Stage ID": 1, "RDD Info": rdds}, 0).of_schema is looks


def test_what_tasks_of_a_stage_waited_for_is_read() -> None:
    waits = {"jvmGCTime": 300, "shuffle.read.fetchWaitTime": 20, "resultSerializationTime": 7}
    measured = [{"Name": f"internal.metrics.{name}", "Value": value} for name, value in waits.items()]
    assert read_stage({"Stage ID": 1, "Accumulables": measured}, 0).waited_ms == 320


def test_a_cause_is_told_once_of_an_execution() -> None:
    """A table that is scanned twice, for a join with itself, is one issue with what both have cost."""
    one, other = scan(100), scan(100)
    both = EndedExecution(0, 100 * S, 4, (*one.plans, *other.plans), one.stages)
    (issue,) = Executions(Thresholds()).issues(both)
    assert issue.lost_ms == 2 * 36 * S


def test_a_plan_that_is_run_within_another_of_the_same_is_one() -> None:
    """As that of a micro-batch is; another one of the same nodes has accumulators of its own."""
    plan = Plan()(0, "WriteToDataSourceV2 MicroBatchWrite[epoch: 0]")(1, "Scan json [id#1]", 3, rows=50)
    other = [[*node[:-1], [[index, number + 9] for index, number in node[-1]]] for node in plan.nodes]
    roots = read_plans({"Plans": [plan.nodes, [*plan.nodes], other]}, plan.measured)
    assert [root.children[0].rows for root in roots] == [50, None]
    bare = [[0, "Filter", "Filter", {}, []]]
    assert len(read_plans({"Plans": [bare, bare]}, {})) == 2


def unread(*executions: EndedExecution, by_rdd: bool = False) -> list[Issue]:
    recomputation = Recomputation()
    for execution in executions:
        recomputation.take(execution, "save at a.py:1")
    if by_rdd:
        recomputation.read_elsewhere()
    return list(recomputation.never_read())


def test_a_cache_that_is_never_read() -> None:
    (issue,) = unread(scored(0, 0, cached=CACHE))
    assert (issue.kind, issue.share_ms, issue.lost_ms) == ("cache-never-read", 20 * S, None)
    assert (
        "Project of db.t is cached, for save at a.py:1, and read from there by nothing else" in issue.sentence
    )


@pytest.mark.parametrize("scan", ["Scan parquet ", "Scan parquet db.t", "BatchScan db.t[id#1]", "Range"])
def test_a_cache_of_nothing_but_a_table(scan: str) -> None:
    """It is told by how it is read: there is no node above it."""
    plan = Plan()(0, f"{CACHE} [id#1]", 0, rows=50)(1, f"{scan}", 0, rows=50)
    (issue,) = unread(executed(plan, s0=(0, 20)))
    first = scan.split(" db.t")[0].strip()
    assert issue.sentence.startswith(f"{first} ")
    assert issue.evidence["cache.stages"] == "0"


def of_caches(stage: int, fills: bool) -> EndedExecution:
    """Return an action that reads a cache, or fills it from another one, which is full."""
    plan = Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", stage, rows=1)
    plan(1, f"{CACHE} [b#2]", stage, rows=50)(2, "Project [a#1 AS b#2]")
    plan(3, f"{CACHE} [a#1]", stage, **({"rows": 50} if fills else {}))
    return executed(plan(4, "Scan parquet db.t[a#1]"), **{f"s{stage}": (0, 20)})


@pytest.mark.parametrize("readers", [0, 1, 3])
def test_a_cache_that_is_made_of_a_cache(readers: int) -> None:
    """Where it is read, nobody counts the rows of the one below, which were counted to fill it."""
    below = Plan()(0, f"{CACHE} [a#1]", 0, rows=50)(1, "Scan parquet db.t[a#1]", 0, rows=50)
    reads = [of_caches(stage, fills=False) for stage in range(2, 2 + readers)]
    issues = unread(executed(below, s0=(0, 20)), of_caches(1, fills=True), *reads)
    assert [issue.evidence["cache.stages"] for issue in issues] == ([] if readers else ["1"])


def kept(execution: EndedExecution, stage: int, *rdds: int) -> EndedExecution:
    kept_there = replace(execution.stages[stage], kept=frozenset(rdds))
    return replace(execution, stages={stage: kept_there})


@pytest.mark.parametrize("rows", [50, 60])
@pytest.mark.parametrize("of_cache", [False, True])
def test_a_cache_that_is_filled_anew_after_its_table_has_grown(of_cache: bool, rows: int) -> None:
    """What is computed of other rows is something else, also where the rows come from another cache."""

    def filled(stage: int, rows: int) -> EndedExecution:
        plan = Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", stage, rows=1)
        plan(1, f"{CACHE} [b#2]", stage, rows=rows)(2, "Project [slow(a#1) AS b#2]", stage, rows=rows)
        if of_cache:
            plan(3, f"{CACHE} [a#1]", stage, rows=rows)(4, "Scan parquet db.t[a#1]")
        else:
            plan(3, "Scan parquet db.t[a#1]", stage, rows=rows)
        rdds = (stage, 10 + stage) if of_cache else (stage,)
        return kept(executed(plan, **{f"s{stage}": (0, 20)}), stage, *rdds)

    assert bool(again(filled(0, 50), filled(1, rows))) is (rows == 50)


def test_a_cache_that_something_reads() -> None:
    filled, read = scored(0, 0, cached=CACHE), scored(1, 1, cached=CACHE, computed=0)
    assert unread(filled, read) == []
    assert unread(filled, by_rdd=True) == []
    assert unread(scored(0, 0)) == []
    assert unread(filled, EndedExecution(0, 100 * S, 4, (), {})) == []  # whose plan nobody has seen
    assert unread(EndedExecution(0, 100 * S, 4, (*filled.plans, *filled.plans), filled.stages)) == []


def test_a_cache_that_its_own_execution_reads_twice() -> None:
    """To sort what it has, Spark reads it first for a sample."""
    plan = Plan()(0, "Exchange rangepartitioning(id#1 ASC NULLS FIRST, 200)", 2, shuffle_records_written=50)
    plan(1, f"{CACHE} [id#1]", 1, rows=100)(2, "Scan parquet db.t", 0, rows=50)
    assert len(unread(executed(plan, s0=(0, 20), s1=(20, 21), s2=(21, 22)))) == 1
    (number,) = (each for each, value in plan.measured.items() if value.value == 100)
    plan.measured[number] = plan.measured[number]._replace(stages=frozenset((1, 2)))
    assert unread(executed(plan, s0=(0, 20), s1=(20, 21), s2=(21, 22))) == []


def rewritten(copied: int, updated: int, inserted: int = 0) -> EndedExecution:
    metrics = {
        "number of rows copied.": copied,
        "number of rows updated.": updated,
        "number of inserted rows": inserted,
        "time taken to rewrite the matched files": 40 * S,
    }
    return executed(Plan()(0, "Execute UpdateCommand Delta[file:/data/accounts]", **metrics))


def test_files_that_are_written_again_for_few_rows() -> None:
    issue = told(rewrites, rewritten(900, 90))["rewrite-whole-files"]
    assert issue.lost_ms == 40 * S * 900 // 990
    assert "900 rows of file:/data/accounts are written again, to change 90" in issue.sentence


@pytest.mark.parametrize(
    ("copied", "updated", "inserted"), [(899, 90, 0), (0, 90, 0), (0, 0, 0), (900, 0, 0), (900, 10, 81)]
)
def test_files_of_which_many_rows_change(copied: int, updated: int, inserted: int) -> None:
    """Or nobody has counted them; a MERGE that inserts many writes those, too."""
    assert told(rewrites, rewritten(copied, updated, inserted)) == {}


def explain(issue: Issue, execution: EndedExecution, stage: int = 1) -> Issue:
    """Return an issue of a stage with what the plan says about it."""
    return explained(issue, execution.nodes_by_stage()[stage], execution)


def test_a_late_task_where_arrays_are_exploded() -> None:
    """The plan knows how many rows there are in all, so it is a guess, and told as one."""
    late = Issue("straggler", "tail", 9 * S, None, "task 3 on a takes 9 s", "look at the host a")
    plan = Plan()(0, "Generate explode(order_lines#3), [id#1L], false, [line#5]", 1, rows=900)
    told = explain(late, executed(plan(1, "Range", 1, rows=8), s1=(0, 20)))
    assert "explode of order_lines makes 900 rows of 8 here" in told.sentence
    assert told.advice.startswith("See whether a few rows have far longer arrays")
    for other in ("stack(2, a#3, b#4)", "json_tuple(text#3, name)"):  # of which each row has as many
        of_each = Plan()(0, f"Generate {other}, [id#1L], false, [line#5]", 1, rows=900)
        assert explain(late, executed(of_each(1, "Range", 1, rows=8), s1=(0, 20))) == late
    few = Plan()(0, "Generate explode(order_lines#3), [id#1L], false, [line#5]", 1, rows=15)
    assert explain(late, executed(few(1, "Range", 1, rows=8), s1=(0, 20))) == late


def test_a_skewed_window() -> None:
    """Neither Spark nor a random part of the key can split its partitions."""
    skew = Issue("skew", "tail", 9 * S, None, "task 3 reads 9 MiB", "add a random part to the key")
    plan = Plan()(
        0, "Window [row_number() windowspecdefinition(customer#1, ts#2 ASC NULLS FIRST)]", 2, rows=9
    )
    plan(1, "Exchange hashpartitioning(customer#1, 200)", 1)(2, "Scan parquet db.t [customer#1]", 1, rows=9)
    told = explain(skew, executed(plan, s1=(0, 9), s2=(9, 20)), 2)
    assert told.sentence == "task 3 reads 9 MiB; rows are divided by customer"
    assert "few values of customer that hold most" in told.advice


@pytest.mark.parametrize(
    ("frame", "cpu_s", "kind"),
    [
        ("RangeFrame, -31536000000000, currentrow$()", 60, "skew"),
        ("RangeFrame, -31536000000000, currentrow$()", 6, "straggler"),
        ("RowFrame, -9, currentrow$()", 60, "straggler"),
    ],
    ids=["long ranges", "short ranges", "as many rows for each"],
)
def test_a_late_task_whose_windows_have_long_frames(frame: str, cpu_s: int, kind: str) -> None:
    """A key with many rows is few bytes, and each of its rows is aggregated with many others."""
    late = Issue("straggler", "tail", 9 * S, None, "task 3 takes 9 s", "look at the host a")
    window = f"windowspecdefinition(patient#1, at#2 ASC NULLS FIRST, specifiedwindowframe({frame}))"
    plan = Plan()(0, f"Window [sum(v#3) {window} AS s#4], [patient#1]", 2, rows=1_000_000)
    plan(1, "Exchange hashpartitioning(patient#1, 200)", 1)(2, "Scan parquet db.t [patient#1]", 1, rows=9)
    execution = executed(plan, s1=(0, 9), s2=(9, 49))
    stages = {**execution.stages, 2: replace(execution.stages[2], cpu_ms=cpu_s * S)}
    told = explain(late, replace(execution, stages=stages), 2)
    assert told.kind == kind
    assert "rows are divided by patient" in told.sentence
    assert ("a few values of patient have far more rows" in told.advice) == (kind == "skew")


def test_uneven_bounds_of_a_database() -> None:
    skew = Issue("skew", "tail", 9 * S, None, "task 0 reads 9 rows", "write smaller row groups")
    plan = Plan()(0, "Scan JDBCRelation(LINES) [numPartitions=8] [ID#1]", 1, rows=9)
    assert explain(skew, executed(plan, s1=(0, 9))).advice.startswith("lowerBound and upper")


def in_python(*texts: str, advice: str = FASTER_FUNCTIONS) -> Issue:
    """Return what is told of a stage that calls functions in Python."""
    plan = Plan()(0, "Project [pythonUDF0#3 AS score#2]", 1)
    for depth, text in enumerate(texts):
        plan(depth + 1, text, 1, time_to_run_Python_workers=9 * S)
    issue = Issue("python", "python", 9 * S, None, "50% of the tasks' run time", advice)
    return explain(issue, executed(plan, s1=(0, 20)))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ArrowEvalPython [score(cast(id#0L as double))#1], [pythonUDF0#3], 200", "score"),
        ("BatchEvalPython [f(g(x#1)#2, (a#3 + 1))#4, <lambda>(b#5)#6], [x#7]", "f, g, <lambda>"),
        ("BatchEvalPython [f(x#1)#4, f(cast(y#2 as string))#5], [x#7]", "f"),
    ],
)
def test_functions_in_python_are_named(text: str, names: str) -> None:
    assert in_python(text).sentence.endswith(f"run time: {names}")


@pytest.mark.parametrize(
    ("made", "rows", "is_told"),
    [(30_000, 900_000, True), (30_000, 30_000, False), (30_000, 40_000_000, False), (900, 90_000, False)],
    ids=["small groups", "as many rows as it gets", "large groups", "few groups"],
)
def test_functions_that_get_groups_of_few_rows(made: int, rows: int, is_told: bool) -> None:
    """Where a row comes out for several that go in, groups are no larger than that, if each has one."""
    groups = "FlatMapGroupsInPandas [k#4], f(x#1)#2, [y#3]"
    plan = Plan()(0, groups, 1, rows=made, time_to_run_Python_workers=90 * S)
    plan(1, "Scan parquet t [x#1]", 1, rows=rows)
    issue = Issue("python", "python", 9 * S, None, "it runs in", "", evidence={"pythonTimeMs": 90 * S})
    told = explain(issue, executed(plan, s1=(0, 20)))
    assert ("makes 30,000 rows of 900,000, each in 3.0 ms" in told.sentence) == is_told
    assert ("30 rows on average" in told.advice) == is_told
    assert "compute with whole columns" in told.advice  # they may be larger, and most rows left out
    assert (told.lost_ms, told.share_ms) == (None, 9 * S)


def test_functions_whose_workers_wait_for_others() -> None:
    """A node's time in Python has that of the node below in it, of the same stage: 30 s are both, not 50 s."""
    plan = Plan()(0, "MapInPandas second(y#3)#4, [z#5]", 1, rows=9, time_to_run_Python_workers=30 * S)
    plan(1, "Project [y#3]", 1)(2, "MapInPandas first(x#1)#2, [y#3]", 1, time_to_run_Python_workers=20 * S)
    plan(3, "Exchange hashpartitioning(x#1, 8)", 0)
    plan(4, "MapInPandas before(w#0)#1, [x#1]", 0, time_to_run_Python_workers=7 * S)
    execution = executed(plan, s0=(0, 5), s1=(5, 20))
    nodes = execution.nodes_by_stage()
    own = [[node.metrics.get("time to run Python workers") for node in nodes[stage]] for stage in (0, 1)]
    assert [ms for of_stage in own for ms in of_stage if ms] == [7 * S, 10 * S, 20 * S]
    issue = Issue("python", "python", 12_500, None, "83% of the time", FASTER_FUNCTIONS)
    issue = replace(issue, evidence={"pythonTimeMs": 50 * S, "runTimeMs": 60 * S})
    told = explain(issue, execution)
    assert (told.share_ms, told.evidence["pythonTimeMs"]) == (7_500, 30 * S)
    assert told.sentence.startswith("50% of the time: second, first")


@pytest.mark.parametrize(
    ("seconds", "said"), [(30, ": f, 45 µs for each of the 2,000,000 rows it gets"), (9, ": f")]
)
@pytest.mark.parametrize(
    "node", ["FlatMapGroupsInPandas [k#4], f(x#1)#2, [y#3]", "MapInPandas f(x#1)#2, [y#3]"]
)
def test_what_a_function_of_groups_takes_for_a_row(node: str, seconds: int, said: str) -> None:
    """A loop over the rows of a group takes so long for each, and pandas far less with whole columns."""
    plan = Plan()(0, node, 1, rows=2_000_000, time_to_run_Python_workers=90 * S)
    plan(1, "Scan parquet t [x#1]", 1, rows=2_000_000)
    issue = Issue("python", "python", seconds * S, None, "it runs in", "", evidence={"pythonTimeMs": 90 * S})
    told = explain(issue, executed(plan, s1=(0, 40)))
    assert told.sentence == f"it runs in{said}"


def test_functions_of_spark_by_which_rows_are_grouped_are_not_python() -> None:
    groups = "FlatMapGroupsInPandas ['pmod('hash('card), 64)#8], score(id#0, card#2L)#7, [card#9L]"
    plan = Plan()(0, groups, 1, rows=90, time_to_run_Python_workers=90 * S)
    issue = Issue("python", "python", 9 * S, None, "it runs in", "", evidence={"pythonTimeMs": 90 * S})
    told = explain(issue, executed(plan, s1=(0, 20)))
    assert told.evidence["python.functions"] == "score"


def test_uneven_groups_of_a_function() -> None:
    """A random part of the key would divide what the function needs together."""
    plan = Plan()(0, "FlatMapGroupsInPandas [shop#4], f(x#1)#2, [y#3]", 2, rows=9)
    plan(1, "Exchange hashpartitioning(shop#4, 8)", 1)(2, "Scan parquet t [shop#4]", 1)
    skew = Issue("skew", "skew", 9 * S, None, "uneven", "aggregate twice")
    told = explain(skew, executed(plan, s1=(0, 5), s2=(5, 20)), 2)
    assert told.advice.startswith("All rows of a group are one call of the function")
    assert "one more column besides shop" in told.advice


@pytest.mark.parametrize(
    ("texts", "advice"),
    [
        (["ArrowEvalPython [f(x#1)#2], [y#3], 200"], "If it prepares something for each batch"),
        (["ArrowEvalPython [f(x#1)#2], [y#3], 250"], "If it prepares something for each batch"),
        (["ArrowEvalPython [f(x#1)#2], [y#3], 204"], "Spark's own functions help"),
        (["ArrowEvalPython [f(x#1)#2], [y#3], 101"], "Use Spark's own functions"),
        (["BatchEvalPython [f(x#1)#2], [y#3]"], "Use Spark's own functions"),
        (
            ["ArrowEvalPython [f(x#1)#2], [y#3], 200", "BatchEvalPython [f(x#1)#2], [y#3]"],
            "Use Spark's own functions",
        ),
    ],
    ids=["pandas", "Arrow", "an iterator", "row by row, which Arrow brings", "row by row", "one of each"],
)
def test_functions_that_take_batches_are_not_called_row_by_row(texts: list[str], advice: str) -> None:
    assert in_python(*texts).advice.startswith(advice)
    new_workers = in_python(*texts, advice=f"Reuse workers. {FASTER_FUNCTIONS}").advice
    assert new_workers.startswith(f"Reuse workers. {advice}")


@pytest.mark.parametrize(
    ("rows", "text", "said", "advice"),
    [
        (4_000, "BatchEvalPython [f(x#1)#2], [y#3]", ", 2.2 ms for each of 4,000 rows", "So long for a row"),
        (
            45_000,
            "BatchEvalPython [f(x#1)#2], [y#3]",
            ", 200 µs for each of 45,000 rows",
            "So long for a row",
        ),
        (50_000, "BatchEvalPython [f(x#1)#2], [y#3]", ", 180 µs for each of 50,000 rows", "Use Spark's own"),
        (90_000, "BatchEvalPython [f(x#1)#2], [y#3]", ", 100 µs for each of 90,000 rows", "Use Spark's own"),
        (
            4_000,
            "ArrowEvalPython [f(x#1)#2], [y#3], 200",
            ", 2.2 ms for each of 4,000 rows",
            "If it prepares",
        ),
        (4_000, "FlatMapGroupsInPandas [k#4], f(x#1)#2, [y#3]", "", "It takes whole groups. If it goes"),
        (4_000, "FlatMapGroupsInPandasWithState [k#4], f(x#1)#2, [y#3]", "", "It takes whole groups or"),
        (None, "BatchEvalPython [f(x#1)#2], [y#3]", "", "Use Spark's own"),
    ],
    ids=[
        "long for a row",
        "as long as it takes to open a file",
        "not so long",
        "quick",
        "in batches",
        "in groups",
        "in groups with state",
        "rows that nobody has counted",
    ],
)
def test_what_functions_take_for_a_row(rows: int | None, text: str, said: str, advice: str) -> None:
    """Where that is long for each core; else, most of it may be for what Python imports at first."""
    plan = Plan()(0, "Project [y#3]", 1)(1, text, 1, rows=rows, time_to_run_Python_workers=9 * S)
    issue = Issue("python", "python", 12 * S, None, "of the time", FASTER_FUNCTIONS)
    issue = replace(issue, evidence={"pythonTimeMs": 9 * S})
    told = explain(issue, executed(plan, s1=(0, 20)))
    assert told.sentence == f"of the time: f{said}"
    assert told.advice.startswith(advice)
    assert told.evidence["python.functions"] == "f"
    told = explain(replace(issue, lost_ms=12 * S - 1), executed(plan, s1=(0, 20)))
    assert "for each of" not in told.sentence


def test_no_time_for_a_row_of_two_kinds_of_calls() -> None:
    """Nobody knows whose the time is: of the 100 rows, or of the 90,000."""
    times = {"time_to_run_Python_workers": 9 * S}
    plan = Plan()(0, "BatchEvalPython [f(x#1)#2], [y#3]", 1, rows=100, **times)(1, "Filter (x#1 > 2)", 1)
    plan(2, "BatchEvalPython [g(x#1)#4], [y#5]", 1, rows=90_000, **times)
    issue = Issue("python", "python", 20 * S, None, "of the time", FASTER_FUNCTIONS)
    issue = replace(issue, evidence={"pythonTimeMs": 40 * S})
    told = explain(issue, executed(plan, s1=(0, 20)))
    assert told.sentence == "of the time: f, g"


def test_no_time_for_a_row_that_is_counted_in_two_stages() -> None:
    """As where rows are computed for a sample, too: the time is that of one of them."""
    plan = Plan()(0, "BatchEvalPython [f(x#1)#2], [y#3]", 1, rows=9_000, time_to_run_Python_workers=9 * S)
    plan.measured = {at: MetricValue(of.value, frozenset((1, 2))) for at, of in plan.measured.items()}
    issue = Issue("python", "python", 20 * S, None, "of the time", FASTER_FUNCTIONS)
    issue = replace(issue, evidence={"pythonTimeMs": 40 * S})
    execution = executed(plan, s1=(0, 20), s2=(20, 40))
    assert explain(issue, execution, 2).sentence == "of the time: f"


@pytest.mark.parametrize(
    ("sent", "columns", "said"),
    [(100, 20, True), (38, 20, False), (0, 20, False), (100, 7, False)],
    ids=["many bytes", "few", "nobody counts", "few columns, which are long"],
)
def test_rows_that_are_wide_for_python(sent: int, columns: int, said: bool) -> None:
    """As a struct of all columns is, of which the function needs two."""
    of = ", ".join(f"c{number}, c{number}#{number}" for number in range(columns))
    metrics = {"time_to_run_Python_workers": 9 * S, "data_sent_to_Python_workers": sent << 20}
    plan = Plan()(0, "Project [y#3]", 1)(
        1, f"BatchEvalPython [f(named_struct({of}))#99], [y#98]", 1, rows=100_000, **metrics
    )
    issue = Issue("python", "python", 9 * S, None, "of the time", FASTER_FUNCTIONS)
    told = explain(issue, executed(plan, s1=(0, 20)))
    assert told.sentence.endswith("; 1 KiB are sent to Python for each row") is said
    assert told.advice.startswith("Pass to the function the columns that it needs alone") is said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ArrowEvalPython [f(x#1)#2], [y#3], 200", True),
        ("ArrowEvalPython [f(x#1)#2], [y#3], 101", True),
        ("MapInPandas f(x#1)#2, [y#3]", True),
        ("FlatMapGroupsInPandas [k#4], f(x#1)#2, [y#3]", False),
        ("BatchEvalPython [f(x#1)#2], [y#3]", False),
    ],
)
def test_batches_that_are_small_by_configuration(text: str, said: bool) -> None:
    plan = Plan()(0, "Project [y#3]", 1)(1, text, 1, time_to_run_Python_workers=9 * S)
    issue = Issue("python", "python", 9 * S, None, "of the time", FASTER_FUNCTIONS)
    told = explain(replace(issue, evidence={SMALL_BATCH: 10}), executed(plan, s1=(0, 20)))
    assert told.sentence.endswith(", in batches of 10 at most") is said
    assert (SMALL_BATCH in told.evidence) is said
    assert told.advice.startswith("What is done once for each batch is done for every 10 rows: ") is said
    assert "Larger batches help" not in told.advice or not said


def test_what_workers_take_to_start_is_not_what_functions_take() -> None:
    """Nor is it less certain where these take whole groups."""
    plan = Plan()(0, "MapInPandas f(id#0L)#1, [a#2]", 1, time_to_run_Python_workers=9 * S)
    starts = Issue("python", "python starts", 9 * S, None, "9 tasks wait", "Reuse workers.")
    told = explain(starts, executed(plan, s1=(0, 20)))
    assert (told.lost_ms, told.advice) == (9 * S, "Reuse workers.")


def test_a_stage_of_no_place_is_that_of_a_query() -> None:
    nowhere = "$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768"
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out/m, false", None)
    assert named(nowhere, None, executed(plan)) == "query into file:/out/m"
    assert named("csv at NativeMethodAccessorImpl.java:0", None, executed(plan)) == "csv into file:/out/m"
    plan(1, "Scan parquet db.t [a#1]", 1)
    assert named(nowhere, None, executed(plan)) == "query of db.t into file:/out/m"
    assert named(nowhere, None) == ""


@pytest.mark.parametrize(("parts", "count"), [(1, "one query"), (2, "2 queries")])
def test_few_tasks_that_read_a_database(parts: int, count: str) -> None:
    """A table of JDBC is read by one query, in one task, unless options divide it."""
    text = f"Scan JDBCRelation(shop.accounts) [numPartitions={parts}] [id#1L,name#2]"
    plan = Plan()(0, "Project [id#1L]", 1)(1, text, 1, rows=9)
    plan.nodes[1][1] = f"Scan JDBCRelation(shop.accounts) [numPartitions={parts}] "  # as Spark names it
    nodes = executed(plan, s1=(0, 9)).nodes_by_stage()[1]
    reason = why_few_tasks(nodes, parts)
    assert reason is not None
    assert reason.because == f"shop.accounts is read from its database by {count}"
    assert "partitionColumn, lowerBound, upperBound and numPartitions" in reason.advice
    assert why_few_tasks(nodes, parts + 1) is None


def test_few_files_that_may_be_packed() -> None:
    """A folder of ``part-*.csv.gz``, whose path does not say so: as many tasks as files."""
    plan = Plan()(0, "Scan csv db.clicks", 1, number_of_files_read=2, rows=9)
    nodes = executed(plan, s1=(0, 9)).nodes_by_stage()[1]
    reason = why_few_tasks(nodes, 2)
    assert reason is not None
    assert (
        reason.because
        == "2 files of db.clicks, each read by one task: small, or not to be split (packed, multiLine)"
    )
    assert why_few_tasks(nodes, 3) is None


def parsing(calls: list[str], cut: str = "") -> EndedExecution:
    listed = ", ".join(f"{call} AS f{number}#{number + 9}" for number, call in enumerate(calls))
    plan = Plan()(0, "WriteFiles")(1, f"Project [{listed}{cut}]", 1)
    return executed(plan(2, "Scan parquet db.t", 1, rows=900, scan_time=20 * S), s1=(0, 10))


def test_documents_that_are_parsed_anew_for_each_field() -> None:
    """Of ten seconds on four cores, half is spent on reading; of the rest, nine of ten times would be saved."""
    body = [f"get_json_object(body#1, $.f{number})" for number in range(10)]
    issue = told(parsed_again, parsing(body))["recomputation"]
    assert (issue.lost_ms, issue.share_ms) == (None, 4_500)
    assert issue.sentence == "get_json_object parses body anew for each of 10 fields"
    cut = told(parsed_again, parsing(body, ", ... 5 more fields"))["recomputation"]
    assert "each of at least 10 fields" in cut.sentence
    assert cut.share_ms == 5_000  # of fifteen fields, or of a thousand


def test_xpath_as_spark_4_plans_it() -> None:
    xml = [f"invoke(XPathStringEvaluator(/f{n}/text()).evaluate(body#1))" for n in range(5)]
    issue = told(parsed_again, parsing(xml))["recomputation"]
    assert issue.sentence == "xpath parses body anew for each of 5 fields"
    assert issue.advice.startswith("from_xml (since Spark 4)")


@pytest.mark.parametrize(
    "calls",
    [
        ["get_json_object(a#1, $.x)", "get_json_object(a#1, $.y)"],
        [f"get_json_object(column_{number}#{number}, $.x)" for number in range(9)],
        ["from_json(StructField(a,LongType,true), body#1, Some(UTC))"] * 5,
        ["get_json_object(a#1, $.x)"] * 5,
    ],
    ids=["two fields", "other columns", "all at once", "the same field, which is computed once"],
)
def test_documents_that_are_not_parsed_again(calls: list[str]) -> None:
    assert told(parsed_again, parsing(calls)) == {}

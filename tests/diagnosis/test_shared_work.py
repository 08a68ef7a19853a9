"""What actions on one DataFrame compute again, though each needs other columns of it."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.repeated_work.recomputation import Recomputation
from tests.support.plans import Plan, S, executed

ORDERS = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/orders]"}


def action(
    stage: int,
    column: str,
    ids: int = 0,
    country: str = "FR",
    rows: int = 5_000,
    took_s: int = 10,
    join: str = "BroadcastHashJoin",
    customer: str = "trim(name#13)",
    above: str = "HashAggregate(keys=[], functions=[max({column})])",
) -> EndedExecution:
    """Return an action on orders that are joined with customers, and need a column of them.

    Args:
        ids: from which on Spark numbers columns.
        customer: what the key of the join is made of.
        took_s: how long its stage took.
    """
    key, of_customer, one = f"customer#{ids + 1}", f"id#{ids + 2}", f"{column}#{ids + 9}"
    made = customer.replace("#13", f"#{ids + 13}")
    plan = Plan()(0, above.format(column=one), stage, rows=1)
    plan(1, f"Project [{one}]")
    if join:
        plan(2, f"{join} [{key}], [{of_customer}], Inner, BuildRight, false", stage, rows=900)
    plan(3, f"Project [{made} AS {key}, {one}]")
    plan(4, f"Filter (isnotnull(name#{ids + 13}) AND (country#{ids + 3} = {country}))", stage, rows=1_000)
    plan(
        5,
        f"Scan csv [name#{ids + 13},country#{ids + 3},{one}] ReadSchema: {column}",
        stage,
        ORDERS,
        rows=rows,
    )
    if join:
        plan(3, "BroadcastExchange HashedRelationBroadcastMode(List(input[0, int, true])), [plan_id=7]")
        plan(4, f"Scan parquet [{of_customer}] Batched: true", stage + 50, rows=10)
    return executed(plan, **{f"s{stage}": (0, took_s), f"s{stage + 50}": (0, 1)})


def again(*executions: EndedExecution) -> list[Issue]:
    recomputation = Recomputation()
    for number, execution in enumerate(executions):
        recomputation.take(execution, f"count at a.py:{number}")
    return list(recomputation.again())


def test_each_action_needs_another_column() -> None:
    """Once is needed; the join is told, and what it reads is not told as well."""
    (issue,) = again(action(1, "amount"), action(2, "city"), action(3, "day"))

    assert "BroadcastHashJoin" in str(issue.evidence["recomputation.what"])
    assert "is computed 3 times, with other columns, for count at a.py:0, count at a.py:1" in issue.sentence
    assert issue.lost_ms == 2 * 10 * S


@pytest.mark.parametrize("name", ["HashAggregate(keys", "SortAggregate(key"])
def test_what_else_the_stage_does(name: str) -> None:
    """An aggregate takes next to nothing, whether Spark hashes or sorts for it: the time is the join's."""
    above = f"{name}=[], functions=[max({{column}})])"
    (issue,) = again(action(1, "amount", above=above), action(2, "city", above=above))
    assert (issue.lost_ms, issue.share_ms) == (10 * S, None)


@pytest.mark.parametrize("longest", [0, 1])
def test_a_column_that_takes_long(longest: int) -> None:
    """Whatever a column takes that only one action needs is not computed again."""
    executions = [action(1, "amount"), action(2, "city"), action(3, "day")]
    executions[longest] = action(longest + 1, "score", took_s=50)
    (issue,) = again(*executions)
    assert issue.lost_ms == 2 * 10 * S


def test_the_same_columns() -> None:
    """Of actions that need the same ones, nothing is said of others."""
    (issue,) = again(action(1, "amount"), action(2, "amount"), action(3, "amount"))
    assert "with other columns" not in issue.sentence
    assert issue.evidence["recomputation.times"] == 3


@pytest.mark.parametrize(
    "other",
    [
        action(2, "city", customer="upper(name#13)"),
        action(2, "city", country="DE"),
        action(2, "city", rows=5_001),
        action(2, "city", join="SortMergeJoin"),
    ],
    ids=["it only looks alike", "it needs other rows", "the table has grown", "it is joined in another way"],
)
def test_other_work(other: EndedExecution) -> None:
    assert again(action(1, "amount"), other) == []


def test_functions_without_a_name() -> None:
    """Spark calls all of them UDF: two that look alike may do other things; one column is of one function."""
    made = "UDF(name#13)"
    assert again(action(1, "amount", customer=made), action(2, "city", ids=100, customer=made)) == []
    assert len(again(action(1, "amount", customer=made), action(2, "city", customer=made))) == 1


@pytest.mark.parametrize("is_built_anew", [False, True], ids=["the same columns", "as a view, each time"])
def test_columns_with_other_ids(is_built_anew: bool) -> None:
    """A view is resolved anew each time: all of its columns have other ids, and are made of the same."""
    ids = 100 if is_built_anew else 0
    (issue,) = again(action(1, "amount"), action(2, "city", ids=ids))
    assert "is computed 2 times, with other columns" in issue.sentence


def test_columns_that_are_cut() -> None:
    """Where a list of columns is cut, nobody knows what those are made of that have other ids."""

    def cut(stage: int, column: str, ids: int) -> EndedExecution:
        plan = Plan()(0, f"HashAggregate(keys=[], functions=[max({column}#{ids + 9})])", stage, rows=1)
        plan(1, f"Window [row_number() AS rn#{ids + 4}], [key#{ids + 1}], [day#{ids + 2} ASC]", stage, rows=9)
        plan(2, f"Project [upper(name#{ids + 13}) AS name#{ids + 3}, ... 9 more fields]")
        plan(3, f"Scan csv [name#{ids + 13},{column}#{ids + 9}] Batched: false", stage, ORDERS, rows=9)
        return executed(plan, **{f"s{stage}": (0, 10)})

    assert again(cut(1, "amount", 0), cut(2, "city", 100)) == []
    assert len(again(cut(1, "amount", 0), cut(2, "city", 0))) == 1


def test_what_is_only_read_again() -> None:
    """A look at each row is not worth a cache; Spark reads the columns that each action needs."""
    assert (
        again(*(action(stage, column, join="") for stage, column in enumerate(("amount", "city"), 1))) == []
    )


def test_what_is_made_of_a_cache() -> None:
    def of_cache(stage: int, column: str) -> EndedExecution:
        plan = Plan()(0, f"HashAggregate(keys=[], functions=[max({column}#9)])", stage, rows=1)
        plan(1, "BroadcastHashJoin [customer#1], [id#2], Inner, BuildRight, false", stage, rows=900)
        plan(2, f"InMemoryTableScan [customer#1, {column}#9]", stage, rows=1_000)
        plan(2, "BroadcastExchange HashedRelationBroadcastMode(List(input[0, int, true])), [plan_id=7]")
        plan(3, "Scan parquet [id#2] Batched: true", stage + 50, rows=10)
        return executed(plan, **{f"s{stage}": (0, 10), f"s{stage + 50}": (0, 1)})

    assert again(of_cache(1, "amount"), of_cache(2, "city")) == []


def test_functions_and_windows() -> None:
    """What Spark names anew in each plan, or puts out for what needs it, does not count."""

    def of_window(stage: int, column: str) -> EndedExecution:
        number = 70 + stage
        plan = Plan()(0, f"HashAggregate(keys=[], functions=[max({column}#9)])", stage, rows=1)
        text = "HashAggregate(keys=[k#1], functions=[sum(x#2)], output=[k#1, {0}#9, sum#{1}])"
        plan(1, text.format(column, number), stage, rows=10)
        plan(2, f"ArrowEvalPython [f(x#2)#5], [k#1, {column}#9, pythonUDF0#{number}], 200", stage, rows=99)
        plan(3, f"Generate explode(xs#3), [k#1, {column}#9], false, [x#2]", stage, rows=99)
        plan(4, f"Scan parquet [k#1,xs#3,{column}#9] Batched: true", stage, ORDERS, rows=50)
        return executed(plan, **{f"s{stage}": (0, 10)})

    (issue,) = again(of_window(1, "amount"), of_window(2, "city"))
    assert str(issue.evidence["recomputation.what"]).startswith("the same HashAggregate, ArrowEvalPython")


@pytest.mark.parametrize(("rows", "is_told"), [(9, True), (8, False)], ids=["as many rows", "other rows"])
def test_conditions_that_are_cut(rows: int, is_told: bool) -> None:
    """What comes after the cut may differ: then so do the rows."""
    condition = "Filter (upper(name#13) = A) AND (" + "(day#2 > 3) AND " * 40

    def filtered(stage: int, column: str, kept: int) -> EndedExecution:
        plan = Plan()(0, f"HashAggregate(keys=[], functions=[max({column}#9)])", stage, rows=1)
        plan(1, condition[:500], stage, rows=kept)
        plan(2, f"Scan csv [name#13,day#2,{column}#9] Batched: false", stage, ORDERS, rows=99)
        return executed(plan, **{f"s{stage}": (0, 10)})

    assert bool(again(filtered(1, "amount", 9), filtered(2, "city", rows))) is is_told


@pytest.mark.parametrize(
    ("keys", "function", "is_told"),
    [
        (("event", "event", "event"), "first({0}, false)", True),
        (("event", "event", "user"), "first({0}, false)", False),
        (("event", "event", "event"), "first({0}, true)", False),
        (("event", "event", "event"), "sum({0})", False),
    ],
    ids=["other columns", "other keys", "the first that is not null", "sums of other columns"],
)
def test_duplicates_are_dropped_again_for_other_columns(
    keys: tuple[str, ...], function: str, is_told: bool
) -> None:
    """``dropDuplicates`` keeps the first of each column that an action needs; whether Spark sorts for that or not."""
    executions = []
    for number, key in enumerate(keys):
        column, stage = f"column_{number}#{10 + number}", number + 1
        name = "SortAggregate(key" if number % 2 else "HashAggregate(keys"
        plan = Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", stage + 50, rows=1)
        plan(1, f"{name}=[{key}#1], functions=[{function.format(column)}])", stage + 50, rows=900)
        plan(2, f"Exchange hashpartitioning({key}#1, 8)", stage)
        plan(3, f"{name}=[{key}#1], functions=[partial_{function.format(column)}])", stage, rows=900)
        plan(4, f"Scan json [{key}#1,{column}]", stage, ORDERS, rows=1_000)
        executions.append(executed(plan, **{f"s{stage}": (0, 10), f"s{stage + 50}": (10, 11)}))
    issues = [issue for issue in again(*executions) if issue.evidence["recomputation.times"] == 3]
    assert sum(issue.lost_ms or 0 for issue in issues) == (22 * S if is_told else 0)


@pytest.mark.parametrize(
    ("sort", "count"),
    [("Sort [day#2 ASC NULLS FIRST], true, 0", 0), ("Sort [name#1 ASC NULLS FIRST], false, 0", 1)],
    ids=["of the program", "for the aggregate alone"],
)
def test_a_sort_that_only_one_of_two_has(sort: str, count: int) -> None:
    """What is collected depends on the order that the program asks for, which the aggregate does not name."""

    def collected(stage: int, *between: str) -> EndedExecution:
        plan = Plan()(0, "SortAggregate(key=[name#1], functions=[collect_set(day#2, 0, 0)])", stage, rows=9)
        for text in between:
            plan(1, text, stage)
        return executed(
            plan(1 + len(between), "Scan csv [name#1,day#2]", stage, ORDERS, rows=5_000),
            **{f"s{stage}": (0, 10)},
        )

    assert len(again(collected(1, sort), collected(2))) == count
    assert len(again(*(collected(stage, sort) for stage in (1, 2, 3)))) == 1


@pytest.mark.parametrize(("first_s", "second_s"), [(40, 10), (10, 40)])
def test_what_else_is_done_in_one_of_the_stages(first_s: int, second_s: int) -> None:
    """Nobody knows how much of a stage it takes; in the shorter one, it can take no more than that."""

    def written(stage: int, above: str, took_s: int) -> EndedExecution:
        plan = Plan()(0, above, stage, rows=9)(1, "Project [id#1, concat(abc, id#1) AS w#2]", stage)
        return executed(plan(2, "Range (0, 9)", stage, rows=9), **{f"s{stage}": (0, took_s)})

    moved = written(1, "Exchange RoundRobinPartitioning(8), REPARTITION_BY_NUM", first_s)
    (issue,) = again(moved, written(2, "Generate explode(w#2), false", second_s))
    assert (issue.lost_ms, issue.share_ms) == (None, 10 * S)

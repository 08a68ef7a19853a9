"""The rule about what each micro-batch computes anew of tables: not about the stream's own rows, nor a cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import ExecutedStage
from spark_events.diagnosis.queries.static_sides import StaticSides
from tests.support.plans import Plan, S, executed

TABLE = "Scan parquet shop.customers [id#5L, spent#6]"
AT = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/customers]"}
FILES = "Scan json [id#1L]"
KAFKA = "MicroBatchScan [id#1L]"


def batch(number: int, side: tuple[str, dict[str, str] | None] = (TABLE, AT), rows: int = 900) -> Plan:
    """Return a micro-batch's plan: the files that have come, joined with sums of a table."""
    plan = Plan()(0, "BroadcastHashJoin [id#1L], [id#5L], Inner, BuildRight", 10 * number + 2, rows=50)
    come = {"Location": f"InMemoryFileIndex(1 paths)[file:/in/{number}.json]"}
    plan(1, FILES, 10 * number + 2, come, rows=50)
    plan(1, "Exchange hashpartitioning(id#5L, 4)", 10 * number + 1)
    return plan(2, "HashAggregate(keys=[id#5L], functions=[partial_sum(spent#6)])", 10 * number + 1, rows=90)(
        3, side[0], 10 * number + 1, side[1], rows=rows
    )


def told(*plans: Plan) -> list[Issue]:
    """Return what is told of micro-batches, each of whose first stages takes 6 s, and the second 3 s."""
    rule = StaticSides()
    for number, plan in enumerate(plans):
        stages = {f"s{10 * number + 1}": (0, 6), f"s{10 * number + 2}": (6, 9)}
        rule.take(executed(plan, **stages))
    return list(rule.issues())


def test_a_table_that_is_summed_in_each_batch() -> None:
    (issue,) = told(*(batch(number) for number in range(4)))
    assert (issue.kind, issue.lost_ms) == ("recomputation", 3 * 6 * S)
    assert issue.sentence == (
        "the same HashAggregate of shop.customers is computed 4 times by micro-batches, though no new rows of "
        "the stream go into it"
    )
    assert issue.advice.startswith("If the table does not change while the query runs, cache()")


def test_files_of_a_batch_that_its_actions_compute_twice() -> None:
    """They are rows of the stream; another rule tells of them."""
    rule = StaticSides()
    for number in range(4):
        come = {"Location": f"InMemoryFileIndex(1 paths)[file:/in/{number}.json]"}
        first, second = 10 * number + 1, 10 * number + 2
        actions = [
            Plan()(0, f"Filter (id#1L > {stage})", stage, rows=50)(
                1, "Scan ExistingRDD[id#1L]", stage, rows=50
            )(2, "Project [id#1L, upper(name#2) AS name#3]", stage, rows=50)(3, FILES, stage, come, rows=50)
            for stage in (first, second)
        ]
        rule.take(executed(*actions, **{f"s{first}": (0, 6), f"s{second}": (6, 12)}))
    assert list(rule.issues()) == []


@pytest.mark.parametrize(
    ("scan", "share_s"), [("Scan json [id#5L, spent#6]", 27), ("Scan parquet [id#5L, spent#6]", None)]
)
def test_lines_that_are_parsed_in_each_batch(scan: str, share_s: int | None) -> None:
    """Spark measures what it takes to read columns; what it takes to parse lines may be all of a stage."""

    def parsed(number: int) -> Plan:
        at = 10 * number + 2
        plan = Plan()(0, "BroadcastHashJoin [id#1L], [id#5L], Inner, BuildLeft", at, rows=50)
        come = {"Location": f"InMemoryFileIndex(1 paths)[file:/in/{number}.json]"}
        plan(1, "BroadcastExchange …", at - 1, data_size=1)(2, KAFKA, at - 1, come, rows=50)
        time = {} if share_s else {"scan_time": 20}
        return plan(1, "Filter isnotnull(id#5L)", at, rows=900)(2, scan, at, AT, rows=900, **time)

    issues = told(*(parsed(number) for number in range(10)))
    assert [(issue.lost_ms, issue.share_ms) for issue in issues if issue.time_ms > S] == (
        [(None, share_s * S)] if share_s else []
    )


def in_halves(number: int) -> Plan:
    """Return a micro-batch's plan: a window of a table, whose rows are divided by a shuffle, and then joined."""
    first, second = 10 * number + 1, 10 * number + 2
    plan = Plan()(0, "SortMergeJoin [id#1L], [id#5L], LeftOuter", second, rows=50)
    plan(1, FILES, second, {"Location": f"InMemoryFileIndex(1 paths)[file:/in/{number}.json]"}, rows=50)
    plan(1, "Window [row_number() AS rn#7], [id#5L]", second, rows=90)(
        2, "Exchange hashpartitioning(id#5L, 4)", first
    )
    return plan(3, "WindowGroupLimit [id#5L]", first, rows=90)(4, TABLE, first, AT, rows=900)


@pytest.mark.parametrize(
    ("shuffled_s", "lost_s", "share_s"),
    [(8, 27, None), (6, None, 27), (3, None, 27)],
    ids=["nearly all is known", "a third may be for the join with the stream", "most is not known"],
)
def test_a_table_that_is_shuffled(shuffled_s: int, lost_s: int | None, share_s: int | None) -> None:
    """What comes before the shuffle, and after it, is one part, and its stages have cost the sum."""
    rule = StaticSides()
    for number in range(4):
        stages = {f"s{10 * number + 1}": (0, shuffled_s), f"s{10 * number + 2}": (shuffled_s, 9)}
        rule.take(executed(in_halves(number), **stages))
        causes = {issue.cause for issue in rule.issues()}
    (issue,) = rule.issues()
    assert causes == {issue.cause}
    assert issue.sentence.startswith(
        "the same Window, WindowGroupLimit of shop.customers is computed 4 times"
    )
    assert issue.lost_ms == (lost_s and lost_s * S)
    assert issue.share_ms == (share_s and share_s * S)


def test_two_tables_are_two() -> None:
    plans = []
    for number in range(4):
        plan = Plan()(0, "SortMergeJoin [id#1L], [id#5L], Inner", 10 * number + 2, rows=50)
        for depth, table in ((1, TABLE), (1, "Scan parquet shop.codes [id#8L]")):
            stage = 10 * number + 1 + (table is not TABLE) * 2
            plan(depth, "Exchange hashpartitioning(id#5L, 4)", stage)
            plan(depth + 1, "WindowGroupLimit [id#5L]", stage, rows=90)(depth + 2, table, stage, AT, rows=900)
        plan(
            1, FILES, 10 * number + 2, {"Location": f"InMemoryFileIndex(1 paths)[file:/in/{number}]"}, rows=5
        )
        plans.append(plan)
    rule = StaticSides()
    for number, plan in enumerate(plans):
        stages = {f"s{10 * number + 1}": (0, 3), f"s{10 * number + 3}": (3, 7), f"s{10 * number + 2}": (7, 9)}
        rule.take(executed(plan, **stages))
    assert sorted(issue.lost_ms or 0 for issue in rule.issues()) == [9 * S, 12 * S]


@pytest.mark.parametrize(
    "plans",
    [
        [batch(number, rows=900 + number) for number in range(4)],
        [batch(number, (KAFKA, None)) for number in range(4)],
        [batch(number, ("Scan ExistingRDD[id#5L]", None)) for number in range(4)],
        [batch(number, ("InMemoryTableScan [id#5L, spent#6]", None)) for number in range(4)],
    ],
    ids=["a table that grows", "rows of the stream", "rows of the program", "a cache"],
)
def test_what_is_not_the_same_each_time(plans: list[Plan]) -> None:
    assert told(*plans) == []


def test_a_table_that_changes_after_some_batches() -> None:
    """Then not each micro-batch has computed the same."""
    (issue,) = told(*(batch(number, rows=900 + max(0, number - 3)) for number in range(8)))
    assert "computed 4 times by micro-batches" in issue.sentence


@pytest.mark.parametrize("read", [9 << 20, 5 << 20], ids=["of the same files", "of others"])
def test_files_whose_columns_each_batch_looks_for(read: int) -> None:
    """That belongs to the micro-batch, and to no node of a plan: 2 s in each."""
    rule = StaticSides()
    for number in range(4):
        plan = Plan()(0, "SortMergeJoin [id#1L], [id#5L], Inner", 10 * number + 2, rows=50)
        plan(
            1, KAFKA, 10 * number + 2, {"Location": f"InMemoryFileIndex(1 paths)[file:/in/{number}]"}, rows=5
        )
        plan(1, "Exchange hashpartitioning(id#5L, 4)", 10 * number + 1)
        plan(2, "HashAggregate(keys=[id#5L], functions=[partial_sum(spent#6)])", 10 * number + 1, rows=90)
        sizes = {"number_of_files_read": 2, "size_of_files_read": 9 << 20}
        plan(3, "Scan json [id#5L, spent#6]", 10 * number + 1, AT, rows=900, **sizes)
        ended = executed(plan, **{f"s{10 * number + 1}": (2, 8), f"s{10 * number + 2}": (8, 9)})
        looked = ExecutedStage(10 * number, 2, 0, 2 * S, 4 * S, 0, 0, read, of_schema=True)
        rule.take(replace(ended, stages={**ended.stages, looked.id: looked}))
    (issue,) = rule.issues()

    is_of_it = read == 9 << 20
    assert issue.lost_ms == 3 * (8 if is_of_it else 6) * S
    assert ("to find each time what columns it has takes 6.0 s of that" in issue.sentence) is is_of_it


def test_two_sides_of_the_same_files_have_looked_for_their_columns_once() -> None:
    """2 s in each batch, for two aggregations of 3 s each."""
    rule = StaticSides()
    for number in range(4):
        at = 10 * number
        plan = Plan()(0, "SortMergeJoin [id#1L], [id#5L], Inner", at + 3, rows=50)
        for stage, summed in ((at + 1, "spent"), (at + 2, "paid")):
            plan(1, "Exchange hashpartitioning(id#5L, 4)", stage)
            plan(2, f"HashAggregate(keys=[id#5L], functions=[partial_sum({summed}#6)])", stage, rows=90)
            sizes = {"number_of_files_read": 2, "size_of_files_read": 9 << 20}
            plan(3, f"Scan json [id#5L, {summed}#6]", stage, AT, rows=900, **sizes)
        plan(1, KAFKA, at + 3, {"Location": f"InMemoryFileIndex(1 paths)[file:/in/{number}]"}, rows=5)
        ended = executed(plan, **{f"s{at + 1}": (2, 5), f"s{at + 2}": (5, 8), f"s{at + 3}": (8, 9)})
        looked = ExecutedStage(at, 2, 0, 2 * S, 4 * S, 0, 0, 9 << 20, of_schema=True)
        rule.take(replace(ended, stages={**ended.stages, looked.id: looked}))
    issues = list(rule.issues())

    assert sorted(issue.lost_ms or 0 for issue in issues) == [3 * 3 * S, 3 * 5 * S]
    assert ["columns it has" in issue.sentence for issue in issues].count(True) == 1


def test_what_was_computed_once_is_forgotten() -> None:
    """A query may run for a year: all parts that hold its own rows are others in each micro-batch."""
    rule = StaticSides()
    for number in range(50):
        stages = {f"s{10 * number + 1}": (0, 6), f"s{10 * number + 2}": (6, 9)}
        rule.take(executed(batch(number), **stages))
    assert len(rule._recomputation._parts) < 10
    (issue,) = rule.issues()
    assert issue.lost_ms == 49 * 6 * S


def of_function(number: int, infers: bool = False) -> list[Plan]:
    """Return the plans of a micro-batch whose foreachBatch sums a table, or looks what columns files have."""
    own = Plan()(
        0, FILES, 10 * number + 2, {"Location": f"InMemoryFileIndex(1 paths)[file:/in/{number}.json]"}
    )
    if not infers:
        return [own, batch(number)]
    at = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/history.csv]"}
    look = Plan()(
        0, "DeserializeToObject invoke(value#3.toString()), obj#4: java.lang.String", 10 * number + 1
    )
    return [own, look(1, "Scan text [value#3]", 10 * number + 1, at, rows=900)]


@pytest.mark.parametrize(
    ("infers", "what", "advice"),
    [
        (False, "HashAggregate of shop.customers", "If the table"),
        (True, "schema of file:/lake/history.csv", "Say"),
    ],
)
def test_what_the_function_of_foreach_batch_computes_each_time(infers: bool, what: str, advice: str) -> None:
    rule = StaticSides()
    for number in range(4):
        stages = {f"s{10 * number + 1}": (0, 6), f"s{10 * number + 2}": (6, 9)}
        rule.take(executed(*of_function(number, infers), **stages))
    (issue,) = rule.issues()
    assert issue.lost_ms == 3 * 6 * S
    assert issue.sentence.startswith(f"the same {what} is computed 4 times by micro-batches")
    assert issue.advice.startswith(advice)

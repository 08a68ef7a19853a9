"""The rule about foreachBatch that writes a table again: not about lookups, explosions and appended rows."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.queries.batch_rewrites import BatchRewrites
from tests.support.plans import Plan, S, executed

COLUMNS = "[id#{0}L, name#{1}]"
OF_SOURCE = "Scan json " + COLUMNS.format(1, 2)
BATCH, BATCH_AGAIN = ("Scan ExistingRDD" + COLUMNS.format(*ids) for ids in ((3, 4), (7, 8)))
TABLE = "Scan parquet " + COLUMNS.format(5, 6)
AT = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/customers/v0]", "PartitionFilters": "[]"}
INTO = "Execute InsertIntoHadoopFsRelationCommand file:/lake/{0}, false, Parquet, [], {1}, [id, name]"
OVERWRITES = INTO.format("customers/v1", "Overwrite")
ROWS, OWN = 4_000_000, 5_000


def joined(kind: str, batch_left: bool = False, into: str = OVERWRITES, rows: int = ROWS) -> Plan:
    """Return an action that joins the table with the batch and writes what comes out."""
    plan = Plan()(0, into, 2, rows=rows)(1, f"SortMergeJoin [id#5L], [id#3L], {kind}", 2, rows=rows)
    if batch_left:
        plan(2, BATCH, 1, rows=OWN)
    plan(2, TABLE, 2, AT, rows=ROWS)
    return plan if batch_left else plan(2, BATCH, 1, rows=OWN)


def replaced(table: dict[str, str] | None = None, into: str = OVERWRITES) -> Plan:
    """Return an action that writes the table, but for the keys of the batch, and then the batch."""
    plan = Plan()(0, into, 2, rows=ROWS)(1, "Union")
    plan(2, "BroadcastHashJoin [id#5L], [id#3L], LeftAnti, BuildRight", 2, rows=ROWS - OWN)
    plan(3, TABLE, 2, table or AT, rows=ROWS)
    plan(3, "BroadcastExchange HashedRelationBroadcastMode")(4, BATCH, 1, rows=OWN)
    return plan(2, BATCH_AGAIN, 2, rows=OWN)


def told(*actions: Plan, batches: int = 3, parts_ms: int = 9 * S) -> Issue | None:
    """Return what is told of micro-batches with these actions: 1 s for the batch, 8 s for the table."""
    rule = BatchRewrites()
    for _ in range(batches):
        plans = [Plan()(0, OF_SOURCE, 1, rows=OWN), *actions]
        rule.take(executed(*plans, s1=(0, 1), s2=(1, 9)), parts_ms)
    return rule.issue()


def test_the_whole_table_for_each_batch() -> None:
    """It costs what the stages with its rows take of the actions' time, by the copied share of these."""
    issue = told(replaced())
    assert issue is not None
    assert (issue.kind, issue.lost_ms) == ("rewrite-whole-files", 3 * (8 * S - 10))
    assert issue.sentence == (
        "3 micro-batches each read a table and write it again, the latest 3,995,000 rows of "
        "file:/lake/customers/v0, for 5,000 rows of its own"
    )
    assert (issue.evidence["rewrite.copiedRows"], issue.evidence["rewrite.changedRows"]) == (ROWS - OWN, OWN)


def test_the_time_of_actions_may_be_unknown() -> None:
    issue = told(replaced(), parts_ms=0)
    assert issue is not None
    assert issue.lost_ms == 3 * (8 * S - 10)


def test_each_batch_may_write_to_another_place() -> None:
    rule = BatchRewrites()
    for number in range(3):
        at = {"Location": f"InMemoryFileIndex(1 paths)[file:/lake/customers/v{number}]"}
        rule.take(executed(Plan()(0, OF_SOURCE, 1), replaced(at), s1=(0, 1), s2=(1, 9)), 0)
    issue = rule.issue()
    assert issue is not None
    assert issue.evidence["rewrite.table"] == "file:/lake/customers/…"


def test_what_is_written_aside_first_is_written_twice() -> None:
    aside, again = replaced(into=INTO.format("aside", "Overwrite")), Plan()
    again(0, OVERWRITES, 3, rows=ROWS)
    again(1, TABLE, 3, {"Location": "InMemoryFileIndex(1 paths)[file:/lake/aside]"}, rows=ROWS)
    rule = BatchRewrites()
    for _ in range(3):
        batch = executed(Plan()(0, OF_SOURCE, 1), aside, again, s1=(0, 1), s2=(1, 9), s3=(9, 11))
        rule.take(batch, 11 * S)
    issue = rule.issue()
    assert issue is not None
    assert issue.lost_ms == 3 * (8 * S - 10 + 2 * S)


@pytest.mark.parametrize(
    "action",
    [joined("FullOuter"), joined("LeftOuter"), joined("RightOuter", batch_left=True)],
    ids=["full", "left", "right"],
)
def test_a_join_that_keeps_the_table(action: Plan) -> None:
    assert told(action) is not None


def exploded() -> Plan:
    plan = Plan()(0, OVERWRITES, 2, rows=ROWS)(1, "Generate explode(items#4)", 2, rows=ROWS)
    plan(2, "SortMergeJoin [id#5L], [id#3L], Inner", 2, rows=OWN)
    return plan(3, TABLE, 2, AT, rows=ROWS)(3, BATCH, 1, rows=OWN)


def counted() -> Plan:
    plan = Plan()(0, OVERWRITES, 2, rows=50)(1, "HashAggregate(keys=[name#6])", 2, rows=50)(2, "Union")
    return plan(3, TABLE, 2, AT, rows=ROWS)(3, BATCH, 2, rows=OWN)


@pytest.mark.parametrize(
    "action",
    [
        joined("Inner", rows=OWN),
        joined("LeftOuter", batch_left=True, rows=OWN),
        joined("Inner"),
        joined("LeftSemi"),
        joined("LeftOuter", batch_left=True),
        exploded(),
        counted(),
        replaced(into=INTO.format("customers", "Append")),
        replaced({**AT, "PartitionFilters": "[(day#9 IN (1,2))]"}),
        Plan()(0, OVERWRITES, 2, rows=ROWS)(1, TABLE, 2, AT, rows=ROWS),
        Plan()(0, OVERWRITES, 2, rows=OWN)(1, BATCH, 2, rows=OWN),
        Plan()(0, "CollectLimit 21", 2, rows=ROWS)(1, "Union")(2, TABLE, 2, AT, rows=ROWS)(
            2, BATCH, 2, rows=OWN
        ),
    ],
    ids=[
        "a lookup",
        "one that may find nothing",
        "one that finds many",
        "the rows that are concerned",
        "many for each row of the batch",
        "an explosion behind a lookup",
        "a sum of all",
        "appended",
        "some partitions only",
        "without the batch",
        "the batch alone",
        "nothing is written",
    ],
)
def test_actions_that_copy_no_table(action: Plan) -> None:
    assert told(action) is None


def test_two_batches_are_no_habit() -> None:
    assert told(replaced(), batches=2) is None


def test_a_table_that_is_hardly_larger_than_the_batch() -> None:
    small = Plan()(0, OVERWRITES, 2, rows=20 * OWN - 1)(1, "Union")
    small(2, TABLE, 2, AT, rows=19 * OWN - 1)(2, BATCH, 2, rows=OWN)
    assert told(small) is None

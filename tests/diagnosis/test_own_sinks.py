"""Micro-batches that read the table which they write."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.repeated_work.own_sinks import own_sink_reads
from tests.support.plans import Plan, executed

S = 1_000
SINK = "file:/out/readings"
BATCH = "Scan ExistingRDD[id#0,day#1]"
WRITE = (
    "Execute InsertIntoHadoopFsRelationCommand {into}, false, [{by}], Parquet, [path={into}], {mode}, [id]"
)


def joined(
    reads: str = SINK,
    rows: int = 3_600_000,
    came: int = 6_600,
    by: str = "day#1",
    pruned: str = "[]",
    mode: str = "Append",
    where_rows: str = "isnotnull(id#2)",
    partitions: tuple[int, int] | None = None,
) -> Plan:
    """Return the plan of a micro-batch whose rows are joined with those of a table: read in 5 s, joined in 7.

    Args:
        partitions: how many it writes, and reads.
    """
    files = {"number_of_files_read": 61, "size_of_files_read": 1 << 20}
    of_write = {"number_of_dynamic_part": partitions[0]} if partitions else {}
    if partitions:
        files["number_of_partitions_read"] = partitions[1]
    where = {"Location": f"InMemoryFileIndex(1 paths)[{reads}]", "PartitionFilters": pruned}
    plan = Plan()(0, WRITE.format(into=SINK, by=by, mode=mode), **of_write)(
        1, "SortMergeJoin [id#0], [id#2], LeftAnti", 3, rows=10
    )
    plan(2, "Exchange hashpartitioning(id#0, 4)", 1)(3, BATCH, 1, rows=came)
    plan(2, "Exchange hashpartitioning(id#2, 4)", 2)(3, f"Filter ({where_rows})", 2)(
        4, "Scan parquet  [id#2,day#3]", 2, where, rows=rows
    )
    scan = plan.nodes[-1]
    for name, value in files.items():
        one = Plan()(0, "Scan x", None, **{name: value})
        (pair,) = one.nodes[0][-1]
        number = 999_000 + len(scan[-1])
        scan[-1].append([pair[0], number])
        plan.driver[str(number)] = value
    return plan


def told(plan: Plan) -> list[tuple[int | None, int | None, str]]:
    execution = executed(plan, s1=(0, 1), s2=(1, 6), s3=(6, 13))
    return [(issue.lost_ms, issue.share_ms, issue.advice) for issue in own_sink_reads(execution)]


def test_a_sink_that_is_partitioned() -> None:
    """Nearly all of it could be left out: 12 s."""
    ((lost_ms, share_ms, advice),) = told(joined())
    assert (lost_ms, share_ms) == (pytest.approx(12 * S, rel=0.01), None)
    assert advice.startswith("Compare day, by which the table is partitioned, with what the micro-batch has")


@pytest.mark.parametrize(("written", "saved"), [(1, 0.9), (4, 0.6), (5, 0.5)])
def test_partitions_that_are_needed(written: int, saved: float) -> None:
    """Of ten, the micro-batch would still read those that it writes."""
    ((lost_ms, share_ms, _),) = told(joined(partitions=(written, 10)))
    assert (lost_ms, share_ms) == (pytest.approx(saved * 12 * S, rel=0.01), None)


def test_a_micro_batch_with_rows_of_most_partitions() -> None:
    """To leave out the others would help little."""
    ((lost_ms, share_ms, advice),) = told(joined(partitions=(6, 10)))
    assert (lost_ms, share_ms) == (None, pytest.approx(0.4 * 12 * S, rel=0.01))
    assert advice.startswith("It takes longer with each micro-batch.")


def test_a_sink_without_partitions() -> None:
    """How much of it need be read is not known."""
    ((lost_ms, share_ms, advice),) = told(joined(by=""))
    assert (lost_ms, share_ms) == (None, pytest.approx(12 * S, rel=0.01))
    assert advice.startswith("It takes longer with each micro-batch.")


@pytest.mark.parametrize(
    "plan",
    [
        joined(reads="file:/lake/customers"),
        joined(rows=90_000),
        joined(came=1_000_000),
        joined(came=0),
        joined(pruned="[isnotnull(day#3), (day#3 >= 2026-11-29)]"),
        joined(mode="Overwrite"),
        joined(where_rows="(isnotnull(ts#4) AND (ts#4 > 2026-11-28))"),
    ],
    ids=[
        "another table",
        "few rows",
        "a large batch",
        "an unknown one",
        "some partitions",
        "written anew",
        "some rows",
    ],
)
def test_what_is_no_issue(plan: Plan) -> None:
    assert told(plan) == []

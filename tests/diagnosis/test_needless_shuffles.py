"""The rule about shuffles that the next one undoes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.costly_nodes.needless_shuffles import needless_shuffles
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import ExecutedStage
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

ROWS = 2_000_000
EVEN = "Exchange RoundRobinPartitioning(200), REPARTITION_BY_NUM"
BY_COLUMN = "Exchange hashpartitioning(buyer#2, 200), REPARTITION_BY_COL"
BY_RANGE = "Exchange rangepartitioning(buyer#2 ASC NULLS FIRST, 200), REPARTITION_BY_COL"
SORTED = "Exchange rangepartitioning(paid#3 ASC NULLS FIRST, 200), ENSURE_REQUIREMENTS"
PARTIAL = "HashAggregate(keys=[shop#1L], functions=[partial_sum(amount#4L)])"
SUM = "HashAggregate(keys=[shop#1L], functions=[sum(amount#4L)])"
LENGTHS = "HashAggregate(keys=[shop#1L], functions=[partial_max(length(buyer#2))])"
DISTINCT = "HashAggregate(keys=[shop#1L], functions=[])"


def told(
    *between: str,
    shuffle: str = EVEN,
    last: str = SUM,
    rows: int = ROWS,
    tasks: int = 8,
    by: str = "shop#1L",
    beside: str = "",
) -> list[Issue]:
    """Return what is told of a shuffle, what is done until the next one, and what is after that.

    Its rows are written in the 30 s of stage 1, of which a tenth is for that, and read in the 40 s of stage 2,
    of which a fifth writes them again. Beside all that may be another branch of the plan.
    """
    plan = Plan()(0, last, 3)(
        1, f"Exchange hashpartitioning({by}, 200), ENSURE_REQUIREMENTS", 2, shuffle_records_written=9
    )
    for depth, text in enumerate(between, 2):
        plan(depth, text, 2)
    depth = 2 + len(between)
    plan(depth, "AQEShuffleRead coalesced")(depth + 1, shuffle, 1, shuffle_records_written=rows)
    plan(depth + 2, "Scan parquet db.purchases [shop#1L]", 1, rows=rows)
    if beside:
        plan(1, beside, 2)
    execution = executed(plan, s1=(0, 30), s2=(30, 70), s3=(70, 75))
    stages = {
        **execution.stages,
        1: ExecutedStage(1, tasks, 0, 30 * S, 120 * S, 12 * S, 0),
        2: ExecutedStage(2, 8, 30 * S, 70 * S, 160 * S, 32 * S, 0),
    }
    return list(needless_shuffles(replace(execution, stages=stages), Thresholds()))


@pytest.mark.parametrize(
    ("between", "of", "said"),
    [
        ((PARTIAL,), {}, "repartition() moves"),
        ((PARTIAL, "Project [shop#1L, amount#4L]"), {"shuffle": BY_COLUMN}, "repartition() moves"),
        ((PARTIAL,), {"shuffle": BY_RANGE}, "repartitionByRange() moves"),
        ((DISTINCT,), {"last": DISTINCT}, "repartition() moves"),
        ((LENGTHS,), {}, "repartition() moves"),
        ((), {"last": "SortMergeJoin [shop#1L], [shop#9L], Inner"}, "repartition() moves"),
        (
            ("Sort [paid#3 ASC NULLS FIRST], true, 0",),
            {"shuffle": SORTED, "last": "Window [row_number() windowspecdefinition(shop#1L)]"},
            "orderBy() sorts",
        ),
    ],
    ids=[
        "a sum",
        "by another column",
        "by ranges",
        "distinct values",
        "a quick function",
        "a join",
        "sorted before a window",
    ],
)
def test_rows_that_are_moved_again(between: tuple[str, ...], of: dict[str, str], said: str) -> None:
    """How long that takes is not known apart: it is to write them, to read them, and what is done in between."""
    (issue,) = told(*between, **of)  # type: ignore[arg-type]
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("needless-shuffle", None, 3 * S + 32 * S)
    assert issue.sentence.startswith(f"{said} 2,000,000 rows of db.purchases, and the next step moves them")
    assert issue.sentence.endswith(" again, by shop")
    assert issue.stages == {1, 2}


def test_a_shuffle_that_another_branch_reads_too() -> None:
    """It spares computing what is below it once more."""
    assert told(PARTIAL) != []
    assert told(PARTIAL, beside=f"ReusedExchange [shop#21L, amount#24L], {EVEN}, [plan_id=40]") == []
    assert told(PARTIAL, beside="ReusedExchange [id#1L], BroadcastExchange HashedRelation") != []


@pytest.mark.parametrize(
    "healthy",
    [
        told(PARTIAL, shuffle="Exchange hashpartitioning(shop#1L, 200), ENSURE_REQUIREMENTS"),
        told(PARTIAL, rows=99_999),
        told(PARTIAL, tasks=3),
        told(PARTIAL, "Generate explode(items#7), [shop#1L], false, [item#8]"),
        told(PARTIAL, "BatchEvalPython [slow(buyer#2)#9], [pythonUDF0#10]"),
        told(PARTIAL, "Project [slow_in_java(buyer#2) AS b#9]"),
        told(PARTIAL, "HashAggregate(keys=[shop#1L, salt#5], functions=[sum(amount#4L)])", PARTIAL),
        told(DISTINCT, "Project [shop#1L]", last="SortMergeJoin [shop#1L], [shop#9L], Inner"),
        told(PARTIAL, "InMemoryTableScan [shop#1L]"),
        told(PARTIAL, "LocalLimit 1000000"),
    ],
    ids=[
        "Spark needs it",
        "few rows",
        "gives more cores work",
        "more rows are made",
        "Python",
        "a function of somebody's",
        "salted sums need it",
        "distinct values need it",
        "is cached",
        "is cut",
    ],
)
def test_what_a_shuffle_is_needed_for(healthy: list[Issue]) -> None:
    assert healthy == []


@pytest.mark.parametrize(("shuffle", "is_told"), [(SORTED, True), (EVEN, False)])
def test_a_sort_before_rows_are_collected(shuffle: str, is_told: bool) -> None:
    """To collect the rows of a group takes less than to sort all; to move them does not."""
    collects = "ObjectHashAggregate(keys=[shop#1L], functions=[partial_collect_list(buyer#2, 0, 0)])"
    assert bool(told(collects, "Sort [paid#3 ASC NULLS FIRST], true, 0", shuffle=shuffle)) is is_told

"""Queries that ``pivot()`` runs to find out which values a column has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.repeated_work.pivot_values import PivotValues
from tests.support.plans import Plan, S, executed


def looked_up(lasts_s: int = 20, cached: str = "") -> EndedExecution:
    """Return the query that looks for the values of ``seg``; over a cache that it ``fills``, or finds there."""
    plan = Plan()(0, "Sort [seg#4 ASC NULLS FIRST], true, 0", 2, rows=4)
    plan(1, "HashAggregate(keys=[seg#4], functions=[])", 2)(2, "Exchange hashpartitioning(seg#4, 8)", 1)
    if cached:
        plan(3, "InMemoryTableScan [seg#4]", 1, rows=900)(4, "InMemoryRelation [seg#4]")
    measured = {} if cached == "found" else {"rows": 900}
    plan(5 if cached else 3, "Scan parquet db.orders [seg#4]", 1 if measured else None, **measured)
    return executed(plan, s1=(0, lasts_s - 1), s2=(lasts_s - 1, lasts_s), lasted_ms=lasts_s * S)


def test_each_place_adds_up_what_its_queries_took() -> None:
    pivots = PivotValues()
    first = pivots.take(looked_up(20), "pivot at etl.py:31")
    second = pivots.take(looked_up(12), "pivot at etl.py:31")
    other = pivots.take(looked_up(5), "pivot of db.orders")
    assert first is not None
    assert second is not None
    assert other is not None
    assert [each.lost_ms for each in (first, second, other)] == [20 * S, 32 * S, 5 * S]
    assert second.sentence.startswith(
        "pivot at etl.py:31 runs 2 queries only to find out which values seg has"
    )
    assert other.sentence.startswith(
        "pivot() of db.orders runs a query only to find out which values seg has"
    )
    assert 'pivot("seg", ["a", "b", …])' in other.advice
    assert (first.cause == second.cause, first.cause == other.cause) == (True, False)


def test_what_spark_loads_before_the_stages_does_not_count() -> None:
    """The next query would have to wait for it; and the query may read one column of many."""
    execution = replace(looked_up(20), ended_ms=90 * S)
    issue = PivotValues().take(execution, "pivot")
    assert issue is not None
    assert issue.lost_ms == 20 * S
    assert issue.sentence == "pivot() of db.orders runs a query only to find out which values seg has"


@pytest.mark.parametrize(
    ("place", "cached", "is_told"),
    [
        ("pivot", "", True),
        ("pivot", "found", True),
        ("pivot", "fills", False),
        ("collect at pivot.py:3", "", False),
        ("", "", False),
    ],
    ids=["nowhere known", "from a cache", "fills a cache", "another action", "unknown"],
)
def test_which_queries_are_of_pivot(place: str, cached: str, is_told: bool) -> None:
    assert (PivotValues().take(looked_up(cached=cached), place) is not None) is is_told

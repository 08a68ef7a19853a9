"""What is computed again because its cache was released too early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.plan_part import Pass, PlanPart
from spark_events.diagnosis.repeated_work.recomputation import Recomputation
from tests.support.plans import Plan, S, executed

BEACONS = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/beacons]"}
CACHE = 7


def parsed(plan: Plan, depth: int, stage: int, columns: str) -> Plan:
    """Add a Python function over a table, which needs some columns of it."""
    plan(depth, f"ArrowEvalPython [parse(url#2)#5], [{columns}, pythonUDF0#9{stage}], 200", stage, rows=99)
    return plan(depth + 1, f"Scan csv [{columns}] Batched: false", stage, BEACONS, rows=99)


ALL = "url#2, ts#1, amount#9, day#9"


def filling(
    stage: int, took_s: int = 10, keeps: Sequence[int] = (CACHE,), reads: str = ALL
) -> EndedExecution:
    """Return an action that fills a cache of what is parsed."""
    plan = Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", stage, rows=1)
    plan(1, "InMemoryTableScan", stage, rows=99)(2, "Project [url#2, ts#1, pythonUDF0#90.os AS os#4]")
    execution = executed(parsed(plan, 3, stage, reads), **{f"s{stage}": (0, took_s)})
    kept = {stage: replace(execution.stages[stage], kept=frozenset(keeps))}
    return replace(execution, stages=kept)


def writing(stage: int, column: str, took_s: int = 10) -> EndedExecution:
    """Return an action that needs what is parsed, and finds no cache."""
    plan = Plan()(0, f"HashAggregate(keys=[], functions=[max({column}#9)])", stage, rows=1)
    return executed(parsed(plan, 1, stage, f"url#2, {column}#9"), **{f"s{stage}": (0, took_s)})


def again(*records: EndedExecution | int) -> list[Issue]:
    """Return what is told after executions, and RDDs that are unpersisted."""
    recomputation = Recomputation()
    for number, record in enumerate(records):
        if isinstance(record, int):
            recomputation.unpersisted(record)
        else:
            recomputation.take(record, f"save at a.py:{number}")
    return list(recomputation.again())


def test_released_before_it_is_needed() -> None:
    """The cache had it, so that no action had to compute it again."""
    (issue,) = again(filling(1), CACHE, writing(2, "amount"), writing(3, "day", took_s=4))
    assert issue.lost_ms == 14 * S
    assert "was cached, and is computed 2 more times, for save at a.py:2, save at a.py:3" in issue.sentence
    assert "the cache was released before" in issue.sentence
    assert "unpersist()" in issue.advice


def test_released_that_was_made_of_a_range() -> None:
    """It has one column, and lists none."""

    def called(stage: int, depth: int, plan: Plan) -> Plan:
        plan(depth, "ArrowEvalPython [nap(id#2L)#5], [pythonUDF0#9], 101", stage, rows=160)
        return plan(depth + 1, "Range (0, 160, step=1, splits=Some(2))", stage, rows=160)

    cached = Plan()(0, "InMemoryTableScan", 1, rows=160)
    execution = executed(called(1, 1, cached), s1=(0, 10))
    kept = {1: replace(execution.stages[1], kept=frozenset((CACHE,)))}
    (issue,) = again(replace(execution, stages=kept), CACHE, executed(called(2, 0, Plan()), s2=(0, 10)))
    assert "was cached, and is computed once more" in issue.sentence


def test_once_is_enough() -> None:
    (issue,) = again(filling(1), CACHE, writing(2, "amount"))
    assert issue.lost_ms == 10 * S
    assert "is computed once more, for save at a.py:2: the cache" in issue.sentence


@pytest.mark.parametrize(
    "records",
    [
        (filling(1), writing(2, "amount"), CACHE),
        (filling(1), CACHE + 1, writing(2, "amount")),
        (filling(1, keeps=()), CACHE, writing(2, "amount")),
        (filling(1, keeps=(CACHE, CACHE + 1)), CACHE, writing(2, "amount")),
        (writing(2, "amount"), filling(1), CACHE),
        (filling(1), CACHE, filling(2, keeps=(CACHE + 1,)), writing(3, "amount")),
        (filling(1, reads="url#2, ts#1"), CACHE, writing(2, "amount")),
        (filling(1, reads="url#2, ts#1, ... 7 more fields"), CACHE, writing(2, "amount")),
    ],
    ids=[
        "it is needed before",
        "another is released",
        "nothing is kept",
        "nobody knows which",
        "it is cached later",
        "it is cached again",
        "the cache had other columns",
        "nobody knows which columns the cache had",
    ],
)
def test_other_ends(records: tuple[EndedExecution | int, ...]) -> None:
    assert not any("released" in issue.sentence for issue in again(*records))


def of_another(stage: int, keeps: int = CACHE + 1) -> EndedExecution:
    """Return an action that fills a cache with what a function makes of the parsed column."""
    plan = Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", stage, rows=1)
    plan(1, "InMemoryTableScan", stage, rows=99)(2, "Project [pythonUDF0#91 AS name#6, os#4]")
    plan(3, "ArrowEvalPython [name(os#4)#7], [os#4, pythonUDF0#91], 200", stage, rows=99)
    plan(4, "Project [url#2, pythonUDF0#90.os AS os#4]")
    execution = executed(parsed(plan, 5, stage, ALL), **{f"s{stage}": (0, 12)})
    kept = {stage: replace(execution.stages[stage], kept=frozenset((keeps,)))}
    return replace(execution, stages=kept)


def test_released_before_the_cache_is_filled_that_is_made_of_it() -> None:
    """The released cache is not said to be of no use as well."""
    recomputation = Recomputation()
    recomputation.take(filling(1), "count at a.py:1")
    recomputation.unpersisted(CACHE)
    recomputation.take(of_another(2), "count at a.py:2")
    (issue,) = recomputation.again()
    assert (issue.lost_ms, issue.share_ms) == (None, 12 * S), "two functions share the time of the stage"
    assert (
        "was cached, and is computed once more, for count at a.py:2: the cache was released" in issue.sentence
    )
    assert [each.evidence["cache.stages"] for each in recomputation.never_read()] == ["2"]


@pytest.mark.parametrize(("took_ms", "lost_ms"), [((60_000, 5_000), 5_000), ((5_000, 60_000), 52_000)])
def test_what_a_cache_lost_that_is_too_small(took_ms: tuple[int, int], lost_ms: int) -> None:
    """Four of five rows are computed again, which takes no longer than all passes but the first."""
    part = PlanPart("digest", "the same Project", 2, cached=True, of_program=False)
    for stage, each_ms in enumerate(took_ms):
        part.take(Pass(frozenset({stage}), each_ms, 0))
    part.count_rows(CACHE, 200)
    part.kept_rows = 40
    assert part.is_again
    assert part.lost_ms == lost_ms


def test_a_cache_that_is_filled_anew_is_told_once() -> None:
    (issue,) = again(filling(1), CACHE, filling(2, keeps=(CACHE + 1,)))
    assert "each time anew" in issue.sentence


def test_needed_before_it_is_cached() -> None:
    """Then cache() came too late as well, and this is the advice."""
    (issue,) = again(writing(1, "day"), filling(2), CACHE, writing(3, "amount"), writing(4, "ts"))
    assert "is computed 3 times, with other columns" in issue.sentence
    assert issue.lost_ms == 20 * S


def test_a_cache_that_is_made_of_a_cache() -> None:
    """Once the outer one is filled, nothing below it is computed, nor looked at."""

    def reading(stage: int, fills: bool) -> EndedExecution:
        below = stage if fills else None
        plan = Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", stage, rows=1)
        plan(1, "InMemoryTableScan [a#1]", stage, rows=99)(2, "Project [url#2 AS a#1]", below)
        plan(3, "InMemoryTableScan [url#2]", below, **({"rows": 99} if fills else {}))
        return executed(
            parsed(plan, 4, stage, "url#2") if fills else plan(4, "Scan csv [url#2]"),
            **{f"s{stage}": (0, 10)},
        )

    assert again(reading(1, fills=True), reading(2, fills=False), reading(3, fills=False)) == []

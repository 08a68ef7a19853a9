"""Code in ``foreachBatch``: how long it takes in the driver, apart from what Spark does there for it."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.queries.foreach_code import CodeInBatches


def progress(add_ms: int, **phases_ms: int) -> dict[str, Any]:
    return {"durationMs": {"addBatch": add_ms, **phases_ms}, "sink": {"description": "ForeachBatchSink[f]"}}


def cost(own_ms: int, executions: int, batches: int = 10, **phases_ms: int) -> int | None:
    """Return what is said of equal micro-batches, each a second longer than what is not Spark's."""
    code = CodeInBatches()
    for _ in range(batches):
        issue = code.take(progress(own_ms + 1_000, **phases_ms), own_ms, executions, 0)
    issue = code.close() if batches == 1 else issue
    return issue.lost_ms if issue else None


@pytest.mark.parametrize("batches", [1, 10])
def test_code_that_takes_longer_than_sparks_own_work(batches: int) -> None:
    assert cost(2_000, 2, batches, queryPlanning=100, commitOffsets=80) == batches * 2_000


@pytest.mark.parametrize("batches", [1, 10])
def test_a_function_that_only_writes(batches: int) -> None:
    """It is planned and committed within the micro-batch, the more slowly the busier the machine is."""
    phases = {
        "queryPlanning": 200,
        "walCommit": 100,
        "latestOffset": 90,
        "commitOffsets": 110,
        "getBatch": 20,
    }
    assert cost(1_600, 2, batches, **phases) is None
    assert cost(4_000, 5, batches, **phases) is None  # with four of them
    assert cost(4_000, 2, batches, **phases) == batches * 4_000


@pytest.mark.parametrize("batches", [1, 10])
def test_a_source_that_takes_long_to_say_what_is_new(batches: int) -> None:
    """As a folder of very many files: that is no measure of what the driver needs for the function."""
    phases = {"latestOffset": 3_000, "getBatch": 900, "queryPlanning": 50, "walCommit": 60}
    assert cost(4_000, 2, batches, **phases) == batches * 4_000


def test_the_first_one_loads_classes() -> None:
    code = CodeInBatches()
    assert code.take(progress(9_000), 8_000, 2, 0) is None
    issue = code.take(progress(7_000, queryPlanning=10), 6_000, 2, 0)
    assert issue is not None
    assert issue.lost_ms == 12_000
    assert code.close() is None

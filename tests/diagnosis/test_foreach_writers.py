"""Sinks that call the program's own code for each row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.queries.foreach_writers import foreach_writers
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

WRITER = (
    "WriteToDataSourceV2 MicroBatchWrite[epoch: 1, writer: "
    "org.apache.spark.sql.execution.streaming.sources.ForeachWrite$$anon$2@27662412]"
)


def told(
    text: str = WRITER, cpu_s: float = 2, rows: int = 10_000, sort_s: int = 0, wait_s: int = 0
) -> list[Issue]:
    """Return what is told of a micro-batch whose tasks run for 80 s, on four cores."""
    plan = Plan()(0, text)(1, "Sort [id#1]", 3, sort_time=sort_s * S)(2, "Scan json [id#1]", 3, rows=rows)
    execution = executed(plan, s3=(0, 20))
    stages = {3: replace(execution.stages[3], cpu_ms=round(cpu_s * S), waited_ms=wait_s * S)}
    return list(foreach_writers(replace(execution, stages=stages), Thresholds()))


def test_tasks_that_wait_for_each_row() -> None:
    (issue,) = told()
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("foreach-batch", None, 19_100)
    assert issue.sentence == (
        "tasks that write rows with foreach run for 1 min 20 s in all, and have no CPU for 1 min 18 s of it, "
        "7.8 ms for each of 10,000 rows"
    )
    assert "send many at once" in issue.advice


def test_a_stage_that_only_writes_what_was_shuffled() -> None:
    """Nothing in it has measured anything; if there are two such stages, nobody knows which of them writes."""
    plan = Plan()(0, WRITER)(1, "Exchange RoundRobinPartitioning(4)", 2, shuffle_records_written=500)
    plan(2, "Scan json [id#1]", 2, rows=500)
    execution = executed(plan, s2=(0, 1), s3=(1, 21))
    stages = {number: replace(stage, cpu_ms=100) for number, stage in execution.stages.items()}
    (issue,) = foreach_writers(replace(execution, stages=stages), Thresholds())
    assert (issue.stages, issue.evidence["foreach.rows"]) == ({3}, 500)
    two = {**stages, 4: replace(stages[3], id=4)}
    assert list(foreach_writers(replace(execution, stages=two), Thresholds())) == []


@pytest.mark.parametrize(
    "others",
    [
        {"text": WRITER.replace("ForeachWrite", "KafkaStreamingWrite")},
        {"cpu_s": 60},
        {"cpu_s": 0},
        {"rows": 1_000_000},
        {"sort_s": 60},
        {"wait_s": 60},
    ],
    ids=[
        "another sink",
        "it computes",
        "a CPU's time is not measured",
        "many at once",
        "it waits for more",
        "it waits for memory or a shuffle",
    ],
)
def test_tasks_that_do_not(others: dict[str, float]) -> None:
    assert told(**others) == []  # type: ignore[arg-type]

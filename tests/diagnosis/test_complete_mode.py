"""The rule about complete mode: of results of which little changes."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.queries.complete_mode import CompleteMode
from tests.support.plans import Plan, S, executed

SAVES = "StateStoreSave [user#12L], state info [ checkpoint = file:/cp, ver = 0], {0}, 0, 0, 2"


def told(rows: int, changed: int | None, mode: str = "Complete", batches: int = 3) -> Issue | None:
    """Return what is told of micro-batches that take 9 s for the stage that saves their state."""
    rule = CompleteMode()
    of_state = {} if changed is None else {"number_of_updated_state_rows": changed}
    for _ in range(batches):
        plan = Plan()(0, "HashAggregate(keys=[user#12L])", 2)(1, SAVES.format(mode), 2, rows=rows, **of_state)
        rule.take(executed(plan, s2=(0, 9)))
    return rule.issue()


def test_a_result_of_which_little_changes() -> None:
    issue = told(60_000, 3_000)
    assert issue is not None
    assert (issue.kind, issue.lost_ms) == ("rewrite-whole-files", 3 * 9 * S * 57 // 60)
    assert issue.sentence == (
        "outputMode('complete') puts out all rows of the result in each micro-batch, 60,000 on average, of which "
        "3,000 have changed"
    )


def test_a_few_micro_batches_in_which_little_changes() -> None:
    """Of most others, all rows have changed: no average of the few stands for them."""
    rule = CompleteMode()
    for changed in [3_000] * 3 + [60_000] * 12:
        of_state = {"number_of_updated_state_rows": changed}
        plan = Plan()(0, SAVES.format("Complete"), 2, rows=60_000, **of_state)
        rule.take(executed(plan, s2=(0, 9)))
    assert rule.issue() is None


def test_a_first_micro_batch_that_fills_the_result() -> None:
    rule = CompleteMode()
    for changed in [60_000] + [3_000] * 3:
        of_state = {"number_of_updated_state_rows": changed}
        plan = Plan()(0, SAVES.format("Complete"), 2, rows=60_000, **of_state)
        rule.take(executed(plan, s2=(0, 9)))
    issue = rule.issue()
    assert issue is not None
    assert issue.lost_ms == 3 * 9 * S * 57 // 60


@pytest.mark.parametrize(
    ("rows", "changed", "mode", "batches"),
    [
        (60_000, 20_000, "Complete", 3),
        (60_000, 3_000, "Update", 3),
        (60_000, 3_000, "Complete", 2),
        (60_000, None, "Complete", 3),
    ],
    ids=["a third changes", "another mode", "two batches", "nobody counts"],
)
def test_results_that_are_not(rows: int, changed: int | None, mode: str, batches: int) -> None:
    assert told(rows, changed, mode, batches) is None

"""The rule about executors that are lost again and again, or the only one."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.executors.executor_churn import ExecutorChurn
from spark_events.diagnosis.measured import Spread, TasksMeasured

S = 1_000


def churn(losses: int, busy: bool = True) -> ExecutorChurn:
    """Two executors of two cores; those that are lost are replaced after ten seconds, while a stage runs."""
    rule = ExecutorChurn()
    rule.added("0", 2, 0)
    rule.added("1", 2, 0)
    if busy:
        rule.stage_begun((0, 0), 0)
    for number in range(losses):
        rule.lost(str(number), "killed", 100 * S * (number + 1))
        rule.added(str(number + 2), 2, 100 * S * (number + 1) + 10 * S)
    return rule


def stage(
    failed: int, since_ms: int, tasks: int = 400, took_ms: int = 60 * S, longest_ms: int = 10 * S
) -> TasksMeasured:
    """Return what tasks of ten seconds have measured, of which some failed, after 40 s in all."""
    run = Spread(10 * S, 10 * S, longest_ms, tasks * 10 * S)
    spreads = {"Executor Run Time": run}
    return TasksMeasured(tasks, 4, since_ms, since_ms + took_ms, failed, 40 * S, 0, 0, spreads, {})


def test_what_losses_cost() -> None:
    """On four cores: 3 x 10 s without two of them, and 40 s of tasks."""
    rule = churn(3)
    assert rule.takes_failures(stage(2, 250 * S))
    issue = rule.issue()
    assert issue is not None
    assert (issue.kind, issue.lost_ms) == ("executor-churn", 25 * S)
    assert "3 executors were lost, the last one: killed" in issue.sentence


def test_what_the_exit_code_says() -> None:
    """A container's memory limit is not the heap's; nothing is said of tasks if none began again."""
    rule = churn(1)
    assert rule.any_lost
    rule.lost("1", "killed", 200 * S, 137)
    issue = rule.issue()
    assert issue is not None
    assert issue.sentence == (
        "2 executors were lost, the last one: killed with exit code 137: until others came, stages missed "
        "cores for 20.0 s in all"
    )
    assert "spark.executor.memoryOverhead" in issue.advice


@pytest.mark.parametrize("others", [0, 1])
def test_the_only_executor(others: int) -> None:
    """Without it, stages stand still: 40 s, and half of its tasks' 40 s on two cores. Beside others, it is no rule."""
    rule = ExecutorChurn()
    for number in range(1 + others):
        rule.added(str(number), 2, 0)
    rule.stage_begun((0, 0), 0)
    rule.lost("0", "worker lost", 10 * S)
    rule.added("2", 2, 50 * S)
    assert rule.takes_failures(stage(2, 0)) == (not others)
    issue = rule.issue()
    if others:
        assert issue is None
        return
    assert issue is not None
    assert issue.lost_ms == 60 * S
    assert issue.sentence == (
        "the only executor was lost (worker lost): tasks that had run for 40.0 s began again, and until another "
        "came, stages missed cores for 1 min 20 s in all"
    )


def test_the_only_executor_while_nothing_runs() -> None:
    """Nobody misses it."""
    rule = ExecutorChurn()
    rule.added("0", 2, 0)
    rule.lost("0", "worker lost", 10 * S)
    rule.added("1", 2, 50 * S)
    rule.stage_begun((0, 0), 50 * S)
    assert rule.issue() is None


def test_failures_of_a_stage_that_began_after_the_losses() -> None:
    assert not churn(3).takes_failures(stage(1, 301 * S))


@pytest.mark.parametrize(
    ("tasks", "took_ms", "longest_ms", "lost_ms"),
    [
        # Ten tasks, of which two began again, are three rounds: 30 s.
        (10, 70 * S, 10 * S, 40 * S),
        (10, 300 * S, 10 * S, 100 * S),
        (10, 40 * S, 10 * S, 25 * S),
        (10, 70 * S, 20 * S, 25 * S),
        (100, 400 * S, 10 * S, 25 * S),
    ],
    ids=["a round more", "other reasons, too", "next to none", "uneven tasks", "many rounds"],
)
def test_a_few_tasks_that_begin_again_when_the_others_end(
    tasks: int, took_ms: int, longest_ms: int, lost_ms: int
) -> None:
    """All cores but their own wait for them; it is no more than they had run, and cores were missing."""
    rule = churn(3)
    assert rule.takes_failures(stage(2, 0, tasks, took_ms, longest_ms))
    issue = rule.issue()
    assert issue is not None
    assert issue.lost_ms == lost_ms


def test_cores_that_an_earlier_stage_missed_hold_up_no_later_one() -> None:
    """The first two losses, 40 s of a core, are before it: of its 270 s beyond its rounds, 60 may be for the third."""
    rule = churn(3)
    assert rule.takes_failures(stage(2, 250 * S, 10, 300 * S))
    issue = rule.issue()
    assert issue is not None
    assert issue.lost_ms == 25 * S + (60 - 15) * S


def test_a_stage_that_had_not_all_cores() -> None:
    """It takes longer than its rounds for that alone."""
    rule = churn(3)
    rule.stage_begun((1, 0), 320 * S)
    rule.stage_ended((0, 0), 330 * S)
    assert rule.takes_failures(stage(2, 250 * S, 10, 70 * S))
    issue = rule.issue()
    assert issue is not None
    assert issue.lost_ms == 25 * S


def test_one_loss_is_no_churn() -> None:
    rule = churn(1)
    assert not rule.takes_failures(stage(1, 0))
    assert rule.issue() is None


def test_executors_that_were_to_go_and_one_that_nobody_knows() -> None:
    rule = churn(0)
    rule.gone("0")
    rule.gone("1")
    rule.lost("1", "killed", S)
    rule.lost("7", "killed", S)
    assert rule.issue() is None


def test_more_failures_than_executors_had_cores() -> None:
    """Then tasks have failed by themselves, too: of the last stage, two went with an executor at most."""
    assert not churn(3).takes_failures(stage(3, 250 * S))


def test_nobody_misses_cores_while_no_stage_runs() -> None:
    """With dynamic allocation, the next executors may come hours later, when there is work again."""
    issue = churn(3, busy=False).issue()
    assert issue is not None
    assert issue.lost_ms == 0

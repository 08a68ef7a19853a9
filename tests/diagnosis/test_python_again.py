"""Functions in Python of a micro-batch that several actions compute: what they take a second time is not theirs."""

from __future__ import annotations

from dataclasses import replace

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.queries.python_again import without_python_again
from spark_events.diagnosis.repeated_work.batches import computed_again
from tests.support.plans import Plan, S, executed

OWN, OTHER = (
    "ArrowEvalPython [f(b#2)#3], [pythonUDF0#4], 200",
    "ArrowEvalPython [g(b#2)#5], [pythonUDF0#6], 200",
)
BATCH = "Scan ExistingRDD[a#1,b#2]"


def actions(*functions: str, rows: int = 90) -> EndedExecution:
    """Return a micro-batch, each of whose actions takes a stage of 10 s, and calls a function of its own or none."""
    own = Plan()(0, "Project [a#1, b#2]")
    plans = [own]
    for number, function in enumerate(functions):
        own(1, OWN, number, rows=90, time_to_run_Python_workers=9 * S)
        plan = Plan()(0, "AppendData noop-table", number)
        if function:
            plan(1, function, number, rows=9, time_to_run_Python_workers=9 * S)
        plans.append(plan(2, BATCH, number, rows=90 if number == 0 else rows))
    stages = {f"s{number}": (10 * number, 10 * number + 10) for number in range(len(functions))}
    return executed(*plans, **stages)


def of_stage(number: int, lost_s: int) -> Issue:
    return Issue("python", "python", lost_s * S, None, "", "", stages=frozenset((number,)))


def told(execution: EndedExecution, *of_stages: Issue) -> list[tuple[str, int | None, int | None]]:
    issues = without_python_again([*of_stages, *computed_again(execution)], execution)
    return [(issue.kind, issue.lost_ms, issue.share_ms) for issue in issues if issue is not None]


THREE = (of_stage(0, 7), of_stage(1, 9), of_stage(2, 8))


def test_each_action_calls_the_functions_of_the_micro_batch() -> None:
    assert told(actions("", "", ""), *THREE) == [("python", 9 * S, None), ("recomputation", 15 * S, None)]


def test_groups_of_rows_of_which_nobody_knows_how_long_they_would_take_otherwise() -> None:
    in_groups = [replace(each, lost_ms=None, share_ms=each.lost_ms) for each in THREE]
    assert told(actions("", "", ""), *in_groups) == [
        ("python", None, 9 * S),
        ("recomputation", 15 * S, None),
    ]


def test_an_action_calls_a_function_of_its_own() -> None:
    """Nobody knows how long each of the two takes."""
    assert told(actions("", "", OTHER), *THREE) == [
        ("python", 9 * S, None),
        ("python", 8 * S, None),
        ("recomputation", 7 * S, None),
    ]
    assert told(actions("", OTHER, OTHER), *THREE) == [
        *(("python", each.lost_ms, None) for each in THREE),
        ("recomputation", None, 20 * S),
    ]


def test_actions_that_need_a_few_rows_of_it() -> None:
    """The micro-batch is computed once, or kept."""
    assert told(actions("", "", "", rows=1), *THREE) == [("python", each.lost_ms, None) for each in THREE]

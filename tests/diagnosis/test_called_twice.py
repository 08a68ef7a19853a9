"""Functions in Python that one SQL execution calls twice for the same rows."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.costly_nodes.needless_shuffles import needless_shuffles
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import MetricValue
from spark_events.diagnosis.repeated_work.called_twice import called_twice
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed


def told(execution: EndedExecution) -> list[Issue]:
    return list(called_twice(execution, Thresholds()))


def filtered(first: str, second: str, node: str = "BatchEvalPython", **metrics: int) -> EndedExecution:
    """Return an execution with a filter between two nodes that call functions; its stage takes 40 s."""
    plan = Plan()(0, "WriteFiles", 1)(1, f"{node} [{first}], [pythonUDF0#4]", 1, rows=6_000, **metrics)
    plan(2, "Filter (pythonUDF0#3 > 0)", 1, rows=6_000)
    plan(3, f"{node} [{second}], [pythonUDF0#3]", 1, rows=10_000, **metrics)(
        4, "Range (0, 10000)", 1, rows=10_000
    )
    return executed(plan, s1=(0, 40))


@pytest.mark.parametrize("node", ["BatchEvalPython", "ArrowEvalPython"])
def test_a_filter_on_the_result(node: str) -> None:
    """6,000 of 16,000 calls are made again."""
    (issue,) = told(filtered("urgency(id#0L)#1", "urgency(id#0L)#1", node))
    assert (issue.kind, issue.lost_ms) == ("recomputation", 15 * S)
    assert issue.sentence.startswith(
        "urgency is called twice for the same rows, for 10,000 and again for 6,000"
    )
    assert "asNondeterministic()" in issue.advice


def test_what_python_workers_load_is_loaded_once() -> None:
    """They load it for the first call, whether or not there is a second one."""
    loading = {
        "time_to_run_Python_workers": 80 * S,
        "time_to_start_Python_workers": 4 * S,
        "time_to_initialize_Python_workers": 60 * S,
    }
    (issue,) = told(filtered("urgency(id#0L)#1", "urgency(id#0L)#1", **loading))
    assert issue.lost_ms == 3 * S


def test_a_filter_on_the_result_before_a_shuffle() -> None:
    """The calls after it have a stage of their own, and are made again as a whole."""
    plan = Plan()(0, "WriteFiles", 2)(1, "BatchEvalPython [zone(at#0)#1], [pythonUDF0#4]", 2, rows=600)
    plan(2, "AQEShuffleRead")(3, "Exchange RoundRobinPartitioning(8), REPARTITION_BY_NUM", 1)
    plan(4, "Filter isnotnull(pythonUDF0#3)", 1, rows=600)
    plan(5, "BatchEvalPython [zone(at#0)#1], [pythonUDF0#3]", 1, rows=10_000)(
        6, "Range (0, 10000)", 1, rows=10_000
    )
    (issue,) = told(executed(plan, s1=(0, 40), s2=(40, 52)))
    assert (issue.lost_ms, issue.stages) == (12 * S, {2})


def test_a_sort_that_the_next_shuffle_undoes() -> None:
    """That it samples its rows first is a part of what it costs, and is told with it."""
    plan = Plan()(0, "Window [row_number()]", 4)(1, "Exchange hashpartitioning(shop#1, 8)", 3)
    plan(2, "Sort [price#2 ASC], true, 0", 3)
    plan(3, "Exchange rangepartitioning(price#2 ASC NULLS FIRST, 200)", 2, shuffle_records_written=900_000)
    plan(4, "ArrowEvalPython [offer(id#0L)#1], [price#2]", 2, rows=1_800_000)
    plan(5, "Scan parquet db.t [id#0L]", 2, rows=1_800_000)
    for number in plan.measured:
        if plan.measured[number].value == 1_800_000:
            plan.measured[number] = replace_stages(plan.measured[number], frozenset((1, 2)))
    execution = executed(plan, s1=(0, 20), s2=(20, 40), s3=(40, 50))
    assert told(execution) == []
    (issue,) = needless_shuffles(execution, Thresholds())
    assert 1 in issue.stages
    assert (issue.share_ms or 0) >= 20 * S


def test_other_functions_beside_it() -> None:
    """How long each of them takes, nobody knows."""
    (issue,) = told(filtered("urgency(id#0L)#1, price(id#0L)#2", "urgency(id#0L)#1"))
    assert (issue.lost_ms, issue.share_ms) == (None, 15 * S)


def test_a_function_that_is_called_for_something_else() -> None:
    assert told(filtered("urgency(id#0L)#1", "urgency(id#0L)#2")) == []
    assert told(filtered("price(id#0L)#2", "urgency(id#0L)#1")) == []


def test_two_calls_without_a_filter_in_between() -> None:
    plan = Plan()(0, "WriteFiles", 1)(1, "BatchEvalPython [f(id#0L)#1], [pythonUDF0#4]", 1, rows=60)
    plan(2, "Generate explode(items#5)", 1, rows=60)
    plan(3, "BatchEvalPython [f(id#0L)#1], [pythonUDF0#3]", 1, rows=100)(4, "Range (0, 100)", 1, rows=100)
    assert told(executed(plan, s1=(0, 40))) == []


def ordered(function: str, sampled: tuple[int, int] | None, **metrics: int) -> EndedExecution:
    """Return an execution that sorts rows, which stage 2 computes in 20 s, and stage 1 if it samples them."""
    plan = Plan()(0, "Sort [price#2 ASC]", 3, sort_time=5)
    plan(1, "Exchange rangepartitioning(price#2 ASC NULLS FIRST, 200)", 2, shuffle_records_written=100)
    plan(2, f"{function} [offer(id#0L)#1], [price#2]", 2, rows=200, **metrics)
    if sampled:
        plan.measured = {
            number: replace_stages(value, frozenset((1, 2))) if number >= 2_000 else value
            for number, value in plan.measured.items()
        }
    stages = {"s1": sampled} if sampled else {}
    return executed(plan, **stages, s2=(20, 40), s3=(40, 41))


def replace_stages(value: MetricValue, stages: frozenset[int]) -> MetricValue:
    return value._replace(stages=stages)


def test_rows_that_are_sampled_before_they_are_sorted() -> None:
    (issue,) = told(ordered("ArrowEvalPython", (0, 20)))
    assert (issue.kind, issue.lost_ms, issue.stages) == ("recomputation", 20 * S, frozenset((1,)))
    assert issue.sentence.startswith("what is sorted by price is computed twice")
    assert "offer runs for all rows each time" in issue.sentence


def test_what_workers_take_to_start_is_not_lost_to_it() -> None:
    metrics = {"time_to_run_Python_workers": 40 * S, "time_to_initialize_Python_workers": 10 * S}
    (issue,) = told(ordered("MapInPandas", (0, 20), **metrics))
    assert issue.lost_ms == 15 * S


def test_rows_that_a_cache_keeps_once_they_were_sampled() -> None:
    plan = Plan()(0, "Sort [price#2 ASC]", 3, sort_time=5)
    plan(1, "Exchange rangepartitioning(price#2 ASC NULLS FIRST, 200)", 2, shuffle_records_written=100)
    plan(2, "InMemoryTableScan [price#2]", 2, rows=100)(
        3, "MapInPandas offer(id#0L)#1, [price#2]", 1, rows=100
    )
    assert told(executed(plan, s1=(0, 20), s2=(20, 21), s3=(21, 22))) == []


def test_what_else_takes_long_is_done_twice() -> None:
    """A function of Spark's own that may take long, or a join."""
    (issue,) = told(ordered("Project", (0, 20)))
    assert (issue.lost_ms, issue.stages) == (20 * S, frozenset((1,)))
    assert issue.sentence.endswith("which values there are: Project runs for all rows each time")
    assert issue.evidence["recomputation.what"] == "what is sorted by price"


def test_rows_that_are_only_read_again_or_that_are_computed_once() -> None:
    assert told(ordered("Scan parquet db.offers", (0, 20))) == []
    assert told(ordered("Project [upper", None)) == []
    assert told(ordered("ArrowEvalPython", None)) == []

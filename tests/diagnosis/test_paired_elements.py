"""The rule about functions of arrays that go through the whole array again for each element."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.costly_nodes.paired_elements import paired_elements
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import ExecutedStage
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

COLLECTS = "ObjectHashAggregate(keys=[user#4], functions=[collect_list(struct(ts, ts#5L), 0, 0, true)])"
PAST = "filter(h#7, lambdafunction((lambda y#17.ts <= lambda x#16.ts), lambda y#17, false))"
SUMS = f"transform(h#7, lambdafunction(aggregate({PAST}, 0.0, lambdafunction(a, b)), lambda x#16, false))"
USERS, CPU_US = 1_000, 2_000


def told(text: str, made: int | None = None, events: int = 50_000, cpu_us: int = CPU_US) -> list[Issue]:
    """Return what is told of a node above arrays that are collected, each of a user's events."""
    plan = Plan()(0, text, 1, **({} if made is None else {"rows": made}))(1, COLLECTS, 1, rows=USERS)
    plan(2, "Exchange hashpartitioning(user#4, 8)", 0, shuffle_records_written=2 * USERS)
    plan(3, COLLECTS.replace("collect", "partial_collect"), 0, rows=2 * USERS)
    plan(4, "Scan parquet db.events [user#4,ts#5L]", 0, rows=events)
    execution = executed(plan, s0=(0, 10), s1=(10, 40))
    cpu_ms = USERS * cpu_us // 1_000
    stages = {**execution.stages, 1: ExecutedStage(1, 8, 10 * S, 40 * S, 120 * S, 0, 0, cpu_ms=cpu_ms)}
    return list(paired_elements(replace(execution, stages=stages), Thresholds()))


@pytest.mark.parametrize("made", [50_000, None], ids=["a row of each element", "in its row"])
def test_each_element_with_each_other(made: int | None) -> None:
    """A million events of as many users are a few each; but each of these goes through all of its user's."""
    text = (
        f"Generate explode({SUMS}), [user#4], false, [x#21]" if made else f"Project [user#4, {SUMS} AS s#8]"
    )
    (issue,) = told(text, made)
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("cross-join", None, 30 * S)
    assert issue.sentence == (
        "for each element of h, of 50 on average: at least 2,500,000 pairs in 1,000 rows, transform() goes "
        "through h again (filter)"
    )
    assert issue.evidence == {"array.column": "h", "array.elements": 50}


def test_how_many_elements_is_unknown() -> None:
    """An array of a file has no count."""
    plan = Plan()(0, f"Project [{SUMS} AS s#8]", 1)(1, "Scan parquet db.histories [h#7]", 1, rows=100)
    (issue,) = paired_elements(executed(plan, s1=(0, 40)), Thresholds())
    assert issue.sentence.startswith("for each element of h, in 100 rows, transform() goes")
    assert issue.evidence == {"array.column": "h"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"transform({PAST}, lambdafunction((lambda x#1 + 1), lambda x#1, false))", id="one after"),
        pytest.param(SUMS.replace("filter(h#7", "filter(other#8"), id="another array"),
        pytest.param(SUMS.replace("filter(h#7", "filter(lambda x#16.items"), id="the element's own"),
        pytest.param("transform(h#7, lambdafunction(element_at(h#7, lambda i#1), lambda x#16, false))", id="at"),
        pytest.param(f"struct(transform(h#7, lambdafunction(f(a), lambda x#1, false)), {PAST})", id="beside"),
    ],
)  # fmt: skip
def test_each_element_once(text: str) -> None:
    """What goes through an array twice, one time after the other, pairs nothing."""
    assert not told(f"Project [{text} AS s#8]")


def test_short_arrays() -> None:
    """Arrays of a few elements, or of which a row takes little, cost nothing of note."""
    assert not told(f"Project [{SUMS} AS s#8]", events=9 * USERS)
    assert not told(f"Project [{SUMS} AS s#8]", events=40 * USERS, cpu_us=2_000)  # something else takes long
    assert not told(f"Project [{SUMS} AS s#8]", cpu_us=400)


def test_a_text_that_is_cut() -> None:
    """What is left of a text says enough if the inner function is in it."""
    text = f"Project [{SUMS} AS s#8, {'x' * 500}"[: len("Project [") + SUMS.index("lambda y#17")]
    (issue,) = told(text)
    assert "(filter)" in issue.sentence


def test_what_else_may_take_long_for_an_array_of_unknown_length() -> None:
    """Where nobody knows how many elements there are, another function may be what takes long."""
    plan = Plan()(0, f"Project [{SUMS} AS s#8]", 1)(1, "Project [from_json(text#3) AS h#7]", 1)
    plan(2, "Scan parquet db.histories [text#3]", 1, rows=100)
    assert not list(paired_elements(executed(plan, s1=(0, 40)), Thresholds()))


def test_functions_in_python_after_it() -> None:
    """What Spark measures of them is not for the pairs."""
    plan = Plan()(0, "BatchEvalPython [f(s#8)#9], [s#8]", 1, rows=USERS, time_to_run_Python_workers=40 * S)
    plan(1, f"Project [{SUMS} AS s#8]", 1)(2, "Scan parquet db.histories [h#7]", 1, rows=USERS)
    (issue,) = paired_elements(executed(plan, s1=(0, 40)), Thresholds())
    assert issue.share_ms == 30 * S

"""For how much of their time tasks had a CPU, as ``why`` says it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.why.explanation import Explanation
from spark_events.why.reading.run_figures import RunFigures

MIN = 60_000
RUN = Explanation(
    "nightly",
    "app-1",
    0,
    10 * MIN,
    True,
    [],
    core_ms={"idle cores": 20 * MIN, "reading, computing and writing": 20 * MIN},
    figures=RunFigures(sums={"executorCpuTime": 5 * MIN * 1_000_000}),
)


@pytest.mark.parametrize(
    ("unfinished", "tasks"), [(0, ""), (1, "One task had"), (4_000, "4,000 tasks had"), (None, "Tasks had")]
)
def test_tasks_that_did_not_end(unfinished: int | None, tasks: str) -> None:
    """How many there are where the log ends, nobody knows."""
    told = replace(RUN, unfinished=unfinished).never_ended
    said = f"{tasks} not ended when the stage was given up or the log ends: what they did is not known."
    assert told == (said if tasks else "")


def test_tasks_that_wait() -> None:
    assert RUN.cpu_share == 0.25
    assert RUN.had_cpu == (
        'Of "reading, computing and writing", tasks had a CPU for 25 %; otherwise they waited for disks, other '
        "systems, or a CPU that other programs used."
    )


def test_where_no_cause_is_known_the_answer_says_that_tasks_waited() -> None:
    parts = {"driver alone": 4 * MIN, "reading, computing and writing": 6 * MIN}
    waited = "otherwise waited for disks, other systems, or a CPU that other programs used"
    run = replace(RUN, parts=parts, least_ms=30_000)
    assert run.answer == (
        'No known cause made it slow. The largest part of its time, 60 %, is "reading, computing and writing": tasks had a CPU for 25 % of '
        f"that time, and {waited}."
    )
    assert run.none_found == (
        "no cause known to spark-events cost 30.0 s or more; tasks had a CPU for 25 % of the time in which they "
        "read, compute and write; for smaller ones: --conf spark.events.issue.min-duration=1s"
    )
    # A limit that is hardly smaller would find nothing else.
    assert replace(run, least_ms=1_020).none_found.endswith(
        "of the time in which they read, compute and write"
    )
    of_driver = replace(run, parts={"driver alone": 6 * MIN, "reading, computing and writing": 4 * MIN})
    assert of_driver.answer == (
        'No known cause made it slow. The largest part of its time, 60 %, is "driver alone". Of "reading, computing and writing", 40 %, '
        f"tasks had a CPU for 25 %, and {waited}."
    )


def test_tasks_that_had_a_cpu_for_half_of_their_time_say_no_more_than_what_they_did() -> None:
    parts = {"reading, computing and writing": 10 * MIN}
    half = RunFigures(sums={"executorCpuTime": 10 * MIN * 1_000_000})
    run = replace(RUN, parts=parts, least_ms=30_000, figures=half)
    assert "CPU" not in run.answer + run.none_found
    assert "CPU" in run.had_cpu


def test_tasks_that_compute() -> None:
    computing = replace(RUN, figures=RunFigures(sums={"executorCpuTime": 21 * MIN * 1_000_000}))
    assert computing.had_cpu == 'Of "reading, computing and writing", tasks had a CPU for 100 %.'


@pytest.mark.parametrize("account", ["writing shuffle data", "wasted attempts", "Python functions"])
def test_tasks_that_had_a_cpu_for_something_else_too(account: str) -> None:
    """They may have waited all the time in which they read, compute and write."""
    more = {**(RUN.core_ms or {}), account: 10 * MIN}
    assert "tasks had a CPU for at most 25 %; otherwise they waited" in replace(RUN, core_ms=more).had_cpu
    much = RunFigures(sums={"executorCpuTime": 20 * MIN * 1_000_000})
    assert replace(RUN, core_ms=more, figures=much).had_cpu == ""


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, figures=None),
        replace(RUN, core_ms=None),
        replace(RUN, figures=RunFigures()),
        replace(RUN, core_ms={"idle cores": 0, "reading, computing and writing": 0}),
        replace(RUN, core_ms={"Python functions": 40 * MIN, "reading, computing and writing": MIN}),
    ],
    ids=[
        "only its events",
        "no cores",
        "nobody has measured it",
        "no core is known",
        "they do something else",
    ],
)
def test_nothing_is_said(run: Explanation) -> None:
    assert (run.cpu_share, run.had_cpu) == (None, "")


@pytest.mark.parametrize(
    ("core_min", "cores", "told"),
    [
        (
            38,
            4,
            "Core time counts a core only while the run has it: each of 4, on average, for 95 %.",
        ),
        (40, 4, ""),
        (0, 0, ""),
    ],
    ids=["some came late", "all the time", "no core is known"],
)
def test_cores_that_were_there_for_a_part_of_the_run(core_min: int, cores: int, told: str) -> None:
    """As before the first executor has come: the core time of what the driver did then is none."""
    figures = RunFigures(counts={"cores": cores})
    run = replace(RUN, core_ms={"driver alone": core_min * MIN}, figures=figures)
    assert run.core_time == told
    assert (replace(run, core_ms=None).core_time, replace(run, figures=None).core_time) == ("", "")

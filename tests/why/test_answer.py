"""The answer in one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_events import diagnosis
from spark_events.diagnosis.thresholds import KINDS
from spark_events.why.absence import ABSENCES, SPECIAL
from spark_events.why.answer import answer
from spark_events.why.found_issue import FoundIssue
from spark_events.why.longest_stages import StagesOfPlace

S = 1_000
COST_NO_TIME = {
    "spill",
    "memory",
    "state-growth",
    "source-stopped",
    "stream-behind",
    "cache-never-read",
    "expanded-rows",
    "slow-listeners",
}


def issue(
    kind: str, lost_ms: int | None, about: str = "stage 3.0 (count at a.py:1)", **evidence: Any
) -> FoundIssue:
    return FoundIssue(kind, "WARN", about, "…", "…", lost_ms, None, evidence)


def test_what_costs_most() -> None:
    issues = [issue("spill", None), issue("skew", 28 * S), issue("gc", 2 * S)]
    assert answer(issues, 40 * S, {}) == (
        "It would take 12.0 s instead of 40.0 s without the uneven data of the count at a.py:1 (stage 3.0)."
    )


@pytest.mark.parametrize(
    ("waited_s", "kinds", "told"), [(15, (), True), (9, (), False), (15, ("executor-churn",), False)]
)
def test_stages_without_executors(waited_s: int, kinds: tuple[str, ...], told: bool) -> None:
    """As while a cluster starts them on demand: no issue names it, unless they were lost."""
    issues = [issue("skew", 8 * S), *(issue(kind, 2 * S) for kind in kinds)]
    said = answer(issues, 40 * S, {"waiting for executors": waited_s * S})
    before = "For 38 % of its time, 15.0 s, its stages have no executors. It would take 32.0 s"
    assert said.startswith(before if told else "It would take 32.0 s")


def test_a_cost_that_is_too_small_to_be_seen_in_the_whole() -> None:
    assert answer([issue("skew", 163)], 89 * S, {}) == (
        "Only 163 ms of 1 min 29 s goes to the uneven data of the count at a.py:1 (stage 3.0)."
    )


def test_the_columns_of_uneven_data() -> None:
    uneven = issue("skew", 28 * S, **{"shuffle.keys": "device, day"})
    assert answer([uneven], 40 * S, {}).endswith(
        "without the uneven distribution of device, day in the count at a.py:1 (stage 3.0)."
    )
    late = issue("straggler", 28 * S, **{"shuffle.keys": "device"})
    assert answer([late], 40 * S, {}).endswith("without the late task of the count at a.py:1 (stage 3.0).")


@pytest.mark.parametrize(("lost_s", "wall_s", "told"), [(5, 31, True), (5, 19, False), (9, 31, False)])
def test_stages_that_take_far_longer_than_what_is_known(lost_s: int, wall_s: int, told: bool) -> None:
    """A small issue is not all that there is to say; nobody knows what the rest is for."""
    stages = StagesOfPlace("count at a.py:9", "", stages=1, spans=[(0, wall_s * S)])
    said = answer([issue("gc", lost_s * S)], 60 * S, {}, [stages])
    assert said.endswith(f" What took longest, {wall_s}.0 s, is a stage of the count at a.py:9.") is told


@pytest.mark.parametrize(
    ("others", "takes", "told"),
    [
        ([issue("skew", 4 * S)], "24.0 s", ", and the same at one other place"),
        ([issue("skew", 4 * S), issue("skew", 2 * S)], "22.0 s", ", and the same at 2 other places"),
        ([issue("skew", 1 * S)], "28.0 s", ""),
        ([issue("gc", 9 * S)], "28.0 s", ""),
        ([issue("skew", 9 * S, "query 'q'")], "28.0 s", ""),
        ([issue("skew", None, shareMs=9 * S)], "28.0 s", ""),
    ],
)
def test_the_same_at_other_places(others: list[FoundIssue], takes: str, told: str) -> None:
    """One change may mend all of them; little, something else, or what another query loses is not said."""
    assert answer([issue("skew", 12 * S), *others], 40 * S, {}) == (
        f"It would take {takes} instead of 40.0 s without the uneven data of the count at a.py:1 (stage 3.0)"
        f"{told}."
    )


def test_what_other_functions_take_may_be_needed() -> None:
    functions = [issue("python", 12 * S), issue("python", 6 * S)]
    assert answer(functions, 40 * S, {}) == (
        "It spends 45 % of its time, 18.0 s, in Python functions of the count at a.py:1 (stage 3.0), and the "
        "same at one other place."
    )


@pytest.mark.parametrize("kind", ["recomputation", "regression"])
def test_what_each_needs_a_change_for_itself(kind: str) -> None:
    """Another result is kept by another cache; of a run and its queries, one is a part of the other."""
    assert "the same at" not in answer([issue(kind, 12 * S), issue(kind, 6 * S)], 40 * S, {})


@pytest.mark.parametrize(
    ("what", "lost_ms", "told"),
    [
        ("the same Sort of a, b", 6 * S, "22.0 s instead of 40.0 s"),
        ("the same Sort of a", 6 * S, "28.0 s instead of 40.0 s"),
        ("the same Sort of a, b", 2 * S, "28.0 s instead of 40.0 s"),
        ("clean", 6 * S, "28.0 s instead of 40.0 s"),
    ],
    ids=["the same tables", "another table", "little", "functions"],
)
def test_parts_of_one_frame_that_are_computed_again(what: str, lost_ms: int, told: str) -> None:
    """Spark computes them apart for each query that needs other columns; one cache may keep them all."""
    name = "recomputation.what"
    join = issue("recomputation", 12 * S, **{name: "the same Join, Project of a, b"})
    said = answer([join, issue("recomputation", lost_ms, **{name: what})], 40 * S, {})
    is_more = told.startswith("22")
    assert said == (
        f"It would take {told} without computing the same Join, Project of a, b again"
        f"{', and another part with the same sources' if is_more else ''}."
    )


@pytest.mark.parametrize(("kind", "name"), [("python", "python.functions"), ("skew", "shuffle.keys")])
def test_other_functions_or_keys_are_not_the_same(kind: str, name: str) -> None:
    """The answer names them: nothing that is done about one of them mends the other."""
    first, alike, other = (issue(kind, 9 * S, **{name: of}) for of in ("a", "a", "b"))
    assert "the same at one other place" in answer([first, alike], 40 * S, {})
    assert "the same" not in answer([first, other], 40 * S, {})


def test_few_tasks_are_not_the_same_as_many() -> None:
    few = issue("task-count", 6 * S, fewTasks=True)
    assert "the same" not in answer([issue("task-count", 12 * S), few], 40 * S, {})
    assert "the same at one other place" in answer([replace(few, lost_ms=12 * S), few], 40 * S, {})


def test_of_a_streaming_query() -> None:
    """How long its application ran says nothing."""
    late = issue("straggler", 30 * S, "query 'orders'", durationMs=120 * S)
    assert answer([late], 9_000 * S, {}) == (
        "The work of query 'orders' would take 1 min 30 s instead of 2 min without the late task of its stages."
    )


def test_of_a_state_that_grows() -> None:
    """What that costs is not known; it is what is wrong all the same."""
    said = answer([issue("state-growth", None, "query 'orders'")], 100 * S, {"garbage collection": 70 * S})
    assert said == (
        "The largest part of its time, 70 %, is \"garbage collection\". The state of query 'orders' only grows."
    )


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (
            {"driver alone": 30 * S, "garbage collection": 70 * S},
            'No known cause made it slow. The largest part of its time, 70 %, is "garbage collection".',
        ),
        (None, ""),
    ],
    ids=["its ledger is known", "only its events"],
)
def test_without_an_issue_that_costs_time(parts: dict[str, int] | None, told: str) -> None:
    assert answer([issue("memory", None)], 100 * S, parts).replace("70.00", "70") == told


@pytest.mark.parametrize(
    ("to_first_s", "told"),
    [
        (9, ", 9.0 s of it before its first job or query"),
        (30, ", 20.0 s of it before its first job or query"),
        (3, ""),
    ],
)
def test_how_long_an_application_starts(to_first_s: int, told: str) -> None:
    """It is a part of the time of the driver alone, or more: other accounts have a part of it then."""
    said = answer(
        [], 40 * S, {"driver alone": 20 * S, "Python functions": 20 * S}, to_first_work_ms=to_first_s * S
    )
    assert said.endswith(f'The largest part of its time, 50 %, is "driver alone"{told}.')


def test_what_needed_functions_take_is_no_time_that_could_be_saved() -> None:
    """Nobody knows how long the same would take without Python."""
    of_query = issue("python", 30 * S, "query 'orders'", durationMs=120 * S)
    assert answer([of_query], 9_000 * S, {}) == (
        "The work of query 'orders' spends 25 % of its time, 30.0 s, in Python functions of its stages."
    )
    assert answer([issue("python", 30 * S)], 40 * S, {}, ended=False) == (
        "It has spent 30.0 s so far in Python functions of the count at a.py:1 (stage 3.0)."
    )


def test_what_may_be_needed_in_part() -> None:
    """Nobody knows how long another way would take."""
    issues = [issue("expanded-rows", None, shareMs=98 * S), issue("memory", None)]
    assert answer(issues, 200 * S, {}) == (
        "Of its time, 49 %, 1 min 38 s, goes to the additional rows that are made of each for an aggregation."
    )
    assert answer([issue("skew", 9 * S), *issues], 200 * S, {}).endswith(
        "without the uneven data of the count at a.py:1 (stage 3.0)."
    )


def test_the_same_at_several_places() -> None:
    """What is written again by several executions adds up; of one execution, it may be the same stages."""
    issues = [
        issue("rewrite-whole-files", None, f"SQL execution {number}", shareMs=share_s * S)
        for number, share_s in ((1, 9), (1, 8), (2, 7))
    ]
    others = [issue("rewrite-whole-files", 5 * S), issue("window", None, "SQL execution 3", shareMs=6 * S)]
    assert answer([*issues, *others], 40 * S, {}) == (
        "Of its time, 40 %, 16.0 s, may go to writing rows again that have not changed."
    )


def test_a_log_that_could_not_be_read_as_a_whole() -> None:
    """What is missing may have been the cause; what is known stays."""
    parts = {"reading, computing and writing": 30 * S}
    assert answer([], 40 * S, parts, unread=3).startswith(
        "No known cause made it slow, but 3 records of its log could not be used. The largest part"
    )
    assert "could not be used" not in answer([issue("skew", 20 * S)], 40 * S, parts, unread=3)


def test_frames_are_not_one_task() -> None:
    frames = issue("window", 30 * S, **{"window.rows": 9, "window.frame": "ranges"})
    assert answer([frames], 40 * S, {}).endswith(
        "without the frames of the window in the count at a.py:1 (stage 3.0)."
    )


def test_the_elements_of_an_array() -> None:
    pairs = issue("cross-join", None, shareMs=30 * S, **{"array.column": "h"})
    assert answer([pairs], 40 * S, {}) == (
        "Of its time, 75 %, 30.0 s, may go to pairing the elements of h, an array, with each other in the "
        "count at a.py:1 (stage 3.0)."
    )


def test_stages_that_run_at_the_same_time_take_no_longer_than_the_run() -> None:
    told = answer([issue("cache-never-read", None, shareMs=50 * S)], 40 * S, {})
    assert told == "Of its time, 100 %, 40.0 s, goes to stages that fill a cache which nothing reads."


def test_an_issue_that_is_all_of_it() -> None:
    assert answer([issue("skew", 40 * S)], 40 * S, {}).startswith("Most of its time goes to the uneven data")


@pytest.mark.parametrize("kind", sorted({*KINDS} - COST_NO_TIME))
def test_each_kind_that_costs_time_can_be_the_answer(kind: str) -> None:
    sentence = answer([issue(kind, S, host="10.0.0.7")], 4 * S, None)
    assert "None" not in sentence
    if kind == "python":
        assert (
            sentence
            == "It spends 25 % of its time, 1.0 s, in Python functions of the count at a.py:1 (stage 3.0)."
        )
        return
    condition = "if the count at a.py:1 (stage 3.0) had fewer tasks" if kind == "task-count" else "without "
    assert sentence.startswith(f"It would take 3.0 s instead of 4.0 s {condition}")


@pytest.mark.parametrize(
    ("because", "better"),
    [
        ("coalesce(1) runs all before it in one task, too", "were repartition(1)"),
        ("coalesce(1) leaves one task for all after it, as for what is before it", "came last"),
    ],
)
def test_a_coalesce_that_leaves_one_task(because: str, better: str) -> None:
    few = issue("task-count", 3 * S, "stage 4.0 (parquet of t into u)", fewTasks=True)
    few = replace(few, sentence=f"one task of 40 s, for 2 cores: {because}")
    assert answer([few], 4 * S, {}) == (
        f"It would take 1.0 s instead of 4.0 s if coalesce(1) {better} in the write into u from t (stage 4.0)."
    )


def test_too_few_tasks() -> None:
    few = issue("task-count", 30 * S, "query 'orders'", durationMs=120 * S, fewTasks=True)
    assert answer([few], 9_000 * S, {}).endswith("instead of 2 min if its stages had more tasks.")
    assert answer([few], 40 * S, {}, ended=False).endswith("by too few tasks in query 'orders'.")


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (issue("full-scan", S, **{"schema.format": ""}), "without reading files only for their schema."),
        (issue("slow-node", S, host="h", executorId="7"), "without the slow executor 7 of h."),
        (issue("slow-node", S, host="h"), "without the slow host h."),
        (
            issue("task-count", S, partitions=9),
            "if all cores computed the partitions at once that it fetches",
        ),
        (
            issue("recomputation", S, **{"listing.path": "s3a://t"}),
            "without listing the files of s3a://t again.",
        ),
        (
            issue("exploding-join", S, **{"join.condition": "ts"}),
            "without the comparisons of the join in the count at a.py:1",
        ),
        (
            issue("python", S, pythonStartMs=9 * S),
            "without starting Python workers, or loading functions, again for each task of the count at a.py:1",
        ),
        (
            issue("idle-cores", S, "query 'a'", durationMs=4 * S, **{"source.offsetsMs": S}),
            "without the time in which its source says what is new.",
        ),
    ],
)
def test_what_only_some_issues_of_a_kind_say(of: FoundIssue, told: str) -> None:
    assert f"would take 3.0 s instead of 4.0 s {told}" in answer([of], 4 * S, {})


@pytest.mark.parametrize("name", [*SPECIAL, "executorId"])
def test_what_only_some_issues_say_is_said_by_a_rule(name: str) -> None:
    rules = Path(diagnosis.__file__).parent.rglob("*.py")
    assert any(f'"{name}"' in path.read_text() for path in rules)


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("reads", "without the small files that the write into u from t (SQL execution 0) reads."),
        ("writes", "without the small files of the write into u from t (SQL execution 0)."),
    ],
)
def test_small_files_that_a_write_reads_are_not_its_own(verb: str, told: str) -> None:
    many = replace(
        issue("small-files", S, "3 SQL executions (parquet of t into u)"), sentence="reads 900 files"
    )
    assert answer([many], 4 * S, {}).endswith("files that the write into u from t (3 SQL executions) read.")
    of = replace(
        issue("small-files", S, "SQL execution 0 (parquet of t into u)"), sentence=f"{verb} 900 files"
    )
    assert answer([of], 4 * S, {}).endswith(told)


@pytest.mark.parametrize(
    ("share_s", "evidence", "told"),
    [
        (20, {}, "Of its time, 50 %, 20.0 s, goes to Python functions of the count at a.py:1 (stage 3.0)."),
        (
            20,
            {"python.smallTasks": 500},
            "Of its time, 50 %, 20.0 s, goes to Python functions of the count at a.py:1 (stage 3.0), in 500 "
            "short tasks.",
        ),
        (
            20,
            {"python.newWorkers": 150},
            "Of its time, 50 %, 20.0 s, goes to Python functions of the count at a.py:1 (stage 3.0), for which "
            "150 tasks start a worker each (spark.python.worker.reuse=false).",
        ),
        (
            20,
            {"python.loadedBy": 40, "runTimeMs": 40 * S},
            "Of its time, 50 %, 20.0 s, goes to Python functions of the count at a.py:1 (stage 3.0), which each of "
            "its 40 tasks loads anew.",
        ),
        (
            20,
            {"python.loadedBy": 400, "runTimeMs": 40 * S},
            "Of its time, 50 %, 20.0 s, goes to Python functions of the count at a.py:1 (stage 3.0).",
        ),
        (11, {}, 'The largest part of its time, 60 %, is "Python functions".'),
    ],
)
def test_functions_that_take_much_of_the_run(share_s: int, evidence: dict[str, int], told: str) -> None:
    python = issue("python", None, shareMs=share_s * S, **evidence)
    assert answer([python], 40 * S, {"Python functions": 24 * S}) == told


def test_where_only_the_driver_works_after_a_result() -> None:
    of = {"driverAloneMs": 20 * S, "driverAlone.afterResultOf": "toPandas at a.py:3"}
    for after_s, told in ((19, ": 19.0 s after toPandas at a.py:3."), (9, ".")):
        alone = issue("idle-cores", 20 * S, **of, **{"driverAlone.afterResultMs": after_s * S})
        assert (
            answer([alone], 40 * S, {})
            == f"For 50 % of its time, 20.0 s, only the driver works or waits{told}"
        )


def test_what_functions_do_is_not_said_of_their_workers() -> None:
    """Workers that start for each task are an issue of their own; the functions may be needed all the same."""
    of = replace(issue("python", S), advice="spark.python.worker.reuse=false lets each task …")
    assert answer([of], 4 * S, {}) == (
        "It spends 25 % of its time, 1.0 s, in Python functions of the count at a.py:1 (stage 3.0)."
    )


def test_the_driver_alone() -> None:
    """How much of its work is needed, nobody knows."""
    alone = issue("idle-cores", 12 * S, "application 'etl'", driverAloneMs=12 * S)
    assert answer([alone], 48 * S, {}) == "For 25 % of its time, 12.0 s, only the driver works or waits."
    looped = replace(alone, evidence={**alone.evidence, "driverAlone.looped": True})
    assert answer([looped], 48 * S, {}).endswith(
        "waits, and a plan looks as if withColumn() was called in a loop."
    )
    fetched = [issue("collect", 5 * S), issue("collect", 1 * S)]
    assert answer([alone, *fetched], 48 * S, {}) == (
        "For 38 % of its time, 18.0 s, only the driver works or waits, 6.0 s of it to fetch results."
    )
    assert answer([alone], 48 * S, {}, ended=False) == "So far, only the driver worked or waited for 12.0 s."


def test_cores_that_are_held() -> None:
    held = issue("idle-cores", S, "application 'etl'", **{"task.cpus": 2})
    assert "without the cores that tasks of SQL hold and do not use." in answer([held], 4 * S, {})


def test_tasks_of_many_stages() -> None:
    tiny = issue("task-count", S, "application 'etl'", stages=48)
    assert answer([tiny], 4 * S, {}).endswith("instead of 4.0 s if its stages had fewer tasks.")


def test_a_stage_that_spills() -> None:
    """How long it would take in memory, nobody knows; that it takes much of the run is worth a sentence."""
    spill = replace(issue("spill", None, shareMs=20 * S), lost_bytes=3 << 30)
    told = (
        "Of its time, 50 %, 20.0 s, goes to the count at a.py:1 (stage 3.0), whose tasks spill 3 GiB to disk."
    )
    assert answer([spill], 40 * S, {}) == told
    assert answer([spill], 80 * S, {}) == ""
    assert answer([spill, issue("gc", 2 * S)], 40 * S, {}).startswith("It would take")


def test_no_other_kind_has_one() -> None:
    assert {*ABSENCES} == {*KINDS} - COST_NO_TIME


def test_of_an_application_whose_end_is_not_known() -> None:
    """It runs on, or only its issues are stored: what was seen of it is not how long it takes."""
    assert answer([issue("skew", 28 * S)], 40 * S, {}, ended=False) == (
        "It has lost 28.0 s so far by the uneven data of the count at a.py:1 (stage 3.0)."
    )

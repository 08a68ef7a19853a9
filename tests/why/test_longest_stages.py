"""The stages that took longest, by place."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.plans.execution import ExecutedStage
from spark_events.listeners.run import Job
from spark_events.why.answer import answer
from spark_events.why.longest_stages import LongestStages, StagesOfPlace, _rows, _slow_codec, _what
from tests.support.plans import Plan, executed

S = 1_000


def completed(stage: int, place: str, seconds: int, tasks: int = 4) -> Any:
    """Return StageCompleted of a stage of no SQL execution."""
    info = {
        "Stage ID": stage,
        "Stage Name": place,
        "Number of Tasks": tasks,
        "Submission Time": 100 * (stage + 1) * S,
        "Completion Time": (100 * (stage + 1) + seconds) * S,
    }
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def test_those_of_one_place_count_together() -> None:
    stages = LongestStages()
    for number, (place, seconds) in enumerate(
        [("count at a.py:3", 6), ("sum at a.py:9", 10), ("count at a.py:3", 5), ("max at a.py:12", 2)]
    ):
        stages.on_stage_completed(completed(number, place, seconds), 0)
    first, second = stages.longest(30 * S)
    assert (first.name, first.wall_ms, first.stages, first.tasks) == ("count at a.py:3", 11 * S, 2, 8)
    assert (first.title, second.title) == ("2 stages of the count at a.py:3", "a stage of the sum at a.py:9")


@pytest.mark.parametrize(("run_s", "places"), [(50, [4, 3]), (100, [4, 3]), (160, [4]), (300, [])])
def test_where_all_are_short(run_s: int, places: list[int]) -> None:
    """Where no stage takes a tenth of a run, the longest are shown that take a part worth looking at."""
    stages = LongestStages()
    for number, seconds in enumerate((4, 3)):
        stages.on_stage_completed(completed(number, f"count at a.py:{number}", seconds), 0)
    assert [place.wall_ms for place in stages.longest(run_s * S)] == [each * S for each in places]


def test_those_that_run_at_the_same_time_take_no_longer_than_the_run() -> None:
    stages = LongestStages()
    for number in range(3):
        info = {"Stage ID": number, "Stage Name": "join at a.py:3", "Number of Tasks": 4}
        ended = {**info, "Submission Time": (1 + number) * S, "Completion Time": 11 * S}
        stages.on_stage_completed({"Event": "SparkListenerStageCompleted", "Stage Info": ended}, 0)
    (place,) = stages.longest(12 * S)
    assert (place.wall_ms, place.title) == (10 * S, "3 stages of the join at a.py:3")
    said = answer([], 12 * S, {"reading, computing and writing": 10 * S}, [place])
    assert said.startswith(
        "No known cause made it slow. What took longest, 10.0 s, are 3 stages of the join at a.py:3."
    )


def test_a_stage_that_waits_for_a_core_takes_no_longer_than_its_tasks() -> None:
    stages = LongestStages()
    record = completed(0, "count at a.py:3", 60, tasks=1)
    record["Stage Info"]["Accumulables"] = [{"Name": "internal.metrics.executorRunTime", "Value": 4 * S}]
    stages.on_stage_completed(record, 0)
    assert [place.wall_ms for place in stages.longest(10 * S)] == [4 * S]


def test_what_a_stage_does() -> None:
    """What passes rows on is left out, and so are the values in expressions."""
    plan = Plan()(0, "WriteFiles", 1)(1, "Project [id#1L]", 1)
    plan(2, "BroadcastHashJoin [country#1], [country#3], ((ts#2 >= 17) AND (ts#2 < valid_to#4))", 1)
    plan(3, "Filter (rlike(text#5, secret.*) AND isnotnull(id#1L))", 1)
    plan(4, "Exchange hashpartitioning(id#1L, 8)", 1)(5, "Scan parquet db.orders [id#1L]", 1)
    text = _what(list(plan.root().walk()))
    assert text.startswith("BroadcastHashJoin (country, ts, valid_to) ← ")
    assert "secret" not in text
    assert "17" not in text
    assert "Exchange" not in text


def test_variables_of_functions_for_elements_are_no_columns() -> None:
    sums = (
        "aggregate(items#5, 0, lambdafunction((lambda x_1#12L + lambda y_2#13.cents), lambda x_1#12L, false))"
    )
    plan = Plan()(0, f"Project [id#1L, {sums} AS basket#10L]", 1)
    assert _what(list(plan.root().walk())) == "Project (id, items, basket; aggregate)"


def test_columns_that_spark_makes_between_two_steps_are_not_named() -> None:
    window = "row_number() windowspecdefinition(day#1, _w0#2L ASC NULLS FIRST) AS rn#3"
    plan = Plan()(0, f"Window [{window}], [day#1], [_w0#2L ASC NULLS FIRST]", 1)
    assert _what(list(plan.root().walk())) == "Window (day, rn)"


def test_columns_of_the_program_that_are_called_alike_are_named() -> None:
    plan = Plan()(0, "Sort [_w#1L ASC NULLS FIRST, _we#2 ASC NULLS FIRST], true, 0", 1)
    plan(1, "BroadcastHashJoin [_w#1L], [_week#3L], Inner", 1)
    assert _what(list(plan.root().walk())) == "BroadcastHashJoin (_w, _week)"


def test_functions_that_may_take_long_are_named() -> None:
    """Texts of the user's are not, even if they look like a call."""
    plan = Plan()(
        0, "Project [regexp_extract(line#1, a(b)secret(.*), 1) AS n#2, cast(id#3L as int) AS i#4]", 1
    )
    plan(1, "Filter (RLIKE(line#1, x.*) AND isnotnull(line#1))", 1)(2, "Scan parquet db.logs [line#1]", 1)
    text = _what(list(plan.root().walk()))
    assert text.startswith("Project (line, n, id, i; regexp_extract) ← Filter (line; RLIKE) ← ")


@pytest.mark.parametrize(("options", "codec"), [("compression=bzip2", "bzip2"), ("compression=snappy", "")])
def test_a_codec_that_takes_long(options: str, codec: str) -> None:
    plan = Plan()(0, f"Execute InsertIntoHadoopFsRelationCommand file:/out, false, JSON, [{options}]")
    assert _slow_codec(executed(plan)) == codec


def test_a_codec_of_one_of_several_actions() -> None:
    """The stage that ends last may be another's."""
    plans = [Plan()(0, f"Execute InsertInto file:/out/{n}, JSON, [compression={c}]") for n, c in _CODECS]
    assert _slow_codec(executed(*plans)) == ""


_CODECS = ((1, "bzip2"), (2, "snappy"))


def test_rows_that_go_into_a_stage_count() -> None:
    """An aggregation makes 50 rows of ten million."""
    plan = Plan()(0, "HashAggregate(keys=[k#1])", 2, rows=50)(1, "AQEShuffleRead coalesced")
    plan(2, "Exchange hashpartitioning(k#1, 8)", 1, shuffle_records_written=10_000_000)
    plan(3, "Scan parquet db.t [k#1]", 1, rows=10_000_000)
    assert _rows(executed(plan, s1=(0, 9), s2=(9, 60)).nodes_by_stage()[2]) == 10_000_000


def test_rows_that_nobody_has_counted_in_part() -> None:
    plan = Plan()(0, "HashAggregate(keys=[k#1])", 2, rows=50)(1, "MapPartitions f", 2)(2, "Scan custom", 2)
    assert _rows(list(plan.root().walk())) == 0


@pytest.mark.parametrize(
    ("rows", "seconds", "said"),
    [
        (24_000, 60, "; 5.0 ms of tasks' time for each of 24,000 rows"),
        (60_302, 60, "; 2.0 ms of tasks' time for each of 60,302 rows"),
        (240_000, 60, "; 500 µs of tasks' time for each of 240,000 rows"),
        (2_400_000, 60, ""),
        (24_000, 29, ""),
        (0, 60, ""),
    ],
    ids=["long", "1.99 ms", "less long", "usual", "a short stage", "nobody counts"],
)
def test_what_a_row_takes(rows: int, seconds: int, said: str) -> None:
    place = StagesOfPlace("sum at a.py:9", "Project (n)", 1, 4, rows, 120 * S, [(0, seconds * S)])
    assert place.title == f"a stage of the sum at a.py:9: Project (n){said}"


def test_the_answer_where_nothing_is_wrong() -> None:
    """Stages that take most of the run come first: they say most about it."""
    parts = {"driver alone": 9 * S, "reading, computing and writing": 21 * S}
    largest = 'The largest part of its time, 70 %, is "reading, computing and writing".'
    took = "What took longest, {0}.0 s, is a stage of the sum at a.py:9: Generate (words)."
    for wall_s, said in ((20, f"{took} {largest}"), (12, f"{largest} {took}")):
        longest = [StagesOfPlace("sum at a.py:9", "Generate (words)", 1, 4, 0, 0, [(0, wall_s * S)])]
        assert answer([], 30 * S, parts, longest) == f"No known cause made it slow. {said.format(wall_s)}"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        (None, "a stage of the query of file:/orders (3f2a0c11…)"),
        ("orders", "a stage of query orders"),
    ],
)
def test_a_query_without_a_name_is_known_by_what_it_reads(name: str | None, title: str) -> None:
    stages, query_id = LongestStages(), "3f2a0c11-9329-4266-b400-337d6fdbd09c"
    job = Job(1, 0, (1,), 8, "run-1", "0", "", {"query_name": name or query_id}, 1, "start at a.py:3")
    stages._add_all([("start at a.py:3", job, ExecutedStage(1, 8, 0, 20 * S, 40 * S, 0, 0))], None)
    source = {"description": "FileStreamSource[file:/orders]"}
    progress: Any = {"Event": "", "progress": {"id": query_id, "name": name, "sources": [source]}}
    stages.on_progress(progress, 0)
    assert [place.title for place in stages.longest(1 * S)] == [title]


def test_of_paths_in_a_long_name_the_ends_are_told() -> None:
    """Where only their beginnings differ, they are of different stages all the same."""
    stages = LongestStages()
    named = [
        f"query of s3a://shop-{lake}/{'raw/' * 20}orders, /data/products into file:/lake/{lake}/out/typed at a.py:9"
        for lake in "ab"
    ]
    for number, name in enumerate((*named, "query of /data/in/orders into /data/out/typed")):
        stages.on_stage_completed(completed(number, name, 10), 0)
    told = "query of …/raw/orders, /data/products into …/out/typed at a.py:9"
    assert [place.name for place in stages.longest(30 * S)] == [
        told,
        told,
        "query of /data/in/orders into /data/out/typed",
    ]

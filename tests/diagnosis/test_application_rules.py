"""The rules about an application: slow hosts, idle cores, memory that nobody uses."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.executors.slow_hosts import SlowHosts
from spark_events.diagnosis.executors.unused_memory import unused_memory
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.times.driver_time import DriverTime
from spark_events.diagnosis.times.pauses import WorkDone
from tests.support.measured_tasks import measured
from tests.support.plans import Plan, executed

MIB, GIB, S, MIN = 1 << 20, 1 << 30, 1_000, 60_000
QUICK = (8, 80 * S, 800 * MIB)


def slow_hosts(slow: tuple[int, int, int], stages: int) -> list[tuple[str, int | None]]:
    hosts = SlowHosts(Thresholds())
    tasks = measured([10 * S] * 10, hosts={"quick": QUICK, "slow": slow})
    return [
        (str(issue.evidence["host"]), issue.lost_ms) for _ in range(stages) for issue in hosts.take(tasks, 4)
    ]


def test_a_slow_host_in_three_stages() -> None:
    """Two tasks with as much data as elsewhere take three times as long: 40 s more, with four at once."""
    slow = (2, 60 * S, 200 * MIB)
    assert slow_hosts(slow, 2) == []
    assert slow_hosts(slow, 3) == [("slow", 30 * S)]


@pytest.mark.parametrize(
    "host",
    [(2, 60 * S, 600 * MIB), (2, 38 * S, 200 * MIB), (5, 150 * S, 500 * MIB)],
    ids=["it reads more", "not twice as long", "half of the tasks are there"],
)
def test_no_slow_host(host: tuple[int, int, int]) -> None:
    assert slow_hosts(host, 5) == []


def test_without_bytes_tasks_are_compared() -> None:
    hosts = SlowHosts(Thresholds())
    tasks = measured([S], hosts={"quick": (8, 80 * S, 0), "slow": (2, 60 * S, 0)})
    assert len([issue for _ in range(3) for issue in hosts.take(tasks, 1)]) == 1


def driver(**thresholds: int) -> DriverTime:
    time = DriverTime(Thresholds(**thresholds))  # type: ignore[arg-type]
    time.executor_added("1", 4, 0)
    time.executor_added("2", 4, 0)
    return time


def ran(
    time: DriverTime,
    begun_ms: int,
    ended_ms: int,
    place: str = "count at a.py:1",
    result: int = 0,
    job: str = "",
    run_ms: int = 0,
) -> None:
    """Let a stage run; of a job of its own, unless that is given."""
    time.stage_submitted((begun_ms, 0), begun_ms)
    time.stage_completed((begun_ms, 0), WorkDone(place, job or str(begun_ms), run_ms, result), ended_ms)


def planned_and_ran(time: DriverTime, begun_ms: int, ended_ms: int, place: str, run_ms: int = 0) -> None:
    """Let a stage run in an SQL execution, which is planned since the one before has ended."""
    ran(time, begun_ms, ended_ms, place, run_ms=run_ms)
    time.executions(-1, ended_ms)
    time.executions(1, ended_ms)


def warmed_up(time: DriverTime) -> None:
    """Let the first SQL execution run, for a second."""
    time.executions(1, 0)
    ran(time, 0, S)
    time.executions(-1, S)


def told(time: DriverTime, time_ms: int) -> dict[str, Issue]:
    return {issue.kind: issue for issue in time.issues(time_ms)}


def slow_executors(
    slow: list[int],
    stages: int = 3,
    host: str = "shared",
    of_cache: bool = False,
    **hosts: tuple[int, int, int],
) -> list[tuple[str, int | None]]:
    """Return what is told of an executor with these tasks, in s, beside two with 8 of 5 s each, on one host."""
    tasks = measured(
        [run * S for run in slow] + [5 * S] * 16,
        hosts=hosts,
        Executors={
            "1": ["shared", 8, 40 * S, 0],
            "2": ["shared", 8, 40 * S, 0],
            "3": [host, len(slow), sum(slow) * S, 0],
        },
        Longest_Runs=[[number, S, run * S, 0, "3", host] for number, run in enumerate(sorted(slow)[::-1])],
    )
    rule = SlowHosts(Thresholds())
    issues = [issue for _ in range(stages) for issue in rule.take(tasks, 4, of_cache)]
    return [(str(issue.evidence.get("executorId")), issue.lost_ms) for issue in issues]


def test_one_executor_of_a_host_is_slow() -> None:
    """By the mean of its tasks without the longest: 15 s instead of 5 s; two thirds of its time are lost."""
    assert slow_executors([15, 15, 15], stages=2) == []
    assert slow_executors([15, 15, 15]) == [("3", 3 * 30 * S // 4)]


@pytest.mark.parametrize(
    "told",
    [
        slow_executors([50, 5, 5]),
        slow_executors([50]),
        slow_executors([9, 9, 9]),
        slow_executors([15] * 9),
        slow_executors([15, 15, 15], host="alone"),
        slow_executors([15, 15, 15], of_cache=True),
        slow_executors([15, 15, 15], of_cache=True, shared=(3, 45 * S, 0), quick=(9, 45 * S, 0)),
    ],
    ids=[
        "one late task",
        "a single task",
        "not twice as long",
        "it has as many tasks",
        "on a host of its own",
        "the same partitions of a cached RDD are there each time",
        "and on the same host",
    ],
)
def test_an_executor_that_is_not_slow(told: list[tuple[str, int | None]]) -> None:
    assert told == []


def test_a_slow_host_says_it_of_all_its_executors() -> None:
    told = slow_executors([15, 15, 15], shared=(3, 45 * S, 0), quick=(9, 45 * S, 0))
    assert told == [("None", 3 * 30 * S // 4)]


def test_the_driver_alone() -> None:
    """15 minutes of 25, most of them before one place."""
    time = driver(idle_time_ms=10 * MIN)
    ran(time, 0, 5 * MIN)
    ran(time, 14 * MIN, 15 * MIN, "save at b.py:9")
    assert told(time, 15 * MIN) == {}  # nine minutes

    time.stage_submitted((20, 0), 20 * MIN)
    time.end(25 * MIN)
    issue = told(time, 25 * MIN)["idle-cores"]
    assert issue.lost_ms == 14 * MIN
    assert (
        "14 min of 25 min: 9 min between count at a.py:1 and save at b.py:9; 5 min between save at b.py:9 and "
        "other stages" in issue.sentence
    )
    after = issue.evidence["driverAlone.afterStageOf"], issue.evidence["driverAlone.afterStageMs"]
    assert after == ("count at a.py:1", 9 * MIN)


@pytest.mark.parametrize(
    ("first", "planned_min", "sentence"),
    [
        (
            "collect at a.py:1",
            0,
            "12 min between collect at a.py:1 and stages of DataFrames; 6 min between load at a.py:0 and "
            "collect at a.py:1",
        ),
        ("", 0, "18 min in 2 pauses before stages of DataFrames, 12 min of it in one"),
        ("load", 0, "12 min before stages of DataFrames; 6 min between load at a.py:0 and load"),
        (
            "collect at a.py:1",
            10,
            "11 min before stages of DataFrames; 6 min between load at a.py:0 and collect at a.py:1",
        ),
    ],
    ids=["two places", "none", "no place", "Spark plans"],
)
def test_what_was_before_a_pause(first: str, planned_min: int, sentence: str) -> None:
    """Unless Spark plans what comes next, or nobody knows the place."""
    time = driver(idle_time_ms=MIN)
    ran(time, 0, MIN, "load at a.py:0")
    ran(time, 7 * MIN, 8 * MIN, first)
    time.executions(1, (20 - planned_min) * MIN)
    ran(time, 20 * MIN, 21 * MIN, "")
    time.executions(-1, 21 * MIN)
    assert told(time, 21 * MIN)["idle-cores"].sentence.endswith(sentence)


def test_a_write_before_a_pause() -> None:
    """Spark names no line of the code for those of DataFrames; what was written is known at their end."""
    time = driver(idle_time_ms=MIN)
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out/sold")(1, "Scan parquet db.t", 1)
    ran(time, 0, MIN, "parquet")
    time.execution_planned(executed(plan, s1=(0, 60)))
    ran(time, 9 * MIN, 10 * MIN, "")
    sentence = told(time, 10 * MIN)["idle-cores"].sentence
    assert sentence.endswith("8 min between the write into file:/out/sold and stages of DataFrames")


def test_most_of_several_pauses_after_a_place() -> None:
    time = driver(idle_time_ms=MIN)
    ran(time, 0, MIN, "collect at a.py:1")
    for begun in (9, 11):
        ran(time, begun * MIN, (begun + 1) * MIN, "")
    sentence = told(time, 12 * MIN)["idle-cores"].sentence
    assert sentence.endswith(
        "9 min in 2 pauses before stages of DataFrames, 8 min of it after collect at a.py:1"
    )


@pytest.mark.parametrize(
    ("between", "sizes", "line"),
    [((), (400, 40), 1), ((), (40, 400), 2), (("count at b.py:9",), (400, 40), 2)],
    ids=["a smaller one", "a larger one", "other work between"],
)
def test_results_that_come_one_after_the_other(
    between: tuple[str, ...], sizes: tuple[int, int], line: int
) -> None:
    """The program works on both then, and most on the larger one."""
    time = driver(idle_time_ms=MIN)
    ran(time, 0, S, "toPandas at a.py:1", sizes[0] * MIB)
    ran(time, 60 * S, 61 * S, "".join(between) or "toPandas at a.py:2")
    ran(time, 62 * S, 63 * S, "toPandas at a.py:2", sizes[1] * MIB)
    time.end(20 * MIN)
    issue = told(time, 20 * MIN)["idle-cores"]
    assert issue.evidence["driverAlone.afterResultOf"] == f"toPandas at a.py:{line}"


def test_a_result_on_which_the_program_has_worked_before_the_next_one() -> None:
    """What follows the second one is not for the first, however large that was."""
    time = driver(idle_time_ms=MIN)
    ran(time, 0, S, "toPandas at a.py:1", 400 * MIB)
    ran(time, 5 * MIN, 5 * MIN + S, "toPandas at a.py:2", 40 * MIB)
    time.end(20 * MIN)
    issue = told(time, 20 * MIN)["idle-cores"]
    assert issue.evidence["driverAlone.afterResultOf"] == "toPandas at a.py:2"


def test_the_end_after_a_place() -> None:
    time = driver(idle_time_ms=MIN)
    ran(time, 0, MIN, "collect at a.py:1")
    time.end(9 * MIN)
    assert "8 min after its last stage, collect at a.py:1" in told(time, 9 * MIN)["idle-cores"].sentence


def test_what_was_told_goes_on() -> None:
    """After an hour of work, nine minutes are a small share, and told as what they are by then."""
    time = driver(idle_time_ms=MIN)
    ran(time, 0, MIN)
    ran(time, 10 * MIN, 11 * MIN)
    assert "9 min of 11 min" in told(time, 11 * MIN)["idle-cores"].sentence
    ran(time, 12 * MIN, 72 * MIN)
    issue = told(time, 72 * MIN)["idle-cores"]
    assert issue.lost_ms == 10 * MIN
    assert "10 min of 1 h 12 min" in issue.sentence
    assert "outgrown" not in issue.evidence  # it may still grow
    time.end(72 * MIN)
    assert told(time, 72 * MIN)["idle-cores"].evidence["outgrown"] is True


def test_what_is_left_of_a_stage_that_never_ended() -> None:
    time = driver(idle_time_ms=1)
    ran(time, 0, MIN)
    time.end(10 * MIN)
    assert told(time, 10 * MIN)["idle-cores"].lost_ms == 9 * MIN


def test_a_loop_of_small_jobs() -> None:
    time = driver(idle_time_ms=MIN)
    for number in range(100):
        ran(time, number * 3 * S, number * 3 * S + S, "count at loop.py:3")
    issues = told(time, 298 * S)
    issue = issues["loop-of-small-jobs"]
    assert issue.lost_ms == 98 * 1.5 * S
    assert "99 small jobs of count at loop.py:3 run one after the other, 2 min 28 s in all" in issue.sentence
    assert issue.advice.startswith("A loop in the driver")
    # What the program itself does meanwhile, such as to wait for another service, it would still do.
    assert "2 min 28 s in 99 pauses before count at loop.py:3" in issues["idle-cores"].sentence


@pytest.mark.parametrize(
    ("rows", "commits", "is_named"),
    [(1_500_000, False, True), (90_000, False, False), (1_500_000, True, False)],
    ids=["many", "few", "many that are soon planned, and whose files are committed for long"],
)
def test_rows_that_plans_have_in_themselves(rows: int, commits: bool, is_named: bool) -> None:
    """The driver copies them each time; a file, or another plan, would not help."""
    first_s, last_s = (1, 6) if commits else (25, 30)
    time = driver(idle_time_ms=MIN)
    for number in range(6):
        begun_ms = number * 30 * S
        time.executions(1, begun_ms)
        ran(time, begun_ms + first_s * S, begun_ms + last_s * S, "save at pandas.py:3")
        plan = Plan()(0, "OverwriteByExpression noop")(1, "LocalTableScan [a#1]", number, rows=rows)
        time.execution_planned(executed(plan, lasted_ms=30 * S, **{f"s{number}": (first_s, last_s)}))
        time.executions(-1, begun_ms + 30 * S)
    advice = told(time, 180 * S)["idle-cores"].advice
    assert ("A plan has 1,500,000 rows in itself" in advice) is is_named
    assert ("fewer and larger files" in advice) is not is_named


def test_a_loop_of_executions_of_several_stages() -> None:
    """The half second of the program is that before an execution, and not that before each of its stages."""
    time = driver(idle_time_ms=30 * S)
    for number in range(40):
        begun_ms = number * 3 * S + 2 * S
        time.executions(1, begun_ms)
        for stage in range(2):
            ran(
                time,
                begun_ms + stage * 500,
                begun_ms + stage * 500 + 400,
                "collect at loop.py:3",
                job=f"{number}",
            )
        time.executions(-1, begun_ms + S)
    issues = told(time, 120 * S)
    assert (
        "40 small jobs of collect at loop.py:3 run one after the other, 58.9 s in all"
        in issues["loop-of-small-jobs"].sentence
    )
    assert "58.5 s in 39 pauses before collect at loop.py:3" in issues["idle-cores"].sentence


def test_a_loop_that_reads_schemas() -> None:
    """Of files, each with a job of its own."""
    time = driver(idle_time_ms=MIN)
    for number in range(99):
        ran(time, number * 3 * S, number * 3 * S + S, "parquet at loop.py:3")
    assert "give the schema" in told(time, 298 * S)["loop-of-small-jobs"].advice


@pytest.mark.parametrize(
    ("place", "several", "label"),
    [
        ("parquet", False, "the write into file:/out/sums"),
        ("parquet at loop.py:3", False, "parquet at loop.py:3"),
        ("parquet at loop.py:3", True, "parquet at loop.py:3"),
    ],
)
def test_a_loop_that_writes(place: str, several: bool, label: str) -> None:
    """Spark calls jobs of writers as it calls those of readers."""
    time = driver(idle_time_ms=MIN)
    for number in range(99):
        into = "orders" if several and number % 2 else "sums"
        write = f"Execute InsertIntoHadoopFsRelationCommand file:/out/{into}/month={number}, false, Parquet"
        at = {"Location": f"InMemoryFileIndex(1 paths)[file:/in/month={number}]"}
        nodes = Plan()(0, write)(1, "Sort [a#1]" if into == "orders" else "Project [a#1]", number)
        nodes(2, "Scan parquet [a#1]", number, at)
        begun_ms = number * 3 * S
        time.executions(1, begun_ms)
        ran(time, begun_ms, begun_ms + S, place)
        time.execution_planned(executed(nodes, **{f"s{number}": (number * 3, number * 3 + 1)}))
        time.executions(-1, begun_ms + S)
    issue = told(time, 298 * S)["loop-of-small-jobs"]
    assert f"small jobs of {label} run one after the other" in issue.sentence
    assert ("another part of file:/in" in issue.advice) is not several
    assert "schema" not in issue.advice


def test_a_loop_that_reads_schemas_before_one_write() -> None:
    """Spark 3.5 calls both alike; the loop is of the reads."""
    time = driver(idle_time_ms=MIN)
    for number in range(99):
        ran(time, number * 3 * S, number * 3 * S + S, "parquet")
    write = "Execute InsertIntoHadoopFsRelationCommand file:/out/all, false, Parquet"
    at = {"Location": "InMemoryFileIndex(1 paths)[file:/in/all]"}
    time.executions(1, 297 * S)
    ran(time, 297 * S, 298 * S, "parquet")
    time.execution_planned(executed(Plan()(0, write)(1, "Scan parquet [a#1]", 0, at), s0=(297, 298)))
    time.executions(-1, 298 * S)
    issue = told(time, 298 * S)["loop-of-small-jobs"]
    assert "small jobs of parquet run one after the other" in issue.sentence
    assert "give the schema" in issue.advice


def test_planning() -> None:
    """Time of the driver within SQL executions is Spark's own."""
    time = driver(idle_time_ms=MIN)
    warmed_up(time)
    time.executions(1, S)
    ran(time, 10 * MIN, 11 * MIN)
    time.executions(-1, 11 * MIN)
    assert told(time, 11 * MIN)["idle-cores"].advice.startswith("Spark's driver plans")


def test_planning_that_another_issue_tells() -> None:
    """Of a pause within an SQL execution, nothing is told until that has ended: it may have been a broadcast."""
    time = driver(idle_time_ms=MIN)
    warmed_up(time)
    time.executions(1, S)
    ran(time, 10 * MIN + S, 11 * MIN)
    assert told(time, 11 * MIN) == {}
    time.told_elsewhere(7 * MIN, S, 10 * MIN + S)
    time.executions(-1, 11 * MIN)
    assert told(time, 11 * MIN)["idle-cores"].lost_ms == 3 * MIN


def test_what_another_issue_tells_is_of_its_own_execution() -> None:
    """The first one has planned for longer, and yet all of that remains."""
    time = driver(idle_time_ms=MIN)
    warmed_up(time)
    for begun_ms, pause_ms, place, told_ms in (
        (S, 5 * MIN, "A", 0),
        (5 * MIN + 2 * S, 3 * MIN, "B", 3 * MIN),
    ):
        time.executions(1, begun_ms)
        ran(time, begun_ms + pause_ms, begun_ms + pause_ms + S, place)
        time.told_elsewhere(told_ms, begun_ms, begun_ms + pause_ms)
        time.executions(-1, begun_ms + pause_ms + S)
    assert "5 min before A" in told(time, 10 * MIN)["idle-cores"].sentence
    assert "B" not in told(time, 10 * MIN)["idle-cores"].sentence


def test_what_another_issue_tells_is_of_the_time_in_which_it_was() -> None:
    """A broadcast was built while another stage ran: the pauses before both and after its join are planning."""
    time = driver(idle_time_ms=MIN)
    warmed_up(time)
    time.executions(1, S)
    time.stage_submitted((7, 0), 5 * MIN)
    ran(time, 5 * MIN, 6 * MIN, "the broadcast's")
    time.stage_completed((7, 0), WorkDone("the other side's", "", 0, 0), 10 * MIN)
    ran(time, 12 * MIN, 13 * MIN, "the join's")
    ran(time, 16 * MIN, 17 * MIN, "the last one's")
    time.told_elsewhere(4 * MIN, 6 * MIN, 12 * MIN)
    time.executions(-1, 17 * MIN)
    issue = told(time, 17 * MIN)["idle-cores"]
    assert issue.lost_ms == 5 * MIN - S + 3 * MIN
    assert "the join's" not in issue.sentence


def test_a_large_result() -> None:
    """What Python takes of it at 4 MB a second is the result's; what it does afterwards is not."""
    time = driver(idle_time_ms=MIN)
    ran(time, 0, S, "collect at a.py:4", 400 * MIB)
    ran(time, 20 * MIN, 21 * MIN)
    found = told(time, 21 * MIN)
    assert found["collect"].lost_ms == 100 * 1_024
    assert found["collect"].sentence == (
        "collect at a.py:4 brings 400 MiB to the driver, which takes up to 1 min 42 s; no stage runs for "
        "19 min 59 s after it"
    )
    assert "18 min 17 s after collect at a.py:4" in found["idle-cores"].sentence
    assert found["idle-cores"].lost_ms == 20 * MIN - S - 100 * 1_024


def test_what_the_program_does_with_a_large_result_may_be_most_of_it() -> None:
    """It may come much faster than at 4 MB a second, and then be worked on: all of the pause is a bound only."""
    time = driver(idle_time_ms=MIN)
    ran(time, 0, S, "collect at a.py:4", 400 * MIB)
    ran(time, 61 * S, 62 * S)
    assert "to the driver, which takes up to 1 min" in told(time, 62 * S)["collect"].sentence


def test_a_large_result_that_arrow_brings() -> None:
    """Four times as fast: what is left of the pause is for something else."""
    time = driver(idle_time_ms=MIN)
    ran(time, 0, S, "toPandas at a.py:4", 400 * MIB)
    ran(time, 20 * MIN, 21 * MIN)
    assert told(time, 21 * MIN)["collect"].lost_ms == 25 * 1_024


def test_what_follows_a_result_has_to_do_with_it() -> None:
    """Without Arrow, Python takes the rows of a result apart for longer than is known."""
    time = driver(idle_time_ms=1)
    ran(time, 0, S, "toPandas at a.py:4", 16 * MIB)
    ran(time, 10 * S, 11 * S)
    issue = told(time, 11 * S)["idle-cores"]
    assert "8.0 s after toPandas at a.py:4" in issue.sentence
    assert "let Arrow bring them" in issue.advice


@pytest.mark.parametrize(("result_bytes", "is_suspected"), [(16 * MIB, True), (100_000, False)])
def test_what_follows_a_result_may_be_a_loop_of_columns(result_bytes: int, is_suspected: bool) -> None:
    """With which the program does not work for long if it is small."""
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, 0, S, "toPandas at a.py:4", result_bytes)
    time.executions(1, 10 * S)
    ran(time, 10 * S, 11 * S)
    time.execution_planned(executed(Plan()(0, "Project [a#1, ... 276 more fields]", 1)))
    time.executions(-1, 11 * S)
    advice = told(time, 12 * S)["idle-cores"].advice
    assert "If it builds a DataFrame in a loop" in advice
    assert ("on the result" in advice or "program works on them" in advice) is is_suspected


@pytest.mark.parametrize(
    ("of_application", "of_job", "is_advised"),
    [(False, None, True), (True, None, False), (False, True, False), (True, False, True)],
)
def test_arrow_is_advised_where_it_is_not_used(
    of_application: bool, of_job: bool | None, is_advised: bool
) -> None:
    """Where it is, the program works on what came, for longer than Python takes to unpack it."""
    time = driver(idle_time_ms=1)
    time.results.by_arrow = of_application
    time.stage_submitted((0, 0), 0)
    work = WorkDone("toPandas at a.py:4", "job 0", 0, 16 * MIB, by_arrow=of_job)
    time.stage_completed((0, 0), work, S)
    ran(time, 10 * S, 11 * S)
    issues = told(time, 11 * S)
    for issue in issues.values():
        assert ("spark.sql.execution.arrow.pyspark.enabled" in issue.advice) is is_advised
    assert "row by row" in issues["idle-cores"].advice
    assert issues["idle-cores"].advice.startswith("The program works in Python then") is not is_advised


def test_the_rows_of_other_actions_are_not_brought_by_arrow() -> None:
    time = driver(idle_time_ms=1)
    ran(time, 0, S, "collect at a.py:4", 16 * MIB)
    ran(time, 30 * S, 31 * S)
    assert "rrow" not in told(time, 31 * S)["idle-cores"].advice


def test_a_usual_start_is_no_issue() -> None:
    time = driver(idle_time_ms=1)
    ran(time, MIN, 2 * MIN)
    assert told(time, 2 * MIN) == {}

    time = driver(idle_time_ms=1)
    ran(time, 5 * MIN, 6 * MIN)
    assert told(time, 6 * MIN)["idle-cores"].lost_ms == 4 * MIN


def test_where_spark_itself_starts_slowly_all_does() -> None:
    """On a busy machine, Spark takes 10 s to start, and the first stage, whatever it is, begins later, too."""
    time = driver(idle_time_ms=1, min_time_ms=S)
    time.spark_started(10 * S)
    ran(time, 75 * S, 90 * S)
    assert told(time, 90 * S) == {}

    time = driver(idle_time_ms=1, min_time_ms=S)
    time.spark_started(10 * S)
    ran(time, 130 * S, 140 * S)
    assert (
        "50.0 s before its first stage, beyond the usual 1 min 20 s"
        in told(time, 140 * S)["idle-cores"].sentence
    )


def test_a_plan_that_is_built_before_the_first_job() -> None:
    """It takes no job, so only the time before the first one shows it; small applications start sooner."""
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, 50 * S, 55 * S)
    issue = told(time, 55 * S)["idle-cores"]
    assert issue.lost_ms == 30 * S
    assert "30.0 s before its first stage, beyond the usual 20.0 s" in issue.sentence
    assert "withColumn" not in issue.advice

    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, 20 * S, 25 * S)
    assert told(time, 25 * S) == {}


@pytest.mark.parametrize(("projections", "said"), [(30, True), (6, False)])
def test_a_plan_that_with_column_has_built_in_a_loop(projections: int, said: bool) -> None:
    """The program waits for Spark to analyze it, before any job; a plan says afterwards that a loop made it."""
    plan = Plan()(0, "OverwriteByExpression", 1)
    for depth in range(1, projections + 1):
        plan = plan(depth, f"Project [q0#{depth}]", 1, rows=100)
    plan = plan(projections + 1, "Scan parquet db.t [q0#0]", 1, rows=100)
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, S, 2 * S)
    time.executions(1, 32 * S)
    ran(time, 32 * S, 40 * S, place="save at a.py:9")
    time.execution_planned(executed(plan, s1=(32, 40)))
    time.executions(-1, 40 * S)
    advice = told(time, 40 * S)["idle-cores"].advice
    made = f"A plan has {projections} projections, one after the other, as withColumn() in a loop makes them."
    assert advice.startswith(made) is said
    assert ("If that is not it, the program computes" in advice) is said


def first_query(text: str, pauses_s: tuple[int, int] = (9, 4), files: int = 1, nodes: int = 1) -> DriverTime:
    """Return the time of an application whose first SQL execution waits for its driver before its stages."""
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, S, 2 * S)
    time.executions(1, 2 * S)
    time.executions(-1, 2 * S)  # a command, without any job
    time.executions(1, 3 * S)
    first_s, second_s = pauses_s
    ran(time, (3 + first_s) * S, (4 + first_s) * S)
    ran(time, (4 + first_s + second_s) * S, (5 + first_s + second_s) * S)
    plan = Plan()(0, text, 1)
    for depth in range(1, nodes):
        plan(depth, "Union", 1)
    plan(nodes, "Scan parquet db.t", 1, number_of_files_read=files)
    time.execution_planned(executed(plan))
    time.executions(-1, (5 + first_s + second_s) * S)
    return time


FEW = "Project [a#1, b#2]"


def test_what_a_cold_driver_takes_for_its_first_query_is_no_issue() -> None:
    """It compiles and loads what later queries find; before the query, the program may do something else."""
    time = first_query(FEW)
    assert "idle-cores" not in told(time, 18 * S)

    time.executions(1, 18 * S)
    ran(time, 27 * S, 28 * S)
    time.executions(-1, 28 * S)
    assert told(time, 28 * S)["idle-cores"].lost_ms == 10 * S  # one before the first query


def test_a_query_that_does_what_none_before_did_loads_code_too() -> None:
    """As long as all of them together take no longer than is usual: here 13 s of 20."""
    time = first_query(FEW, pauses_s=(1, 3))

    def queried(begun_s: int, pause_s: int, node: str) -> None:
        time.executions(1, begun_s * S)
        ran(time, (begun_s + pause_s) * S, (begun_s + pause_s + 1) * S, f"save at a.py:{begun_s}")
        time.execution_planned(executed(Plan()(0, node, 1)))
        time.executions(-1, (begun_s + pause_s + 1) * S)

    queried(9, 9, "SortMergeJoin [a#1], [b#2], Inner")
    assert "idle-cores" not in told(time, 19 * S)
    queried(19, 9, "SortMergeJoin [a#1], [b#2], Inner")
    assert told(time, 29 * S)["idle-cores"].lost_ms == (1 + 9) * S
    queried(29, 9, "Window [a#1]")  # of the 20 s, 7 are left
    assert told(time, 39 * S)["idle-cores"].lost_ms == (1 + 9 + 2) * S


@pytest.mark.parametrize(
    "time",
    [
        first_query("Project [a#1, ... 276 more fields]"),
        first_query(f"Project [{'(a#1 + ' * 80}"[:500]),
        first_query(FEW, files=10_000),
        first_query(FEW, nodes=300),
    ],
    ids=["hundreds of columns", "an expression made of itself", "thousands of files", "hundreds of nodes"],
)
def test_a_first_query_that_is_planned_for_long(time: DriverTime) -> None:
    assert told(time, 18 * S)["idle-cores"].lost_ms == 14 * S


@pytest.mark.parametrize(
    ("text", "is_large"),
    [
        ("Project [a#1, ... 276 more fields]", True),
        (f"Project [{', '.join(f'(a#1 + {number}) AS c{number}#2' for number in range(25))}"[:500], True),
        (FEW, False),
    ],
    ids=["hundreds of columns", "a text that ends before it says how many", "a few"],
)
def test_a_loop_of_columns_is_suspected_where_a_plan_is_large(text: str, is_large: bool) -> None:
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, 50 * S, 51 * S)
    time.executions(1, 51 * S)
    ran(time, 51 * S, 52 * S)
    time.execution_planned(executed(Plan()(0, text, 1)))
    time.executions(-1, 52 * S)
    advice = told(time, 55 * S)["idle-cores"].advice
    assert advice.startswith("If it builds a DataFrame in a loop") is is_large


CASES = ", ".join(
    f"CASE WHEN (q{number}#1 < 0) THEN null ELSE q{number}#1 END AS q{number}#2" for number in range(12)
)
FIELDS = "Scan parquet db.t [a#1, ... 276 more fields]"


@pytest.mark.parametrize(
    ("project", "scan", "before_s", "is_told"),
    [
        (f"Project [{CASES}", FIELDS, 60, True),
        (f"Project [{CASES}", FIELDS, 15, False),
        (f"Project [{CASES}", "Scan parquet db.t [a#1]", 60, False),
        (
            f"Project [{', '.join(f'a_long_name_of_a_column_{number}#1' for number in range(25))}",
            FIELDS,
            60,
            False,
        ),
    ],
    ids=["a loop", "the driver works less than the rest", "a few columns", "columns as they are"],
)
def test_a_loop_of_columns_is_told_where_most_of_many_are_computed(
    project: str, scan: str, before_s: int, is_told: bool
) -> None:
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, S, 2 * S)
    time.executions(1, (2 + before_s) * S)
    ran(time, (2 + before_s) * S, (20 + before_s) * S)
    time.execution_planned(executed(Plan()(0, project[:500], 1)(1, scan, 1)))
    time.executions(-1, (20 + before_s) * S)
    evidence = told(time, (21 + before_s) * S)["idle-cores"].evidence
    assert ("driverAlone.looped" in evidence) is is_told


def test_what_comes_after_the_last_stage_is_no_loop_of_columns() -> None:
    """The plan that one may have made was computed before."""
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, S, 2 * S)
    time.executions(1, 2 * S)
    ran(time, 3 * S, 5 * S)
    time.execution_planned(executed(Plan()(0, f"Project [{CASES}"[:500], 1)(1, FIELDS, 1)))
    time.executions(-1, 5 * S)
    time.end(65 * S)
    issue = told(time, 65 * S)["idle-cores"]
    assert "after its last stage" in issue.sentence
    assert "driverAlone.looped" not in issue.evidence


def test_a_long_pause_is_before_the_write_that_follows() -> None:
    """However Spark calls its stages; a short one may be before any of many."""
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out/sold")(1, "Scan parquet db.t", 1)
    for pause_s, is_named in ((15, True), (9, False)):
        time = driver(idle_time_ms=1, min_time_ms=S)
        ran(time, 0, S, "")
        time.executions(1, (pause_s + 1) * S)
        ran(time, (pause_s + 1) * S + 100, (pause_s + 2) * S, "")
        time.execution_planned(executed(plan))
        time.executions(-1, (pause_s + 2) * S)
        sentence = told(time, (pause_s + 2) * S)["idle-cores"].sentence
        assert ("before the write into file:/out/sold" in sentence) is is_named


def test_no_first_use_takes_minutes() -> None:
    """What takes longer than an application usually takes to start has another reason."""
    issue = told(first_query(FEW, pauses_s=(50, 50)), 105 * S)["idle-cores"]
    assert issue.lost_ms == (1 + 100 - 20) * S


def test_jobs_that_list_files_are_no_loop() -> None:
    """No program asks for them as such; what another issue tells of the driver is not told again."""
    time = driver(idle_time_ms=MIN)
    for number in range(100):
        begun_ms = number * 3 * S
        time.stage_submitted((number, 0), begun_ms)
        work = WorkDone("parquet at loop.py:3", f"job {number}", 0, 0, True, S if number < 50 else 0)
        time.stage_completed((number, 0), work, begun_ms + S)
    issues = told(time, 298 * S)
    assert set(issues) == {"idle-cores"}
    assert issues["idle-cores"].lost_ms == (49 + 2 * 50) * S
    assert "before jobs that list files" in issues["idle-cores"].sentence


def test_a_streaming_query_waits_for_data() -> None:
    time = driver()
    ran(time, 0, S)
    time.query_started("run", S)
    time.query_ended("run", 60 * MIN)
    ran(time, 61 * MIN, 66 * MIN)
    assert told(time, 66 * MIN) == {}


def test_what_the_first_streaming_query_takes_to_start_is_no_issue() -> None:
    """Spark loads the code of streaming queries; a second query finds it."""
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, 0, S)
    time.query_started("run", 9 * S)
    ran(time, 9 * S, 10 * S, "start at a.py:7")
    time.query_ended("run", 10 * S)
    ran(time, 10 * S, 11 * S)
    assert "idle-cores" not in told(time, 11 * S)
    time.query_started("run-2", 20 * S)
    ran(time, 21 * S, 22 * S, "start at a.py:9")
    assert told(time, 22 * S)["idle-cores"].lost_ms == 9 * S


def test_a_program_that_works_for_minutes_before_its_first_streaming_query() -> None:
    time = driver(idle_time_ms=1, min_time_ms=S)
    ran(time, 0, S)
    time.query_started("run", 121 * S)
    ran(time, 121 * S, 122 * S, "start at a.py:7")
    assert told(time, 122 * S)["idle-cores"].lost_ms == (120 - 20) * S


def test_without_executors_nothing_is_idle() -> None:
    time = driver()
    ran(time, 0, S)
    for executor in "12":
        time.executor_removed(executor, S)
    ran(time, 60 * MIN, 61 * MIN)
    assert told(time, 61 * MIN) == {}


def test_unused_memory() -> None:
    """Two executors with 8 GiB, of which 2 would do, and 2.5 with a reserve."""
    issue = unused_memory({"1": 1 * GIB, "2": 2 * GIB}, 8 * GIB, Thresholds())

    assert issue is not None
    assert issue.lost_bytes == 2 * (8 * GIB - 5 * GIB // 2)
    assert "spark.executor.memory=2560m" in issue.advice
    assert unused_memory({"1": 4 * GIB}, 8 * GIB, Thresholds()) is None


def test_no_less_memory_is_advised_than_spark_takes() -> None:
    """With less than 450 MiB, no executor starts."""
    issue = unused_memory({"1": 160 * MIB}, 1 * GIB, Thresholds())
    assert issue is not None
    assert (issue.lost_bytes, "spark.executor.memory=450m, the least" in issue.advice) == (574 * MIB, True)
    assert unused_memory({"1": 100 * MIB}, 450 * MIB, Thresholds()) is None


def test_no_memory_is_measured() -> None:
    assert unused_memory({}, 8 * GIB, Thresholds()) is None


def test_nobody_knows_when_a_query_has_ended_in_an_event_log() -> None:
    """Its end comes at the time of the record before it: what follows, up to the next one, may be its own."""
    time = driver()
    ran(time, 0, S)
    time.query_started("run", S)
    time.query_ended("run", 2 * S)
    ran(time, 65 * MIN, 66 * MIN)
    assert told(time, 66 * MIN) == {}
    ran(time, 75 * MIN, 76 * MIN)
    assert told(time, 76 * MIN)["idle-cores"].lost_ms == 9 * MIN


def test_what_the_tasks_of_a_loop_do_would_remain() -> None:
    """Each job keeps all eight cores busy while it runs: only the pauses could be saved."""
    time = driver(idle_time_ms=MIN)
    time.executions(1, 0)
    for number in range(100):
        planned_and_ran(time, number * 3 * S, number * 3 * S + S, "count at loop.py:3", run_ms=8 * S)
    assert told(time, 298 * S)["loop-of-small-jobs"].lost_ms == 98 * 2 * S


@pytest.mark.parametrize(
    ("place", "job"),
    [("save at nightly.py:3", "execution 7"), ("", "")],
    ids=["many stages of one query", "many queries, for which Spark names no place"],
)
def test_no_loop(place: str, job: str) -> None:
    time = driver(idle_time_ms=MIN)
    for number in range(100):
        ran(time, number * 3 * S, number * 3 * S + S, place, job=job)
    assert set(told(time, 298 * S)) == {"idle-cores"}


def test_what_becomes_a_loop_is_not_told_before_as_something_else() -> None:
    time = driver(idle_time_ms=10 * S)
    time.executions(1, 0)
    for number in range(40):
        planned_and_ran(time, number * 3 * S, number * 3 * S + S, "count at loop.py:3")
        assert "idle-cores" not in told(time, number * 3 * S + S)
    assert "loop-of-small-jobs" in told(time, 118 * S)


def test_a_few_jobs_are_no_loop_in_the_end() -> None:
    time = driver(idle_time_ms=10 * S)
    time.executions(1, 0)
    for number in range(8):
        planned_and_ran(time, number * 3 * S, number * 3 * S + S, "count at loop.py:3")
    assert told(time, 22 * S) == {}
    time.end(22 * S)
    assert told(time, 22 * S)["idle-cores"].lost_ms == 14 * S


@pytest.mark.parametrize(
    ("pause_ms", "spark_took_ms", "is_told"),
    [(300, 0, False), (1_200, 0, True), (1_200, 10 * S, False)],
    ids=["of Spark itself", "of the program", "of Spark on a busy machine"],
)
def test_short_pauses_between_the_stages_of_a_small_application(
    pause_ms: int, spark_took_ms: int, is_told: bool
) -> None:
    time = driver(idle_time_ms=5 * S)
    time.spark_started(spark_took_ms)
    for number in range(30):
        ran(time, number * (pause_ms + S), number * (pause_ms + S) + S, "")
    assert ("idle-cores" in told(time, 30 * (pause_ms + S) - pause_ms)) is is_told


def test_very_many_short_pauses_are_told() -> None:
    time = driver(idle_time_ms=5 * S)
    for number in range(100):
        ran(time, number * 600, number * 600 + 300, "")
    assert told(time, 60 * S - 300)["idle-cores"].lost_ms == 99 * 300


def test_who_looks_for_small_issues_gets_smaller_limits_unless_they_are_set() -> None:
    assert Thresholds(min_time_ms=1 * S).least_idle_ms == 4 * S
    assert Thresholds(min_time_ms=1 * S).least_long_task_ms == 2 * S
    assert Thresholds(min_time_ms=1 * S, idle_time_ms=MIN, long_task_ms=MIN // 2).least_idle_ms == MIN
    assert Thresholds(min_time_ms=1 * S, long_task_ms=MIN // 2).least_long_task_ms == MIN // 2
    assert Thresholds(min_time_ms=10 * MIN).least_idle_ms == 2 * MIN

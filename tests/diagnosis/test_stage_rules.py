"""The rules about one stage: each with a stage that has the issue, and one that has not."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.api import Severity
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import NO_PYTHON, PythonTimes, TasksMeasured
from spark_events.diagnosis.packed_files import packed_rdd
from spark_events.diagnosis.rdds.repeated_stages import RepeatedStages, WorkMadeAgain
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.long_tail import lagging_task
from spark_events.diagnosis.stages.python_time import SMALL_BATCH
from spark_events.diagnosis.stages.stage_rules import stage_issues
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.times.python_times import StagesInPython
from tests.support.measured_tasks import measured

MIB = 1 << 20
S = 1_000


def issues(tasks: TasksMeasured, cores: int = 4, in_python_ms: int = 0) -> dict[str, Issue]:
    return issues_of(EndedStage(cores, tasks, PythonTimes(in_python_ms)))


def issues_of(stage: EndedStage) -> dict[str, Issue]:
    return {issue.kind: issue for issue in stage_issues(stage, Thresholds())}


@pytest.mark.parametrize(
    ("read", "kind", "lost_ms"),
    [
        # All of 120 s could be done on four cores in 30 s, and takes 90.
        ([900 * MIB, *[100 * MIB] * 3], "skew", 60 * S),
        # Without what holds it up for 80 s, it would take 10.
        ([100 * MIB] * 4, "straggler", 80 * S),
        ([], "straggler", 80 * S),
    ],
    ids=["more data", "the same data", "nothing measured"],
)
def test_a_long_tail(read: list[int], kind: str, lost_ms: int) -> None:
    (issue,) = issues(measured([90 * S, 10 * S, 10 * S, 10 * S], read)).values()
    assert (issue.kind, issue.lost_ms) == (kind, pytest.approx(lost_ms, rel=0.02))
    assert issue.evidence["task.runTimeMs"] == 90 * S


@pytest.mark.parametrize("keeps_state", [False, True])
def test_what_to_do_about_uneven_state(keeps_state: bool) -> None:
    """A key has all of its state in one task: nothing is broadcast, and AQE splits nothing."""
    tasks = measured([90 * S, 10 * S, 10 * S, 10 * S], [900 * MIB, *[100 * MIB] * 3])
    (issue,) = issues_of(EndedStage(4, tasks, keeps_state=keeps_state)).values()
    assert issue.kind == "skew"
    assert ("broadcast" in issue.advice, "all state of a key" in issue.advice) == (
        not keeps_state,
        keeps_state,
    )


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([2_800_000, 0, 0, 0], "skew"),
        ([5_000, 100, 100, 100], "skew"),
        ([3, 1, 1, 1], "straggler"),
        ([9] * 4, "straggler"),
    ],
    ids=["all rows", "as much more", "three rows that take a hundred times as long", "as many"],
)
def test_a_long_tail_by_rows(rows: list[int], kind: str) -> None:
    """Where Spark does not measure bytes: those of files whose few row groups cannot be divided, say."""
    tasks = measured([100 * S, S, S, S], rows=rows)
    (issue,) = issues(tasks).values()
    assert issue.kind == kind
    assert (f"task 0 reads {rows[0]:,} rows, the median" in issue.sentence) == (kind == "skew")


def test_one_of_two_tasks_has_most_of_the_data() -> None:
    """No task of two can take three times as long as an even share; it is compared with the other one."""
    two = measured([120 * S, 50 * S], [400 * MIB, 100 * MIB], at_once=2, rows=[1_600, 400])
    (issue,) = issues(two, cores=2).values()
    assert (issue.kind, issue.lost_ms) == ("skew", pytest.approx(35 * S, rel=0.02))
    assert "task 0 reads 400 MiB, the other 100 MiB; it takes 2 min, the other 50.0 s" in issue.sentence
    for like in ([200 * MIB, 100 * MIB], []):  # the time has another reason, or nobody knows
        assert issues(measured([120 * S, 50 * S], like, at_once=2), cores=2) == {}
    (late,) = issues(measured([160 * S, 50 * S], at_once=2), cores=2).values()
    assert late.kind == "straggler"


@pytest.mark.parametrize(
    ("runs", "rows", "of_shuffles", "kind"),
    [
        # Many rows with one key, which are compressed to few bytes: 130 s of work on two cores take 66 s + 13 s.
        ([66 * S, 24 * S, 14 * S], [3_900_000, 1_150_000, 350_000], 3, "skew"),
        ([66 * S, 24 * S, 14 * S], [3_900_000, 1_150_000, 350_000], 0, None),
        ([66 * S, 24 * S, 14 * S], [1_900_000, 1_150_000, 350_000], 3, None),
        ([110 * S, 24 * S, 14 * S], [1_900_000, 1_150_000, 350_000], 3, "straggler"),
        ([66 * S, *[24 * S] * 4], [3_900_000, *[1_150_000] * 4], 5, None),
    ],
    ids=["more rows", "rows of files", "a few more rows", "late by itself", "five tasks"],
)
def test_one_of_a_few_tasks_has_most_of_the_rows(
    runs: list[int], rows: list[int], of_shuffles: int, kind: str | None
) -> None:
    read = [46 * MIB, *[35 * MIB] * (len(runs) - 1)]
    tasks = measured(runs, read, at_once=2, rows=rows, Without_Input=[of_shuffles, sum(runs)])
    found = {each: issue for each, issue in issues(tasks, cores=2).items() if each in ("skew", "straggler")}
    assert set(found) == ({kind} if kind else set())
    if kind == "skew":
        assert found[kind].sentence.startswith("task 0 reads 3,900,000 rows, the median 1,1")
        assert found[kind].lost_ms == 14 * S


def test_a_long_task_among_many_costs_nothing() -> None:
    """While it runs, the other cores have something to do."""
    (issue,) = issues(measured([90 * S, *[10 * S] * 100], [MIB * 900, *[MIB] * 100])).values()
    assert issue.kind == "skew"
    assert issue.lost_ms == 0


@pytest.mark.parametrize("run_ms", [[30 * S, 10 * S, 10 * S], [500 * S]], ids=["3 times", "one task"])
def test_no_tail(run_ms: list[int]) -> None:
    assert {"skew", "straggler"}.isdisjoint(issues(measured(run_ms), cores=1))


def test_a_running_task() -> None:
    thresholds = Thresholds()
    issue = lagging_task(3, "1", "a", 31 * S, 10 * S, thresholds)

    assert issue is not None
    assert (issue.kind, issue.lost_ms, issue.evidence["live"]) == ("straggler", 21 * S, True)
    assert lagging_task(3, "1", "a", 30 * S, 10 * S, thresholds) is None


@pytest.mark.parametrize(
    ("run_ms", "spilled", "told"),
    [
        (100 * S, 1 << 30, True),
        (100 * S, (1 << 30) - 1, False),
        (21 * S, (1 << 30) - 1, True),
        (22 * S, (1 << 30) - 1, False),
        (1 * S, 200 << 20, False),
        (100 * S, 0, False),
    ],
    ids=["much", "less", "for a fifth of the stage", "for less of it", "for less than a second", "nothing"],
)
def test_spill(run_ms: int, spilled: int, told: bool) -> None:
    """Much by its size, or as far as four tasks at once take 16 ns for each byte of it."""
    tasks = measured([run_ms] * 4, Disk_Bytes_Spilled=[0, 0, spilled, spilled])
    assert ("spill" in issues(tasks)) is told
    if told:
        assert issues(tasks)["spill"].lost_bytes == spilled
        assert issues(tasks)["spill"].lost_ms is None


def test_who_says_from_which_size_on_spills_count_is_told_of_no_smaller_ones() -> None:
    tasks = measured([21 * S] * 4, Disk_Bytes_Spilled=[0, 0, 1 << 30, 1 << 30])
    stage = EndedStage(4, tasks)
    kinds = {issue.kind for issue in stage_issues(stage, Thresholds(min_bytes=2 << 30))}
    assert "spill" not in kinds
    assert "spill" in {issue.kind for issue in stage_issues(stage, Thresholds(min_bytes=1 << 29))}


@pytest.mark.parametrize(
    ("gc_ms", "severity"),
    [(39 * S, None), (40 * S, Severity.WARN), (80 * S, Severity.ERROR), (0, None)],
)
def test_garbage_collection(gc_ms: int, severity: Severity | None) -> None:
    """Of 400 s in which tasks ran, four at once."""
    found = issues(measured([100 * S] * 4, JVM_GC_Time=[0, 0, gc_ms, gc_ms])).get("gc")
    assert (found.severity if found else None) == severity
    if found:
        assert found.lost_ms == gc_ms // 4


@pytest.mark.parametrize(
    ("cpu_ms", "severity"),
    [(320 * S, Severity.ERROR), (319 * S, Severity.WARN), (160 * S, Severity.WARN), (159 * S, None)],
)
def test_garbage_that_is_collected_while_tasks_have_no_cpu(cpu_ms: int, severity: Severity | None) -> None:
    """Tasks run for 400 s, 80 of them for garbage: what they do without a CPU, it hardly holds up."""
    tasks = measured([100 * S] * 4, JVM_GC_Time=[0, 20 * S, 20 * S, 80 * S], cpu_ms=cpu_ms)
    found = issues(tasks).get("gc")
    assert (found.severity if found else None) == severity


@pytest.mark.parametrize(("cpu_ms", "is_told"), [(60 * S, True), (40 * S, False)])
def test_much_garbage_on_a_busy_machine(cpu_ms: int, is_told: bool) -> None:
    """Of 30 % of the tasks' time, collectors may have waited for half; and for all, beside a disk that is slow."""
    tasks = measured([100 * S] * 4, JVM_GC_Time=[0, 30 * S, 30 * S, 120 * S], cpu_ms=cpu_ms)
    assert ("gc" in issues(tasks)) is is_told


def test_garbage_that_is_collected_while_python_starts() -> None:
    """Tasks that wait for workers to import what they need are held up by that alone."""
    tasks = measured([100 * S] * 4, JVM_GC_Time=[0, 0, 60 * S, 60 * S])
    lost_ms = [
        issues_of(EndedStage(4, tasks, PythonTimes(start_ms=start_ms)))["gc"].lost_ms
        for start_ms in (0, 300 * S, 400 * S)
    ]
    assert lost_ms == [15 * S, 15 * S // 4, 0]


def test_many_tiny_tasks() -> None:
    overhead = {"Scheduler_Delay": [5, 9, 9, 60 * S], "Executor_Deserialize_Time": [5, 9, 9, 60 * S]}
    issue = issues(measured([100] * 5_001, **overhead))["task-count"]

    assert issue.lost_ms == (2 * 60 * S + 5_001 * 4) // 4
    assert "task-count" not in issues(measured([100] * 5_000, **overhead))
    assert "task-count" not in issues(measured([500] * 5_001, **overhead))


def test_many_tasks_of_spark_that_list_files() -> None:
    """No setting of the program's partitions makes them fewer."""
    overhead = {"Scheduler_Delay": [5, 9, 9, 60 * S]}
    stage = EndedStage(4, measured([1] * 5_001, **overhead), lists_files=True)
    advice = next(issue for issue in stage_issues(stage, Thresholds()) if issue.kind == "task-count").advice
    assert "spark.sql.sources.parallelPartitionDiscovery.parallelism" in advice
    assert "repartition" not in advice


@pytest.mark.parametrize(("least_ms", "tasks"), [(6 * S, 1_001), (S, 501)])
def test_fewer_tasks_are_many_in_a_short_run(least_ms: int, tasks: int) -> None:
    """Whoever looks for a fifth of 30 s looks for a fifth of 5,000 tasks."""
    overhead = {"Scheduler_Delay": [5, 9, 9, 60 * S]}
    thresholds = Thresholds(min_time_ms=least_ms)

    def kinds(count: int) -> list[str]:
        stage = EndedStage(4, measured([7] * count, **overhead))
        return [issue.kind for issue in stage_issues(stage, thresholds)]

    assert kinds(tasks) == ["task-count"]
    assert kinds(tasks - 1) == []


def test_too_few_tasks() -> None:
    """One task of 80 s, for which 8 cores need 10; and one of two cores that has nothing to do."""
    assert issues(measured([80 * S]), cores=8)["task-count"].lost_ms == 70 * S
    assert issues(measured([80 * S]), cores=2)["task-count"].lost_ms == 40 * S
    assert issues(measured([80 * S] * 4), cores=8)["task-count"].lost_ms == 40 * S
    assert "task-count" not in issues(measured([80 * S] * 8), cores=8)
    assert "task-count" not in issues(measured([60 * S]), cores=8)
    assert "task-count" not in issues(measured([80 * S]), cores=0)  # nobody knows


def test_too_few_tasks_of_a_packed_file_that_an_rdd_reads() -> None:
    info = {"RDD Info": [{"Name": "PythonRDD"}, {"Name": "s3a://logs/a.log.gz"}]}
    issue = issues_of(EndedStage(8, measured([80 * S]), packed=packed_rdd(info)))["task-count"]

    assert "s3a://logs/a.log.gz cannot be split: .gz is unpacked from its beginning" in issue.sentence
    assert "many files" in issue.advice
    assert packed_rdd({"RDD Info": [{"Name": "s3a://logs/a.log"}, {"RDD ID": 1}]}) == ""


def test_retries() -> None:
    failed = {"Failed": 1, "Failed_Time": 80 * S, "Fetch_Failures": 1}
    issue = issues(measured([S] * 9, **failed))["retries"]

    assert issue.lost_ms == 20 * S
    assert "1 because shuffle output was gone" in issue.sentence
    stage = EndedStage(4, measured([S] * 9, **failed), failed_of="ValueError: no price")
    assert issues_of(stage)["retries"].sentence.endswith("in all; the last: ValueError: no price")
    assert "retries" not in issues(measured([S] * 10, **failed))


def test_attempts_that_fail_at_the_end_of_a_stage() -> None:
    """One task fails twice after 5 s, while the other cores have nothing to do: all of it is lost."""
    failed = {"Failed": 2, "Failed_Time": 10 * S, "Last_Finish": 1_000 + 15 * S}
    lost_ms = issues(measured([2 * S] * 8, **failed))["retries"].lost_ms
    assert lost_ms == 10 * S
    beside = {"Failed": 2, "Failed_Time": 10 * S, "Last_Finish": 1_000 + 22 * S + 500}
    assert issues(measured([2 * S] * 18, at_once=2, **beside), cores=2)["retries"].lost_ms == 5 * S


def test_a_long_task_that_others_outlast_is_not_late() -> None:
    """It has eight times the rows, begins first, and ends before those that were beside it."""
    runs = [15_250, *[1_150] * 30]
    begun = [1_000, *[9_000] * 7]
    longest = [[row, begun[row], runs[row], 0, "1", "a"] for row in range(8)]
    tasks = measured(runs, Longest_Runs=longest, Last_Finish=18_700, Duration=[1_200, 1_300, 15_700, 70_000])
    found = issues(tasks)["straggler"]
    assert found.lost_ms == found.uneven_ms == 200  # for so long, cores are idle in all


def test_a_late_task_that_waited_long_to_begin() -> None:
    """On a cold executor, it is unpacked for five seconds, in which it does not run; it ends last all the same."""
    runs = [40 * S, *[1 * S] * 3]
    tasks = measured(runs, Duration=[1 * S, 1 * S, 45 * S, 48 * S], Last_Finish=1_000 + 45 * S)
    assert issues(tasks)["straggler"].lost_ms == 39 * S


def test_a_worker_that_starts_is_no_time_that_more_tasks_would_share() -> None:
    alone = measured([210 * S])
    lost_ms = [
        next(stage_issues(EndedStage(4, alone, PythonTimes(0, start_ms)), Thresholds())).lost_ms
        for start_ms in (0, 50 * S)
    ]
    assert lost_ms == [157_500, 120_000]


def test_where_a_late_task_ran() -> None:
    """One host needs no name; in local mode, the executor needs none either."""
    runs = [90 * S, 10 * S, 10 * S, 10 * S]
    on = {"a": (4, 120 * S, 0)}
    one_host = issues(measured(runs, hosts=on))["straggler"]
    local = measured(runs, hosts=on, Longest_Runs=[[0, 1_000, 90 * S, 0, "driver", "a"]])
    assert one_host.sentence.startswith("task 0 on executor 1 takes")
    assert issues(local)["straggler"].sentence.startswith("task 0 takes")
    assert "speculation" not in issues(local)["straggler"].advice
    two = issues(measured(runs, hosts={**on, "b": (4, 40 * S, 0)}))["straggler"]
    assert "look at the host a" in two.advice


@pytest.mark.parametrize("fetch_failures", [0, 1])
def test_where_spark_tries_no_task_again(fetch_failures: int) -> None:
    """Nothing is retried then but what could not be fetched, for which its stage begins again."""
    tasks = measured([S] * 9, Failed=1, Failed_Time=80 * S, Fetch_Failures=fetch_failures)
    found = {issue.kind for issue in stage_issues(EndedStage(4, tasks, retries_tasks=False), Thresholds())}
    assert ("retries" in found) == bool(fetch_failures)


@pytest.mark.parametrize(
    ("attempts", "again"),
    [
        ([(3, 0, False), (3, 1, False)], [False, True]),
        ([(3, 0, True), (3, 1, False), (3, 2, False)], [False, False, True]),
        ([(7, 0, True), (6, 1, False), (7, 1, False)], [False, True, False]),
        ([(6, 1, False)], [False]),
        ([(3, 0, True), (3, 1, True), (4, 0, False)], [False, False, False]),
    ],
    ids=[
        "what was lost",
        "after it was completed",
        "written by another job",
        "who comes late",
        "until it is completed",
    ],
)
def test_what_is_made_again(attempts: list[tuple[int, int, bool]], again: list[bool]) -> None:
    stages = RepeatedStages()
    assert [stages.ended(*attempt) for attempt in attempts] == again


@pytest.mark.parametrize(
    ("warms_up", "of_objects", "share_s"), [(True, True, 1), (False, True, 4), (True, False, 4)]
)
def test_workers_that_start_unpack_nothing(warms_up: bool, of_objects: bool, share_s: int) -> None:
    """On each core; so how many of them worked at once stays what the two times say together."""
    python = PythonTimes(8 * S, in_rdd=True)
    stage = EndedStage(2, measured([4 * S] * 2), python, warms_up=warms_up, of_objects=of_objects)
    (issue,) = stage_issues(stage, Thresholds())
    assert issue.share_ms == share_s * S
    assert issue.evidence["pythonTimeMs"] == 2 * share_s * S


def test_what_an_application_makes_again_is_added_up() -> None:
    """Each attempt may be too small to tell; the place of most of it is said."""
    work = WorkMadeAgain()
    first = work.take("count at a.py:1", measured([20 * S]), 20 * S, 0)
    assert (
        first.sentence == "one task runs again for 20.0 s for count at a.py:1: what had been written was gone"
    )
    both = work.take("save at b.py:2", measured([30 * S, 30 * S]), 30 * S, 0)
    assert (both.kind, both.lost_ms, both.cause) == ("retries", 50 * S, first.cause)
    assert both.sentence == (
        "3 tasks of 2 stage attempts run again for 50.0 s, most of that for save at b.py:2: what had been "
        "written was gone"
    )


def test_all_that_is_made_again_is_lost() -> None:
    tasks = measured([30 * S, 30 * S, 20 * S])
    (issue,) = stage_issues(EndedStage(4, tasks, repeats=True), Thresholds())
    assert (issue.kind, issue.lost_ms) == ("retries", 30 * S)
    assert issue.sentence == "3 tasks run again for 30.0 s: what the stage had written was gone"
    assert not list(stage_issues(EndedStage(3, tasks), Thresholds()))


@pytest.mark.parametrize(
    ("longest_reads", "of_cache", "told"),
    [(0, True, False), (0, False, True), (12 * MIB, True, True)],
    ids=["what the cache lacks", "no cache", "from the cache"],
)
def test_a_task_that_computes_what_others_find_in_a_cache(
    longest_reads: int, of_cache: bool, told: bool
) -> None:
    tasks = measured([90 * S, 10 * S, 10 * S, 10 * S], [longest_reads, *[12 * MIB] * 3])
    found = [issue.kind for issue in stage_issues(EndedStage(4, tasks, reads_cache=of_cache), Thresholds())]
    assert ("straggler" in found) is told


def test_python() -> None:
    assert issues(measured([100 * S] * 4), in_python_ms=200 * S)["python"].lost_ms == 50 * S
    assert "python" not in issues(measured([100 * S] * 4), in_python_ms=199 * S)


def test_what_share_python_has_is_told_of_all_the_run_time() -> None:
    """Workers that start are left out of what makes it an issue, and not of what is said."""
    tasks = measured([100 * S] * 4)
    (issue,) = stage_issues(EndedStage(4, tasks, PythonTimes(160 * S, 200 * S)), Thresholds())
    assert issue.sentence.startswith("40% of the tasks' run time is spent in Python functions")
    assert issue.evidence["pythonShare"] == 0.4


def test_a_first_wave_of_tasks_that_are_all_late_is_cold() -> None:
    """Of four cores, each takes long for its first task; two of them would be two late tasks."""
    for late, told in ((4, False), (2, True)):
        runs = [9 * S + number for number in range(late)] + [2 * S] * 24
        longest = [[row, 1_000 if row < late else 30_000, runs[row], 0, "1", "a"] for row in range(8)]
        tasks = measured(runs, at_once=4, Longest_Runs=longest)
        found = {issue.kind for issue in stage_issues(EndedStage(4, tasks), Thresholds())}
        assert ("straggler" in found) is told


def test_two_late_tasks_of_a_stage_that_is_one_wave() -> None:
    """All four tasks begin together, and two of them are late: nothing that all of them do takes so long."""
    found = {
        issue.kind
        for issue in stage_issues(EndedStage(4, measured([90 * S, 80 * S, 10 * S, 10 * S])), Thresholds())
    }
    assert "straggler" in found


def test_a_core_to_which_a_task_is_sent_is_not_idle() -> None:
    """The tail of 20 s keeps no core waiting for more than its share: all others are sent tasks meanwhile."""
    runs = [20 * S, *[2 * S] * 32]
    sent = {"Duration": [2 * S, 2 * S, 20 * S, 4 * 24 * S - S]}
    tasks = measured(runs, Last_Finish=1_000 + 24 * S, **sent)
    (issue,) = stage_issues(EndedStage(4, tasks), Thresholds())
    assert issue.uneven_ms == S // 4


def test_workers_that_serve_one_task_each() -> None:
    """What is wrong is the setting, whatever the functions do."""
    python = PythonTimes(run_ms=40 * S, in_rdd=True)
    tasks = measured([10 * S] * 4)
    (reused, new) = (
        issues_of(EndedStage(4, tasks, python, reuses_workers=reuses))["python"] for reuses in (True, False)
    )
    assert new.advice.startswith("spark.python.worker.reuse=false")
    assert new.evidence["python.newWorkers"] == 4
    assert "reuse" not in reused.advice
    assert "python.newWorkers" not in reused.evidence


@pytest.mark.parametrize(
    ("task_s", "in_rdd"), [(50, True), (10, False)], ids=["long for another reason", "starts do not count"]
)
def test_workers_that_are_not_what_takes_long(task_s: int, in_rdd: bool) -> None:
    """The advice names the setting, but it is not what the time goes to."""
    python = PythonTimes(run_ms=4 * task_s * S, in_rdd=in_rdd)
    issue = issues_of(EndedStage(4, measured([task_s * S] * 4), python, reuses_workers=False))["python"]
    assert "python.newWorkers" not in issue.evidence
    assert issue.advice.startswith("spark.python.worker.reuse=false")


def test_values_that_are_grouped_by_key() -> None:
    tasks, python = measured([100 * S] * 4), PythonTimes(400 * S, in_rdd=True)
    for by_key in (True, False):
        (issue,) = stage_issues(EndedStage(4, tasks, python, by_key=by_key), Thresholds())
        assert ("reduceByKey" in issue.advice) is by_key
        assert "If they call a service" in issue.advice  # what comes before the shuffle is in the stage


def test_rows_of_a_frame_that_go_through_an_rdd() -> None:
    tasks, python = measured([100 * S] * 4), PythonTimes(400 * S, in_rdd=True)
    for of_frame in (True, False):
        (issue,) = stage_issues(EndedStage(4, tasks, python, of_frame=of_frame), Thresholds())
        assert issue.advice.startswith("They get the rows of a DataFrame (df.rdd)") is of_frame
        assert "If they call a service" in issue.advice


def test_functions_that_hand_rows_to_something_else() -> None:
    """What is said of functions whose results Spark gets would only hide that each row is sent by itself."""
    tasks, python = measured([100 * S] * 4), PythonTimes(400 * S, in_rdd=True)
    (issue,) = stage_issues(EndedStage(4, tasks, python, of_frame=True, hands_out=True), Thresholds())
    assert "send many rows in each request" in issue.advice
    assert "from_json" not in issue.advice


@pytest.mark.parametrize(
    ("records", "how", "said"),
    [
        (100_000, {}, ", 1.0 ms for each of the 400,000 records it reads"),
        (5_000_000, {}, ", 20 µs for each of the 20,000,000 records it reads"),
        (0, {}, ""),
        (100_000, {"reads_cache": True}, ""),
        (100_000, {"of_frame": True}, ""),
    ],
    ids=["long", "as Python needs", "nobody has counted them", "a record may hold many", "of a frame"],
)
def test_what_functions_of_an_rdd_take_for_a_record(records: int, how: dict[str, bool], said: str) -> None:
    tasks, python = measured([100 * S] * 4, rows=[records] * 4), PythonTimes(400 * S, in_rdd=True)
    (issue,) = stage_issues(EndedStage(4, tasks, python, **how), Thresholds())
    assert issue.sentence.endswith(said or ("apart" if "of_frame" in how else "RDD"))
    assert ("about ten to read a record" in issue.advice) == ("20 µs" in said)
    assert ("If they open a connection" in issue.advice) == ("20 µs" not in said)


@pytest.mark.parametrize(
    ("cores", "records", "task_s", "few", "first"),
    [
        (2, 1_000, 4, True, True),
        (2, 500, 100, True, False),
        (2, 2_000, 4, False, False),
        (3, 1_000, 4, False, False),
    ],
    ids=["few records each", "long for a record", "many records", "few tasks"],
)
def test_tasks_that_take_long_for_few_records(
    cores: int, records: int, task_s: int, few: bool, first: bool
) -> None:
    """It may be what each of them loads, which is told first, unless it is so long for a record, too."""
    tasks = measured([task_s * S] * 4, rows=[records] * 4)
    python = PythonTimes(4 * task_s * S, in_rdd=True)
    (issue,) = [
        issue
        for issue in stage_issues(EndedStage(cores, tasks, python), Thresholds(min_time_ms=1))
        if issue.kind == "python"
    ]
    assert issue.advice.startswith("If they refer to something large") is first
    assert issue.sentence.endswith("for each of its 4 tasks, at the median, however few these get") is few
    assert "If they open a connection" in issue.advice
    assert "sc.broadcast()" in issue.advice


@pytest.mark.parametrize(("rows", "told"), [(10, 10), (999, 999), (1_000, None), (0, None), (None, None)])
def test_how_many_rows_python_gets_at_a_time(rows: int | None, told: int | None) -> None:
    tasks = measured([100 * S] * 4)
    (issue,) = stage_issues(EndedStage(4, tasks, PythonTimes(400 * S), arrow_rows=rows), Thresholds())
    assert issue.evidence.get(SMALL_BATCH) == told


def test_an_rdd_gets_no_batches_of_arrow() -> None:
    python = PythonTimes(400 * S, in_rdd=True)
    (issue,) = stage_issues(EndedStage(4, measured([100 * S] * 4), python, arrow_rows=10), Thresholds())
    assert SMALL_BATCH not in issue.evidence


def test_python_of_an_rdd() -> None:
    """All that its tasks do is Python's; what that costs, nobody knows."""
    tasks = measured([100 * S] * 4)
    times = StagesInPython().of_stage({"RDD Info": [{"Name": "PythonRDD"}]}, tasks)
    (issue,) = stage_issues(EndedStage(4, tasks, times), Thresholds())
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("python", None, 100 * S)
    assert "Run one task alone: if it takes half as long, tasks wait for each other" in issue.advice
    of_jvm = {"RDD Info": [{"Name": "MapPartitionsRDD"}]}
    assert StagesInPython().of_stage(of_jvm, tasks) == NO_PYTHON


@pytest.mark.parametrize(
    ("first", "lost_ms"),
    [
        ([(1_000, 60 * S), (1_100, 59 * S)], None),
        ([(1_000, 22 * S), (1_100, 20 * S)], None),
        ([(1_000, 110 * S), (1_100, 20 * S)], 90 * S),
        ([(1_000, 60 * S), (30_000, 59 * S)], 29 * S),
    ],
    ids=["both wait for a worker", "one waits a little longer", "one does more", "the other began later"],
)
def test_the_first_tasks_of_python_workers(first: list[tuple[int, int]], lost_ms: int | None) -> None:
    """They wait for workers that start, which takes all of them as long."""
    runs = [*(run for _, run in first), *[1 * S] * 20]
    longest = [[0, launched, run, 0, "1", "a"] for launched, run in [*first, (60_000, 1 * S)]]
    tasks = measured(runs, at_once=2, Longest_Runs=longest)
    found = {
        issue.kind: issue.lost_ms
        for issue in stage_issues(EndedStage(2, tasks, PythonTimes(1, 120 * S)), Thresholds())
    }
    told = found.get("straggler")
    assert (told is None or told < 10 * S) if lost_ms is None else told == pytest.approx(lost_ms, rel=0.2)


def together(run_ms: list[int], read: list[int] | None = None, **of: Any) -> TasksMeasured:
    """Return tasks of which the first two began together, and the others later."""
    rows = sorted(range(len(run_ms)), key=lambda row: -run_ms[row])
    reads = read or [0] * len(run_ms)
    longest = [[row, 1_000 if row < 2 else 9_000, run_ms[row], reads[row], "1", "a"] for row in rows[:8]]
    return measured(run_ms, reads, at_once=2, Longest_Runs=longest, **of)


TWO = [60 * S, 59 * S, *[1 * S] * 20]


def kinds(tasks: TasksMeasured, **of: Any) -> set[str]:
    return {issue.kind for issue in stage_issues(EndedStage(2, tasks, **of), Thresholds())}


@pytest.mark.parametrize(
    "of",
    [{"python": PythonTimes(100 * S, 0, True)}, {"python": PythonTimes(100 * S, 40)}],
    ids=["workers of an RDD that run already", "Spark has measured that they started at once"],
)
def test_two_late_tasks_that_waited_for_no_worker(of: dict[str, Any]) -> None:
    assert "straggler" in kinds(together(TWO), **of)
    assert "straggler" not in kinds(together(TWO), **of, warms_up=True)


@pytest.mark.parametrize(
    ("run_ms", "told"),
    [
        ([2_932, 2_790, 362, 340], False),
        ([2_932, 340, 362, 340], True),
        ([9_932, 2_790, 362, 340], True),
        ([2_932, 2_790, 362, 340, 340], True),
    ],
    ids=["both first ones", "one of them", "one much later than the other", "fewer than half"],
)
def test_half_of_the_tasks_are_no_single_late_one(run_ms: list[int], told: bool) -> None:
    """The median of four is one of the quick ones."""
    assert ("straggler" in kinds(together(run_ms))) is told


def test_two_hot_partitions_are_a_skew_however_cold_the_stage_is() -> None:
    hot = [900 * MIB, 900 * MIB, *[100 * MIB] * 20]
    assert "skew" in kinds(together(TWO, hot), warms_up=True)


def test_a_late_task_beside_one_that_failed() -> None:
    """Where many fail, workers start anew, and ``retries`` says so; one of a hundred explains nothing."""
    late = [90 * S, *[1 * S] * 100]
    python = PythonTimes(100 * S, 0, True)
    assert "straggler" in kinds(together(late, Failed=1), python=python)
    assert "straggler" not in kinds(together(late, Failed=20, Failed_Time=99 * S), python=python)


def test_cores_that_no_task_can_use_do_not_count() -> None:
    """Spark reports starts before ends: seven tasks seem to run at once on four cores."""
    assert issues(measured([100 * S] * 4, at_once=7, JVM_GC_Time=[0, 0, 0, 80 * S]))["gc"].lost_ms == 20 * S


def starting(start_ms: int, run_ms: list[int], reuses_workers: bool = True) -> Issue | None:
    """Return what is told of workers that start, in a stage that ran on two cores."""
    tasks = measured(run_ms, cores=2)
    stage = EndedStage(2, tasks, PythonTimes(0, start_ms), reuses_workers=reuses_workers)
    starts = [issue for issue in stage_issues(stage, Thresholds()) if issue.cause == "python starts"]
    return starts[0] if starts else None


def test_functions_that_each_task_loads() -> None:
    """The first task of each core would wait in any case, as long as the longest has run."""
    issue = starting(40 * S, [2 * S, 2 * S, *[S] * 38])
    assert issue is not None
    assert (issue.kind, issue.lost_ms) == ("python", 18 * S)
    assert issue.sentence == (
        "40 tasks wait 40.0 s in all for Python workers that start or load functions, 1.0 s each"
    )
    assert "sc.broadcast" in issue.advice
    issue = starting(40 * S, [2 * S, 2 * S, *[S] * 38], reuses_workers=False)
    assert issue is not None
    assert issue.advice.startswith("spark.python.worker.reuse=false")


def test_tasks_that_wait_a_little_each_are_too_many() -> None:
    """Python itself takes that long to begin with a task, whatever its functions refer to."""
    issue = starting(60 * S, [250] * 240)
    assert issue is not None
    assert issue.advice.startswith("Every task loads the functions anew: use fewer and larger tasks")


def test_workers_that_start_once() -> None:
    """However slowly they do."""
    assert starting(16 * S, [8 * S, 8 * S, *[S] * 38]) is None
    assert starting(0, [S] * 40) is None


def test_what_functions_take_is_not_what_workers_take_to_start() -> None:
    """Each task starts a worker, quickly, and calls a function that takes long: that has to be called anyway."""
    tasks = measured([10 * S] * 20, at_once=2)
    stage = EndedStage(2, tasks, PythonTimes(180 * S, 20 * S), reuses_workers=False)
    of_cause = {issue.cause: issue for issue in stage_issues(stage, Thresholds())}
    assert of_cause["python"].lost_ms == 90 * S
    assert "python starts" not in of_cause


@pytest.mark.parametrize(
    ("tasks", "rows", "run_ms", "cores", "is_told"),
    [
        (200, 80, 300, 4, True),
        (200, 0, 300, 4, False),
        (200, 1_100, 300, 4, False),
        (200, 80, 500, 4, False),
        (19, 80, 300, 4, False),
        (200, 80, 300, 51, False),
    ],
    ids=["few rows each", "nobody knows how many", "many rows", "long tasks", "few tasks", "many cores"],
)
def test_many_tasks_of_few_rows_in_python(
    tasks: int, rows: int, run_ms: int, cores: int, is_told: bool
) -> None:
    """Each takes as long as Python needs for a task, or as its rows need: nobody knows, so both are told."""
    ran = measured([run_ms] * tasks, rows=[rows] * tasks)
    python = PythonTimes(tasks * run_ms, in_rdd=True)
    (issue,) = stage_issues(EndedStage(cores, ran, python), Thresholds())
    assert ("; its 200 tasks, for 4 cores, get about 80 records each (" in issue.sentence) is is_told
    assert (issue.evidence.get("python.smallTasks") == 200) is is_told
    assert ("use fewer partitions" in issue.advice) is is_told
    assert "Spark does not know what they do." in issue.advice


@pytest.mark.parametrize(
    ("read", "said", "of_key"),
    [
        (1_800, "it reads 1.8 KiB, the median 1000 bytes", True),
        (1_100, "it reads 1.1 KiB, like the others", False),
    ],
)
def test_a_late_task_with_some_more_data(read: int, said: str, of_key: bool) -> None:
    """A window takes longer for each row of a key that has many: its task has less than twice the data."""
    sizes = [read, 1_000, 1_000, 1_000]
    ran = measured([90 * S, 10 * S, 10 * S, 10 * S], read=sizes, Without_Input=[4, 120 * S])
    issue = issues_of(EndedStage(4, ran))["straggler"]
    assert said in issue.sentence
    assert ("One key may have many of its rows" in issue.advice) is of_key


@pytest.mark.parametrize(("tasks", "told"), [(40, True), (8, False)])
def test_functions_of_an_rdd_that_many_tasks_load(tasks: int, told: bool) -> None:
    """What takes them so long, Spark does not measure; each loads what the functions refer to, however large."""
    stage = EndedStage(4, measured([2 * S] * tasks), PythonTimes(2 * S * tasks, in_rdd=True))
    issue = issues_of(stage)["python"]
    assert (f"each of its {tasks} tasks, which take 2.0 s at the median, loads" in issue.sentence) == told
    assert issue.advice.startswith("If they refer to something large") == told
    assert issue.advice.count("sc.broadcast()") == 1
    assert (issue.evidence.get("python.loadedBy") == tasks) == told


@pytest.mark.parametrize("pairs", [True, False])
def test_functions_that_get_all_pairs(pairs: bool) -> None:
    stage = EndedStage(4, measured([20 * S] * 8), PythonTimes(160 * S, in_rdd=True), pairs_all=pairs)
    issue = issues_of(stage)["python"]
    assert ("; cartesian() pairs each row of an RDD with each row of another" in issue.sentence) is pairs
    assert issue.advice.startswith("Unless each pair is needed: join() by a key") is pairs


def test_objects_of_the_driver_are_no_functions() -> None:
    """Python unpacks them, and nothing that anybody wrote is loaded."""
    stage = EndedStage(4, measured([2 * S] * 40), PythonTimes(80 * S, in_rdd=True), of_objects=True)
    assert "loads these functions" not in issues_of(stage)["python"].sentence

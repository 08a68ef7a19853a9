"""Where the time went, and what cores would change: by hand, and of random applications."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_events.diagnosis.times.cores_model import CRITICAL_PATH, Estimate, critical_path_ms, estimates
from spark_events.diagnosis.times.ledger import (
    ACCOUNTS,
    BATCH,
    COMPUTING,
    DRIVER,
    GC,
    IDLE,
    PYTHON,
    PYTHON_START,
    QUERY,
    REPEATED,
    SCHEDULING,
    SHUFFLE,
    SHUFFLE_WRITE,
    STREAM,
    UNKNOWN,
    WAITING,
)
from spark_events.diagnosis.times.run_timeline import RunStages
from spark_events.listeners.issues import application_timeline
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from tests.support import spark_records as r
from tests.support.measured_tasks import statistics
from tests.support.spark_records import T0

S = 1_000


def completed(
    stage_id: int,
    begun_ms: int,
    ended_ms: int,
    run_ms: list[int],
    tasks_ms: tuple[int, int] | None = None,
    parents: tuple[int, ...] = (),
    accumulables: tuple[dict[str, Any], ...] = (),
    **others: Any,
) -> list[dict[str, Any]]:
    first_ms, last_ms = tasks_ms or (begun_ms, ended_ms)
    of_tasks = {**statistics(run_ms, **others), "First Launch": T0 + first_ms, "Last Finish": T0 + last_ms}
    record = r.stage("Completed", ended_ms, stage_id)
    record["Stage Info"] |= {
        "Submission Time": T0 + begun_ms,
        "Parent IDs": list(parents),
        "Accumulables": list(accumulables),
    }
    return [
        {**r.stage_tasks(ended_ms, None, 1), "Stage ID": stage_id, "Task Statistics": of_tasks},
        record,
    ]


def timeline(*records: dict[str, Any], bounded: bool = False) -> ApplicationTimeline:
    happened = ApplicationTimeline(bounded)
    for record in records:
        happened.take(record)
    happened.end()
    return happened


def model(happened: ApplicationTimeline) -> RunStages:
    assert happened.run is not None
    return happened.run


def parts(*records: dict[str, Any]) -> dict[str, int]:
    return {part: ms for part, ms in timeline(*records).booked().time_ms.items() if ms}


def test_each_part() -> None:
    """100 s: the driver, a wait for executors, tasks that wait for a core, and tasks on half of the cores."""
    of_tasks = {
        "JVM_GC_Time": [0, 0, 0, 8 * S],
        "Fetch_Wait_Time": [0, 0, 0, 4 * S],
        "Scheduler_Delay": [0, 0, 0, 10 * S],
        "Failed_Time": 20 * S,
        "Killed_Time": 10 * S,
    }
    accumulables = (
        {"ID": 1, "Name": "time to run Python workers", "Value": str(12 * S)},
        {"ID": 2, "Name": "time to start Python workers", "Value": str(2 * S)},
        {"Name": "internal.metrics.shuffle.write.writeTime", "Value": str(6 * S * 1_000_000)},
    )
    stage = completed(
        0, 20 * S, 80 * S, [10 * S] * 4, (40 * S, 80 * S), accumulables=accumulables, **of_tasks
    )
    records = (r.job_start(10 * S), r.executor("Added", 30 * S), *stage, r.job_end(90 * S))
    booked = timeline(r.application_start(), *records, r.application_end(100 * S)).booked()

    # 40 s of tasks on four cores, of which 80 s are known: 10 of scheduling, 40 of work, 30 for nothing.
    assert {account: ms for account, ms in booked.time_ms.items() if ms} == {
        WAITING: 10 * S,
        DRIVER: 10 * S + 10 * S,
        QUERY: 10 * S + 10 * S,
        IDLE: 20 * S,
        SCHEDULING: 10 * S + 2_500,
        REPEATED: 7_500,
        GC: 2_000,
        SHUFFLE: 1_000,
        SHUFFLE_WRITE: 1_500,
        PYTHON_START: 500,
        PYTHON: 2_500,
        COMPUTING: 2_500,
    }
    assert {account: ms for account, ms in booked.core_ms.items() if ms} == {
        DRIVER: 40 * S,
        QUERY: 40 * S,
        IDLE: 80 * S,
        SCHEDULING: 40 * S + 10 * S,
        REPEATED: 30 * S,
        GC: 8 * S,
        SHUFFLE: 4 * S,
        SHUFFLE_WRITE: 6 * S,
        PYTHON_START: 2 * S,
        PYTHON: 10 * S,
        COMPUTING: 10 * S,
    }


def test_a_stage_that_has_lost_its_only_executor_waits() -> None:
    """Whatever its tasks did before and after that, they do nothing then."""
    lost = (r.executor("Removed", 20 * S), r.executor("Added", 60 * S, "2"))
    records = (r.executor("Added", 0), *lost, *completed(0, 0, 100 * S, [30 * S] * 4))
    booked = timeline(r.application_start(), *records, r.application_end(100 * S)).booked()
    assert {account: ms for account, ms in booked.time_ms.items() if ms} == {
        WAITING: 40 * S,
        COMPUTING: 30 * S,
        IDLE: 30 * S,
    }


def test_a_stage_that_runs_again_is_repeated() -> None:
    again = completed(0, 50 * S, 100 * S, [50 * S] * 2)
    for record in again:
        record.get("Stage Info", record)["Stage Attempt ID"] = 1
    records = (r.executor("Added", 0), *completed(0, 0, 50 * S, [50 * S] * 4), *again)
    assert timeline(r.application_start(), *records, r.application_end(100 * S)).booked().core_ms == {
        **dict.fromkeys(ACCOUNTS, 0),
        COMPUTING: 200 * S,
        REPEATED: 100 * S,
        IDLE: 100 * S,
    }


def test_what_a_failed_stage_left_undone_is_no_repetition() -> None:
    """Its first attempt failed; the tasks that its second one runs had not been done."""
    first, again = completed(0, 0, 50 * S, [50 * S] * 4), completed(0, 50 * S, 100 * S, [50 * S] * 4)
    first[1]["Stage Info"]["Failure Reason"] = "FetchFailed"
    for record in again:
        record.get("Stage Info", record)["Stage Attempt ID"] = 1
    records = (r.executor("Added", 0), *first, *again)
    booked = timeline(r.application_start(), *records, r.application_end(100 * S)).booked()
    assert booked.core_ms == {**dict.fromkeys(ACCOUNTS, 0), COMPUTING: 400 * S}


def test_the_driver_works_within_a_query_or_by_itself() -> None:
    ended = {
        "Event": r.batch_begins(0, 3)["Event"].replace("Start", "End"),
        "executionId": 3,
        "time": T0 + 40 * S,
    }
    of_sql = {**r.batch_begins(10 * S, 3), "description": "count at nightly.py:3"}
    assert parts(r.application_start(), of_sql, ended, r.application_end(100 * S)) == {
        DRIVER: 70 * S,
        QUERY: 30 * S,
    }


def test_a_streaming_query_waits() -> None:
    query = r.query_started(10 * S)
    job = (r.job_start(30 * S), r.job_end(40 * S))
    assert parts(r.application_start(), query, *job, r.application_end(100 * S)) == {
        DRIVER: 10 * S,
        QUERY: 10 * S,
        STREAM: 80 * S,
    }


@pytest.mark.parametrize("bounded", [False, True], ids=["of a log", "of a long live run"])
def test_time_in_a_micro_batch_is_no_waiting(bounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the trigger to the progress: what foreachBatch does between its jobs; not what comes after.

    In a long live run, the second before the SQL execution is added up before the progress tells of it.
    """
    asks_s = 0 if bounded else 1
    if bounded:
        monkeypatch.setattr(application_timeline, "_MOST_CHANGES", 1)
    first = (r.batch_begins(20 * S, 0), r.job_start(25 * S), r.job_end(30 * S), r.progress(19 * S, 0, 31 * S))
    own = {**r.batch_begins(72 * S, 1), "executionId": 17}  # of a write within the function
    second = (
        r.batch_begins(70 * S, 1),
        own,
        r.job_start(75 * S),
        r.job_end(76 * S),
        r.progress(70 * S, 1, 10 * S),
    )
    unfinished = (r.batch_begins(90 * S, 2), r.application_end(100 * S))
    records = (r.application_start(), r.query_started(10 * S), *first, r.idle(60 * S), *second, *unfinished)
    happened = timeline(*records, bounded=bounded)
    assert {part: ms for part, ms in happened.booked().time_ms.items() if ms} == {
        DRIVER: 10 * S,
        QUERY: 5 * S + 1 * S,
        BATCH: (asks_s + 25) * S + 9 * S + 10 * S,
        STREAM: (10 - asks_s) * S + 20 * S + 10 * S,
    }
    assert happened.attributes()["timeUseMs.microBatch"] == (44 + asks_s) * S


def test_a_micro_batch_ends_with_its_query() -> None:
    """Whose end has no time of its own; another query may wait on."""
    queries = (r.query_started(0), r.query_started(0, run="run-2", query="query-2"))
    batch, end = r.batch_begins(10 * S, 0), r.terminated(exception="boom")
    records = (r.application_start(), *queries, batch, r.idle(40 * S, run="run-2"), end)
    assert parts(*records, r.batch_begins(50 * S, 1), r.application_end(60 * S)) == {
        BATCH: 30 * S,
        STREAM: 10 * S + 20 * S,
    }


def test_tasks_that_measured_nothing() -> None:
    stage = completed(0, 0, 50 * S, [0, 0])
    assert parts(r.application_start(), *stage, r.application_end(100 * S)) == {
        UNKNOWN: 50 * S,
        DRIVER: 50 * S,
    }


def test_tasks_that_never_end() -> None:
    """Their application was stopped: they ran, and what they did nobody knows; they were not being scheduled."""
    begun = {**r.stage("Submitted", 10 * S, 0)}
    begun["Stage Info"] |= {"Submission Time": T0 + 10 * S}
    ended = completed(0, 10 * S, 90 * S, [0])
    ended[1]["Stage Info"] |= {"Failure Reason": "Stage cancelled because SparkContext was shut down"}
    ended[0] |= {"Running": 4, "First Launch Time": T0 + 12 * S}
    ended[0] |= {"Task Statistics": {**statistics([0]), "First Launch": 0, "Last Finish": 0}}
    records = (
        r.application_start(),
        r.executor("Added", 0),
        begun,
        *ended,
        r.application_end(100 * S),
    )
    stopped = timeline(*records)
    assert parts(*records) == {DRIVER: 20 * S, SCHEDULING: 2 * S, UNKNOWN: 78 * S}
    assert stopped.unfinished == 4
    assert [run.tasks.total_ms for run in model(stopped).stages if run.tasks] == [4 * 78 * S]


def test_some_tasks_never_end() -> None:
    """They run at least since the last of the others ended."""
    ended = completed(0, 0, 90 * S, [10 * S] * 4, (0, 10 * S))
    ended[0] |= {"Running": 2, "First Launch Time": T0}
    ended[1]["Stage Info"] |= {"Failure Reason": "Job 0 cancelled"}
    records = (r.application_start(), r.executor("Added", 0), *ended, r.application_end(90 * S))
    booked = timeline(*records).booked()
    assert sum(booked.core_ms.values()) == 4 * 90 * S
    assert booked.core_ms[UNKNOWN] == pytest.approx(2 * 80 * S, abs=2)
    assert booked.core_ms[COMPUTING] == pytest.approx(4 * 10 * S, abs=2)


def test_a_copy_of_a_task_that_runs_when_its_stage_succeeds() -> None:
    """Spark kills it a moment later: nothing was left undone."""
    ended = completed(0, 0, 90 * S, [10 * S] * 4, (0, 80 * S))
    ended[0] |= {"Running": 1, "First Launch Time": T0}
    succeeded = timeline(r.application_start(), r.executor("Added", 0), *ended, r.application_end(90 * S))
    assert succeeded.unfinished == 0
    assert succeeded.booked().time_ms[UNKNOWN] == 0


def test_a_log_that_ends_while_tasks_run() -> None:
    """As of a driver that was killed: no stage has an end, and its tasks have the cores."""
    begun = {**r.stage("Submitted", 10 * S, 0)}
    begun["Stage Info"] |= {"Submission Time": T0 + 10 * S, "Number of Tasks": 40}
    records = (r.application_start(), r.executor("Added", 0), r.job_start(5 * S), begun)
    cut = timeline(*records, r.executor("Added", 60 * S, "2"))
    assert cut.unfinished is None  # some of its tasks may have ended, or wait for those of another stage
    assert {account: ms for account, ms in cut.booked().time_ms.items() if ms} == {
        DRIVER: 5 * S,
        QUERY: 5 * S,
        UNKNOWN: 50 * S,
    }


def test_a_stage_whose_end_was_lost_does_not_run_for_ever() -> None:
    """Its job has ended, so it has; Spark drops events while its queue is full."""
    begun = r.stage("Submitted", 10 * S, 0)
    begun["Stage Info"] |= {"Submission Time": T0 + 10 * S}
    records = (r.application_start(), r.executor("Added", 0), r.job_start(5 * S), begun, r.job_end(20 * S))
    assert parts(*records, r.application_end(100 * S)) == {DRIVER: 85 * S, QUERY: 15 * S}


def core_ms(records: list[dict[str, Any]], ended_ms: int) -> int:
    """Return for how long all cores were there, in ms: counted for each executor by itself."""
    whole_ms = 0
    since_ms: dict[str, int] = {}
    for record in records:
        executor = record.get("Executor ID", "")
        if "Executor Info" in record:
            since_ms.setdefault(executor, record["Timestamp"])
        elif executor in since_ms:
            whole_ms += 4 * (record["Timestamp"] - since_ms.pop(executor))
    return whole_ms + sum(4 * (ended_ms - begun_ms) for begun_ms in since_ms.values())


_TIME = st.integers(0, 100_000)
_STAGE = st.tuples(
    st.integers(0, 5), _TIME, _TIME, _TIME, _TIME, st.lists(st.integers(0, 50_000), min_size=1, max_size=5)
)


@given(
    st.lists(_STAGE, max_size=8),
    st.lists(st.tuples(_TIME, st.sampled_from(["Added", "Removed"]), st.sampled_from("12")), max_size=6),
    st.lists(st.tuples(_TIME, _TIME, st.integers(0, 5)), max_size=5),
    st.lists(_TIME, max_size=3),
)
def test_the_parts_add_up(
    stages: list[tuple[int, int, int, int, int, list[int]]],
    executors: list[tuple[int, str, str]],
    jobs: list[tuple[int, int, int]],
    queries: list[int],
) -> None:
    """Whatever the records say, however little sense they make."""
    records = [r.executor(event, begin, number) for begin, event, number in sorted(executors)]
    for number, (begin, end, stage) in enumerate(jobs):
        records += [r.job_start(begin, number, (stage,)), r.job_end(end, number)]
    for stage, begin, end, first, last, run_ms in stages:
        records += completed(stage, begin, end, run_ms, (first, last))
    records += [r.query_started(begin, run=str(begin)) for begin in queries]
    happened = timeline(r.application_start(), *records, r.application_end(100_000))
    booked = happened.booked()

    assert sum(booked.time_ms.values()) == happened.ended_ms - happened.begun_ms
    assert sum(booked.core_ms.values()) == core_ms(records, happened.ended_ms)
    assert min(booked.time_ms.values()) >= 0
    assert min(booked.core_ms.values()) >= 0
    assert (critical_path_ms(model(happened)) or 0) >= 0
    assert all(estimate.time_ms >= 0 for estimate in estimates(model(happened)))


_STEP = st.tuples(
    st.sampled_from([0, 1, 2]),
    st.integers(1, 2_000),
    st.lists(st.integers(0, 50_000), min_size=1, max_size=3),
)


@given(st.lists(_STEP, max_size=60), st.integers(0, 20))
def test_a_long_run_is_folded(steps: list[tuple[int, int, list[int]]], most: int) -> None:
    """Three drivers of jobs; where the time went is the same, and what is kept is little."""
    records = [r.application_start(), r.query_started(5), r.executor("Added", 5)]
    running: dict[int, tuple[int, int]] = {}
    now_ms = 10
    for number, (driver, passed_ms, run_ms) in enumerate(steps):
        now_ms += passed_ms
        begun = running.pop(driver, None)
        if begun is None:
            running[driver] = (number, now_ms)
            submitted = r.stage("Submitted", now_ms, number)
            records += [r.job_start(now_ms, number, (number,)), submitted]
        else:
            job, begun_ms = begun
            tasks_ms = ((begun_ms + now_ms) // 2, now_ms)
            records += [*completed(job, begun_ms, now_ms, run_ms, tasks_ms), r.job_end(now_ms, job)]
    records.append(r.application_end(now_ms + 10))
    whole = timeline(*records)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(application_timeline, "_MOST_CHANGES", most)
        folded = timeline(*records, bounded=True)
        assert (folded.begun_ms, folded.ended_ms) == (whole.begun_ms, whole.ended_ms)
        used = folded.booked().time_ms
        for part, part_ms in used.items():
            assert abs(part_ms - whole.booked().time_ms[part]) <= len(ACCOUNTS)
        assert folded.booked().time_ms == used
        patch.setattr(application_timeline, "_MOST_UNSETTLED", most)
        assert (
            sum(timeline(*records, bounded=True).booked().time_ms.values()) == whole.ended_ms - whole.begun_ms
        )


def test_what_is_settled_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_timeline, "_MOST_CHANGES", 20)
    happened = ApplicationTimeline(bounded=True)
    happened.take(r.application_start())
    for job in range(200):
        now_ms = job * S
        submitted = r.stage("Submitted", now_ms, job)
        for record in (
            r.job_start(now_ms, job, (job,)),
            submitted,
            *completed(job, now_ms, now_ms + S, [S]),
            r.job_end(now_ms + S, job),
        ):
            happened.take(record)
    assert happened._ledger.pending <= 20
    assert happened.run is None
    kept = {**happened._measured, **happened._submitted, **happened._running_jobs}
    assert not kept
    assert len(happened._job_of_stage) <= 1
    assert (
        happened.booked().time_ms
        == happened.booked().time_ms
        == {**dict.fromkeys(ACCOUNTS, 0), COMPUTING: 200 * S}
    )


def test_cores() -> None:
    """A job of two stages, one after the other: of 8 tasks of 10 s, and of one of 20 s."""
    happened = timeline(
        r.application_start(),
        r.executor("Added", 0),
        r.job_start(10 * S, 0, (0, 1)),
        *completed(0, 10 * S, 30 * S, [10 * S] * 8),
        *completed(1, 30 * S, 50 * S, [20 * S], parents=(0,)),
        r.job_end(50 * S),
        r.application_end(60 * S),
    )
    assert estimates(model(happened)) == [
        Estimate(2, 20 * S + 60 * S),
        Estimate(4, 20 * S + 40 * S),
        Estimate(8, 20 * S + 30 * S),
        Estimate(16, 20 * S + 30 * S),
        Estimate(None, 20 * S + 30 * S),
    ]
    assert critical_path_ms(model(happened)) == 50 * S


def test_a_clock_that_goes_back_leaves_no_model() -> None:
    """As after a driver's clock was set: a stage ends before it began, and takes no time, or less."""
    happened = timeline(
        r.application_start(),
        r.executor("Added", 0),
        r.job_start(10 * S, 0, (0,)),
        *completed(0, 40 * S, 20 * S, [10 * S] * 8),
        r.job_end(50 * S),
        r.application_end(60 * S),
    )
    assert estimates(model(happened)) == []
    assert critical_path_ms(model(happened)) is None
    assert CRITICAL_PATH not in happened.attributes()


def test_the_driver_is_alone_until_the_first_query_is_planned() -> None:
    """And not until its first stage: meanwhile, it works within the query."""
    happened = timeline(
        r.application_start(),
        r.executor("Added", 0),
        r.execution("Start", 5 * S),
        r.job_start(25 * S, 0, (0,)),
        *completed(0, 25 * S, 30 * S, [5 * S]),
        r.job_end(30 * S),
        r.execution("End", 31 * S),
        r.application_end(60 * S),
    )
    assert happened.booked().time_ms["driver within a query"] >= 20 * S
    assert happened.to_first_work_ms == 5 * S
    assert timeline(r.application_start(), r.application_end(60 * S)).to_first_work_ms == 0


def test_a_job_whose_stages_nobody_knows() -> None:
    """Nothing can be said of it, so its time stays."""
    happened = timeline(
        r.application_start(), r.job_start(10 * S), r.job_end(50 * S), r.application_end(60 * S)
    )
    assert critical_path_ms(model(happened)) == 60 * S


def test_jobs_at_the_same_time() -> None:
    """Two jobs of 20 s share four cores; the longer one is the critical path."""
    happened = timeline(
        r.application_start(),
        r.executor("Added", 0),
        r.job_start(0, 0, (0,)),
        r.job_start(0, 1, (1,)),
        *completed(0, 0, 40 * S, [20 * S] * 4),
        *completed(1, 0, 40 * S, [20 * S] * 4),
        r.job_end(40 * S, 0),
        r.job_end(40 * S, 1),
        r.application_end(40 * S),
    )
    assert critical_path_ms(model(happened)) == 20 * S
    assert Estimate(4, 40 * S) in estimates(model(happened))


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_what_begins_while_spark_events_is_attached_counts_once(times: int) -> None:
    """It is found running, and Spark tells of it, too."""
    begins, query = r.job_start(S, 7), r.query_started(5 * S)
    happened = timeline(
        r.application_start(),
        r.executor("Added", 0),
        *[begins] * times,
        r.job_end(2 * S, 7),
        *[query] * times,
        r.terminated(),
        r.application_end(60 * S),
    )
    assert happened.jobs == 1
    assert happened.booked().time_ms["driver alone"] >= 50 * S

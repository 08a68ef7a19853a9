"""Diagnoses as events: whose they are, when they are worth one, and that each is told once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_events.api import Event
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.node import IN_PYTHON, PLAN_METRICS, ROWS
from spark_events.diagnosis.stages.python_time import OF_OBJECTS
from spark_events.listeners.issues.issues import IssueListener
from spark_events.listeners.issues.python_calls import of_functions
from spark_events.why.found_issue import by_cost, issue_of
from tests.support import spark_records as r
from tests.support.measured_tasks import statistics
from tests.support.plans import Plan
from tests.support.spark_records import T0, Feed, seen

S = 1_000
TAIL = [90 * S, 10 * S, 10 * S, 10 * S]
"""The run times of four tasks, one of which costs 80 s if nobody knows what it reads."""
LOST_MS = 79_888
"""What it costs, by a median that is 1.1 % off."""


def stage(
    begun_ms: int, run_ms: list[int], stage_id: int = 0, lasted_ms: int = 120 * S, **lagging: Any
) -> Iterator[dict[str, Any]]:
    """Yield the records of a stage."""
    submitted = r.stage("Submitted", begun_ms, stage_id)
    submitted["Stage Info"]["Stage Name"] = "count at a.py:1"
    yield submitted
    tasks = r.stage_tasks(begun_ms + lasted_ms, None, 1)
    if lagging:
        yield {**tasks, "Stage ID": stage_id, "Timestamp": T0 + begun_ms + 50 * S, "Lagging Task": lagging}
    yield {**tasks, "Stage ID": stage_id, "Task Statistics": statistics(run_ms)}
    completed = r.stage("Completed", begun_ms + lasted_ms, stage_id)
    completed["Stage Info"]["Submission Time"] = T0 + begun_ms
    yield completed


def job(begun_ms: int, run_ms: list[int], lasted_ms: int = 130 * S, **more: Any) -> Iterator[dict[str, Any]]:
    """Yield the records of a job with one stage."""
    yield r.job_start(begun_ms, more.pop("job", 0), (more.get("stage_id", 0),), more.pop("group", None))
    yield from stage(begun_ms, run_ms, **more)
    yield r.job_end(begun_ms + lasted_ms)


def test_nothing_rests_on_bytes_that_spark_does_not_count() -> None:
    """Of a scan of Parquet, what tasks read is not known: no skew by it, and no word that data are alike."""
    advice = []
    for scope in ("Scan csv ", "Scan parquet spark_catalog.default.t"):
        records = list(job(10, TAIL))
        for record in records:
            if statistics_of := record.get("Task Statistics"):
                statistics_of["Bytes Read"] = [1_000, 1_000, 90_000, 93_000]
                statistics_of["Longest Runs"][0][3] = 90_000
            if "Stage Info" in record:
                scan = {"Name": "FileScanRDD", "Scope": json.dumps({"id": "4", "name": scope})}
                record["Stage Info"]["RDD Info"] = [scan]
        (event,) = issues(Feed()(r.application_start(), r.executor("Added", 0), *records))
        advice.append((event.attributes["issue"], event.attributes["advice"]))

    assert [kind for kind, _ in advice] == ["skew", "straggler"]
    assert advice[1][1].startswith("Spark has not measured how much each task reads, so see whether")


@pytest.mark.parametrize(("cpu_s", "is_told"), [(200, True), (20, False)], ids=["a CPU", "none"])
def test_garbage_of_a_stage_says_at_its_end_whether_tasks_had_a_cpu(cpu_s: int, is_told: bool) -> None:
    """Collectors wait for one as well as tasks do: that a machine is busy is no lack of memory."""
    records = list(job(10, [100 * S] * 4, lasted_ms=110 * S))
    for record in records:
        if statistics_of := record.get("Task Statistics"):
            statistics_of["JVM GC Time"] = [40 * S, 40 * S, 40 * S, 160 * S]
        if record["Event"].endswith("StageCompleted"):
            cpu = {"ID": 7, "Name": "internal.metrics.executorCpuTime", "Value": cpu_s * 10**9}
            record["Stage Info"]["Accumulables"] = [cpu]
    events = issues(Feed()(r.application_start(), r.executor("Added", 0), *records))
    assert [event.attributes["issue"] for event in events] == ["gc"] * is_told


def in_python(rows: str, **info: Any) -> Event:
    """Return what is told of a stage with more information, whose job says how many rows a batch has."""
    records = list(job(10, [90 * S] * 4))
    records[0]["Properties"] = {"spark.sql.execution.arrow.maxRecordsPerBatch": rows}
    for record in records:
        if "Stage Info" in record:
            record["Stage Info"].update({name.replace("_", " "): value for name, value in info.items()})
    (event,) = issues(Feed()(r.application_start(), r.executor("Added", 0), *records))
    return event


@pytest.mark.parametrize(("rows", "told"), [("10", 10), ("10000", None), ("-1", None), ("many", None)])
def test_how_many_rows_python_gets_at_a_time_is_said_by_the_job(rows: str, told: int | None) -> None:
    """Its properties have the settings of the session."""
    measured = {"ID": 7, "Name": "time to run Python workers", "Value": 300 * S, "Update": 300 * S}
    event = in_python(rows, Accumulables=[measured])
    assert event.attributes.get("python.batchRows") == told


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (800_000, "90% of the tasks' run time is spent in Python, which unpacks the rows of a DataFrame"),
        (600_000, "90% of the tasks' run time is spent in Python functions of an RDD"),
        (0, "90% of the tasks' run time is spent in Python functions of an RDD"),
    ],
    ids=["quick for each row", "so long for each row that functions take it", "nobody has counted the rows"],
)
def test_python_that_unpacks_a_list(rows: int, said: str) -> None:
    """Functions of RDDs that the program makes DataFrames of have the same RDDs, and take longer."""
    evidence = {OF_OBJECTS: True, "pythonTimeMs": 360 * S}
    sentence = "90% of the tasks' run time is spent in Python functions of an RDD"
    issue = Issue("python", "python", None, None, sentence, "a service", evidence=evidence, share_ms=90 * S)
    scan = Plan()(0, "Project [a#1]", 0)(1, "Scan ExistingRDD[a#1]", 0, rows=rows).root()
    explained = of_functions(issue, list(scan.walk()))
    is_unpacked = "unpacks" in said
    assert explained.sentence.startswith(said)
    assert (explained.evidence.get(OF_OBJECTS), explained.advice != "a service") == (
        is_unpacked or None,
        is_unpacked,
    )


def test_an_rdd_that_is_grouped_by_key() -> None:
    """Its stage says so; rows of RDDs go to Python in other batches."""
    of_rdd = [{"Name": "PythonRDD"}, {"Name": "SQLExecutionRDD"}]
    event = in_python("10", Stage_Name="groupByKey at a.py:1", RDD_Info=of_rdd)
    assert event.attributes["advice"].startswith("groupByKey moves every value")
    assert "python.batchRows" not in event.attributes


@pytest.mark.parametrize(
    ("parents", "told"),
    [
        ({0: "groupByKey at a.py:43"}, "; groupByKey at a.py:43 divides the rows"),
        ({0: "groupByKey at a.py:43", 1: "groupByKey at a.py:47"}, ""),
        ({0: "rdd at A.scala:5"}, ""),
    ],
    ids=["one shuffle", "several", "of nobody's code"],
)
def test_what_divides_the_rows_of_an_rdd(parents: dict[int, str], told: str) -> None:
    """The stage of the long task has the name of the last action only."""
    records = [r.job_start(10, 0, (*parents, 5))]
    for number, name in parents.items():
        before = list(stage(20, [S] * 4, number, lasted_ms=2 * S))
        for record in before:
            if "Stage Info" in record:
                record["Stage Info"]["Stage Name"] = name
        records += before
    skewed = list(stage(3 * S, TAIL, 5))
    for record in skewed:
        if "Task Statistics" in record:
            record["Task Statistics"] = statistics(TAIL, [900 << 20, *[100 << 20] * 3])
        if "Stage Info" in record:
            record["Stage Info"].update({"Parent IDs": list(parents), "RDD Info": [{"Name": "PythonRDD"}]})
    feed = Feed()(r.application_start(), r.executor("Added", 0), *records, *skewed, r.job_end(130 * S))

    (event,) = (event for event in issues(feed) if event.attributes["issue"] == "skew")
    assert str(event.attributes["summary"]).endswith(f"the median 10.1 s{told}")
    assert "skewJoin" not in str(event.attributes["advice"])


@pytest.mark.parametrize("source", ["ParallelCollectionRDD", "HadoopRDD"])
def test_an_rdd_of_objects_that_the_driver_has_sent(source: str) -> None:
    of_rdd = [
        {"RDD ID": 0, "Name": source},
        {"RDD ID": 1, "Name": "PythonRDD", "Parent IDs": [0]},
        {"RDD ID": 2, "Callsite": "applySchemaToPythonRDD at a.java:0", "Parent IDs": [1]},
    ]
    event = in_python("10", RDD_Info=of_rdd)
    assert event.attributes.get(OF_OBJECTS) == (True if source == "ParallelCollectionRDD" else None)


def issues(feed: Feed) -> list[Event]:
    return seen(feed.end(), "PerformanceIssueEvent")


def test_of_a_job() -> None:
    """Told at its end, with what it cost of it; and counted."""
    feed = Feed()(r.application_start(), r.executor("Added", 0), *job(10, TAIL))
    assert feed.gauge("app.issue.straggler.issues") == 1
    assert feed.gauge("app.lost.straggler.lostTime") == LOST_MS
    (event,) = issues(feed)

    assert event.time_ms == T0 + 10 + 130 * S
    assert event.severity.name == "WARN"
    assert event.attributes["issue"] == "straggler"
    assert (event.attributes["lostMs"], event.attributes["durationMs"]) == (LOST_MS, 130 * S)
    assert (event.attributes["job_id"], event.all_attributes["stage_id"]) == ("0", "0")
    assert event.body.startswith("stage 0.0 (count at a.py:1): task 0 on executor 1 takes 1 min 30 s")
    assert event.body.endswith("that costs 1 min 20 s, 61.45 % of job 0")


def test_a_short_job_that_ends_with_a_long_one_has_lost_its_own_time() -> None:
    """What the long one lost, it lost at its beginning: the time of the short one is free."""
    records = [
        r.job_start(0, 0, (0,)),
        *stage(0, TAIL, 0, 120 * S),
        r.job_start(900 * S, 1, (1,)),
        *stage(900 * S, TAIL, 1, 100 * S),
        r.job_end(1_000 * S, 0),
        r.job_end(1_000 * S, 1),
    ]
    feed = Feed()(r.application_start(), r.executor("Added", 0), *records, r.application_end(1_001 * S))
    tails = [event.attributes["lostMs"] for event in issues(feed) if event.attributes["issue"] == "straggler"]
    assert tails == [LOST_MS, LOST_MS]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 100), st.integers(0, 3)), max_size=6))
def test_what_issues_cost_is_no_more_than_the_run_took(jobs: list[tuple[int, int, int]]) -> None:
    """Jobs that run beside each other, each with a straggler, much garbage or many retries, or all of them."""
    records = []
    for number, (begun_s, long_s, wrong) in enumerate(jobs):
        tail = [long_s * S, S, S, S] if wrong & 1 else [long_s * S] * 4
        begun_ms, lasted_ms = begun_s * S, long_s * S
        of_job = [
            r.job_start(begun_ms, number, (number,)),
            *stage(begun_ms, tail, number, lasted_ms),
            r.job_end(begun_ms + lasted_ms, number),
        ]
        if wrong & 2:
            bad = {"JVM GC Time": [0, 0, 0, sum(tail) // 2], "Failed": 9, "Failed Time": lasted_ms}
            of_job[2]["Task Statistics"] |= bad
        records += [(begun_ms, record) for record in of_job[:2]]
        records += [(begun_ms + lasted_ms, record) for record in of_job[2:]]
    records.sort(key=itemgetter(0))
    feed = Feed(extra={"spark.events.issue.min-duration": "1s"})(
        r.application_start(), r.executor("Added", 0)
    )
    end_ms = max((time_ms for time_ms, _ in records), default=0)
    told = issues(feed(*(record for _, record in records), r.application_end(end_ms)))
    latest = by_cost(issue_of(event.attributes) for event in told)
    assert sum(issue.lost_ms or 0 for issue in latest) <= end_ms
    assert told or not any(long_s > 40 and wrong & 2 for _, long_s, wrong in jobs)


def test_what_costs_little_of_a_long_job_is_not_told() -> None:
    """80 s are less than 5 % of half an hour."""
    assert issues(Feed()(r.application_start(), *job(10, TAIL, lasted_ms=1_800 * S))) == []


def test_what_costs_less_than_half_a_minute_is_not_told() -> None:
    tail = [35 * S, 6 * S, 6 * S, 6 * S]
    assert issues(Feed()(r.application_start(), *job(10, tail, lasted_ms=40 * S))) == []
    low = {"spark.events.issue.min-duration": "20s"}
    assert len(issues(Feed(extra=low)(r.application_start(), *job(10, tail, lasted_ms=40 * S)))) == 1


def test_a_kind_that_nobody_wants() -> None:
    feed = Feed(extra={"spark.events.issue.kinds": "skew,gc"})
    assert issues(feed(r.application_start(), *job(10, TAIL))) == []


def test_a_task_that_lags_is_told_while_there_is_time() -> None:
    """Once; at the end comes what a replay says, too, and that is counted."""
    lagging = {
        "Index": 0,
        "Executor ID": "1",
        "Host": "a",
        "Running For": 50 * S,
        "Median Run Time": 10 * S,
    }
    live = Feed()(r.application_start(), *job(10, TAIL, **lagging))
    assert live.gauge("app.issue.straggler.issues") == 1
    assert live.gauge("app.lost.straggler.lostTime") == LOST_MS
    warning, verdict = issues(live)

    assert warning.attributes["live"] is True
    assert warning.time_ms == T0 + 10 + 50 * S
    assert [verdict] == issues(Feed()(r.application_start(), *job(10, TAIL)))


def test_micro_batches_add_up() -> None:
    """No batch loses half a minute; the query does, which is told when it is true, doubled, and at the end."""
    tail = [8 * S, 1 * S, 1 * S, 1 * S]
    feed = Feed()(r.application_start(), r.query_started(0))
    for batch in range(10):
        feed(*job(batch * 20 * S, tail, 10 * S, job=0, group="run-1", stage_id=batch))
    assert feed.gauge("app.issue.straggler.issues") == 1
    first, doubled, last = issues(feed(r.terminated()))

    assert first.attributes["job_kind"] == "query"
    assert first.variables["query_name"] == "orders"
    assert (first.attributes["lostMs"], first.attributes["stagesSeen"]) == (35 * S, 5)
    assert "in 5 stages, the latest" in first.body
    assert doubled.attributes["lostMs"] == last.attributes["lostMs"] == 70 * S
    assert [event.attributes["issueState"] for event in (first, doubled, last)] == ["OPEN", "OPEN", "CLOSED"]
    assert len({event.attributes["issueId"] for event in (first, doubled, last)}) == 1
    assert len({event.id for event in (first, doubled, last)}) == 3
    assert feed.gauge("app.lost.straggler.lostTime") == 70 * S


@pytest.mark.parametrize(
    ("does", "is_said"), [("Listing leaf files and directories for 6000 paths", True), ("", False)]
)
def test_micro_batches_that_list_their_files(does: str, is_said: bool) -> None:
    """No partitions of the query's own make those tasks fewer, and each batch lists other files."""
    feed = Feed(extra={"spark.events.issue.min-duration": "1s"})(r.application_start(), r.query_started(0))
    description = f"{does}:<br/>s3a://lake/clicks/a.json, ..."
    for batch in range(4):
        begins, *others = job(batch * 20 * S, [1] * 6_000, 10 * S, job=batch, group="run-1", stage_id=batch)
        begins["Properties"]["spark.job.description"] = description
        feed(begins, *others)
    feed(r.terminated(), r.application_end(100 * S))
    (told,) = (each.attributes for each in issues(feed) if each.attributes["issueState"] == "CLOSED")
    assert told["issue"] == "task-count"
    assert ("parallelPartitionDiscovery" in str(told["advice"])) is is_said


@pytest.mark.parametrize(
    ("does", "rdd", "advice"),
    [
        ("Listing leaf files and directories for 400 paths", "MapPartitionsRDD", "Spark lists the files"),
        ("", "Delta Table State #0 - file:/lake/clicks/_delta_log", "Delta puts the state"),
        ("", "MapPartitionsRDD", "Use fewer partitions"),
    ],
    ids=["of files", "of a table of Delta", "of rows"],
)
def test_short_tasks_of_a_micro_batch(does: str, rdd: str, advice: str) -> None:
    """They are fewer than those for which a stage is told alone."""
    begins, *others = job(0, [1] * 400, 10 * S, group="run-1")
    begins["Properties"]["spark.job.description"] = f"{does}:<br/>s3a://lake/clicks/a.json, ..."
    for record in others:
        if measured := record.get("Task Statistics"):
            measured |= {"Scheduler Delay": [20, 20, 20, 20 * 400], "Last Finish": 3 * S}
        if "Stage Info" in record:
            record["Stage Info"]["RDD Info"] = [{"RDD ID": 1, "Name": rdd}]
    start = (r.application_start(), r.executor("Added", 0), r.query_started(0))
    feed = Feed(extra={"spark.events.issue.min-duration": "1s"})(*start, begins, *others)
    feed(r.terminated(), r.application_end(100 * S))
    (told,) = (each.attributes for each in issues(feed) if each.attributes["issueState"] == "CLOSED")
    assert told["issue"] == "task-count"
    assert str(told["advice"]).startswith(advice)


def test_statements_are_told_only_where_that_is_allowed() -> None:
    sql = "SELECT secret FROM t " * 30
    records = [
        r.execution("Start", 5, 7, description=sql, rootExecutionId=7),
        r.job_start(10, spark__sql__execution__id="7"),
        *stage(10, TAIL),
        r.job_end(130 * S),
        r.execution("End", 131 * S, 7),
    ]
    (silent,) = issues(Feed()(r.application_start(), *records))
    (told,) = issues(
        Feed(extra={"spark.events.issue.include-description": "true"})(r.application_start(), *records)
    )

    assert silent.attributes["sql_execution_id"] == told.attributes["sql_execution_id"] == "7"
    assert "description" not in silent.attributes
    assert told.attributes["description"] == sql[:200]


@pytest.mark.parametrize("job_ends", [True, False])
@pytest.mark.parametrize("last", ["SparkEventsLogRead", "SparkListenerApplicationEnd"])
def test_stages_of_what_runs_when_nothing_more_comes(last: str, job_ends: bool) -> None:
    """At the end of a log without one, as at its own end."""
    feed = Feed()(
        r.application_start(),
        r.execution("Start", 5, 7, description="q", rootExecutionId=7),
        r.job_start(10, spark__sql__execution__id="7"),
        *stage(10, TAIL),
    )
    if job_ends:
        feed(r.job_end(130 * S))
    feed({"Event": last, "Timestamp": T0 + 131 * S})
    assert [event.attributes["issue"] for event in issues(feed)] == ["straggler"]


def test_a_statement_is_no_name_of_an_execution() -> None:
    """What its plan says is told under a name that is not a statement's text; a call site may be told."""
    plan = [
        [0, "BroadcastNestedLoopJoin", "BroadcastNestedLoopJoin BuildRight, Cross", {}, [[0, 1]]],
        [1, "Range", "Range (0, 1000)", {}, [[0, 2]]],
        [1, "Range", "Range (0, 2000)", {}, [[0, 3]]],
    ]
    rows = [{"ID": number, "Name": "rows", "Value": "1000", "Metadata": "sql"} for number in (1, 2, 3)]

    def subject(description: str) -> str:
        ends = r.stage("Completed", 121 * S, 0)
        ends["Stage Info"] |= {
            "Submission Time": T0 + 10,
            "Completion Time": T0 + 121 * S,
            "Accumulables": rows,
        }
        feed = Feed()(
            r.application_start(),
            r.execution("Start", 5, 7, description=description, rootExecutionId=7),
            r.job_start(10, spark__sql__execution__id="7"),
            r.stage("Submitted", 10, 0),
            ends,
            r.job_end(130 * S),
            r.execution("End", 131 * S, 7, Plans=[plan]),
        )
        (event,) = issues(feed)
        assert event.attributes["issue"] == "cross-join"
        assert "secret" not in f"{event.body} {event.attributes}"
        return str(event.attributes["subject"])

    assert subject("SELECT secret FROM t") == "SQL execution 7"
    assert subject("collect at /jobs/app.py:3") == "SQL execution 7 (collect at /jobs/app.py:3)"


def test_a_place_that_the_live_driver_has_seen() -> None:
    """A replay does not know it, and says the same but for its attributes."""
    call = {"file": "/jobs/app.py", "line": 9, "function": "main", "atMs": T0 + 10}
    for known in (None, call):
        begins = r.job_start(10)
        if known:
            begins["SparkEventsPythonCall"] = known
        records = list(stage(10, TAIL))
        for record in records:
            if "Stage Info" in record:
                record["Stage Info"]["Stage Name"] = "save at NativeMethodAccessorImpl.java:0"
        (event,) = issues(Feed()(r.application_start(), begins, *records, r.job_end(130 * S)))
        assert event.attributes["subject"] == "stage 0.0 (save)"
        about = issue_of(event.all_attributes).about
        assert about == ("stage 0.0 (save), app.py:9" if known else "stage 0.0 (save)")


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"spark.job.tags": "a,broadcast exchange (runId 7)"},
        {"spark.job.description": "broadcast exchange (runId 7)"},
    ],
    ids=["a result", "a broadcast", "a broadcast of Spark 3"],
)
def test_what_spark_brings_to_the_driver_for_a_broadcast_is_no_result(properties: dict[str, str]) -> None:
    begins, ends = r.job_start(10), r.stage("Completed", 20 * S, 0)
    begins["Properties"] = properties
    size = {"Name": "internal.metrics.resultSize", "Value": 400 << 20}
    ends["Stage Info"] |= {"Accumulables": [size], "Completion Time": T0 + 20 * S}
    feed = Feed(extra={"spark.events.issue.idle-cores.min-duration": "10min"})
    feed(r.application_start(), r.executor("Added", 0), begins, r.stage("Submitted", 10, 0), ends)
    feed(r.job_end(20 * S), *job(100 * S, [S], 130 * S, job=1, stage_id=1), r.application_end(300 * S))
    told = {event.attributes["issue"] for event in issues(feed)}
    assert told == (set() if properties else {"collect"})


def test_what_was_large_once_and_is_small_in_the_whole_run() -> None:
    """It was told while the driver alone had worked for most of the time; in the end, ``why`` leaves it out."""
    feed = Feed(extra={"spark.events.issue.idle-cores.min-duration": "1m"})
    feed(r.application_start(), r.executor("Added", 0), *stage(0, [S], 0, S))
    feed(*stage(301 * S, [S], 1, S), *stage(302 * S, [S], 2, 3_600 * S), r.application_end(3_902 * S))
    of_driver = [event.attributes for event in issues(feed) if event.attributes["issue"] == "idle-cores"]
    assert [attributes.get("outgrown") for attributes in of_driver] == [None, True]
    assert by_cost(map(issue_of, of_driver)) == []
    assert len(by_cost(map(issue_of, of_driver[:1]))) == 1


_ARROW = "spark.sql.execution.arrow.pyspark.enabled"


@pytest.mark.parametrize(
    ("conf", "properties", "version", "is_advised"),
    [
        ({}, {}, "4.1.4", True),
        ({}, {}, "4.2.0", False),
        ({_ARROW: "true"}, {}, "3.5.9", False),
        ({_ARROW: "false"}, {}, "4.3.0", True),
        ({_ARROW: "false"}, {_ARROW: "true"}, "3.5.9", False),
    ],
)
def test_arrow_is_advised_by_settings(
    conf: dict[str, str], properties: dict[str, str], version: str, is_advised: bool
) -> None:
    """Those of the application, those of the session in a job's properties, and Spark's default."""
    environment = {
        "Event": "SparkListenerEnvironmentUpdate",
        "Spark Properties": {"spark.master": "yarn", **conf},
    }
    begins, ends = r.job_start(10), r.stage("Completed", 20 * S, 0)
    begins["Properties"] = properties
    for record in (begins["Stage Infos"][0], ends["Stage Info"]):
        record["Stage Name"] = "toPandas at a.py:4"
    size = {"Name": "internal.metrics.resultSize", "Value": 2 << 30}
    ends["Stage Info"] |= {"Accumulables": [size], "Completion Time": T0 + 20 * S}
    feed = Feed(extra={"spark.events.issue.idle-cores.min-duration": "1h"})
    feed({"Event": "SparkListenerLogStart", "Spark Version": version}, r.application_start(), environment)
    feed(r.executor("Added", 0), begins, r.stage("Submitted", 10, 0), ends, r.job_end(20 * S))
    feed(*job(200 * S, [S], 230 * S, job=1, stage_id=1), r.application_end(300 * S))
    event = next(event for event in issues(feed) if event.attributes["issue"] == "collect")
    assert (_ARROW in str(event.attributes["advice"])) is is_advised


def test_a_stage_without_a_job() -> None:
    """One that ran at attach: its own time counts."""
    (event,) = issues(Feed()(r.application_start(), *stage(10, TAIL)))
    assert event.attributes["durationMs"] == 120 * S
    assert "of the stage" in event.body


def test_of_an_application() -> None:
    """Memory that nobody used, and cores that had nothing to do; each once."""
    peaks = {"Event": "SparkEventsExecutorMetrics", "Task Peaks": {"1": {"JVMHeapMemory": 1 << 30}}}
    conf = {"spark.master": "yarn", "spark.executor.memory": "8g"}
    environment = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": conf}
    feed = Feed()(r.application_start(), environment, r.executor("Added", 0))
    feed(*stage(0, [S], 0, S), peaks, *stage(1_800 * S, [S], 1, S), *stage(1_900 * S, [S], 2, S))
    feed(r.application_end(3_600 * S))
    by_kind = {event.attributes["issue"]: event for event in issues(feed)}

    assert set(by_kind) == {"idle-cores", "memory"}
    assert by_kind["idle-cores"].time_ms == T0 + 3_600 * S
    assert by_kind["idle-cores"].attributes["lostMs"] == 3_597 * S
    assert by_kind["memory"].attributes["lostBytes"] == (8 << 30) - (5 << 28)
    assert {event.attributes["job_kind"] for event in by_kind.values()} == {"application"}


@pytest.mark.parametrize(
    ("start", "kinds"),
    [
        ({}, {"idle-cores"}),
        ({"SparkEventsInteractive": False}, {"idle-cores"}),
        ({"SparkEventsInteractive": True}, set()),
        ({"App Name": "PySparkShell"}, set()),
    ],
)
def test_who_types_a_program_loses_nothing_by_thinking(start: dict[str, Any], kinds: set[str]) -> None:
    feed = Feed()(r.application_start(**start), r.executor("Added", 0))
    feed(*stage(0, [S], 0, S), *stage(1_800 * S, [S], 1, S), r.application_end(3_600 * S))
    assert {event.attributes["issue"] for event in issues(feed)} == kinds


def test_what_ends_is_forgotten() -> None:
    feed = Feed()(r.application_start(), r.query_started(0))
    for number in range(50):
        feed(*job(number * 200 * S, TAIL, job=0, stage_id=number))
    feed(r.terminated())
    handlers = feed.listeners._dispatcher._handlers["SparkListenerJobEnd"]
    bound = [getattr(handler, "__self__", None) for handler in handlers]
    (listener,) = [each for each in bound if isinstance(each, IssueListener)]

    assert not listener._jobs
    assert not listener._stages
    assert "run-1" not in listener._queries


def sql(number: int, begun_ms: int, description: str, *texts: str, rows: int = 9) -> list[dict[str, Any]]:
    """Return the records of an SQL execution of 40 s; each node of its plan reads from the next one."""
    plan = Plan()
    for depth, text in enumerate(texts):
        plan(depth, text, number, **({"rows": rows} if rows or not depth else {}))
    start = {**r.batch_begins(begun_ms, number), "description": description}
    job = r.job_start(begun_ms, number, (number,))
    job["Properties"] = {"spark.sql.execution.id": str(number)}
    completed = r.stage("Completed", begun_ms + 40 * S, number)
    completed["Stage Info"] |= {
        "Submission Time": T0 + begun_ms,
        "Accumulables": [
            {"ID": accumulator, "Value": value.value, "Metadata": "sql"}
            for accumulator, value in plan.measured.items()
        ],
    }
    end = {
        "Event": start["Event"].replace("Start", "End"),
        "executionId": number,
        "time": T0 + begun_ms + 40 * S,
        "Plans": [plan.nodes],
        "Driver Metrics": {},
    }
    return [
        start,
        job,
        r.stage("Submitted", begun_ms, number),
        completed,
        r.job_end(begun_ms + 40 * S, number),
        end,
    ]


SHUFFLED_MS = 419
"""What a shuffle of 200 MiB would take four cores at least, by their bytes."""


def lost_with_broadcast(*records: dict[str, Any], number: int) -> dict[str, int]:
    """Return what an application loses, by kind, in which an SQL execution builds a broadcast for 4 min."""
    small, large = "LocalTableScan [b#2]", "BroadcastExchange HashedRelationBroadcastMode"
    plan = Plan()(0, "BroadcastHashJoin [a#1], [b#2], Inner", 2)(1, "Scan parquet db.calls", 2, rows=9)
    plan(1, large, None, rows=9, data_size=200 << 20, time_to_build=240 * S)(2, small)
    end = r.execution("End", 600 * S, number, Plans=[plan.nodes], **{"Driver Metrics": plan.driver})
    begin = [r.application_start(), r.executor("Added", 0), *stage(0, [S], 0, S)]
    feed = Feed(extra={"spark.events.issue.idle-cores.min-duration": "1m"})(*begin, *records, end)
    feed(r.execution("End", 600 * S, 7), r.application_end(600 * S))
    return {str(each.attributes["issue"]): int(str(each.attributes["lostMs"])) for each in issues(feed)}


def test_what_the_driver_does_for_a_broadcast_is_told_once() -> None:
    """The execution has planned for 200 s before, a minute of it as the first one; nobody else tells that."""
    outer, own = r.execution("Start", S, 7), r.execution("Start", 201 * S, 8)
    found = lost_with_broadcast(
        outer, *stage(201 * S, [S], 1, S), own, *stage(442 * S, [S], 2, 158 * S), number=8
    )
    assert found == {"idle-cores": 140 * S, "large-broadcast": 240 * S - SHUFFLED_MS}


def test_what_the_driver_does_for_a_micro_batch_is_no_time_of_another_execution() -> None:
    """While a query runs, no time counts as the driver's; of what the first execution takes, a minute is usual."""
    query, batch = r.query_started(300 * S), r.batch_begins(300 * S, 8)
    found = lost_with_broadcast(
        r.execution("Start", S, 7), query, batch, *stage(301 * S, [S], 2, 299 * S), number=8
    )
    assert found == {"idle-cores": 239 * S, "large-broadcast": 240 * S - SHUFFLED_MS}


def of_growing_batches(kind: str, **started: Any) -> dict[str, Any] | None:
    """Return what is told of a query whose micro-batches read more rows and take longer each time."""
    feed, now_ms, took_ms = Feed()(r.application_start(), r.query_started(0, **started)), S, 2 * S
    for number in range(7):
        took = {"triggerExecution": took_ms, "latestOffset": took_ms // 2}
        source = {"description": "FileStreamSource[s3a://lake/clicks]", "numInputRows": took_ms}
        feed(r.progress(now_ms, number, durationMs=took, sources=[source]))
        now_ms, took_ms = now_ms + took_ms, took_ms * 3 // 2
    told = [event for event in issues(feed(r.terminated())) if event.attributes["issue"] == kind]
    return dict(told[-1].all_attributes) if told else None


def test_a_query_whose_micro_batches_grow() -> None:
    """What it reads is named; one that ends by itself reads what was there."""
    found = of_growing_batches("stream-behind")
    assert found is not None
    assert "s3a://lake/clicks" in found["summary"]
    assert of_growing_batches("stream-behind", bounded=True) is None


def test_a_source_that_takes_half_of_each_micro_batch() -> None:
    found = of_growing_batches("idle-cores")
    assert found is not None
    assert "its source s3a://lake/clicks takes 32.2 s" in found["summary"]


def code_in_batches(*code_s: int, result: int = 0, **properties: str) -> dict[str, Any] | None:
    """Return what is told of code that takes so long in each micro-batch, besides a job of 10 s.

    Args:
        result: how many bytes that job sends to the driver.
        properties: its own.
    """
    feed, now_ms = Feed()(r.application_start(), r.executor("Added", 0), r.query_started(0)), S
    for number, each_s in enumerate(code_s):
        lasted_ms = (10 + each_s) * S
        begun = r.batch_begins(now_ms, number)
        end = r.execution("End", now_ms + lasted_ms, int(begun["executionId"]))
        batch_job = list(job(now_ms, [S], 10 * S, job=0, group="run-1", stage_id=number))
        for record in batch_job:
            if "Stage Info" in record and result:
                sent = {"Name": "internal.metrics.resultSize", "Value": result}
                record["Stage Info"]["Accumulables"] = [sent]
            if "Properties" in record:
                record["Properties"] |= properties
        sink = {"description": "ForeachBatchSink"}
        feed(begun, *batch_job, end, r.progress(now_ms, number, lasted_ms, sink=sink))
        now_ms += lasted_ms
    told = [event.attributes for event in issues(feed(r.terminated()))]
    of_code = [attributes for attributes in told if attributes["issue"] == "foreach-batch"]
    return dict(of_code[-1]) if of_code else None


@pytest.mark.parametrize(
    ("code_s", "lost_ms"),
    [((40, 40, 40), 120 * S), ((40,), 40 * S), ((40, 1, 1, 1), None), ((40, 0), None)],
    ids=["in each", "there is one only", "the first one loads classes", "the others have no code"],
)
def test_code_in_foreach_batch(code_s: tuple[int, ...], lost_ms: int | None) -> None:
    told = code_in_batches(*code_s)
    assert (told["lostMs"] if told else None) == lost_ms
    assert told is None or "foreachPartition of the batch" in str(told["advice"])


@pytest.mark.parametrize(
    ("result", "properties", "told"),
    [
        (40 << 20, {}, True),
        (900_000, {}, False),
        (40 << 20, {"spark.job.description": "broadcast exchange (runId 7)"}, False),
    ],
    ids=["large", "small", "of a broadcast"],
)
def test_rows_that_foreach_batch_brings_to_the_driver(
    result: int, properties: dict[str, str], told: bool
) -> None:
    found = code_in_batches(40, 40, result=result, **properties)
    assert found is not None
    assert ("which bring up to 40 MiB of rows to the driver each time" in str(found["summary"])) is told
    assert ("Instead of bringing rows there" in str(found["advice"])) is told
    assert ("foreachBatch.collectedBytes" in found) is told


def of_batches(kind: str, number: int, *actions: Plan, busy_ms: int = 5 * S) -> dict[str, Any] | None:
    """Return what is told of a query whose micro-batches of 10 s read a file each, with a stage of 5 s."""
    feed, now_ms = Feed()(r.application_start(), r.executor("Added", 0), r.query_started(0)), S
    read_file = {"Location": "InMemoryFileIndex(1 paths)[s3a://lake/clicks/part-0]"}
    source = {"description": "FileStreamSource[s3a://lake/clicks]", "numInputRows": 5}
    for batch in range(number):
        plans = [Plan()(0, "Scan json [a#1]", None, read_file, number_of_files_read=1), *actions]
        begun = r.batch_begins(now_ms, batch)
        start = r.job_start(now_ms, batch, (batch,), "run-1", spark__sql__execution__id=str(batch))
        first, *others = [*stage(now_ms, [busy_ms], batch, busy_ms)]
        others[-1]["Stage Info"]["Accumulables"] = [
            {"ID": accumulator, "Value": value.value, "Metadata": "sql"}
            for plan in actions
            for accumulator, value in plan.measured.items()
        ]
        of_driver = {key: value for plan in plans for key, value in plan.driver.items()}
        told = {"Plans": [plan.nodes for plan in plans], "Driver Metrics": of_driver, "Parts Time": 8 * S}
        end = r.execution("End", now_ms + 9 * S, batch, **told)
        sink = {"description": "ForeachBatchSink" if actions else "NoopTable"}
        progress = r.progress(now_ms, batch, 10 * S, sources=[source], sink=sink)
        feed(begun, start, first, *others, r.job_end(now_ms + busy_ms, batch), end, progress)
        now_ms += 10 * S
    found = [event for event in issues(feed(r.terminated())) if event.attributes["issue"] == kind]
    return dict(found[-1].all_attributes) if found else None


def test_a_limit_that_makes_small_micro_batches() -> None:
    found = of_batches("small-batches", 20)
    assert found is not None
    assert (found["lostMs"], found["durationMs"]) == (19 * 5 * S, 20 * 10 * S)
    assert of_batches("small-batches", 19) is None


def copies() -> Plan:
    """Return an action that puts ten rows into a table of 990, and writes all of them."""
    into = "Execute InsertIntoHadoopFsRelationCommand file:/lake/t, false, Parquet, [], Overwrite, [a]"
    table = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/t]"}
    action = Plan()(0, into, 0, rows=1_000)(1, "Union")(2, "Scan parquet [a#2]", 0, table, rows=990)
    return action(2, "Scan ExistingRDD[a#3]", 0, rows=10)


def test_code_in_foreach_batch_that_writes_a_table_again() -> None:
    """What it costs is a part of the time of all micro-batches, not of their jobs alone."""
    found = of_batches("rewrite-whole-files", 10, copies())
    assert found is not None
    assert (found["lostMs"], found["rewrite.batches"]) == (10 * 7_920, 10)
    assert found["durationMs"] > 10 * 5 * S
    # What the driver does for that is told already, and is no fixed cost of small micro-batches.
    assert of_batches("small-batches", 20, copies(), busy_ms=S) is None
    assert of_batches("small-batches", 20, Plan()(0, "CollectLimit 9"), busy_ms=S) is not None


def test_functions_of_a_micro_batch_that_two_actions_compute() -> None:
    """What they take for the second one is lost to that, and what they take for the first one is theirs."""
    feed, now_ms = Feed()(r.application_start(), r.executor("Added", 0), r.query_started(0)), S
    of_calls, of_rows = PLAN_METRICS.index(IN_PYTHON), PLAN_METRICS.index(ROWS)
    for batch in range(10):
        calls = 10 * batch
        own = [
            [0, "Project", "Project [a#1]", {}, []],
            [1, "ArrowEvalPython", "ArrowEvalPython [f(a#0)#1]", {}, [[of_calls, calls]]],
            [2, "MicroBatchScan", "MicroBatchScan [a#0]", {}, []],
        ]
        actions, records = [], []
        for number in (2 * batch, 2 * batch + 1):
            scan = [0, "Scan ExistingRDD", "Scan ExistingRDD[a#2]", {}, [[of_rows, number + 1_000]]]
            actions.append([scan])
            begun_ms, took_ms = now_ms + 5 * S * (number % 2), 4 * S
            first, *others = stage(begun_ms, [took_ms] * 4, number, took_ms)
            measured = [
                {"ID": calls, "Name": IN_PYTHON, "Value": 4 * took_ms * (1 + number % 2), "Metadata": "sql"},
                {"ID": number + 1_000, "Name": ROWS, "Value": 9, "Metadata": "sql"},
            ]
            others[-1]["Stage Info"]["Accumulables"] = measured
            start = r.job_start(begun_ms, number, (number,), "run-1", spark__sql__execution__id=str(batch))
            records += [start, first, *others, r.job_end(begun_ms + took_ms, number)]
        end = r.execution("End", now_ms + 9 * S, batch, Plans=[own, *actions])
        feed(r.batch_begins(now_ms, batch), *records, end, r.progress(now_ms, batch, 10 * S))
        now_ms += 10 * S
    told = {str(event.attributes["issue"]): event.attributes for event in issues(feed(r.terminated()))}
    assert {kind: told[kind]["lostMs"] for kind in ("python", "recomputation")} == {
        "python": 40 * S,
        "recomputation": 40 * S,
    }
    assert str(told["python"]["summary"]).startswith("in 10 stages, the latest: ")
    assert str(told["recomputation"]["summary"]).startswith("in 10 micro-batches, the latest: code in")


FILLS = ("InMemoryTableScan [a#1]", "Project [slow(b#2) AS a#1]", "Scan parquet db.t")


@pytest.mark.parametrize("is_read", [False, True], ids=["nothing reads it", "a micro-batch reads it"])
def test_a_cache_that_only_micro_batches_read(is_read: bool) -> None:
    """A stream is joined with a table that was cached and counted before."""
    batch = "orders\nid = query-1\nrunId = run-1\nbatch = 0"
    reads = sql(1, 60 * S, batch, "Project [a#1]", *FILLS) if is_read else []
    feed = Feed()(
        r.application_start(),
        r.executor("Added", 0),
        *sql(0, 0, "count at a.py:3", *FILLS),
        r.query_started(50 * S),
        *reads,
        r.application_end(200 * S),
    )
    told = {event.attributes["issue"] for event in issues(feed)}
    assert ("cache-never-read" in told) is not is_read


@pytest.mark.parametrize("when", ["before", "at", "never"])
def test_a_cache_that_a_job_was_about_to_read(when: str) -> None:
    """It failed, or the application ended while it ran: what it would have read, nobody knows."""
    failed = r.job_end(70 * S, 9, "no")
    begun = r.job_start(60 * S, 9, (99,))
    more = {"before": [begun, failed], "at": [begun], "never": []}[when]
    told = issues(
        Feed()(
            r.application_start(),
            r.executor("Added", 0),
            *sql(0, 0, "count at a.py:3", *FILLS),
            *more,
            r.application_end(200 * S),
        )
    )
    assert ("cache-never-read" in {event.attributes["issue"] for event in told}) is (when == "never")

"""Issues of stages that belong to no SQL execution, told as what the whole application loses."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.api import Event
from spark_events.diagnosis.times.other_work import OtherWork
from tests.support import spark_records as r
from tests.support.measured_tasks import statistics
from tests.support.spark_records import T0, Feed, seen

S = 1_000
LOW = {
    "spark.events.issue.min-duration": "1s",
    "spark.events.issue.task-count.max-task-duration": "1s",
    "spark.events.issue.idle-cores.min-duration": "1h",
}


def job(
    number: int,
    begun_ms: int,
    run_ms: list[int],
    name: str,
    rdds: list[dict[str, Any]] | None = None,
    execution: int | None = None,
    group: str | None = None,
    **measured: Any,
) -> list[dict[str, Any]]:
    """Return the records of a job of one stage, whose tasks all begin at its start."""
    ended_ms = begun_ms + max(run_ms)
    more = {} if execution is None else {"spark__sql__execution__id": str(execution)}
    submitted, completed = r.stage("Submitted", begun_ms, number), r.stage("Completed", ended_ms, number)
    for record in (submitted, completed):
        record["Stage Info"] |= {
            "Stage Name": name,
            "Number of Tasks": len(run_ms),
            "RDD Info": rdds or [],
            "Submission Time": T0 + begun_ms,
        }
    completed["Stage Info"]["Completion Time"] = T0 + ended_ms
    tasks = {**r.stage_tasks(ended_ms, None, 1), "Stage ID": number}
    tasks["Task Statistics"] = statistics(run_ms, **measured)
    return [
        r.job_start(begun_ms, number, (number,), group, **more),
        submitted,
        tasks,
        completed,
        r.job_end(ended_ms, number),
    ]


def told(*jobs: list[dict[str, Any]], cores: int = 4) -> dict[str, Event]:
    """Return what was told last of each issue, by its kind."""
    added = r.executor("Added", 0)
    added["Executor Info"]["Total Cores"] = cores
    records = [record for each in jobs for record in each]
    feed = Feed(extra=LOW)(r.application_start(), added, *records, r.application_end(200 * S))
    events = seen(feed.end(), "PerformanceIssueEvent")
    return {str(event.attributes["issue"]): event for event in events}


def test_partitions_that_are_fetched_one_by_one() -> None:
    """As one issue of the application; that each stage has too few tasks is the same, and is not told again."""
    name, rdds = "toLocalIterator at nightly.py:31", [{"RDD ID": 7, "Number of Partitions": 8}]
    found = told(*(job(number, number * 5 * S, [5 * S], name, rdds) for number in range(8)))
    assert set(found) == {"task-count"}
    assert found["task-count"].attributes["job_kind"] == "application"
    assert found["task-count"].attributes["lostMs"] == (40 - 10) * S
    assert name in found["task-count"].attributes["summary"]


def test_a_single_partition_that_is_fetched_is_a_stage_like_any() -> None:
    """Of ``coalesce(1).toLocalIterator()``: it has one task, and half of its time is garbage collection."""
    rdds = [{"RDD ID": 7, "Number of Partitions": 1}]
    gc = {"JVM_GC_Time": [30 * S] * 4}
    found = told(job(0, 0, [60 * S], "toLocalIterator at nightly.py:31", rdds, **gc))
    assert found["gc"].variables["stage_id"] == "0"
    assert "fewTasks" in found["task-count"].attributes


@pytest.mark.parametrize(
    ("tasks", "reason", "is_told"),
    [(3, "", True), (4, "", False), (4, "Job aborted", False), (3, "Job aborted", False)],
)
def test_tasks_that_do_not_succeed_are_tasks_as_well(tasks: int, reason: str, is_told: bool) -> None:
    """Three succeed, on four cores; of a stage that fails nobody knows what more partitions would have done."""
    records = job(0, 0, [80 * S] * 3, "count at nightly.py:31")
    for record in records:
        if info := record.get("Stage Info"):
            info["Number of Tasks"] = tasks
            if reason and "Completion Time" in info:
                info["Failure Reason"] = reason
    assert ("task-count" in told(records)) is is_told


@pytest.mark.parametrize(
    ("name", "rdds"),
    [
        ("toLocalIterator at nightly.py:31", [{"RDD ID": 7, "Number of Partitions": 8}]),
        ("csv at nightly.py:31", [{"RDD ID": 7, "Name": "FileScanRDD", "Scope": '{"name":"Scan text "}'}]),
    ],
    ids=["the first of many partitions", "files for their schema"],
)
def test_what_is_told_of_a_stage_hides_no_other_issue(name: str, rdds: list[dict[str, Any]]) -> None:
    """But that it has too few tasks, which is meant to be so; and its time is lost only once."""
    spilled = {"Disk_Bytes_Spilled": [2 << 30] * 4}
    found = told(job(0, 0, [60 * S], name, rdds, **spilled))
    assert found["spill"].variables["stage_id"] == "0"
    assert "task-count" not in found


def test_what_files_cost_that_are_read_for_their_schema_is_not_lost_to_garbage_collection_as_well() -> None:
    found = told(job(0, 0, [60 * S] * 4, "csv at nightly.py:3", TEXT, JVM_GC_Time=[30 * S] * 4))
    assert found["full-scan"].attributes["lostMs"] == 60 * S
    assert "gc" not in found


def listing(number: int, begun_ms: int, day: int, **properties: str) -> list[dict[str, Any]]:
    """Return a job of 10 s that lists the folders of a day."""
    records = job(number, begun_ms, [10 * S] * 4, "parquet at NativeMethodAccessorImpl.java:0", FOOTERS)
    path = f"hdfs://lake/{'sales' * 40}/day={day}/shop=5"
    description = f"Listing leaf files and directories for 200 paths:<br/>{path}, ..."
    records[0]["Properties"] |= {"spark.job.description": description, **properties}
    return records


FOOTERS = [{"RDD ID": 1, "Name": "ParallelCollectionRDD"}, {"RDD ID": 2, "Name": "MapPartitionsRDD"}]


def test_files_that_are_listed_for_each_read() -> None:
    """However long their path; and no stage of these has anything else wrong with it but what is not that."""
    reads = [listing(10 * n + day, (40 * n + 11 * day) * S, day) for n in range(3) for day in (0, 1, 2)]
    found = told(*reads, cores=8)
    assert set(found) == {"recomputation"}
    assert found["recomputation"].attributes["lostMs"] == 2 * (3 * 10 + 2) * S
    assert found["recomputation"].attributes["listing.jobs"] == 9
    assert "lists" not in str(found["recomputation"].attributes["advice"])


def test_a_query_lists_what_has_arrived() -> None:
    """A micro-batch after the other, by a file source."""
    group = {"spark.jobGroup.id": "run-1"}
    batches = [listing(n, 20 * n * S, 0, **group) for n in range(5)]
    assert "recomputation" in told(*batches)
    assert "recomputation" not in told([r.query_started(0)], *batches)


def test_what_ran_beside_a_stage_is_asked_only_of_those_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a look at all stages that have ended."""
    asked: list[object] = []
    monkeypatch.setattr(OtherWork, "beside_ms", lambda *stage: asked.append(stage) or 0)
    alone = [{"RDD ID": 7, "Number of Partitions": 1}]
    told(
        job(0, 0, [5 * S] * 4, "count at a.py:3", TEXT),
        job(1, 5 * S, [S // 2], "toLocalIterator at a.py:4", alone),
    )
    assert asked == []
    told(job(0, 0, [5 * S] * 4, "csv at a.py:3", TEXT))
    assert len(asked) == 1


TEXT = [{"RDD ID": 1, "Name": "FileScanRDD", "Scope": '{"id":"4","name":"Scan text "}'}]


@pytest.mark.parametrize(
    ("execution", "kinds"), [(None, {"full-scan"}), (7, {"task-count"})], ids=["a reader", "a late attach"]
)
def test_files_that_are_read_for_their_schema(execution: int | None, kinds: set[str]) -> None:
    """A part of an SQL execution of which nobody has seen the start may be of a write, and is a stage like any."""
    assert set(told(job(0, S, [40 * S], "csv at nightly.py:3", TEXT, execution))) == kinds


FOOTERS = [{"RDD ID": 1, "Name": "ParallelCollectionRDD"}, {"RDD ID": 2, "Name": "MapPartitionsRDD"}]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("parquet at nightly.py:3", set()),
        ("load at nightly.py:3", set()),
        ("count at a.py:3", {"task-count"}),
    ],
)
def test_footers_that_are_read_for_a_schema(name: str, kinds: set[str]) -> None:
    """One task reads them, for one file: more tasks would not help."""
    assert set(told(job(0, S, [40 * S], name, FOOTERS))) == kinds


LEVEL = {"Use Memory": True, "Use Disk": False}
CACHED = [{"RDD ID": 5, "Name": "pictures", "Number of Partitions": 4, "Storage Level": LEVEL}]


def test_a_cached_rdd_that_is_computed_again() -> None:
    runs = [20 * S] * 4
    stages = (
        job(n, n * 30 * S, runs, "count at a.py:3", CACHED, Without_Input=[4, 80 * S]) for n in range(3)
    )
    found = told(*stages)
    assert found["recomputation"].attributes["shareMs"] == 2 * 80 * S // 4
    assert "lostMs" not in found["recomputation"].attributes
    assert (
        "pictures is cached and has 4 partitions, and yet 4 of them"
        in found["recomputation"].attributes["summary"]
    )


@pytest.mark.parametrize(("rdds", "kinds"), [(None, {"slow-node"}), (CACHED, set())], ids=["any", "cached"])
def test_a_host_is_slow_if_it_has_not_the_same_partitions_each_time(
    rdds: list[dict[str, Any]] | None, kinds: set[str]
) -> None:
    hosts = {"slow": (1, 30 * S, 0), "quick": (3, 30 * S, 0)}
    runs = [30 * S] + [10 * S] * 3
    found = told(*(job(n, n * 40 * S, runs, "count at a.py:3", rdds, hosts=hosts) for n in range(3)))
    assert set(found) & {"slow-node"} == kinds


def test_what_a_cached_rdd_costs_is_not_lost_to_garbage_collection_as_well() -> None:
    """The second stage would take 10 s if all tasks had found theirs: no more is lost to anything else."""
    gc = {"JVM_GC_Time": [20 * S, 20 * S, 20 * S, 80 * S]}
    first = job(0, 0, [40 * S] * 4, "count at a.py:3", CACHED, Without_Input=[4, 160 * S])
    runs = [40 * S] * 3 + [10 * S]
    found = told(first, job(1, 50 * S, runs, "count at a.py:3", CACHED, Without_Input=[3, 120 * S], **gc))
    assert found["recomputation"].attributes["lostMs"] == 30 * S
    assert found["gc"].attributes["lostMs"] == 10 * S


def test_where_nobody_knows_what_a_cached_rdd_costs_the_rest_is_told() -> None:
    """No task has found its partition, and half of the time is garbage collection."""
    more = {"JVM_GC_Time": [20 * S, 20 * S, 20 * S, 80 * S], "Without_Input": [4, 160 * S]}
    found = told(*(job(n, n * 50 * S, [40 * S] * 4, "count at a.py:3", CACHED, **more) for n in range(2)))
    assert found["recomputation"].attributes["shareMs"] == 40 * S
    assert found["gc"].variables["stage_id"] == "1"


@pytest.mark.parametrize(
    ("files", "parts", "kinds"),
    [(195, 200, {"task-count"}), (500, 200, {"task-count", "small-files"}), (195, 0, {"small-files"})],
    ids=["one of nearly each part", "more than parts", "there is no state"],
)
def test_small_files_of_micro_batches(files: int, parts: int, kinds: set[str]) -> None:
    """Its progress says whether a micro-batch writes a file for each part of a state that has too many."""
    state = {"numShufflePartitions": parts, "numRowsUpdated": 50, "commitTimeMs": 400 * S}
    records = [r.query_started(0)]
    for batch in range(1, 4):
        written = {"Written": files, "Written Bytes": files * 2_000}
        records += [
            r.batch_begins(batch * 10 * S, batch),
            *job(batch, batch * 10 * S, [8 * S] * 4, "start at a.py:3", execution=batch, group="run-1"),
            r.execution("End", batch * 10 * S + 9 * S, batch, Files=written),
            r.progress(batch * 10 * S, batch, 9 * S, stateOperators=[state] if parts else []),
        ]
    found = told(records)
    assert set(found) == kinds
    if "small-files" in kinds:
        assert found["small-files"].attributes["stagesSeen"] == 3

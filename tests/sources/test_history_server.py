"""What is read from Spark's own sample event logs is what its History Server answers about them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from spark_events.sources.event_log.records import RecordReader
from tests.support.event_log_reading import read
from tests.support.spark_records import Feed

Answers = Callable[[str], Any]
STATUSES = {"SUCCEEDED": "FINISHED", "FAILED": "FAILED"}
# The History Server's name of a sum over tasks, and the driver bridge's, which event logs are given too.
SUMS = {
    "numCompleteTasks": "Finished",
    "numFailedTasks": "Failed",
    "executorRunTime": "Executor Run Time",
    "inputBytes": "Input Bytes",
    "shuffleReadBytes": "Shuffle Read Bytes",
    "shuffleWriteBytes": "Shuffle Write Bytes",
    "memoryBytesSpilled": "Memory Bytes Spilled",
    "diskBytesSpilled": "Disk Bytes Spilled",
}
# Which log Spark's HistoryServerSuite asks about; the first has a stage that failed.
STAGES = [
    ("local-1422981780767", "stage_list_json"),
    ("app-20200706201101-0003", "stage_list_with_peak_metrics"),
    ("local-1426533911241", "stage_list_with_accumulable_json"),
]


def records_of(path: Path) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    RecordReader(records.append).take_lines(path.read_bytes().splitlines(keepends=True))
    return records


def time_of(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(epoch_ms / 1_000, timezone.utc)


def test_applications(event_logs: Path, history_server: Answers) -> None:
    """Names, attempts, first and last moments of all applications."""
    shown = {
        (application["id"], attempt.get("attemptId", "")): (
            application["name"],
            attempt["startTimeEpoch"],
            attempt["endTimeEpoch"],
        )
        for application in history_server("application_list_json")
        for attempt in application["attempts"]
    }
    found = {}
    for path in event_logs.iterdir():
        replayed = read(path)
        assert replayed.log.application is not None
        events = [e for e in replayed.events if e.attributes.get("job_kind") == "application"]
        times = [event.time_ms for event in events]
        application = replayed.log.application
        found[application.id, application.attempt_id] = (application.name, min(times), max(times))
    assert {key: found[key] for key in shown} == shown


@pytest.mark.parametrize(
    ("log", "question"),
    [
        ("local-1422981780767", "job_list_json"),
        ("local-1426533911241", "job_list_from_multi_attempt_app_json_1_"),
        ("local-1426633911242", "job_list_from_multi_attempt_app_json_2_"),
    ],
)
def test_jobs(event_logs: Path, history_server: Answers, log: str, question: str) -> None:
    """Ids and final statuses."""
    expected = {str(job["jobId"]): STATUSES[job["status"]] for job in history_server(question)}
    events = [event for event in read(event_logs / log).events if event.name == "JobStatusChangeEvent"]
    final = {e.variables["job_id"]: e.attributes["newJobStatus"] for e in events if "job_id" in e.variables}
    assert final == expected


@pytest.mark.parametrize(("log", "question"), STAGES)
def test_stages(event_logs: Path, history_server: Answers, log: str, question: str) -> None:
    """Statuses and sums over tasks, by the records that the listeners get."""
    records = records_of(event_logs / log)
    tasks = {
        (r["Stage ID"], r["Stage Attempt ID"]): r for r in records if r["Event"] == "SparkEventsStageTasks"
    }
    ended = {
        (r["Stage Info"]["Stage ID"], r["Stage Info"]["Stage Attempt ID"]): r["Stage Info"]
        for r in records
        if r["Event"] == "SparkListenerStageCompleted"
    }
    stages = {(stage["stageId"], stage["attemptId"]): stage for stage in history_server(question)}
    assert stages.keys() == ended.keys()
    for key, stage in stages.items():
        assert stage["status"] == ("FAILED" if ended[key].get("Failure Reason") else "COMPLETE")
        assert {name: stage[name] for name in SUMS} == {name: tasks[key][ours] for name, ours in SUMS.items()}


@pytest.mark.parametrize(("log", "question"), STAGES)
def test_spans_of_stages(event_logs: Path, history_server: Answers, log: str, question: str) -> None:
    feed = Feed()
    feed(*records_of(event_logs / log))
    spans = {
        (int(span.variables["stage_id"]), int(span.variables["stage_attempt"])): span
        for span in feed.spans()
        if span.name == "Stage"
    }
    stages = {(stage["stageId"], stage["attemptId"]): stage for stage in history_server(question)}
    assert spans.keys() == stages.keys()
    for key, stage in stages.items():
        attributes = spans[key].attributes
        assert (spans[key].error is not None) == (stage["status"] == "FAILED")
        assert attributes["numTasks"] == stage["numTasks"]
        assert attributes["finishedTasks"] == stage["numCompleteTasks"]
        assert attributes["failedTasks"] == stage["numFailedTasks"]
        assert attributes["executorRunTime"] == stage["executorRunTime"]


def test_tasks(event_logs: Path, history_server: Answers) -> None:
    """The sums of a stage are those of the tasks that the History Server lists."""
    # Asked without a limit, it lists the first 20 of a stage's tasks; this one has 8.
    tasks = history_server("stage_task_list_from_multi_attempt_app_json_1_")
    *_, stage = (  # the last word on it
        record
        for record in records_of(event_logs / "local-1426533911241")
        if record["Event"] == "SparkEventsStageTasks" and record["Stage ID"] == 0
    )
    assert stage["Finished"] == len([task for task in tasks if task["status"] == "SUCCESS"])
    assert stage["Executor Run Time"] == sum(task["taskMetrics"]["executorRunTime"] for task in tasks)
    assert stage["Input Bytes"] == sum(task["taskMetrics"]["inputMetrics"]["bytesRead"] for task in tasks)

"""Logs without an end, of what still runs or was killed: what is told of them is as it is at their last record."""

from __future__ import annotations

import json
from pathlib import Path

from spark_events.why.explanation import Explanation
from spark_events.why.reading.read_logs import explain_logs
from tests.support.event_log_sample import T0, SampleLog, line
from tests.support.slow_log import slow_log

_JOB_MS, _PAUSE_MS = 400, 300


def loop_log(jobs: int, ends: bool) -> bytes:
    """Return the log of a loop of jobs of one task each, one after the other at one place."""
    log = SampleLog(cores=2)
    lines = list(log.begin())
    now_ms = T0
    for _ in range(jobs):
        now_ms += _PAUSE_MS
        for text in log.job(1, stages=1):
            record = json.loads(text)
            is_end = record["Event"].endswith(("End", "Completed"))
            time_ms = now_ms + _JOB_MS * is_end
            for name in ("Submission Time", "Completion Time"):
                if name in record:
                    record[name] = time_ms
            if stage := record.get("Stage Info"):
                stage |= {"Stage Name": "collect at a.py:1", "Submission Time": now_ms}
                if "Completion Time" in stage:
                    stage["Completion Time"] = time_ms
            if task := record.get("Task Info"):
                task["Launch Time"] = now_ms
                task["Finish Time"] = time_ms if is_end else 0
            lines.append(line(record))
        now_ms += _JOB_MS
    if ends:
        lines.append(line({"Event": "SparkListenerApplicationEnd", "Timestamp": now_ms}))
    return b"".join(lines)


def explained(path: Path, log: bytes) -> Explanation:
    path.write_bytes(log)
    (explanation,), _ = explain_logs([str(path)], {})
    return explanation


def test_what_an_application_has_lost_so_far(tmp_path: Path) -> None:
    """Issues of the application are told again when their costs have doubled; here, that was long ago."""
    for jobs in (100, 150, 190):
        ended, cut = (explained(tmp_path / f"app-{jobs}-{end}", loop_log(jobs, end)) for end in (True, False))
        assert (ended.ended, cut.ended) == (True, False)
        costs = {issue.kind: issue.lost_ms for issue in ended.issues}
        assert "loop-of-small-jobs" in costs
        assert {issue.kind: issue.lost_ms for issue in cut.issues} == costs


def test_work_that_the_applications_end_has_cancelled(tmp_path: Path) -> None:
    """Spark logs the application's end before that of the stage which a SIGTERM has found at work."""
    lines = slow_log().splitlines(keepends=True)
    (end,) = (text for text in lines if b"SparkListenerApplicationEnd" in text)
    completed = next(place for place, text in enumerate(lines) if b"SparkListenerStageCompleted" in text)
    others = [text for text in lines if text is not end]
    whole, cancelled = tmp_path / "whole", tmp_path / "cancelled"
    whole.write_bytes(b"".join(lines))
    cancelled.write_bytes(b"".join([*others[:completed], end, *others[completed:]]))

    (of_whole,), _ = explain_logs([str(whole)], {})
    (of_cancelled,), notes = explain_logs([str(cancelled)], {})

    assert of_cancelled.longest == of_whole.longest != []
    assert [issue.sentence for issue in of_cancelled.issues] == [issue.sentence for issue in of_whole.issues]
    assert notes == []


def test_work_that_an_end_has_cancelled_has_not_failed(tmp_path: Path) -> None:
    """A job that asks for an executor once Spark has stopped says that it was aborted."""
    lines = slow_log().splitlines(keepends=True)
    (end,) = (text for text in lines if b"SparkListenerApplicationEnd" in text)
    place = next(number for number, text in enumerate(lines) if b"SparkListenerJobEnd" in text)
    record = json.loads(lines[place])
    record["Job Result"] = {"Result": "JobFailed", "Exception": {"Message": "RpcEnv already stopped."}}
    failed = line(record)
    of_failed = explained(tmp_path / "failed", b"".join([*lines[:place], failed, end]))
    of_cancelled = explained(tmp_path / "cancelled", b"".join([*lines[:place], end, failed]))

    assert any("RpcEnv already stopped." in said for said in of_failed.failures)
    assert of_cancelled.failures == ()

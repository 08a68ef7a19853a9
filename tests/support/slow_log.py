"""The event log of an application with one slow job, made up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tests.support.event_log_sample import T0, SampleLog, line

RUN_S = (90, 10, 10, 10)
MARKUP = "count at <b>a.py</b>:1"
"""The name of the stage."""


def slow_log(run_s: Sequence[int] = RUN_S) -> bytes:
    """Return the log: 140 s, in which four tasks run on four cores from 10 s on, one of them 80 s too long."""
    return b"".join(_lines(run_s))


def skewed_log(name: str, stage: str, run_s: Sequence[int], read_bytes: Sequence[int]) -> bytes:
    """Return the log of an application in which tasks of one stage read shuffle data, each on its own core.

    Args:
        name: of the application.
        stage: its name.
        run_s: how long each task takes, in seconds.
        read_bytes: how much each reads.
    """
    lines: list[bytes] = []
    for text in _lines(run_s):
        record = json.loads(text)
        if record["Event"] == "SparkListenerApplicationStart":
            record["App Name"] = name
        elif record["Event"] == "SparkListenerTaskEnd":
            read = record["Task Metrics"]["Shuffle Read Metrics"]
            read |= {"Remote Bytes Read": read_bytes[record["Task Info"]["Index"]], "Local Bytes Read": 0}
        elif "Stage Info" in record:
            record["Stage Info"]["Stage Name"] = stage
        lines.append(line(record))
    return b"".join(lines)


def loop_log(turns: int, turn_ms: int, cores: int = 2) -> bytes:
    """Return the log of an application with a job of one task in each turn of a loop, all of one place."""
    log = SampleLog(cores=cores)
    lines = [_at(text, 0) for text in log.begin()]
    for turn in range(turns):
        begin_ms = 10_000 + turn * turn_ms
        lines += _job(log, [turn_ms], begin_ms, begin_ms + turn_ms, "sum at app.py:7")
    lines += [_at(text, 10_000 + turns * turn_ms) for text in log.end()]
    return b"".join(lines)


def _lines(run_s: Sequence[int]) -> Iterator[bytes]:
    log = SampleLog(cores=len(run_s))
    yield from (_at(text, 0) for text in log.begin())
    run_ms = [seconds * 1_000 for seconds in run_s]
    yield from _job(log, run_ms, 10_000, 40_000 + max(run_ms), MARKUP)
    yield from (_at(text, 50_000 + max(run_ms)) for text in log.end())


def _job(
    log: SampleLog, run_ms: Sequence[int], begin_ms: int, end_ms: int, stage_name: str
) -> Iterator[bytes]:
    """Yield the records of a job of one stage whose tasks begin with it."""
    for text in log.job(len(run_ms), stages=1):
        record = json.loads(text)
        name, info = record["Event"], record.get("Task Info")
        if name == "SparkListenerTaskEnd":
            task_ms = run_ms[info["Index"]]
            info["Launch Time"], info["Finish Time"] = T0 + begin_ms, T0 + begin_ms + task_ms
            record["Task Metrics"] |= {"Executor Run Time": task_ms, "Executor Deserialize Time": 0}
            record["Task Metrics"] |= {"Result Serialization Time": 0, "JVM GC Time": 0}
            record["Task Metrics"]["Shuffle Read Metrics"]["Fetch Wait Time"] = 0
        elif info is not None:
            info["Launch Time"] = T0 + begin_ms
        elif name.startswith("SparkListenerStage"):
            stage = record["Stage Info"]
            stage |= {"Submission Time": T0 + begin_ms, "Stage Name": stage_name}
            if "Completion Time" in stage:
                stage["Completion Time"] = T0 + begin_ms + max(run_ms)
                stage["Accumulables"] = [{"Name": "internal.metrics.executorRunTime", "Value": sum(run_ms)}]
        yield _at(line(record), end_ms if name.endswith("End") else begin_ms)


def _at(text: bytes, ms: int) -> bytes:
    """Return a record at so many ms after the beginning."""
    record = json.loads(text)
    for field in ("Timestamp", "time"):
        if field in record:
            record[field] = T0 + ms
    if record["Event"] == "SparkListenerJobStart":
        record["Submission Time"] = T0 + ms
    if record["Event"] == "SparkListenerJobEnd":
        record["Completion Time"] = T0 + ms
    return line(record)

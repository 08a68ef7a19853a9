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


def _lines(run_s: Sequence[int]) -> Iterator[bytes]:
    log = SampleLog(cores=len(run_s))
    yield from (_at(text, 0) for text in log.begin())
    for text in log.job(len(run_s), stages=1):
        record = json.loads(text)
        name, info = record["Event"], record.get("Task Info")
        if name == "SparkListenerTaskEnd":
            run_ms = run_s[info["Index"]] * 1_000
            info["Launch Time"], info["Finish Time"] = T0 + 10_000, T0 + 10_000 + run_ms
            record["Task Metrics"] |= {"Executor Run Time": run_ms, "Executor Deserialize Time": 0}
            record["Task Metrics"] |= {"Result Serialization Time": 0, "JVM GC Time": 0}
            record["Task Metrics"]["Shuffle Read Metrics"]["Fetch Wait Time"] = 0
        elif info is not None:
            info["Launch Time"] = T0 + 10_000
        elif name.startswith("SparkListenerStage"):
            stage = record["Stage Info"]
            stage |= {"Submission Time": T0 + 10_000, "Stage Name": MARKUP}
            if "Completion Time" in stage:
                stage["Completion Time"] = T0 + 10_000 + max(run_s) * 1_000
        yield _at(line(record), 40_000 + max(run_s) * 1_000 if name.endswith("End") else 10_000)
    yield from (_at(text, 50_000 + max(run_s) * 1_000) for text in log.end())


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

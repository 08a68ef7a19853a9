"""The ledger of each stored log adds up to its run, and to its cores, counted from the log's lines alone."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest
import zstandard

from spark_events.diagnosis.times.ledger import COMPUTING, REPEATED, SCHEDULING
from spark_events.why.reading.read_logs import explain_logs
from tests.support.event_log_sample import SampleLog
from tests.support.sample_logs import NAMES
from tests.support.slow_log import slow_log
from tests.support.stored_logs import recorded_logs


def core_ms(log: Path, ended_ms: int) -> int:
    """Return for how long the cores of all executors were there, in ms."""
    files = sorted(log.glob("events_*")) if log.is_dir() else [log]
    whole_ms, since = 0, {}
    for line in (line for file in files for line in _lines(file)):
        record = orjson.loads(line)
        if record["Event"] == "SparkListenerExecutorAdded":
            cores = int(record["Executor Info"]["Total Cores"])
            since.setdefault(record["Executor ID"], (record["Timestamp"], cores))
        elif record["Event"] == "SparkListenerExecutorRemoved" and record["Executor ID"] in since:
            begun_ms, cores = since.pop(record["Executor ID"])
            whole_ms += cores * (record["Timestamp"] - begun_ms)
    return whole_ms + sum(cores * (ended_ms - begun_ms) for begun_ms, cores in since.values())


def _lines(file: Path) -> list[bytes]:
    content = file.read_bytes()
    if ".zst" in file.name:
        content = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)).read()
    return [line for line in content.splitlines() if line.startswith(b"{") and line.endswith(b"}")]


def check(log: Path) -> None:
    explanations, _ = explain_logs([str(log)], {})
    (explained,) = [each for each in explanations if each.parts is not None]
    assert explained.parts is not None
    assert sum(explained.parts.values()) == explained.duration_ms
    expected = core_ms(log, explained.ended_ms)
    assert (explained.core_ms is None) is (expected == 0)
    assert sum((explained.core_ms or {}).values()) == pytest.approx(expected, abs=5)
    assert sum(issue.lost_ms or 0 for issue in explained.issues) <= explained.duration_ms


@pytest.mark.parametrize("name", ["sample", "slow", "lifecycle", "executor_faults"])
def test_recorded_log(tmp_path: Path, name: str) -> None:
    check(recorded_logs(tmp_path)[name])


def test_sample_logs(event_logs: Path) -> None:
    """Spark's own samples."""
    for name in NAMES:
        check(event_logs / name)


@pytest.mark.parametrize("cores", ["0", "-4", "1e308", "1" + "0" * 30, '"four"', "[]"])
def test_executors_with_a_number_of_cores_that_cannot_be(tmp_path: Path, cores: str) -> None:
    """The time of cores is not known then; that of the application still is."""
    log = tmp_path / "app-1"
    log.write_bytes(slow_log().replace(b'"Total Cores":4', b'"Total Cores":' + cores.encode()))
    ((explained,), _) = explain_logs([str(log)], {})

    assert explained.core_ms is None
    assert explained.cpu_share is None
    assert sum((explained.parts or {}).values()) == 140_000


def test_a_log_without_an_end(tmp_path: Path) -> None:
    """It goes to what was written of it last, which may be the end of a task of a stage that runs."""
    sample = SampleLog()
    lines = [*sample.begin(), *sample.job(2_000, stages=1)]
    lines = lines[: len(lines) * 2 // 3]
    (tmp_path / "app-1").write_bytes(b"".join(lines))
    ((explained,), _) = explain_logs([str(tmp_path)], {})

    records = [orjson.loads(line) for line in lines]
    infos = [record["Task Info"] for record in records if "Task Info" in record]
    last_ms, first_ms = max(info["Finish Time"] for info in infos), infos[0]["Launch Time"]
    assert last_ms - first_ms > 5_000
    assert explained.ended_ms == last_ms
    in_tasks = (explained.parts or {})[COMPUTING] + (explained.parts or {})[SCHEDULING]
    assert in_tasks > 0.9 * (last_ms - first_ms)


@pytest.mark.parametrize("they_end", [True, False])
def test_tasks_that_outlive_their_stage(they_end: bool, tmp_path: Path) -> None:
    """Of eight tasks, seven run on for 20 s, in which the job that had begun them has failed."""
    sample = SampleLog()
    begin, job = list(sample.begin()), [orjson.loads(line) for line in sample.job(8, stages=1)]
    ends = [record for record in job if record["Event"] == "SparkListenerTaskEnd"]
    for record in ends[1:]:
        record["Task Info"]["Finish Time"] += 20_000
        record["Task Metrics"]["Executor Run Time"] = 20_000
        job.remove(record)
    (stage,) = (record for record in job if record["Event"] == "SparkListenerStageCompleted")
    stage["Stage Info"]["Failure Reason"] = "FetchFailed"
    job[-1]["Job Result"] = {
        "Result": "JobFailed",
        "Exception": {"Message": "FetchFailed", "Stack Trace": []},
    }
    sample._now += 30_000
    lines = [*map(orjson.dumps, [*job, *(ends[1:] if they_end else ())]), *sample.end()]
    (tmp_path / "app-1").write_bytes(b"".join(begin) + b"\n".join(line.strip() for line in lines) + b"\n")
    ((explained,), _) = explain_logs([str(tmp_path)], {})

    computing_ms = (explained.core_ms or {})[COMPUTING]
    assert (computing_ms > 7 * 15_000) == they_end
    assert explained.unfinished == (0 if they_end else 7)


def test_a_copy_of_a_task_that_outlives_its_stage(tmp_path: Path) -> None:
    """Spark kills it when the other one has ended; what it took was in vain, and kept a core busy."""
    sample = SampleLog()
    begin, job = list(sample.begin()), [orjson.loads(line) for line in sample.job(8, stages=1)]
    names = [record["Event"] for record in job]
    start, end = (job[names.index(f"SparkListenerTask{what}")] for what in ("Start", "End"))
    runs_on_ms = 20_000
    began_ms = start["Task Info"]["Launch Time"]
    copied = {"Task ID": 999, "Attempt": 1, "Speculative": True, "Launch Time": began_ms}
    last = len(names) - 1 - names[::-1].index("SparkListenerStageCompleted")
    done_ms = job[last]["Stage Info"]["Completion Time"]
    killed = {
        **end,
        "Task End Reason": {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"},
        "Task Info": {**end["Task Info"], **copied, "Killed": True, "Finish Time": done_ms + runs_on_ms},
        "Task Metrics": {**end["Task Metrics"], "Executor Run Time": 0},
    }
    job.insert(last + 1, killed)
    job.insert(
        names.index("SparkListenerTaskStart") + 1, {**start, "Task Info": {**start["Task Info"], **copied}}
    )
    sample._now += 30_000
    lines = [*map(orjson.dumps, job), *sample.end()]
    (tmp_path / "app-1").write_bytes(b"".join(begin) + b"\n".join(line.strip() for line in lines) + b"\n")
    ((explained,), _) = explain_logs([str(tmp_path)], {})

    took_ms = done_ms + runs_on_ms - began_ms
    assert (explained.core_ms or {})[REPEATED] == pytest.approx(took_ms, rel=0.02)
    assert explained.unfinished == 0

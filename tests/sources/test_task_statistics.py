"""What the tasks of a stage measured, from a log's lines."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_events.sources.event_log.records import MALFORMED, RecordReader
from spark_events.sources.event_log.tasks.task_lines import METRICS_KEY, TASK_END
from spark_events.sources.event_log.tasks.task_metrics import metrics_of, metrics_of_many
from spark_events.sources.event_log.tasks.task_statistics import Distribution
from tests.support.event_log_sample import SampleLog


@given(st.lists(st.integers(-3, 1 << 50), max_size=200), st.integers(1, 100), st.integers(1, 5))
def test_quantiles(values: list[int], percent: int, parts: int) -> None:
    """Off by 1.6 % at most, exact below 64, whatever the order and the parts in which values come."""
    distribution = Distribution()
    for part in range(parts):
        distribution.add(values[part::parts])
    kept = sorted(value for value in values if value >= 0)
    (quantile,) = distribution.quantiles(percent)
    true = kept[max(1, math.ceil(percent * len(kept) / 100)) - 1] if kept else 0

    assert (distribution.count, distribution.total) == (len(kept), sum(kept))
    assert distribution.highest == max(kept, default=0)
    assert abs(quantile - true) <= (0 if true < 64 else true / 63)


def test_many_different_values_take_bounded_memory() -> None:
    """Those of a step become one, and the quantiles stay."""
    values = range(0, 1_000_000, 7)
    at_once, one_by_one = Distribution(), Distribution()
    at_once.add(values)
    for begin in range(0, len(values), 1_000):
        one_by_one.add(values[begin : begin + 1_000])

    assert len(one_by_one._times) < 10_000
    assert one_by_one.summary() == at_once.summary()


def lines(seconds: int = 60, **replaced: str) -> list[bytes]:
    """Return the lines of a job with one stage of 20 tasks, which lasts so long."""
    return [_lasting(line, seconds) for line in SampleLog().job(20, stages=1)]


def _lasting(line: bytes, seconds: int) -> bytes:
    record = json.loads(line)
    if record["Event"] == "SparkListenerStageCompleted":
        info = record["Stage Info"]
        info["Completion Time"] = info["Submission Time"] + seconds * 1_000
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"
    return line


def last_record(log: list[bytes], sums: bool, from_ms: int = 30_000) -> dict[str, object]:
    records: list[dict[str, object]] = []
    reader = RecordReader(records.append)
    reader.sum_metrics(sums, from_ms)
    reader.take_lines(log)
    return next(r for r in reversed(records) if r["Event"] == "SparkEventsStageTasks")


def test_a_short_stage_is_not_looked_at() -> None:
    """No issue can cost more than the stage lasts; unless sums are wanted, or it is a streaming query's."""
    short, long = lines(seconds=29), lines(seconds=30)
    streaming = [
        line.replace(b'"Properties":{}', b'"Properties":{"sql.streaming.queryId":"q"}') for line in short
    ]
    assert any(b"sql.streaming" in line for line in streaming)

    assert "Task Statistics" not in last_record(short, sums=False)
    assert (
        last_record(long, sums=False)["Task Statistics"] == last_record(short, sums=True)["Task Statistics"]
    )
    assert "Task Statistics" in last_record(streaming, sums=False)


def test_speculative_and_failed_attempts() -> None:
    """Neither tells how long a task takes; both have taken time."""
    log = lines()
    ends = [number for number, line in enumerate(log) if line.startswith(TASK_END)]
    log[ends[0]] = log[ends[0]].replace(b'"Speculative":false', b'"Speculative":true')
    for at, reason in ((ends[1], "TaskKilled"), (ends[2], "FetchFailed")):
        log[at] = log[at].replace(b'{"Reason":"Success"}', b'{"Reason":"%b"}' % reason.encode())
    statistics = last_record(log, sums=False)["Task Statistics"]

    assert isinstance(statistics, dict)
    assert statistics["Tasks"] == 20 - 3
    assert (statistics["Failed"], statistics["Killed"], statistics["Fetch Failures"]) == (1, 1, 1)
    assert statistics["Hosts"] == {
        "10.0.0.2": [17, statistics["Executor Run Time"][3], statistics["Bytes Read"][3]]
    }


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (
            {
                "Reason": "ExceptionFailure",
                "Class Name": "java.lang.ArithmeticException",
                "Description": "by 0",
            },
            "java.lang.ArithmeticException: by 0",
        ),
        ({"Reason": "ExecutorLostFailure", "Executor ID": "2", "Loss Reason": "OOMKilled"}, "OOMKilled"),
        ({"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}, ""),
        ({"Reason": "FetchFailed", "Message": "Connection reset"}, ""),
        ({"Reason": "ExceptionFailure", "Class Name": "a.B", "Description": None}, ""),
    ],
    ids=lambda value: value if isinstance(value, str) else value["Reason"],
)
def test_what_the_last_attempt_failed_of(ended: dict[str, object], said: str) -> None:
    log = lines()
    at = next(number for number, line in enumerate(log) if line.startswith(TASK_END))
    log[at] = log[at].replace(b'{"Reason":"Success"}', json.dumps(ended).encode())
    statistics = last_record(log, sums=False)["Task Statistics"]

    assert isinstance(statistics, dict)
    assert statistics["Last Failure"] == said


def test_a_line_whose_metrics_are_damaged_is_counted() -> None:
    log = lines()
    at = next(number for number, line in reversed(list(enumerate(log))) if line.startswith(TASK_END))
    log[at] = log[at].replace(b'"JVM GC Time":', b'"JVM GC Time":?')
    reader = RecordReader(lambda record: None)
    reader.take_lines(log)

    assert reader.counts.skipped == {MALFORMED: 1}


def test_lines_of_one_form_are_read_by_columns_and_others_one_by_one() -> None:
    """Both give the same; what is not as long or not in the form of the others is found."""
    ends = [line for line in lines() if line.startswith(TASK_END)]
    tails = [line[line.rfind(METRICS_KEY) : -1] for line in ends]
    one_by_one = [metrics_of(tail) for tail in tails]
    columns = metrics_of_many(tails)

    assert columns is not None
    assert list(zip(*columns, strict=True)) == one_by_one
    assert metrics_of_many([*tails, tails[0].replace(b'"JVM GC Time":1', b'"JVM GC Time":-1')]) is None
    assert metrics_of_many([*tails, tails[0].replace(b'"JVM GC Time":1', b'"JVM GC Time":01')]) is None


def test_a_long_line_is_kept_without_its_middle() -> None:
    """Texts of accumulators do not fill the memory; nothing that is wanted stands there."""
    log = lines()
    many = b'"Accumulables":[{"ID":1,"Value":"%b"},' % (b"x" * 10_000)
    long = [line.replace(b'"Accumulables":[', many) if line.startswith(TASK_END) else line for line in log]
    assert last_record(long, sums=True) == last_record(log, sums=True)
    reader = RecordReader(lambda record: None)
    reader.sum_metrics(False, 30_000)
    reader.take_lines([line for line in long if b"SparkListenerStageCompleted" not in line])
    (tasks,) = reader._tasks.attempts.values()
    assert len(tasks.statistics.waiting) == 20
    assert max(len(info.string) for info in tasks.statistics.waiting) < 4_096


@pytest.mark.parametrize("sums", [True, False])
def test_tasks_that_wait_are_bounded(sums: bool) -> None:
    """Stages that never end do not fill the memory, however many they are."""
    reader = RecordReader(lambda record: None)
    reader.sum_metrics(sums, 30_000)
    log = lines()
    submitted = json.loads(next(line for line in log if b"SparkListenerStageSubmitted" in line))
    end = next(line for line in log if line.startswith(TASK_END))
    for stage in range(9):
        submitted["Stage Info"]["Stage ID"] = stage
        reader.take_lines([json.dumps(submitted).encode() + b"\n"])
    for turn in range(100):
        reader.take_lines([end.replace(b'"Stage ID":0', b'"Stage ID":%d' % (turn % 9))] * 100)
        kept = [tasks.statistics for tasks in reader._tasks.attempts.values()]
        held = [len(tasks.number) for statistics in kept for tasks in statistics._read]
        assert sum(held) + sum(len(statistics.waiting) for statistics in kept) < 4_096


def test_executors_that_share_a_host_and_tasks_that_read_nothing() -> None:
    """Two executors of one host have sums of their own, the only one of another host has none."""
    log = []
    for line in lines():
        record = json.loads(line)
        if line.startswith(TASK_END):
            number = record["Task Info"]["Index"]
            executor, host = (("1", "a"), ("2", "a"), ("3", "b"))[number % 3]
            record["Task Info"] |= {"Executor ID": executor, "Host": host}
            record["Task Metrics"]["Executor Run Time"] = 100 + number
            record["Task Metrics"].setdefault("Input Metrics", {})["Bytes Read"] = number % 2
        log.append(json.dumps(record, separators=(",", ":")).encode() + b"\n")

    statistics = last_record(log, sums=False)["Task Statistics"]
    assert isinstance(statistics, dict)
    executors = statistics["Executors"]
    of = [[number for number in range(20) if number % 3 == rest] for rest in (0, 1)]
    assert {name: work[:3] for name, work in executors.items()} == {
        "1": ["a", len(of[0]), sum(100 + number for number in of[0])],
        "2": ["a", len(of[1]), sum(100 + number for number in of[1])],
    }
    assert statistics["Without Input"] == [10, sum(100 + number for number in range(0, 20, 2))]

"""The loop over a log's lines does what taking each line by itself does, and what parsing each whole does."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_events.sources.event_log.records import RecordCounts, RecordReader
from spark_events.sources.event_log.tasks.all_stage_tasks import AllStageTasks
from spark_events.sources.event_log.tasks.task_lines import TASK_END, TASK_START
from spark_events.sources.event_log.tasks.task_loop import TaskLoop
from spark_events.sources.record_json import load
from tests.support.event_log_sample import SampleLog, small_log

Record = dict[str, Any]
Way = Callable[[RecordReader], None]
MODES = pytest.mark.parametrize("sums", [True, False], ids=["sums", "no sums"])


class _Alone(TaskLoop):
    """Takes each line by itself."""

    def take_lines(self, lines: Any) -> int:
        tasks = 0
        for line in lines:
            is_task = line.startswith((TASK_END, TASK_START))
            tasks += is_task
            try:
                (self._take_alone if is_task else self._take_other)(line)
            except self._errors as error:
                self._stumbled(error)
        self._stages.read_waiting()
        return tasks


class _Parsed(AllStageTasks):
    """Parses each line whole."""

    def started(self, line: bytes) -> Record | None:
        return self.on_start(load(line))

    def ended(self, line: bytes) -> Record | None:
        return self.on_end(load(line))


def as_it_is(reader: RecordReader) -> None:
    """The loop."""


def alone(reader: RecordReader) -> None:
    """Each line by itself."""
    reader._loop.__class__ = _Alone


def parsed(reader: RecordReader) -> None:
    """Each line by itself, and whole."""
    reader._loop.__class__, reader._tasks.__class__ = _Alone, _Parsed


def read(blocks: list[list[bytes]], sums: bool, way: Way) -> tuple[list[Record], RecordCounts]:
    """Return the records that come of lines, and how they are counted."""
    records: list[Record] = []
    reader = RecordReader(lambda record: records.append(json.loads(json.dumps(record))))
    way(reader)
    reader.sum_metrics(sums, 1_000)
    for block in blocks:
        reader.take_lines(block)
    if not sums:  # then nobody asks for sums, which are only of what was read meanwhile
        for record in records:
            if record["Event"] == "SparkEventsStageTasks":
                for name in [name for name, value in record.items() if "Bytes" in name or "Time" in name]:
                    del record[name]
    reader.report_changed_tasks(1)
    return records, reader.counts


def executors_of(blocks: list[list[bytes]]) -> list[list[bytes]]:
    """Return a block that removes each executor that lines name: then it is told what it has run."""
    names = sorted({name for block in blocks for line in block for name in _executors(line)})
    return [[_line({"Event": "SparkListenerExecutorRemoved", "Executor ID": name}) for name in names]]


def _executors(line: bytes) -> Iterator[str]:
    try:
        yield str(json.loads(line)["Task Info"]["Executor ID"])
    except (ValueError, KeyError, TypeError):
        return


def _line(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


# ---------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_real_logs(event_logs: Path, sums: bool, size: int) -> None:
    """Of Spark 1.2 to 3.3, and as Spark 4.3 writes them."""
    found = [path.read_bytes() for path in sorted(event_logs.iterdir())]
    long = SampleLog(cores=40)
    found += [small_log(), b"".join([*long.job(500, 2, failing=3), *long.job(30, 1)])]
    for data in found:
        lines = data.splitlines(keepends=True)
        blocks = [lines[begin : begin + size] for begin in range(0, len(lines), size)]
        blocks += executors_of(blocks)
        assert read(blocks, sums, as_it_is) == read(blocks, sums, alone) == read(blocks, sums, parsed)


def test_almost_all_lines_are_taken_by_the_loop(event_logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Spark 2 and later; else a replay would not be fast."""
    taken: list[bytes] = []
    old = TaskLoop._take_alone
    monkeypatch.setattr(TaskLoop, "_take_alone", lambda self, line: taken.append(line) or old(self, line))
    for path in event_logs.iterdir():
        if path.name in ("app-20200706201101-0003", "local-1596020211915", "local-1642039451826"):
            reader = RecordReader(lambda record: None)
            reader.take_lines(path.read_bytes().splitlines(keepends=True))
            stages = sum(record.startswith(b'{"Event":"SparkListenerStageSubmitted"') for record in taken)
            assert reader.counts.tasks > 0
            assert len(taken) < 60 + stages, path.name
            taken.clear()
    reader = RecordReader(lambda record: None)
    reader.take_lines(list(SampleLog().job(500, stages=2, failing=1)))
    assert len(taken) == 2 + 1  # the first of each stage, and the one that failed


# ------------------------------------------------------------------------------------------- random logs


class RandomLog:
    """A log whose lines are as Spark writes them, or differ in some way, in an order of its own."""

    def __init__(self, seed: int, damaged: bool) -> None:
        self._random = random.Random(seed)
        self._damaged = damaged
        self._odd = self._random.choice([0.0, 0.05, 0.5])
        self._spark = self._random.choice(["2.4", "3.5", "4.3"])
        self._executors = self._random.choice([["1"], ["1", "2", "driver"], ["1", 'a"b', "ü", ""]])
        self._now = 1_795_000_000_000
        self._running: list[Record] = []
        self._stages: dict[int, int] = {}

    def lines(self, count: int) -> Iterator[bytes]:
        """Yield lines."""
        number = 0
        for _ in range(count):
            self._now += self._random.choice([0, 1, 40, 2_000])
            choice = self._random.random()
            if not self._stages or choice < 0.03:
                stage = self._random.choice(
                    [number, self._random.randrange(number + 1)]
                )  # now and then again
                self._stages[stage] = tasks = self._random.choice([1, 3, 8, 200])
                yield self._stage(stage, tasks, "Submitted")
                number = max(number, stage + 1)
            elif choice < 0.05:
                stage = self._random.choice(list(self._stages))
                yield self._stage(stage, self._stages.pop(stage), "Completed")
            elif choice < 0.06:
                yield self._other()
            elif choice < 0.5 or not self._running:
                yield from self._start()
            else:
                yield from self._end()
        for stage, tasks in self._stages.items():
            yield self._stage(stage, tasks, "Completed")

    def blocks(self, count: int) -> list[list[bytes]]:
        """Return lines in blocks of any size."""
        lines, blocks = list(self.lines(count)), []
        while lines:
            size = self._random.choice([1, 3, 20, 100])
            blocks.append(lines[:size])
            lines = lines[size:]
        return blocks

    def _stage(self, stage: int, tasks: int, what: str) -> bytes:
        info = {
            "Stage ID": stage,
            "Stage Attempt ID": 0,
            "Number of Tasks": tasks,
            "Submission Time": self._now,
        }
        if what == "Completed":
            info["Submission Time"] = self._now - self._random.choice([10, 2_000])
            info["Completion Time"] = self._now
        return _line({"Event": f"SparkListenerStage{what}", "Stage Info": info})

    def _other(self) -> bytes:
        removed = {
            "Event": "SparkListenerExecutorRemoved",
            "Executor ID": self._random.choice(self._executors),
        }
        return self._random.choice([_line(removed), b"\n", b"  \r\n", b"nothing\n", b'{"Event":"Own"}\n'])

    def _start(self) -> Iterator[bytes]:
        stage, tasks = self._random.choice([*self._stages.items(), (99, 3)])
        number = self._random.randrange(tasks + (self._random.random() < self._odd))
        info = {
            "Task ID": self._random.randrange(1_000),
            "Index": number,
            "Attempt": 0,
            **({} if self._spark == "2.4" else {"Partition ID": number}),
            "Launch Time": self._now,
            "Executor ID": self._random.choice(self._executors),
            "Host": self._random.choice(["10.0.0.2", "host-2.example"]),
            "Locality": "ANY",
            "Speculative": self._random.random() < 0.1,
            "Getting Result Time": 0,
            "Finish Time": 0,
            "Failed": False,
            "Killed": False,
            "Accumulables": [],
        }
        task = {"Stage ID": stage, "Stage Attempt ID": 0, "Task Info": info}
        self._running.append(task)
        yield self._changed({"Event": "SparkListenerTaskStart", **task})

    def _end(self) -> Iterator[bytes]:
        task = self._running.pop(self._random.randrange(len(self._running)))
        info = {**task["Task Info"], "Finish Time": self._now}
        if self._random.random() < 0.1:
            info["Getting Result Time"] = self._now - 3
        if self._random.random() < self._odd:
            info["Accumulables"] = [
                {"ID": 1, "Name": 'a "Task ID":1 ü', "Value": "x" * self._random.choice([1, 5_000])}
            ]
        reason = {"Reason": "Success"}
        if self._random.random() < self._odd:
            reason = self._random.choice(
                [
                    {"Reason": "ExceptionFailure", "Class Name": "E", "Description": "d"},
                    {"Reason": "FetchFailed", "Block Manager Address": {"Executor ID": "1"}, "Message": "m"},
                    {"Reason": "Resubmitted"},
                    {"Reason": "TaskKilled", "Kill Reason": "k"},
                    {"Reason": "ExecutorLostFailure"},
                ]
            )
        kind, metrics = self._random.choice(["ShuffleMapTask", "ResultTask"]), self._metrics()
        if kind == "ResultTask" and "Shuffle Write Metrics" in metrics:
            metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] = 0
        yield self._changed(
            {
                "Event": "SparkListenerTaskEnd",
                "Stage ID": task["Stage ID"],
                "Stage Attempt ID": 0,
                "Task Type": kind,
                "Task End Reason": reason,
                "Task Info": info,
                **self._measured(),
                "Task Metrics": metrics,
            }
        )

    def _measured(self) -> Record:
        if self._spark == "2.4":
            return {}
        heap = 0 if self._random.random() > self._odd else self._random.choice([-1, 5, 1 << 30])
        return {"Task Executor Metrics": {"JVMHeapMemory": heap, "JVMOffHeapMemory": max(0, heap)}}

    def _metrics(self) -> Record:
        def number() -> int:
            return self._random.choice([0, 0, 7, 1_234, 1 << 40])

        metrics: Record = {
            "Executor Deserialize Time": number(),
            "Executor Run Time": number(),
            "Executor CPU Time": number(),
            "JVM GC Time": number(),
            "Result Serialization Time": 0,
            "Memory Bytes Spilled": number(),
            "Disk Bytes Spilled": number(),
            "Shuffle Read Metrics": {
                "Fetch Wait Time": number(),
                "Remote Bytes Read": number(),
                "Local Bytes Read": number(),
                "Total Records Read": number(),
            },
            "Shuffle Write Metrics": {"Shuffle Bytes Written": number(), "Shuffle Write Time": number()},
            "Input Metrics": {"Bytes Read": number(), "Records Read": number()},
            "Output Metrics": {"Bytes Written": number(), "Records Written": number()},
            "Updated Blocks": [],
        }
        if self._spark == "4.3":
            metrics["Shuffle Read Metrics"]["Push Based Shuffle"] = {"Merged Local Bytes Read": number()}
        if self._random.random() < self._odd:
            change = self._random.choice(["blocks", "gone", "negative", "more", "group"])
            if change == "blocks":
                metrics["Updated Blocks"] = [{"Block ID": "rdd_1_2", "Status": {"Memory Size": 5}}]
            elif change == "gone":
                del metrics[self._random.choice(list(metrics))]
            elif change == "negative":
                metrics["Peak Execution Memory"] = -1
            elif change == "more":
                metrics["Peak"] = {"Of": self._random.choice([1, 1.5, "2", None, True, [3]])}
            else:
                metrics["Shuffle Write Metrics"] = {"Shuffle Write Time": 1, "Shuffle Bytes Written": 2}
        return metrics

    def _changed(self, record: Record) -> bytes:
        """Return a record as a line, now and then in another form."""
        if self._random.random() >= self._odd:
            return _line(record)
        change = self._random.choice(["order", "info", "blanks", "ascii", "unknown", "return", "damage"])
        if change == "order":
            first, *rest = record.items()
            self._random.shuffle(rest)
            record = dict([first, *rest])
        elif change == "info":
            info = list(record["Task Info"].items())
            self._random.shuffle(info)
            record = {**record, "Task Info": dict(info)}
        elif change == "unknown":
            record = {**record, "Task Info": {"New": {"Task ID": 1}, **record["Task Info"]}, "More": [1]}
        if change == "blanks":
            return json.dumps(record).encode() + b"\n"
        if change == "ascii":
            return json.dumps(record, separators=(",", ":")).encode() + b"\n"
        line = _line(record)
        if change == "return":
            return line[:-1] + b"\r\n"
        if change == "damage" and self._damaged:
            at = self._random.randrange(len(line) - 1)
            return self._random.choice(
                [
                    line[:at] + b"\n",
                    line[:at] + b"?" + line[at + 1 :],
                    line[:at] + line[at + 1 :],
                    line[:-1] + line,
                    line.replace(b'"Index":', b'"Index":0'),
                    line.replace(b'Written":', b'Written":00'),
                    line.replace(b'Time":', b'Time":-'),
                ]
            )
        return line


@MODES
@settings(deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 400))
def test_random_logs(sums: bool, seed: int, count: int) -> None:
    """Lines of Spark 2.4 to 4.3, in other orders, with escapes, with more or less in them than is known."""
    blocks = RandomLog(seed, damaged=False).blocks(count)
    blocks += executors_of(blocks)
    found = read(blocks, sums, as_it_is)
    assert found == read(blocks, sums, alone)
    assert found == read(blocks, sums, parsed)


@MODES
@settings(deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 400))
def test_damaged_logs(sums: bool, seed: int, count: int) -> None:
    """What the loop makes of damaged lines is what taking each by itself makes of them, and it never ends."""
    blocks = RandomLog(seed, damaged=True).blocks(count)
    blocks += executors_of(blocks)
    assert read(blocks, sums, as_it_is) == read(blocks, sums, alone)


def test_an_executor_that_has_measured_something_is_heard() -> None:
    """It is not passed over because those before it had measured nothing."""
    lines = list(SampleLog().job(40, stages=1))
    changed = [
        line.replace(b'"JVMHeapMemory":0', b'"JVMHeapMemory":77') if b'"Index":30,' in line else line
        for line in lines
    ]
    records, _ = read([changed], True, as_it_is)
    assert [record["Task Peaks"]["1"]["JVMHeapMemory"] for record in records if "Task Peaks" in record] == [
        77
    ]
    assert not any("Task Peaks" in record for record in read([lines], True, as_it_is)[0])


@pytest.mark.parametrize("way", [as_it_is, alone, parsed])
def test_a_stage_that_is_cancelled_while_its_first_tasks_run(way: Way) -> None:
    """Since when they ran is known though none of them ends, and others never began."""
    info = {"Stage ID": 0, "Stage Attempt ID": 0, "Number of Tasks": 6, "Submission Time": 1_000}
    task = {"Event": "SparkListenerTaskStart", "Stage ID": 0, "Stage Attempt ID": 0}
    starts = [
        {"Task ID": 0, "Index": 0, "Attempt": 0, "Partition ID": 0, "Launch Time": 2_000, "Executor ID": "1"},
        {"Task ID": 1, "Index": 1, "Attempt": 0, "Partition ID": 1, "Launch Time": 3_000, "Executor ID": "1"},
    ]
    cancelled = {**info, "Completion Time": 60_000, "Failure Reason": "Job 0 cancelled"}
    lines = [
        _line({"Event": "SparkListenerStageSubmitted", "Stage Info": info}),
        *(_line({**task, "Task Info": start}) for start in starts),
        _line({"Event": "SparkListenerStageCompleted", "Stage Info": cancelled}),
    ]
    records, _ = read([lines], True, way)
    last = next(record for record in records if record["Event"] == "SparkEventsStageTasks")
    assert (last["Running"], last["First Launch Time"]) == (2, 2_000)


@pytest.mark.parametrize("way", [as_it_is, alone, parsed])
def test_tasks_that_end_after_their_stage(way: Way) -> None:
    """What they take counts, too. One that Spark stops has not failed; one that has finished has."""
    info = {"Stage ID": 0, "Stage Attempt ID": 0, "Number of Tasks": 4, "Submission Time": 1_000}
    ends = [
        {"Reason": "ExceptionFailure", "Class Name": "E", "Description": "d"},
        {"Reason": "TaskKilled", "Kill Reason": "Stage cancelled"},
        {"Reason": "Success"},
        {"Reason": "ExceptionFailure", "Class Name": "E", "Description": "d"},
    ]
    started, ended = zip(*(_task(number, reason) for number, reason in enumerate(ends)), strict=True)
    failed = {**info, "Completion Time": 60_000, "Failure Reason": "Job aborted due to stage failure: d"}
    lines = [
        _line({"Event": "SparkListenerStageSubmitted", "Stage Info": info}),
        *started,
        ended[0],
        _line({"Event": "SparkListenerStageCompleted", "Stage Info": failed}),
        *ended[1:],
        ended[1],
    ]

    records, _ = read([lines], True, way)

    last = [record for record in records if record["Event"] == "SparkEventsStageTasks"][-1]
    late = [record for record in records if record["Event"] == "SparkEventsLateTasks"]
    told = ("Finished", "Failed", "Executor Run Time")
    assert [last[field] for field in told] == [0, 1, 1_000]
    assert [[record[field] for field in told] for record in late] == [
        [0, 0, 1_001],
        [1, 0, 1_002],
        [0, 1, 1_003],
    ]


def _task(number: int, reason: Record) -> tuple[bytes, bytes]:
    """Return the lines of the start and of the end of a task that runs for 1 s, and so many ms."""
    info = {
        "Task ID": number,
        "Index": number,
        "Attempt": 0,
        "Partition ID": number,
        "Launch Time": 2_000,
        "Executor ID": "1",
        "Host": "host",
        "Locality": "ANY",
        "Speculative": False,
        "Getting Result Time": 0,
        "Finish Time": 0,
    }
    task = {"Stage ID": 0, "Stage Attempt ID": 0}
    end = {
        **task,
        "Task Type": "ResultTask",
        "Task End Reason": reason,
        "Task Info": {**info, "Finish Time": 4_000},
        "Task Metrics": _lasting(1_000 + number),
    }
    return (
        _line({"Event": "SparkListenerTaskStart", **task, "Task Info": info}),
        _line({"Event": "SparkListenerTaskEnd", **end}),
    )


def _lasting(run_ms: int) -> Record:
    nothing = {"Bytes Read": 0, "Records Read": 0}
    shuffle = {"Fetch Wait Time": 0, "Remote Bytes Read": 0, "Local Bytes Read": 0, "Total Records Read": 0}
    return {
        "Executor Deserialize Time": 0,
        "Executor Run Time": run_ms,
        "Executor CPU Time": 0,
        "JVM GC Time": 0,
        "Result Serialization Time": 0,
        "Memory Bytes Spilled": 0,
        "Disk Bytes Spilled": 0,
        "Shuffle Read Metrics": shuffle,
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 0, "Shuffle Write Time": 0},
        "Input Metrics": nothing,
        "Output Metrics": {"Bytes Written": 0, "Records Written": 0},
        "Updated Blocks": [],
    }

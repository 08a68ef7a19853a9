"""What the tasks of a stage attempt measured, from a log's lines; live, the driver bridge does it.

Most of a log's lines are ends of tasks, and few stages last so long that anybody asks why. So the lines are
kept as they are, and read only if they are needed, many at a time and by columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import accumulate
from typing import Any

from spark_events.listeners.work.work import SUMS
from spark_events.sources.event_log.tasks.task_columns import (
    QUANTITIES,
    Info,
    TaskColumns,
    is_readable,
    read_tasks,
)
from spark_events.sources.event_log.tasks.task_lines import match_details

Record = dict[str, Any]
LONGEST_KEPT = 4_096
"""How long a line is at most that is kept whole, in bytes."""
_DETAILS_END = 1_024
"""Of longer lines, what they begin with is kept, the details of their task, and their metrics."""
_MOST_HOSTS = _MOST_EXECUTORS = 100
_MOST_LONGEST = 8
_LONGEST_REASON = 10_000
"""Of the text of a failed attempt, in characters: what Python raised stands at its end."""
SUCCESS, RESUBMITTED, KILLED, FETCH_FAILED = "Success", "Resubmitted", "TaskKilled", "FetchFailed"
"""Why tasks end, in Spark's words."""


def shortened(info: Info, metrics: int) -> Info | None:
    """Return the details in a line without what stands between them and its metrics; None if not found.

    Args:
        info: what has been found in the line.
        metrics: where in its line the metrics begin.
    """
    line = info.string
    return match_details(line[:_DETAILS_END] + line[metrics:], info.start())


class UnexpectedForm(ValueError):  # noqa: N818 - it is not an error: such a line is parsed as a whole
    """A line does not have the form in which Spark writes it."""


class TaskStatistics:
    """What the tasks of one stage attempt measured.

    Only first attempts that succeeded count in the distributions; speculative copies and failed attempts do
    not tell how long a task takes.

    Attributes:
        sums: the sums of the metrics of all attempts that have ended, in the order of ``work.SUMS``.
        readable: whether there was a line already whose metrics can be read.
        waiting: matches in the lines of tasks that succeeded, to be read later.
    """

    __slots__ = (
        "_between", "_distributions", "_executors", "_failed", "_fetch_failures", "_first_ms", "_hosts",
        "_killed", "_last_failure", "_last_ms", "_longest_runs", "_read", "_rows", "_without_input",
        "readable", "sums", "waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self.sums = [0] * len(SUMS)
        self.waiting: list[Info] = []
        self._between: list[tuple[int, TaskColumns]] = []
        self.readable = False
        self._read: list[TaskColumns] = []
        self._rows = 0
        self._distributions = [Distribution() for _ in QUANTITIES]
        self._hosts: dict[str, list[int]] = {}
        self._executors: dict[str, tuple[str, list[int]]] = {}
        self._without_input = [0, 0]
        self._first_ms: int | None = None
        self._last_ms = 0
        self._longest_runs: list[tuple[int, int, int, int, str, str, int]] = []
        self._failed, self._killed, self._fetch_failures = [0, 0], [0, 0], 0
        self._last_failure = ""

    def keep(self, info: Info, metrics: int) -> None:
        """Keep the line of a task that succeeded, to be read later.

        Args:
            info: a match in the line of its TaskEnd.
            metrics: where in the line its metrics begin.

        Raises:
            UnexpectedForm: as long as none was readable; those after it look the same.
        """
        kept = info if len(info.string) <= LONGEST_KEPT else shortened(info, metrics)
        self.readable = self.readable or (kept is not None and is_readable(kept))
        if kept is None or not self.readable:
            raise UnexpectedForm
        self.waiting.append(kept)

    @property
    def held(self) -> int:
        """How many tasks are kept that wait to be read, or to be added to the others."""
        return len(self.waiting) + len(self._between) + self._rows

    def forget(self) -> None:
        """Forget the tasks that wait, for nobody needs them."""
        self.waiting.clear()
        self._between.clear()

    def read_waiting(self) -> int:
        """Read the lines that wait, and return how many of them cannot be read."""
        waiting = self.waiting[:]
        self.waiting.clear()  # rather than another list, for somebody may be adding to this one
        between, self._between = self._between, []
        begin, unread = 0, 0
        for end, task in between:
            unread += self._read_lines(waiting[begin:end])
            self._read.append(task)
            begin = end
        unread += self._read_lines(waiting[begin:])
        self._rows += len(waiting) - unread + len(between)
        return unread

    def read_all(self) -> int:
        """Do the same, and bring the sums up to date."""
        unread = self.read_waiting()
        if self._read:
            read, self._read, self._rows = self._read, [], 0
            self._add(TaskColumns.joined(read))
        return unread

    def ended(self, record: Record, reason: str | None) -> None:
        """Called with a TaskEnd, and the reason that it gives."""
        task = TaskColumns.of_record(record) if record.get("Task Metrics") else None
        if task and reason == SUCCESS:
            self._between.append((len(self.waiting), task))
        elif task:
            self._add_to_sums(task)
        if reason not in (SUCCESS, RESUBMITTED):
            info = record["Task Info"]
            launched, finished = int(info.get("Launch Time") or 0), int(info.get("Finish Time") or 0)
            self._ran(launched, finished)
            took_ms = max(0, finished - launched)
            ended = self._killed if reason == KILLED else self._failed
            ended[0] += 1
            ended[1] += took_ms
            self._fetch_failures += reason == FETCH_FAILED
            if reason != KILLED and (said := _said(record["Task End Reason"])) is not None:
                self._last_failure = said[:_LONGEST_REASON]

    def record(self, most_running: int) -> Record:
        """Return all of it as a part of a record.

        Args:
            most_running: how many tasks ran at once at most.
        """
        statistics: Record = {
            "Tasks": self._distributions[0].count,
            "Most Running": most_running,
            "First Launch": self._first_ms or 0,
            "Last Finish": self._last_ms,
            "Failed": self._failed[0],
            "Failed Time": self._failed[1],
            "Fetch Failures": self._fetch_failures,
            "Last Failure": self._last_failure,
            "Killed": self._killed[0],
            "Killed Time": self._killed[1],
        }
        for quantity, distribution in zip(QUANTITIES, self._distributions, strict=True):
            statistics[quantity] = distribution.summary()
        statistics["Longest Runs"] = [list(run) for run in self._longest_runs]
        statistics["Hosts"] = dict(sorted(self._hosts.items()))
        statistics["Executors"] = self._sharing()
        statistics["Without Input"] = self._without_input[:]
        return statistics

    def _read_lines(self, lines: Sequence[Info]) -> int:
        read = list(read_tasks(lines))
        self._read += read
        return len(lines) - sum(len(tasks.number) for tasks in read)

    def _add(self, tasks: TaskColumns) -> None:
        self._ran(min(tasks.launched), max(tasks.finished))
        self._add_to_sums(tasks)
        if b"true" in tasks.speculative:
            rows = [row for row in zip(*tasks, strict=True) if row[4] != b"true"]
            if not rows:
                return
            tasks = TaskColumns.of_rows(rows)
        for distribution, values in zip(self._distributions, tasks.quantities(), strict=True):
            distribution.add(values)
        read = tasks.read()
        self._keep_longest(tasks, read)
        self._add_to_hosts(tasks, read)
        self._add_to_executors(tasks, read)
        self._add_without_input(tasks)

    def _keep_longest(self, tasks: TaskColumns, read: Sequence[int]) -> None:
        """Keep the longest tasks, the longest first; of those that are equally long, the first."""
        runs = tasks.run
        least_ms = nlargest(_MOST_LONGEST, runs)[-1]
        if len(self._longest_runs) == _MOST_LONGEST and max(runs) <= self._longest_runs[-1][2]:
            return
        rows = sorted((row for row, run in enumerate(runs) if run >= least_ms), key=lambda row: -runs[row])
        self._longest_runs += [
            (
                tasks.number[row],
                tasks.launched[row],
                runs[row],
                read[row],
                tasks.executor[row].decode(errors="replace"),
                tasks.host[row].decode(errors="replace"),
                tasks.input_records[row] + tasks.shuffle_records[row],
            )
            for row in rows[:_MOST_LONGEST]
        ]
        self._longest_runs.sort(key=lambda run: -run[2])
        del self._longest_runs[_MOST_LONGEST:]

    def _add_to_hosts(self, tasks: TaskColumns, read: Sequence[int]) -> None:
        if len(set(tasks.host)) == 1:
            columns: Iterable[tuple[bytes, int, int, int]] = (
                (tasks.host[0], len(read), sum(tasks.run), sum(read)),
            )
        else:
            columns = zip(tasks.host, [1] * len(read), tasks.run, read, strict=True)
        for name, count, run_ms, read_bytes in columns:
            host = name.decode(errors="replace")
            of_host = self._hosts.get(host)
            if of_host is None:
                if len(self._hosts) >= _MOST_HOSTS:
                    continue
                of_host = self._hosts[host] = [0, 0, 0]
            of_host[0] += count
            of_host[1] += run_ms
            of_host[2] += read_bytes

    def _add_to_executors(self, tasks: TaskColumns, read: Sequence[int]) -> None:
        if len(set(tasks.executor)) == 1:
            columns: Iterable[tuple[bytes, bytes, int, int, int]] = (
                (tasks.executor[0], tasks.host[0], len(read), sum(tasks.run), sum(read)),
            )
        else:
            columns = zip(tasks.executor, tasks.host, [1] * len(read), tasks.run, read, strict=True)
        for name, host, count, run_ms, read_bytes in columns:
            executor = name.decode(errors="replace")
            of_executor = self._executors.get(executor)
            if of_executor is None:
                if len(self._executors) >= _MOST_EXECUTORS:
                    continue
                of_executor = self._executors[executor] = (host.decode(errors="replace"), [0, 0, 0])
            work = of_executor[1]
            work[0] += count
            work[1] += run_ms
            work[2] += read_bytes

    def _sharing(self) -> dict[str, list[str | int]]:
        """Return what each executor has done that shares its host with others, after its host."""
        on_host = Counter(host for host, _ in self._executors.values())
        executors = sorted(self._executors.items())
        return {name: [host, *work] for name, (host, work) in executors if on_host[host] > 1}

    def _add_without_input(self, tasks: TaskColumns) -> None:
        without = tasks.input_bytes.count(0)
        self._without_input[0] += without
        if without == len(tasks.run):
            self._without_input[1] += sum(tasks.run)
        elif without:
            self._without_input[1] += sum(
                run_ms for run_ms, size in zip(tasks.run, tasks.input_bytes, strict=True) if not size
            )

    def _ran(self, launched_ms: int, finished_ms: int) -> None:
        self._first_ms = launched_ms if self._first_ms is None else min(self._first_ms, launched_ms)
        self._last_ms = max(self._last_ms, finished_ms)

    def _add_to_sums(self, tasks: TaskColumns) -> None:
        self.sums = list(map(sum, zip(self.sums, tasks.sums(), strict=True)))


_EXACT = 64
_MOST_DISTINCT = 8_192


class Distribution:
    """How values of 0 and more are distributed.

    A quantile below 64 is exact; above, it is the middle of a step, of which there are 32 for each power of
    two, so it is at most 1.6 % off. All arithmetic is in integers, and gives what the bridge gives.

    Attributes:
        count: how many values there are.
        total: their sum.
        highest: the highest of them; 0 if there are none.
    """

    __slots__ = ("_times", "count", "highest", "total")

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()
        self.count = self.total = self.highest = 0

    def add(self, values: Sequence[int]) -> None:
        """Add values; negative ones are left out."""
        lowest = min(values, default=-1)
        if lowest < 0:
            values = [value for value in values if value >= 0]
        if not values:
            return
        highest = max(values)
        if lowest == highest:  # often all are 0
            self._times[highest] += len(values)
        else:
            self._times.update(values)
        self.count += len(values)
        self.total += sum(values)
        self.highest = max(self.highest, highest)
        if len(self._times) > _MOST_DISTINCT:
            steps: Counter[int] = Counter()
            for value, times in self._times.items():
                steps[_middle(value)] += times
            self._times = steps

    def quantiles(self, *percents: int) -> list[int]:
        """Return for each percentage the value that so many percent of all do not exceed."""
        values = sorted(self._times)
        passed = list(accumulate(map(self._times.__getitem__, values)))
        if not values:
            return [0] * len(percents)
        ranks = (max(1, (percent * self.count + 99) // 100) for percent in percents)
        return [min(_middle(values[bisect_left(passed, rank)]), self.highest) for rank in ranks]

    def summary(self) -> list[int]:
        """Return the median, the 95th percentile, the highest value and the sum."""
        return [*self.quantiles(50, 95), self.highest, self.total]


def _middle(value: int) -> int:
    """Return the middle of the step that a value is in."""
    if value < _EXACT:
        return value
    shift = value.bit_length() - 6
    return (value >> shift << shift) + (1 << (shift - 1))


def _said(ended: Record) -> str | None:
    """Return what an attempt failed of; None if that is said elsewhere."""
    if ended.get("Reason") == "ExceptionFailure" and isinstance(ended.get("Description"), str):
        return f"{ended.get('Class Name')}: {ended['Description']}"
    lost = ended.get("Loss Reason")
    return lost if isinstance(lost, str) else None

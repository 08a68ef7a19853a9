"""The loop over a log's lines; almost all of its time goes into the ends and starts of tasks.

It is written for speed, and so against this project's customs: one long function, no calls per line but those
of C, and the insides of other objects in its hands. Each line that is not exactly like those before it, in
whatever way, goes to ``AllStageTasks``, which takes a line at a time and is written to be read. What a test
with random logs compares is that both do the same; so whatever changes there has to change here.

What was measured, of a log of Spark 4.3: a call of a Python function takes 50 to 100 ns, a regular expression
300 to 500, and reading 3,000 bytes that the core's cache no longer has takes 300; a start and an end together
take about 3 µs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spark_events.listeners.spark_records import ALL_RUNNING
from spark_events.sources.event_log.executor_states import ExecutorStates
from spark_events.sources.event_log.tasks.all_stage_tasks import AllStageTasks
from spark_events.sources.event_log.tasks.stage_tasks import FINISHED, RUNNING, StageTasks
from spark_events.sources.event_log.tasks.task_lines import (
    CLOSING,
    METRICS_KEY,
    SHUFFLE_KEY,
    TASK_END,
    TASK_START,
    match_info,
)
from spark_events.sources.event_log.tasks.task_statistics import LONGEST_KEPT, shortened

Record = dict[str, Any]
_NO_LINE = b"\n\n"
"""What no line begins with."""
_NO_STAGE = StageTasks(0, 0, 0)
_SHUFFLED = len(SHUFFLE_KEY)


class TaskLoop:
    """Takes the lines of a log.

    Args:
        stages: the tasks of its stages.
        executors: their executors.
        take: takes the records that come of lines of tasks.
        take_other: takes any other line.
        stumbled: takes the error of a line that cannot be read.
        errors: the kinds of errors that this can be.
    """

    def __init__(
        self,
        stages: AllStageTasks,
        executors: ExecutorStates,
        take: Callable[[Record], None],
        take_other: Callable[[bytes], None],
        stumbled: Callable[[Exception], None],
        errors: tuple[type[Exception], ...],
    ) -> None:
        self._stages = stages
        self._executors = executors
        self._take = take
        self._take_other = take_other
        self._stumbled = stumbled
        self._errors = errors

    def take_lines(self, lines: Sequence[bytes]) -> int:
        """Called with whole lines, each with its line feed; returns how many are of tasks."""
        stages, executors, others = self._stages, self._executors, 0
        head_of, attempts, states = stages.lines.head_of, stages.attempts, executors.states
        zeros, zeros_length, behind = executors.zeros, len(executors.zeros), stages.lines.behind
        # What the lines of starts begin with now, and those of ends; and what is known of those that do.
        of_start = of_end = _NO_LINE
        start_info = end_info = 0
        start_attempt = end_attempt = b""
        start_tasks = end_tasks = _NO_STAGE
        match_end, writes_shuffle, begins = stages.match_end, False, False
        for line in lines:
            try:
                if line.startswith(of_end):
                    ended = True
                elif line.startswith(of_start):
                    ended = False
                elif line.startswith((TASK_END, TASK_START)):
                    head = head_of(line)
                    tasks = attempts.get(head.attempt) if head else None
                    if head is None or tasks is None or not (tasks.statistics.readable or not head.ended):
                        self._take_alone(line)
                        behind = stages.lines.behind
                        continue
                    ended = head.ended
                    if ended:
                        of_end, end_info, end_attempt, _, writes_shuffle = head
                        end_tasks, end_states = tasks, tasks.states
                        keep = tasks.statistics.waiting.append
                        match_end = stages.match_end
                    else:
                        of_start, start_info, start_attempt, _, _ = head
                        start_tasks, begins = tasks, not tasks.first_launch_ms
                else:
                    others += 1
                    of_start = of_end = _NO_LINE  # for this may be the start or the end of a stage
                    self._take_other(line)
                    continue
                if ended:
                    info = match_end(line, end_info)
                    metrics = line.find(METRICS_KEY, len(line) - behind)
                    if writes_shuffle:
                        begin = line.rfind(SHUFFLE_KEY) + _SHUFFLED
                        digits = line[begin : line.find(b",", begin)]
                        shuffled = int(digits) if digits.isdigit() and begin >= _SHUFFLED else -1
                    else:
                        shuffled = 0
                    if (
                        info is None
                        or metrics < 0
                        or shuffled < 0
                        or line[-2] != CLOSING
                        or (len(line) > LONGEST_KEPT and (info := shortened(info, metrics)) is None)
                    ):
                        self._take_alone(line)
                        behind = stages.lines.behind
                        continue
                    keep(info)
                    number, executor = info.group(1, 3)
                    index = int(number)
                    if index < len(end_states) and (state := end_states[index]) & RUNNING:
                        end_tasks.running -= 1
                        if not state & FINISHED:
                            end_tasks.finished += 1
                        end_states[index] = state - 1 | FINISHED
                    if not line.startswith(zeros, metrics - zeros_length):
                        executors.measured_before(executor, line, metrics)
                        zeros, zeros_length = executors.zeros, len(executors.zeros)
                    of_executor = states.get(executor)
                    if of_executor is not None:
                        of_executor.shuffle_bytes += shuffled
                        running = of_executor.running
                        count = running.get(end_attempt, 0)
                        if count > 1:
                            running[end_attempt] = count - 1
                        elif count:
                            del running[end_attempt]
                else:
                    info = match_info(line, start_info)
                    if info is None or line[-2] != CLOSING:
                        self._take_alone(line)
                        continue
                    number, executor = info.group(1, 3)
                    if begins:
                        begins = False
                        start_tasks.first_launch_ms = start_tasks.first_launch_ms or int(info[2])
                    of_executor = states.get(executor)
                    if of_executor is None:
                        executors.started(executor, start_attempt)
                    else:
                        running = of_executor.running
                        running[start_attempt] = running.get(start_attempt, 0) + 1
                    if start_tasks.start(int(number)):
                        self._take(stages.record(start_tasks, ALL_RUNNING, int(info[2])))
            except self._errors as error:
                self._stumbled(error)
        stages.read_waiting()
        return len(lines) - others

    def _take_alone(self, line: bytes) -> None:
        stages = self._stages
        record = stages.ended(line) if line.startswith(TASK_END) else stages.started(line)
        if record is not None:
            self._take(record)

"""A stage attempt that has ended, as the rules about stages see it."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.diagnosis.measured import NO_PYTHON, PythonTimes, Spread, TaskRun, TasksMeasured

DATA_RATIO = 2
"""So many times as much as others, a task has at least that has more data."""
LOCAL = "driver"
"""The executor in local mode."""
_PER_ROW = 4
"""How many times as long a row takes at most as one of the median task."""
_MANY_TASKS, _TIMES_CORES = 20, 4
"""A stage has far more tasks than cores if it has so many, and so many for each core."""
_TOGETHER_MS, _LEAST_WAVE = 500, 3
"""Tasks that are launched within this time begin together."""


@dataclass(frozen=True, slots=True)
class EndedStage:
    """A stage attempt that has ended.

    Attributes:
        cores: of all executors at its end; 0 if unknown.
        measured: what its tasks measured.
        python: how long they waited for Python.
        retries_tasks: whether Spark tries a task again that has failed; it does not in most local modes.
        warms_up: whether it is the first stage on its executors, or of their Python workers: its first tasks
            load what all need.
        repeats: whether it makes again what was lost.
        reuses_workers: whether Python workers serve one task after the other, as they do by default.
        of_frame: whether functions of an RDD get the rows of a DataFrame, as by ``df.rdd``.
        of_objects: whether they only make DataFrames of Python objects that the driver has sent.
        writes_files: whether its tasks write anything but shuffled data.
        by_key: whether it groups an RDD by key.
        rows_from: the place in the code that divided an RDD's rows by key, such as ``groupByKey at a.py:9``;
            empty if unknown.
        of_arrow: whether most of its tasks read an Arrow batch that ``createDataFrame`` was given, each one.
        pairs_all: whether it pairs each row of an RDD with each one of another.
        hands_out: whether its functions return nothing, as those of ``foreachPartition``.
        packed: the packed file that an RDD reads; empty if there is none.
        arrow_rows: how many rows a batch for Python has at most; None if unknown.
        failed_of: what the last failed attempt of a task failed of, in one line; empty if unknown.
        reads_cache: whether its tasks read what is cached, or compute it where the cache does not have it.
        keeps_state: whether it reads or writes the state of a streaming query.
        lists_files: whether its tasks list the files of a read, for Spark itself.
        of_delta_log: whether its tasks put the state of a Delta table together, or read it.
    """

    cores: int
    measured: TasksMeasured
    python: PythonTimes = NO_PYTHON
    retries_tasks: bool = True
    warms_up: bool = False
    repeats: bool = False
    reads_cache: bool = False
    failed_of: str = ""
    reuses_workers: bool = True
    writes_files: bool = False
    by_key: bool = False
    rows_from: str = ""
    arrow_rows: int | None = None
    of_frame: bool = False
    of_objects: bool = False
    of_arrow: bool = False
    pairs_all: bool = False
    hands_out: bool = False
    packed: str = ""
    keeps_state: bool = False
    lists_files: bool = False
    of_delta_log: bool = False

    @property
    def wall_ms(self) -> int:
        """From the start of the first task to the end of the last, in ms."""
        return max(0, self.measured.last_ms - self.measured.first_ms)

    @property
    def has_far_more_tasks(self) -> bool:
        """Whether it has many more tasks than there are cores, so that fewer of them would do."""
        return self.measured.tasks >= max(_MANY_TASKS, _TIMES_CORES * self.cores) and self.cores > 0

    @property
    def slots(self) -> int:
        """How many tasks ran at once; Spark may report a start before the end that made room for it."""
        return min(self.measured.most_running, self.cores or self.measured.most_running)

    def longest(self) -> tuple[TaskRun, int] | None:
        """Return the task that takes longest for a reason of its own, and how long, in ms; None if unknown.

        The first tasks of Python workers, and of executors, wait for what all of them need to be loaded. That
        is as long as the second longest of those that began together, and does not count; unless Spark has
        measured that less of their time went into it, or they read more than others. Where the first task of
        each core takes long, it is for something that all of them do for the first time; two cores show that
        only where those are half of all tasks.
        """
        runs, median_ms = self.measured.longest_runs, self.measured.run.median
        first = [run for run in runs if self._is_first(run) and not self.reads_more(run)]
        usual_ms = max(0, first[1].run_ms - median_ms) if len(first) > 1 else 0
        late = [run for run in first if run.run_ms > DATA_RATIO * median_ms]
        if not self.warms_up and not self._is_whole_wave(len(late)):
            usual_ms = min(usual_ms, self.python.start_ms)
        own_ms = [run.run_ms - usual_ms * (run in first) for run in runs]
        if not own_ms:
            return None
        place = own_ms.index(max(own_ms))
        return runs[place], own_ms[place]

    def reads_more(self, run: TaskRun) -> bool:
        """Return whether a task reads much more than others.

        By rows, where Spark has not measured the bytes; and of shuffles, whose rows with the same key are
        compressed to few bytes. Rows are of any size, so they have to explain how much longer the task runs.
        """
        if self.reads_more_bytes(run):
            return True
        rows = self.usual(self.measured.rows)
        if self.measured.read.highest and not self.reads_shuffles:
            return False
        explained_ms = _PER_ROW * self.usual(self.measured.run) * run.read_rows // max(1, rows)
        return run.read_rows > DATA_RATIO * rows and run.run_ms <= explained_ms

    def reads_more_bytes(self, run: TaskRun) -> bool:
        """Return whether a task reads many more bytes than others."""
        return run.read_bytes > DATA_RATIO * self.usual(self.measured.read)

    @property
    def is_local(self) -> bool:
        """Whether the driver ran its tasks."""
        runs = self.measured.longest_runs
        return bool(runs) and all(run.executor == LOCAL for run in runs)

    @property
    def reads_shuffles(self) -> bool:
        """Whether its tasks read from shuffles alone, as far as is measured."""
        measured = self.measured
        return bool(measured.read.highest) and measured.without_input.tasks >= measured.tasks

    def usual(self, spread: Spread) -> int:
        """Return what the median task has of something; of two tasks, what the one has that has less."""
        return spread.total - spread.highest if self.measured.tasks == 2 else spread.median

    def ends_late(self, long_ms: float) -> bool:
        """Return whether a task that is longer than this is among those that end last."""
        runs, run = self.measured.longest_runs, self.measured.run
        # A task does not run yet while it is sent and unpacked: the first ones for some seconds.
        around_ms = max(0, self.measured.spreads["Duration"].highest - run.highest)
        last_ms = self.measured.last_ms - run.median - around_ms
        return any(run.run_ms > long_ms and run.launched_ms + run.run_ms >= last_ms for run in runs)

    @property
    def failed_share(self) -> float:
        """The share of task attempts that failed."""
        failed = self.measured.failed
        return failed / (failed + self.measured.tasks) if failed else 0.0

    def _is_first(self, run: TaskRun) -> bool:
        return run.launched_ms - self.measured.first_ms <= _TOGETHER_MS

    def _is_whole_wave(self, late: int) -> bool:
        return late >= self.slots and (late >= _LEAST_WAVE or 2 * late >= self.measured.tasks)

    def as_wall_ms(self, task_ms: int) -> int:
        """Return how long a time of tasks lasts if as many run at once as ran at most."""
        return task_ms // self.slots

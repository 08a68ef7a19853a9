"""The settings of diagnoses, below ``spark.events.issue.``: from when on something is worth an event."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.api import option_types as types
from spark_events.runtime.settings import setting

(
    SKEW,
    STRAGGLER,
    SLOW_NODE,
    SPILL,
    GC,
    MEMORY,
    IDLE_CORES,
    TASK_COUNT,
    SMALL_FILES,
    RETRIES,
    PYTHON,
    EXPLODING_JOIN,
    CROSS_JOIN,
    MISSING_BROADCAST,
    LARGE_BROADCAST,
    FULL_SCAN,
    WINDOW,
    RECOMPUTATION,
    COLLECT,
    FOREACH_BATCH,
    STATE_GROWTH,
    SOURCE_STOPPED,
    STREAM_BEHIND,
    UNREAD_CACHE,
    REWRITE,
    EXECUTOR_CHURN,
    SMALL_JOBS,
    REGRESSION,
) = KINDS = (
    "skew",
    "straggler",
    "slow-node",
    "spill",
    "gc",
    "memory",
    "idle-cores",
    "task-count",
    "small-files",
    "retries",
    "python",
    "exploding-join",
    "cross-join",
    "missing-broadcast",
    "large-broadcast",
    "full-scan",
    "window",
    "recomputation",
    "collect",
    "foreach-batch",
    "state-growth",
    "source-stopped",
    "stream-behind",
    "cache-never-read",
    "rewrite-whole-files",
    "executor-churn",
    "loop-of-small-jobs",
    "regression",
)


_USUAL_MIN_TIME_MS, _USUAL_IDLE_MS, _USUAL_LONG_TASK_MS = 30_000, 120_000, 60_000


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when on something is worth an event; durations are in ms, sizes in bytes, shares from 0 to 1."""

    kinds: tuple[str, ...] = setting(
        "spark.events.issues",
        types.some_of(*KINDS),
        KINDS,
        "The [issues](why.md) to look for.",
    )
    min_time_ms: int = setting(
        "spark.events.issue.min.time",
        types.DURATION,
        _USUAL_MIN_TIME_MS,
        "An issue that costs less time is not reported.",
    )
    min_share: float = setting(
        "spark.events.issue.min.share",
        types.RATIO,
        0.05,
        "Nor is one that costs a smaller share of the time of the job, query or application that has it.",
    )
    min_bytes: int = setting(
        "spark.events.issue.min.bytes",
        types.SIZE,
        1 << 30,
        "Nor a spill to disk, unused memory or small files of fewer bytes.",
    )
    skew_ratio: int = setting(
        "spark.events.issue.skew.ratio",
        types.at_least(1, types.INT),
        3,
        "For `skew` and `straggler`: how many times as long as the median the longest task takes at least.",
    )
    running_ratio: int = setting(
        "spark.events.issue.straggler.running.ratio",
        types.at_least(1, types.INT),
        3,
        "For a `straggler` that still runs when three quarters of the tasks are done: the same.",
    )
    slow_node_ratio: int = setting(
        "spark.events.issue.slow-node.ratio",
        types.at_least(1, types.INT),
        2,
        "For `slow-node`: how many times as long as elsewhere tasks take on a host at least.",
    )
    slow_node_stages: int = setting(
        "spark.events.issue.slow-node.stages",
        types.at_least(1, types.INT),
        3,
        "For `slow-node`: in how many stages at least.",
    )
    gc_warn: float = setting(
        "spark.events.issue.gc.warn",
        types.RATIO,
        0.10,
        "For `gc`: share of the tasks' run time that garbage collection takes at least.",
    )
    gc_error: float = setting(
        "spark.events.issue.gc.error", types.RATIO, 0.20, "For `gc`: the share that makes it an ERROR."
    )
    memory_unused: float = setting(
        "spark.events.issue.memory.unused",
        types.RATIO,
        0.50,
        "For `memory`: a heap that is never fuller than this in any executor is too large.",
    )
    idle_share: float = setting(
        "spark.events.issue.idle-cores.share",
        types.RATIO,
        0.20,
        "For `idle-cores`: share of the time of the application in which no stage ran, at least.",
    )
    idle_time_ms: int = setting(
        "spark.events.issue.idle-cores.time",
        types.DURATION,
        _USUAL_IDLE_MS,
        "For `idle-cores` and `loop-of-small-jobs`: for how long at least; unless it is set, in "
        "proportion less where `spark.events.issue.min.time` is below 30 s.",
    )
    many_tasks: int = setting(
        "spark.events.issue.task-count.many",
        types.at_least(1, types.INT),
        5_000,
        "For `task-count`: more tasks than this in a stage are too many if they are short.",
    )
    short_task_ms: int = setting(
        "spark.events.issue.task-count.short",
        types.DURATION,
        500,
        "For `task-count`: how short, at the median.",
    )
    long_task_ms: int = setting(
        "spark.events.issue.task-count.long",
        types.DURATION,
        _USUAL_LONG_TASK_MS,
        "For `task-count`: fewer tasks than cores are too few if they take longer than this; unless it "
        "is set, in proportion less where `spark.events.issue.min.time` is below 30 s.",
    )
    many_files: int = setting(
        "spark.events.issue.small-files.many",
        types.at_least(1, types.INT),
        100,
        "For `small-files`: more files than this are too many if they are small.",
    )
    small_file_bytes: int = setting(
        "spark.events.issue.small-files.size",
        types.SIZE,
        3 << 20,
        "For `small-files`: how small, on average.",
    )
    failed_share: float = setting(
        "spark.events.issue.retries.share",
        types.RATIO,
        0.10,
        "For `retries`: share of a stage's task attempts that failed, at least.",
    )
    python_share: float = setting(
        "spark.events.issue.python.share",
        types.RATIO,
        0.50,
        "For `python`: share of the tasks' run time in Python functions, at least.",
    )
    explosion_ratio: int = setting(
        "spark.events.issue.exploding-join.ratio",
        types.at_least(2, types.INT),
        10,
        "For `exploding-join`: how many times as many rows as it reads a join makes at least.",
    )
    explosion_rows: int = setting(
        "spark.events.issue.exploding-join.rows",
        types.at_least(1, types.INT),
        100_000,
        "For `exploding-join`: how many rows at least; for `cross-join`, how many pairs.",
    )
    small_side_bytes: int = setting(
        "spark.events.issue.missing-broadcast.size",
        types.SIZE,
        10 << 20,
        "For `missing-broadcast`: how large the smaller side of a join is at most.",
    )
    broadcast_bytes: int = setting(
        "spark.events.issue.large-broadcast.size",
        types.SIZE,
        96 << 20,
        "For `large-broadcast`: how large what is sent to all executors is at least. Spark allocates up to "
        "64 MiB for however few rows.",
    )
    scan_kept: float = setting(
        "spark.events.issue.full-scan.kept",
        types.RATIO,
        0.20,
        "For `full-scan`: the share of the rows of all partitions that a filter keeps at most.",
    )
    silence_ms: int = setting(
        "spark.events.issue.source-stopped.time",
        types.DURATION,
        600_000,
        "For `source-stopped`: how long no rows have come at least; and five times as long as ever before.",
    )
    past_dir: str | None = setting(
        "spark.events.issue.regression.dir",
        types.STRING,
        None,
        "For `regression`: a folder, or a URL that fsspec knows, where each run of a batch application keeps "
        "how long its work took, so that its next runs can be [compared](why.md#compared-with-its-own-past) "
        "with it. Micro-batches are compared without it.",
        example="s3a://ops/spark-runs",
    )
    past_runs: int = setting(
        "spark.events.issue.regression.runs",
        types.at_least(5, types.INT),
        20,
        "For `regression`: with how many earlier runs, or micro-batches, to compare at most.",
    )
    regression_percent: int = setting(
        "spark.events.issue.regression.percent",
        types.at_least(100, types.INT),
        150,
        "For `regression`: how long something takes at least, in percent of the 95th percentile of those.",
    )
    tell_sql: bool = setting(
        "spark.events.issue.sql",
        types.BOOL,
        False,
        "Whether an issue has the first 200 characters of the description of its job, or of its SQL "
        "execution, which may be a statement's text.",
    )

    @property
    def least_idle_ms(self) -> int:
        """For how long only the driver works at least; see ``_scaled``."""
        return self._scaled(self.idle_time_ms, _USUAL_IDLE_MS)

    @property
    def least_long_task_ms(self) -> int:
        """How long the tasks take at least of a stage that has too few of them; see ``_scaled``."""
        return self._scaled(self.long_task_ms, _USUAL_LONG_TASK_MS)

    def _scaled(self, time_ms: int, usual_ms: int) -> int:
        """Return a duration; nobody who looks for smaller issues than usual has to set it as well."""
        if time_ms != usual_ms:
            return time_ms
        return min(time_ms, time_ms * self.min_time_ms // _USUAL_MIN_TIME_MS)

    @property
    def compares_runs(self) -> bool:
        """Whether runs are compared with earlier ones."""
        return self.past_dir is not None and REGRESSION in self.kinds

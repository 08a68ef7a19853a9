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
    EXPANDED_ROWS,
    NO_DUPLICATES,
    LATE_FILTER,
    NEEDLESS_SHUFFLE,
    SLOW_PATTERN,
    LONG_CASE,
    COMPRESSION,
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
    SMALL_BATCHES,
    SLOW_LISTENERS,
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
    "expanded-rows",
    "no-duplicates",
    "late-filter",
    "needless-shuffle",
    "slow-pattern",
    "long-case",
    "compression",
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
    "small-batches",
    "slow-listeners",
    "regression",
)


_USUAL_START_MS, _LEAST_START_MS = 60_000, 20_000
_USUAL_MIN_TIME_MS, _USUAL_IDLE_MS, _USUAL_LONG_TASK_MS = 30_000, 120_000, 60_000
_USUAL_MIN_BYTES = 1 << 30
_USUAL_TASKS, _LEAST_TASKS = 5_000, 500


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when on something is worth an event; durations are in ms, sizes in bytes, ratios from 0 to 1."""

    kinds: tuple[str, ...] = setting(
        "spark.events.issue.kinds",
        types.some_of(*KINDS),
        KINDS,
        "The [issues](performance-issues.md) to look for.",
    )
    min_time_ms: int = setting(
        "spark.events.issue.min-duration",
        types.DURATION,
        _USUAL_MIN_TIME_MS,
        "Ignore issues that cost less time than this.",
    )
    min_share: float = setting(
        "spark.events.issue.min-ratio",
        types.RATIO,
        0.05,
        "Ignore issues that cost less than this share of the affected job's, query's or application's time.",
    )
    min_bytes: int = setting(
        "spark.events.issue.min-bytes",
        types.SIZE,
        _USUAL_MIN_BYTES,
        "Ignore spills to disk, unused memory and small files below this size. Unless it is set, smaller "
        "spills count, too, if they take long.",
    )
    skew_factor: float = setting(
        "spark.events.issue.skew.min-factor",
        types.FACTOR,
        3.0,
        "`skew`, `straggler`: report a stage whose longest task takes at least this many times the median.",
    )
    running_factor: float = setting(
        "spark.events.issue.straggler.min-factor",
        types.FACTOR,
        3.0,
        "`straggler`: the same factor for a task that is still running once 75 % of the tasks have finished.",
    )
    slow_node_factor: float = setting(
        "spark.events.issue.slow-node.min-factor",
        types.FACTOR,
        2.0,
        "`slow-node`: report a host on which tasks take at least this many times as long as elsewhere.",
    )
    slow_node_stages: int = setting(
        "spark.events.issue.slow-node.min-stages",
        types.at_least(1, types.INT),
        3,
        "`slow-node`: report a host only if this is so in at least this many stages.",
    )
    gc_warn: float = setting(
        "spark.events.issue.gc.warn-ratio",
        types.RATIO,
        0.10,
        "`gc`: report garbage collection that takes at least this share of the tasks' run time.",
    )
    gc_error: float = setting(
        "spark.events.issue.gc.error-ratio", types.RATIO, 0.20, "`gc`: the share from which it is an ERROR."
    )
    memory_unused: float = setting(
        "spark.events.issue.memory.max-used-ratio",
        types.RATIO,
        0.50,
        "`memory`: report a heap that is never fuller than this in any executor.",
    )
    idle_share: float = setting(
        "spark.events.issue.idle-cores.min-ratio",
        types.RATIO,
        0.20,
        "`idle-cores`: report an application in which no stage runs for at least this share of its time.",
    )
    idle_time_ms: int = setting(
        "spark.events.issue.idle-cores.min-duration",
        types.DURATION,
        _USUAL_IDLE_MS,
        "`idle-cores`, `loop-of-small-jobs`: report them only if no stage runs for at least this time in "
        "all. If `spark.events.issue.min-duration` is below 30 s, this default shrinks in proportion.",
    )
    many_tasks: int = setting(
        "spark.events.issue.task-count.max-tasks",
        types.at_least(1, types.INT),
        _USUAL_TASKS,
        "`task-count`: more tasks than this in a stage are too many if they are short. If "
        "`spark.events.issue.min-duration` is below 30 s, this default shrinks, to 500 at least.",
    )
    short_task_ms: int = setting(
        "spark.events.issue.task-count.min-task-duration",
        types.DURATION,
        500,
        "`task-count`: tasks are short if their median is below this.",
    )
    long_task_ms: int = setting(
        "spark.events.issue.task-count.max-task-duration",
        types.DURATION,
        _USUAL_LONG_TASK_MS,
        "`task-count`: fewer tasks than cores are too few if they take longer than this. If "
        "`spark.events.issue.min-duration` is below 30 s, this default shrinks in proportion.",
    )
    many_files: int = setting(
        "spark.events.issue.small-files.max-files",
        types.at_least(1, types.INT),
        100,
        "`small-files`: more files than this are too many if they are small.",
    )
    small_file_bytes: int = setting(
        "spark.events.issue.small-files.min-file-bytes",
        types.SIZE,
        3 << 20,
        "`small-files`: files are small if their mean size is below this.",
    )
    failed_share: float = setting(
        "spark.events.issue.retries.min-ratio",
        types.RATIO,
        0.10,
        "`retries`: report a stage in which at least this share of the task attempts failed.",
    )
    python_share: float = setting(
        "spark.events.issue.python.min-ratio",
        types.RATIO,
        0.50,
        "`python`: report Python functions that take at least this share of the tasks' run time.",
    )
    explosion_factor: float = setting(
        "spark.events.issue.exploding-join.min-factor",
        types.FACTOR,
        10.0,
        "`exploding-join`: report a join that makes at least this many times the rows of its larger side; 2 "
        "where duplicates are dropped afterwards.",
    )
    explosion_rows: int = setting(
        "spark.events.issue.exploding-join.min-rows",
        types.at_least(1, types.INT),
        100_000,
        "`exploding-join`, `expanded-rows`: ignore those that make fewer rows than this; `no-duplicates`, "
        "`late-filter`: ignore those that compare fewer rows; `cross-join`: ignore those that compare fewer "
        "pairs.",
    )
    small_side_bytes: int = setting(
        "spark.events.issue.missing-broadcast.max-bytes",
        types.SIZE,
        10 << 20,
        "`missing-broadcast`: largest size of a join's smaller side that should be broadcast.",
    )
    broadcast_bytes: int = setting(
        "spark.events.issue.large-broadcast.min-bytes",
        types.SIZE,
        96 << 20,
        "`large-broadcast`: report broadcasts of at least this size. Spark allocates up to 64 MiB "
        "even for a few rows.",
    )
    scan_kept: float = setting(
        "spark.events.issue.full-scan.max-kept-ratio",
        types.RATIO,
        0.20,
        "`full-scan`: report a scan of all partitions if a filter keeps at most this share of their rows.",
    )
    silence_ms: int = setting(
        "spark.events.issue.source-stopped.min-duration",
        types.DURATION,
        600_000,
        "`source-stopped`: report a source without rows for this long, and five times as long as ever "
        "before.",
    )
    past_dir: str | None = setting(
        "spark.events.issue.regression.dir",
        types.STRING,
        None,
        "`regression`: a folder, or a URL that fsspec knows, in which each run of a batch application stores "
        "how long its work took, so that later runs can be [compared](why.md#compared-with-its-own-past) "
        "with it. Micro-batches are compared without it.",
        example="s3a://ops/spark-runs",
    )
    past_runs: int = setting(
        "spark.events.issue.regression.max-runs",
        types.at_least(5, types.INT),
        20,
        "`regression`: maximum number of earlier runs, or micro-batches, to compare with.",
    )
    regression_factor: float = setting(
        "spark.events.issue.regression.min-factor",
        types.FACTOR,
        1.5,
        "`regression`: report what takes at least this many times those runs' 95th percentile.",
    )
    tell_sql: bool = setting(
        "spark.events.issue.include-description",
        types.BOOL,
        False,
        "Include in issues the first 200 characters of the description of the job or SQL execution, which "
        "may be a statement's text.",
    )

    @property
    def least_idle_ms(self) -> int:
        """For how long only the driver works at least; see ``_scaled``."""
        return self._scaled(self.idle_time_ms, _USUAL_IDLE_MS)

    @property
    def usual_start_ms(self) -> int:
        """How long an application takes until its first stage: to load classes, and to look at what it reads.

        Whoever looks for smaller issues than usual has smaller applications, which still have to start.
        """
        return max(_LEAST_START_MS, self._scaled(_USUAL_START_MS, _USUAL_START_MS))

    @property
    def least_long_task_ms(self) -> int:
        """How long the tasks take at least of a stage that has too few of them; see ``_scaled``."""
        return self._scaled(self.long_task_ms, _USUAL_LONG_TASK_MS)

    @property
    def least_many_tasks(self) -> int:
        """More tasks than this in a stage are many; see ``_scaled``."""
        return min(self.many_tasks, max(_LEAST_TASKS, self._scaled(self.many_tasks, _USUAL_TASKS)))

    @property
    def tells_long_spills(self) -> bool:
        """Whether spills of any size count if they take long: nobody has said from which size on they do."""
        return self.min_bytes == _USUAL_MIN_BYTES

    def _scaled(self, time_ms: int, usual_ms: int) -> int:
        """Return a duration; nobody who looks for smaller issues than usual has to set it as well."""
        if time_ms != usual_ms:
            return time_ms
        return min(time_ms, time_ms * self.min_time_ms // _USUAL_MIN_TIME_MS)

    @property
    def compares_runs(self) -> bool:
        """Whether runs are compared with earlier ones."""
        return self.past_dir is not None and REGRESSION in self.kinds

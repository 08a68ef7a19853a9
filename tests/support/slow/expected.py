"""Which issues of spark-events name a cause: the one file to change when issues get other names.

A finding counts only if its reader would understand the true cause from its sentence.
"""

from __future__ import annotations

KINDS: dict[str, frozenset[str]] = {
    cause: frozenset(issues.split())
    for cause, issues in {
        "skew": "skew",
        "explode-skew": "explode-skew skew straggler",
        "straggler": "straggler",
        "one-task": "too-few-tasks task-count",
        "half-of-the-cores": "too-few-tasks task-count",
        "too-many-tasks": "too-many-tasks tiny-partitions task-count",
        "tiny-partitions": "too-many-tasks tiny-partitions task-count",
        "shuffle-partitions": "shuffle-partitions too-many-tasks tiny-partitions task-count",
        "cores-held": "idle-cores",
        "retries": "retries",
        "python-row-by-row": "python python-row-by-row",
        "udf-in-rdd": "python udf-in-rdd",
        "loop-of-small-jobs": "loop-of-small-jobs idle-cores",
        "collect-to-driver": "collect",
        "driver-alone": "driver-alone idle-cores",
        "rewrite-whole-files": "rewrite-whole-files",
        "planning": "idle-cores",
        "window-without-partition-by": "window",
        "frames-to-the-end": "window",
        "rows-dropped-by-the-next-join": "exploding-join",
        "read-in-branches": "recomputation",
        "exploding-join": "exploding-join",
        "duplicates-dropped": "exploding-join",
        "columns-one-by-one": "recomputation",
        "cartesian": "cross-join",
        "nested-loop-join": "cross-join",
        "not-in": "cross-join",
        "broadcast-too-large": "large-broadcast",
        "broadcast-missing": "missing-broadcast",
        "unsplittable-file": "task-count",
        "small-files-read": "small-files-read small-files",
        "small-files-written": "small-files-written small-files",
        "full-scan-of-partitions": "full-scan",
        "recomputed-not-cached": "recomputation",
        "cache-evicted": "recomputation",
        "cache-never-read": "cache-never-read",
        "spill": "spill",
        "gc": "gc",
        "memory-unused": "memory-unused memory",
        "slow-node": "slow-node",
        "executor-churn": "executor-churn",
        "fetch-failures": "fetch-failures retries",
        "regression": "regression",
        "foreach-batch-code": "foreach-batch",
        "stream-straggler": "straggler",
        "stream-behind": "stream-behind",
        "state-grows": "state-growth",
        "source-stopped": "source-stopped",
        "slow-executor": "slow-node",
        "fetched-one-by-one": "task-count",
        "schema-inference": "full-scan",
        "slow-source": "idle-cores",
        "rewritten-in-batches": "rewrite-whole-files",
        "small-batches": "small-batches",
        "batch-computed-again": "recomputation",
        "cached-on-one-executor": "idle-cores",
        "parsed-for-each-field": "recomputation",
        "partitions-chosen-in-python": "full-scan",
        "sorted-again": "recomputation",
        "called-for-filter": "recomputation",
        "called-to-sort": "recomputation",
        "computed-in-a-loop": "recomputation",
        "cached-anew": "recomputation",
        "large-closure": "python",
        "few-rows-for-python": "python",
        "static-side": "recomputation",
        "complete-mode": "rewrite-whole-files",
        "folders-in-batches": "small-files",
        "many-state-parts": "task-count",
        "frames-joined": "recomputation",
        "listed-again": "recomputation",
        "pairs-tried": "exploding-join",
        "expanded-rows": "expanded-rows",
        "no-duplicates": "no-duplicates",
        "computed-to-sort": "recomputation",
        "pivot-values": "recomputation",
        "text-parsed-again": "recomputation",
        "checkpoint-not-kept": "recomputation",
        "foreach-row-by-row": "foreach-batch",
    }.items()
}
"""By cause, the issues that say it."""

BESIDE: dict[str, frozenset[str]] = {
    "executor-churn": frozenset({"retries"}),
    "fetch-failures": frozenset({"executor-churn"}),
    "slow-node": frozenset({"straggler"}),
    "slow-executor": frozenset({"straggler"}),
    "cache-evicted": frozenset({"gc"}),
    "cache-never-read": frozenset({"gc"}),
    "expanded-rows": frozenset({"gc", "spill"}),
    "no-duplicates": frozenset({"gc", "spill"}),
    "spill": frozenset({"gc"}),
    "gc": frozenset({"spill"}),
    "broadcast-too-large": frozenset({"gc"}),
    "collect-to-driver": frozenset({"gc"}),
    "stream-behind": frozenset({"regression"}),
    "frames-joined": frozenset({"large-broadcast"}),
}
"""By cause, issues that are true beside it, and that do not say it."""

THRESHOLDS = {
    "spark.events.issue.min-duration": "1s",
    "spark.events.issue.min-bytes": "16m",
    "spark.events.issue.idle-cores.min-duration": "4s",
    "spark.events.issue.source-stopped.min-duration": "10s",
    "spark.events.issue.task-count.max-tasks": "1000",
    "spark.events.issue.task-count.max-task-duration": "3s",
}
"""Settings for applications that take seconds instead of hours."""

ON_EXECUTORS = {"spark.events.issue.min-bytes": "2g"}
"""Where executors are processes of their own: half a gigabyte is the smallest heap, and is hardly used."""

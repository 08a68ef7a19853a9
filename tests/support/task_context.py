"""PySpark's TaskContext of one task, without a task."""

from __future__ import annotations


class TaskContextOfOneTask:
    """What PySpark's TaskContext tells."""

    def stageId(self) -> int:  # noqa: N802 - PySpark's names
        return 3

    def partitionId(self) -> int:  # noqa: N802
        return 1

    def attemptNumber(self) -> int:  # noqa: N802
        return 0

    def taskAttemptId(self) -> int:  # noqa: N802
        return 7

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802
        return "run-1" if key == "spark.jobGroup.id" else None

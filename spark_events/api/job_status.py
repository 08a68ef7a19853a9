"""The status of a job of any kind, with Flink's names."""

from __future__ import annotations

import enum


class JobStatus(enum.Enum):
    """Flink's ``JobStatus``."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"

    @property
    def terminal(self) -> bool:
        """Whether only a restart can follow."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

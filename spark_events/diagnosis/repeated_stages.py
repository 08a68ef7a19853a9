"""Which stage attempts make again what had been made before."""

from __future__ import annotations

_MOST_FAILED = 10_000


class RepeatedStages:
    """Knows of each stage attempt of one application whether it makes again what was lost.

    A stage has another attempt after one that failed, which it completes, or because executors are gone that
    had what it wrote. That may have been written by another job: then the first attempt that anybody sees has
    a number above zero.
    """

    def __init__(self) -> None:
        # In the order in which they did; of those long ago, nothing runs again.
        self._failed: dict[int, None] = {}

    def ended(self, stage: int, attempt: int, failed: bool) -> bool:
        """Called when a stage attempt has ended; returns whether it made something again.

        Args:
            stage, attempt: its numbers.
            failed: whether this attempt did not complete the stage.
        """
        again = attempt > 0 and stage not in self._failed
        if failed:
            self._failed[stage] = None
            if len(self._failed) > _MOST_FAILED:
                self._failed.pop(next(iter(self._failed)))
        else:
            self._failed.pop(stage, None)
        return again

"""Which stage attempts make again what had been made before."""

from __future__ import annotations

_MOST_ENDED = 10_000


class RepeatedStages:
    """Knows of each stage attempt of one application whether it makes again what was lost.

    A stage has another attempt after one that failed, which it completes, or because executors are gone that
    had what it wrote. That may have been written by another job: then the first attempt that anybody sees has
    a number above zero, after the failure of a stage that could not read it. Where no failure was seen, as by
    those who come late, nobody knows.
    """

    def __init__(self) -> None:
        # Whether the last attempt of each succeeded, in the order of the first; long ago, nothing runs again.
        self._succeeded: dict[int, bool] = {}
        self._any_failed = False

    def ended(self, stage: int, attempt: int, failed: bool) -> bool:
        """Called when a stage attempt has ended; returns whether it made something again.

        Args:
            stage, attempt: its numbers.
            failed: whether this attempt did not complete the stage.
        """
        again = attempt > 0 and self._succeeded.get(stage, self._any_failed)
        self._succeeded[stage] = not failed
        self._any_failed = self._any_failed or failed
        if len(self._succeeded) > _MOST_ENDED:
            self._succeeded.pop(next(iter(self._succeeded)))
        return again

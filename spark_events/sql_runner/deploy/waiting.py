"""The one way in which a deployer waits for what an application does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

_LOOK_EVERY_S = 0.3
_Found = TypeVar("_Found")


class Interrupted(Exception):  # noqa: N818 - says what happened, and no fault of the caller's
    """The waiting of a deployer that was told to stop."""


class Waiting:
    """Waits of one deployer, in all its threads, which end together."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End all waiting, now and later, with ``Interrupted``."""
        self._stopped.set()

    def check(self) -> None:
        """Raise ``Interrupted`` if the deployer was told to stop."""
        if self._stopped.is_set():
            raise Interrupted

    def wait_for(self, look: Callable[[], _Found | None], timeout_s: float) -> _Found | None:
        """Return what ``look`` returns as soon as that is not None; None if the time is over before.

        What ``look`` raises ends the waiting. It is called at least once, and once more after the time.

        Raises:
            Interrupted: the deployer was told to stop.
        """
        until = time.monotonic() + timeout_s
        while True:
            is_last = time.monotonic() > until
            if (result := look()) is not None or is_last:
                return result
            if self._stopped.wait(_LOOK_EVERY_S):
                raise Interrupted

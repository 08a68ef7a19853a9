"""Logs each kind of trouble once, so that a broken plugin cannot fill a log."""

from __future__ import annotations

import logging
import threading

logger = logging.getLogger("spark_events")


class OnceLog:
    """Remembers what it has logged. Safe to use from any thread."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, ...]] = set()
        self._lock = threading.Lock()

    def error(self, key: tuple[str, ...], message: str, error: BaseException | None = None) -> None:
        """Log an error, with its traceback, unless the same key was logged before."""
        with self._lock:
            first = key not in self._logged
            self._logged.add(key)
        if first:
            logger.error("%s (repeats are counted, not logged)", message, exc_info=error)

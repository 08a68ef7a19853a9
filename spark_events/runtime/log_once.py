"""Logs each kind of trouble once, and counts its repeats, so that a broken plugin cannot fill a log."""

from __future__ import annotations

import logging
import threading
from collections import Counter

logger = logging.getLogger("spark_events")


class OnceLog:
    """Remembers what it has logged. Safe to use from any thread."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._lock = threading.Lock()

    def error(self, key: tuple[str, ...], message: str, error: BaseException | None = None) -> None:
        """Log an error, with its traceback, unless the same key was logged before."""
        with self._lock:
            self._seen[key] += 1
            first = self._seen[key] == 1
        if first:
            logger.error("%s (repeats are counted, not logged)", message, exc_info=error)

    def repeats(self) -> dict[tuple[str, ...], int]:
        """Return how often each key came."""
        with self._lock:
            return dict(self._seen)

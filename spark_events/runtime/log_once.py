"""Logs each kind of trouble once, so that neither a broken plugin nor a destination can fill a log."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress


def never_raising(logger: logging.Logger) -> logging.Logger:
    """Return a logger that raises nothing if a handler or a filter does, which may be the application's own.

    It does not hold for the loggers below it.
    """
    hand_on = logger.handle

    def handle(record: logging.LogRecord) -> None:
        with suppress(Exception):
            hand_on(record)

    logger.handle = handle  # type: ignore[method-assign]
    return logger


logger = never_raising(logging.getLogger("spark_events"))
_MOST_OF_A_KIND = 10
_WARN_AGAIN_S = 60.0


class OnceLog:
    """Remembers what it has logged. Safe to use from any thread."""

    def __init__(self) -> None:
        self._logged: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        self._lock = threading.RLock()

    def error(self, key: tuple[str, ...], message: str, error: BaseException | None = None) -> None:
        """Log an error, with its traceback, unless the same key was logged before.

        Of keys that begin with the same two texts only some are logged: a destination may give another reason
        each time.
        """
        with self._lock:
            alike = self._logged.setdefault(key[:2], set())
            if key in alike or len(alike) >= _MOST_OF_A_KIND:
                return
            alike.add(key)
            last = len(alike) == _MOST_OF_A_KIND
        repeats = (
            "errors like this are not logged any more, whatever they say"
            if last
            else "repeats are not logged"
        )
        logger.error("%s (%s; they are counted)", message, repeats, exc_info=error)


class TroubleLog:
    """Logs that something is in trouble, and that it is over: once a minute at most, however it changes.

    Only one thread at a time uses it.
    """

    def __init__(self) -> None:
        self._reason: str | None = None
        self._quiet_until = float("-inf")

    def goes_on(self, reason: str, message: str, *arguments: object) -> None:
        """Log a warning, unless it was logged for this reason, or less than a minute ago for another."""
        now = time.monotonic()
        if reason == self._reason or now < self._quiet_until:
            return
        self._reason, self._quiet_until = reason, now + _WARN_AGAIN_S
        logger.warning(message, *arguments)

    def over(self, message: str, *arguments: object) -> None:
        """Log that it is over, if it was logged."""
        if self._reason is not None:
            logger.warning(message, *arguments)
            self._reason = None

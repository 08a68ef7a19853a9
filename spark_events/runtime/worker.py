"""The thread and the bounded queue of one reporter: whatever the reporter does, it does it there alone."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from typing import Any

from spark_events.api import ConfigError, Reporter, RetryLater
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.setup import ReporterSetup
from spark_events.runtime.stats import ReporterStats

_BATCH = 512
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 30.0
_GIVE_UP_BEFORE_S = 0.2
"""How long before the deadline a retrying worker ends, so that the reporter's ``close`` has time."""

Item = tuple[str, tuple[Any, ...]]
"""A method of the reporter, and its arguments."""


class Worker:
    """Creates, opens, feeds and closes one reporter, on a daemon thread.

    Daemon, because a reporter that blocks for ever must not keep the user's process from ending.

    Args:
        setup: the reporter as it is configured.
        log: where errors go, once for each kind.

    Attributes:
        stats: what became of the items.
        error: why the reporter could not be opened; None while it can.
        destination: where what is reported can be found, once it is open.
    """

    def __init__(self, setup: ReporterSetup, log: OnceLog) -> None:
        self.setup = setup
        self.stats = ReporterStats()
        self.error: BaseException | None = None
        self.destination = ""
        self._log = log
        self._queue: deque[Item] = deque()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._opened = threading.Event()
        self._deadline = float("inf")
        self._in_flight = 0
        self._overflowing = False
        self._left_behind = False
        name = f"spark-events-{setup.kind.name}-{setup.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def title(self) -> str:
        """How messages call the reporter."""
        return f"{self.setup.kind.singular} reporter {self.setup.name!r}"

    @property
    def depth(self) -> int:
        """How many items wait or are in flight."""
        return len(self._queue) + self._in_flight

    def start(self) -> None:
        """Start the thread; the reporter is created and opened there."""
        self._thread.start()

    def offer(self, method: str, *arguments: Any) -> None:
        """Queue a call of the reporter's method. Never blocks; a full queue drops its oldest item."""
        if self._closing.is_set() or self.error is not None:
            self.stats.drop("close" if self._closing.is_set() else "not_open")
            return
        with self._changed:
            if len(self._queue) >= self.setup.queue_size:
                self._queue.popleft()
                self._overflow()
            self._queue.append((method, arguments))
            self._changed.notify()

    def wait_opened(self, timeout_s: float) -> bool:
        """Wait until ``open`` has returned or failed; tell whether it did in time."""
        return self._opened.wait(timeout_s)

    def request_close(self, deadline: float) -> None:
        """Let the thread hand over what is queued, and close, until a time of ``time.monotonic``."""
        with self._changed:
            self._deadline = deadline
            self._closing.set()
            self._changed.notify()

    def join(self) -> None:
        """Wait until the thread has ended or the deadline has passed, and say what was left behind."""
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        if not self._thread.is_alive():
            return
        with self._changed:
            self._left_behind = True
            left = self.depth
        self.stats.drop("close", left)
        logger.error(
            "%s did not close in time and is left behind; not delivered: %d item(s)", self.title, left
        )

    # -- on the reporter's thread --------------------------------------------------------------------

    def _run(self) -> None:
        reporter = self._open()
        if reporter is not None and self.error is None:
            self._serve(reporter)
        if reporter is not None:
            self._guard("close", reporter.close)

    def _open(self) -> Reporter | None:
        reporter: Reporter | None = None
        try:
            reporter = self.setup.factory.create(self.setup.config)
            if not isinstance(reporter, self.setup.kind.reporter):
                raise ConfigError(
                    f"its factory made a {type(reporter).__name__}, no {self.setup.kind.singular} reporter"
                )
            reporter.open()
            self.destination = reporter.destination
            logger.info("%s reports to %s", self.title, self.destination or "its own place")
        except BaseException as error:
            self.error = error
            shown = None if isinstance(error, ConfigError) else error
            logger.error("%s is not used: %s", self.title, describe(error), exc_info=shown)
            with self._changed:
                self.stats.drop("not_open", len(self._queue))
                self._queue.clear()
        finally:
            self._opened.set()
        return reporter

    def _serve(self, reporter: Reporter) -> None:
        while batch := self._next_batch():
            taken = sum(self._guard(method, getattr(reporter, method), *args) for method, args in batch)
            if not self._flush(reporter, taken):
                return
            self._in_flight = 0

    def _next_batch(self) -> list[Item]:
        with self._changed:
            while not self._queue and not self._closing.is_set():
                self._changed.wait()
            batch = [self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))]
            self._in_flight = len(batch)
            self._overflowing = self._overflowing and bool(self._queue)
            return batch

    def _flush(self, reporter: Reporter, taken: int) -> bool:
        """Flush until the reporter has no reason to try again; tell whether to go on after that."""
        pause, tries = _FIRST_PAUSE_S, 0
        while True:
            try:
                reporter.flush()
            except RetryLater as later:
                tries += 1
                if tries == 1:
                    logger.warning("%s holds back %d item(s) and tries again: %s", self.title, taken, later)
                if not self._pause(later.after_ms / 1000 if later.after_ms else pause):
                    self._give_up(taken, later)
                    return False
                pause = min(pause * 2, _LONGEST_PAUSE_S)
            except Exception as error:
                self.stats.failed.inc(taken)
                self._log.error(
                    (self.title, "flush", type(error).__name__), self._raised("flush", error), error
                )
                return True
            else:
                self.stats.succeed(taken)
                if tries:
                    logger.warning("%s delivers again, after %d tries", self.title, tries)
                return True

    def _give_up(self, taken: int, reason: RetryLater) -> None:
        with self._changed:
            if self._left_behind:
                return  # all of it was counted already
            left = taken + len(self._queue)
            self._queue.clear()
            self._in_flight = 0
        self.stats.drop("close", left)
        logger.error("%s could not deliver %d item(s) before the end: %s", self.title, left, reason)

    def _pause(self, seconds: float) -> bool:
        """Wait before the next try; tell whether there is time for one."""
        jittered = seconds * random.uniform(0.8, 1.2)
        if not self._closing.wait(jittered):
            return True
        # Closing: a last few tries, a second apart at the most.
        give_up_at = self._deadline - _GIVE_UP_BEFORE_S
        time.sleep(max(0.0, min(jittered, 1.0, give_up_at - time.monotonic())))
        return time.monotonic() < give_up_at

    def _guard(self, method: str, call: Any, *arguments: Any) -> bool:
        """Call the plugin; tell whether it returned."""
        try:
            call(*arguments)
        except Exception as error:
            self.stats.failed.inc()
            self._log.error((self.title, method, type(error).__name__), self._raised(method, error), error)
            return False
        return True

    def _raised(self, method: str, error: BaseException) -> str:
        return f"{self.title} raised in {method}: {describe(error)}"

    def _overflow(self) -> None:
        self.stats.drop("queue_full")
        if not self._overflowing:
            self._overflowing = True
            logger.warning(
                "%s does not keep up: its queue of %d is full, the oldest items are dropped and counted",
                self.title,
                self.setup.queue_size,
            )


def describe(error: BaseException) -> str:
    """Return an error as one line: our own by their message, others with their type."""
    return str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"

"""The transports of a composite one, each at its own pace: one that fails does not hold up the others."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from spark_events.api import Refused, RetryLater, text_without_queries

logger = logging.getLogger("spark_events.openlineage")

_MOST_WAITING_BYTES = 32 << 20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _LONGEST_ASKED_S = 1.0, 60.0, 900.0
_TRIES_OF_RAISED = 5
"""How often an event is sent that makes the client raise what nobody expects."""
_PATIENCE_AT_END_S = 2.0


class Branch:
    """One of the transports; a thread of its own tries again to send what it has not taken.

    Args:
        name: for messages.
        send: sends one event; raises RetryLater or Refused.
    """

    def __init__(self, name: str, send: Callable[[bytes], None]) -> None:
        self.name = name
        self.send = send
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @property
    def behind(self) -> bool:
        """Whether events wait for it."""
        with self._lock:
            return self._thread is not None

    def keep(self, record: bytes, reason: RetryLater | None = None) -> None:
        """Keep an event for it, behind those that wait.

        Args:
            record: the event.
            reason: why it has not taken the event; None if it was not asked.
        """
        if reason is not None:
            logger.warning("%s; what it does not get is kept for it, and the other transports go on", reason)
        with self._lock:
            self._keep(record)
            if self._thread is None:
                name = "spark-events-openlineage"
                pause_s = 0.0 if reason is None else _pause_s(reason, _FIRST_PAUSE_S)
                self._thread = threading.Thread(
                    target=self._catch_up, args=(pause_s,), name=name, daemon=True
                )
                self._thread.start()

    def _keep(self, record: bytes) -> None:
        if self._waiting_bytes + len(record) > _MOST_WAITING_BYTES:
            if not self._dropped:
                logger.warning("%s: too many events wait for it; it does not get the next ones", self.name)
            self._dropped += 1
            return
        self._waiting.append(record)
        self._waiting_bytes += len(record)

    def _catch_up(self, wait_s: float) -> None:
        """Send what waits, in order, until nothing does or the end has come."""
        pause_s = _FIRST_PAUSE_S
        raised = 0
        while True:
            self._closing.wait(wait_s)
            try:
                while self._send_next():
                    pause_s, raised = _FIRST_PAUSE_S, 0
                return
            except RetryLater as away:
                wait_s = _pause_s(away, pause_s)
            except Exception as error:  # of the client, or of what gets a token: those that wait go on
                wait_s, raised = pause_s, raised + 1
                logger.warning("%s: an event cannot be sent: %s", self.name, _in_words(error))
                if raised == _TRIES_OF_RAISED:
                    logger.warning("an event is lost to one of the transports: %s", self.name)
                    self._drop_next()
                    raised = 0
            if self._closing.is_set():
                return
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _send_next(self) -> bool:
        """Send the next event; return False, and be behind no more, if there is none."""
        with self._lock:
            if not self._waiting:
                if self._dropped:
                    logger.warning("%s has not got %d events: too many waited", self.name, self._dropped)
                self._thread, self._dropped = None, 0
                return False
            record = self._waiting[0]
        try:
            self.send(record)
        except Refused as refused:
            logger.warning("an event is lost to one of the transports: %s", refused)
        self._drop_next()
        return True

    def _drop_next(self) -> None:
        with self._lock:
            self._waiting_bytes -= len(self._waiting.popleft())

    def close(self) -> None:
        """Try once more, for a moment, and say what is lost."""
        self._closing.set()
        thread = self._thread
        if thread is not None:
            thread.join(_PATIENCE_AT_END_S)
        with self._lock:
            if lost := len(self._waiting) + self._dropped:
                logger.warning("%s has not got %d events", self.name, lost)


def _pause_s(reason: RetryLater, own_s: float) -> float:
    return own_s if reason.after_ms is None else min(reason.after_ms / 1000, _LONGEST_ASKED_S)


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {text_without_queries(str(error))}"


class Branches:
    """All transports of a composite one.

    An event counts as sent once one of them has it; from then on, it waits here for the others. As long as
    none takes it, it stays with the runtime, and in its journal.
    """

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches = branches

    def send(self, record: bytes) -> None:
        """Send an event to all.

        Raises:
            RetryLater: none has taken it; it will be sent again.
            Refused: none takes it.
        """
        behind = [branch for branch in self._branches if branch.behind]
        failures: dict[Branch, RetryLater] = {}
        raised: list[Exception] = []
        refusals: list[Refused] = []
        for branch in self._branches:
            if branch in behind:
                continue
            try:
                branch.send(record)
            except RetryLater as away:
                failures[branch] = away
            except Refused as refused:
                refusals.append(refused)
            except Exception as error:
                raised.append(error)
                failures[branch] = RetryLater(f"{branch.name}: {_in_words(error)}")
        taken = len(behind) + len(failures) + len(refusals) < len(self._branches)
        if raised and not taken and len(raised) == len(failures):
            raise raised[0]  # which the runtime tries a few times
        if failures and not taken:
            raise next(iter(failures.values()))
        for branch in (*behind, *failures):
            branch.keep(record, failures.get(branch))
        if refusals and not taken:
            raise refusals[0]
        for refusal in refusals:
            logger.warning("an event is lost to one of the transports: %s", refusal)

    def close(self) -> None:
        """Give each a last chance to catch up."""
        for branch in self._branches:
            branch.close()

"""Sends stored records, in order and in turns, until they are acknowledged or refused for good."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from spark_events.api import PartlyRefused, Refused, RetryLater, SendingReporter
from spark_events.api.toolkit.formatting import counted
from spark_events.runtime.journal import Batch
from spark_events.runtime.log_once import TroubleLog
from spark_events.runtime.sending.dead_letters import DeadLetters
from spark_events.runtime.sending.spool import Spool
from spark_events.runtime.workers.answers import described, pause_ms_of, reason_of, refused_of, tries_of
from spark_events.runtime.workers.reporter_calls import Backoff
from spark_events.runtime.workers.stats import ReporterAccount
from spark_events.runtime.workers.turns import FOREVER, OWN_THREADS, Threads, Turns

_TRIES_AFTER_BUG = 5
_LOOK_S = 0.005
_QUIET_S = 0.1


class Sender:
    """Sends the records of one spool through one reporter, on other threads than the rest of it.

    Records that are refused for good go to the dead letters. Without a journal there are no dead letters:
    such records are only counted.

    Args:
        threads: run its turns.
        on_end: called when it has ended.
    """

    def __init__(
        self,
        reporter: SendingReporter,
        spool: Spool,
        dead_letters: Callable[[], DeadLetters | None],
        account: ReporterAccount,
        threads: Threads = OWN_THREADS,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._reporter = reporter
        self._spool = spool
        self._stats = account.stats
        self._title = account.title
        self._account = account
        self._log = account.log
        self._dead_letters = dead_letters
        self._backoff = Backoff()
        self._limit = reporter.max_request_records
        self._trouble = TroubleLog()
        self._lock = threading.Lock()
        self._abandoned = False
        self._over = False
        self._on_end = on_end
        self._rests = threads.shared
        self._runner = threads.sending(f"spark-events-send-{account.title}", self._run())
        spool.wake = self._runner.wake

    def start(self) -> None:
        """Start sending."""
        self._runner.start()

    def finish(self, deadline: float) -> Generator[float, None, bool]:
        """Send what is left until ``deadline`` (``time.monotonic``), and return whether sending has ended.

        If it did not, it is stuck in a call that does not return. It is abandoned, and counts nothing more.
        """
        self._backoff.close(deadline)
        self._spool.end()
        while not self._runner.ended and (left := deadline - time.monotonic()) > 0:
            yield left if not self._over else min(left, _LOOK_S)
        with self._lock:
            self._abandoned = not self._runner.ended
        return not self._abandoned

    # -- in its turns ------------------------------------------------------------------------------------

    def _run(self) -> Turns:
        try:
            yield from self._send()
        finally:
            self._over = True
            self._on_end()

    def _send(self) -> Turns:
        max_bytes = self._reporter.max_request_bytes
        while True:
            ended = self._spool.ended  # first: what came before the end is sent
            batch = self._spool.next_batch(self._limit, max_bytes)
            if batch is None and ended:
                return
            if batch is None:
                yield from self._wait()
                continue
            try:
                later = self._deliver(batch)
            except Exception as error:  # a bug of ours; nothing that was not delivered is acknowledged
                message = f"{self._title} failed unexpectedly, and tries again: {described(error)}"
                self._log.error((self._title, "deliver", type(error).__name__), message, error)
                later = RetryLater(f"unexpected error: {described(error)}")
            with self._lock:
                if self._abandoned:
                    return
                self._spool.release(batch)
            if later is not None and not (yield from self._try_again(later)):
                return
            yield 0.0

    def _wait(self) -> Turns:
        """Wait for something to send; after a while without, the reporter rests if it shares its threads."""
        if self._rests:
            yield _QUIET_S
            if not (self._spool.pending or self._spool.ended):
                try:
                    self._reporter.rest()
                except Exception as error:
                    message = f"{self._title} raised in rest: {type(error).__name__}: {error}"
                    self._log.error((self._title, "rest", type(error).__name__), message, error)
                yield FOREVER
        else:
            yield FOREVER

    def _deliver(self, batch: Batch) -> RetryLater | None:
        """Send one batch; return why the rest of it has to wait, or None if nothing has to.

        A refused part is split in halves and sent again, down to the single records that are at fault.
        """
        parts: list[Sequence[bytes]] = [batch.records]
        answered, used_up = 0, False
        while parts:
            part = parts.pop(0)
            answer = self._ask(part, batch.context)
            if isinstance(answer, RetryLater):
                used_up = self._count_try(answer, len(part)) or used_up
                if tries_of(answer) is None or not used_up:
                    return answer
                answer = _Answer(len(part), reason_of(answer), whole=True)
            if answer.whole and len(part) > 1:
                half = len(part) // 2
                parts[:0] = [part[:half], part[half:]]
                continue
            answered += len(part)
            if not self._acknowledge(batch, answered, part, answer):
                return None
        return None

    def _ask(self, part: Sequence[bytes], context: bytes) -> _Answer | RetryLater:
        """Send records and return what became of them."""
        try:
            self._account.call(self._reporter.send, list(part), context)  # it may take them out of its list
        except RetryLater as later:
            return later
        except Refused as refused:
            return _Answer(len(part), reason_of(refused), whole=True)
        except PartlyRefused as partly:
            return _Answer(refused_of(partly, len(part)), reason_of(partly))
        except BaseException as error:  # a plugin's: retrying may help, but must not go on forever
            message = f"{self._title} raised in send: {described(error)}"
            self._log.error((self._title, "send", type(error).__name__), message, error)
            return RetryLater(message, tries=_TRIES_AFTER_BUG)
        return _Answer()

    def _count_try(self, later: RetryLater, count: int) -> bool:
        """Count a failed try, and return whether it was the last that the reason allows."""
        self._stats.retries.inc()
        tries = self._backoff.failed()
        if getattr(later, "smaller", False):
            self._limit = max(1, count // 2)
        most = tries_of(later)
        return most is not None and tries >= most

    def _acknowledge(self, batch: Batch, answered: int, part: Sequence[bytes], answer: _Answer) -> bool:
        """Count a part that the destination has answered for, and acknowledge the batch up to its end.

        Returns:
            Whether to go on: False once this thread has been abandoned.
        """
        with self._lock:
            if self._abandoned:
                return False
            if answer.refused:
                self._put_aside(part, answer)
            self._stats.refused.inc(answer.refused)
            self._stats.succeed(len(part) - answer.refused)
            self._spool.acknowledge(batch, answered)
        self._limit = min(self._limit * 2, self._reporter.max_request_records)
        tries, seconds = self._backoff.tries, self._backoff.elapsed_s
        if answer.refused < len(part):
            self._trouble.over("%s delivers again, after %d tries in %.0f s", self._title, tries, seconds)
        self._backoff.succeeded()
        return True

    def _put_aside(self, records: Sequence[bytes], answer: _Answer) -> None:
        place = "without journal.dir there is no file to keep them in"
        letters = self._dead_letters()
        if letters is not None:
            place = f"see {letters.path}"
            try:
                letters.add(records, answer.reason, answer.refused)
            except OSError as error:
                place = f"{letters.path} cannot be written: {error.strerror}"
        count = f"{answer.refused} of {counted(len(records), 'item')}"
        self._log.error(
            (self._title, "refused", answer.reason[:60], place),
            f"{self._title}: the destination refused {count} for good ({place}): {answer.reason}",
        )

    def _try_again(self, later: RetryLater) -> Generator[float, None, bool]:
        """Wait before the next try, and return whether there will be one."""
        self._warn(later)
        durable = not self._spool.in_memory
        if self._backoff.closing and durable:
            return False  # the journal keeps the batch, so nobody has to wait
        return (yield from self._backoff.pause(pause_ms_of(later)))

    def _warn(self, later: RetryLater) -> None:
        reason, waiting = reason_of(later), self._spool.pending
        message = "%s could not send %s yet and is retrying: %s"
        self._trouble.goes_on(reason, message, self._title, counted(waiting, "item"), reason)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a destination said of some records: how many it refuses for good, and why."""

    refused: int = 0
    reason: str = ""
    whole: bool = False
    """Whether it refused them as a whole, so that some may be accepted when sent by themselves."""

"""A lease in the store: of several processes that want it, one holds it, for as long as it renews it.

To take the lease, a process creates a file with the next number, which only one process can do. Whoever made
the newest file holds the lease, until the file says that it was given back, or is not renewed for too long.
"""

from __future__ import annotations

import getpass
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import orjson

from spark_events.api import ConfigError, SparkEventsError
from spark_events.runtime.log_once import logger
from spark_events.spark.owner import Owner
from spark_events.sql_runner.store.store import DamagedFile, Store, StoreError
from spark_events.sql_runner.store.typed_values import with_types


class LeaseLost(SparkEventsError):  # noqa: N818 - says what happened, and no fault of the caller's
    """The error of a process that was silent for too long, so that another one has the lease now."""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """The process that holds a lease, as recorded in the lease's file.

    Attributes:
        who: user, machine and process, for people to read.
        owner: the process, in the form in which its own machine can identify it.
        since_ms: when it was taken, in ms since the epoch.
        beat_ms: when it was last renewed, in ms since the epoch.
        lease_ms: how long it may be silent, in ms.
        released: whether it was given back.
    """

    who: str
    owner: Owner
    since_ms: int
    beat_ms: int
    lease_ms: int
    released: bool = False

    def is_over(self, now_ms: int) -> bool:
        """Return whether others may take the lease: immediately if the process is certainly gone."""
        return self.released or now_ms - self.beat_ms > self.lease_ms or self.owner.is_dead

    @classmethod
    def parse(cls, data: bytes) -> LeaseHolder:
        """Return the holder that a lease's file names.

        Raises:
            DamagedFile: it does not have the form that a holder writes.
        """
        try:
            return with_types(cls, orjson.loads(data))
        except (ValueError, TypeError) as error:
            raise DamagedFile(f"a lease is not what this version of spark-events writes ({error})") from error


class Lease:
    """One lease; each method raises ``StoreError`` if the store cannot be read or written.

    Args:
        store: where it is kept.
        folder: its own folder there.
        subject: what it is about, for errors.
        lease_ms: how long its holder may be silent, in ms.
        clock: returns the current time in ms since the epoch; by default, the store's.
        holder: what takes it, for errors; by default, its subject.
    """

    def __init__(
        self,
        store: Store,
        folder: str,
        subject: str,
        lease_ms: int,
        clock: Callable[[], int] | None = None,
        holder: str = "",
    ) -> None:
        self._store = store
        self._folder = folder
        self._subject = subject
        self._holder = holder or subject
        self._lease_ms = lease_ms
        self._clock = clock or store.clock.now_ms
        self._mine: tuple[int, LeaseHolder] | None = None

    def holder(self) -> LeaseHolder | None:
        """Return its holder; None if nobody holds it."""
        _, holder = self._newest()
        return None if holder is None or holder.is_over(self._clock()) else holder

    def take(self) -> None:
        """Take the lease.

        Raises:
            ConfigError: somebody else has it; the message says who, and since when.
        """
        self._store.set_clock()
        number, holder = self._newest()
        now = self._clock()
        if holder is not None and not holder.is_over(now):
            raise ConfigError(f"{self._subject}: {_sentence(holder, now)}")
        owner = Owner.this_process("")
        mine = LeaseHolder(this_process(), owner, now, now, self._lease_ms)
        if not self._store.create(self._file(number + 1), orjson.dumps(mine)):
            _, winner = self._newest()
            who = _sentence(winner, now) if winner else "another process was faster"
            raise ConfigError(f"{self._subject}: {who}")
        self._mine = (number + 1, mine)
        for other in self._numbers():
            if other <= number:
                self._store.delete(self._file(other))

    def renew(self) -> None:
        """Record that its holder is alive.

        Raises:
            LeaseLost: another process has it now.
        """
        assert self._mine is not None, "take() comes first"
        self.check()
        number, mine = self._mine
        before_ms = self._store.clock.own()
        self._mine = (number, replace(mine, beat_ms=self._clock()))
        self._store.write(self._file(number), orjson.dumps(self._mine[1]))
        self._store.compare_clock(self._file(number), before_ms)

    def release(self) -> None:
        """Give the lease back if it is held.

        Raises:
            StoreError: the store cannot be written; others have to wait until the lease is over.
        """
        if self._mine is None:
            return
        number, mine = self._mine
        self._mine = None
        if max(self._numbers(), default=number) == number:
            self._store.write(self._file(number), orjson.dumps(replace(mine, released=True)))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Take the lease, renew it from a thread while the block runs, and give it back.

        Raises:
            ConfigError: somebody else has it.
        """
        self.take()
        done = threading.Event()

        def renew() -> None:
            while not done.wait(self._lease_ms / 3000):
                try:
                    self.renew()
                except StoreError as error:
                    logger.warning("%s", error)
                except LeaseLost:
                    return

        thread = threading.Thread(target=renew, name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.release()

    def check(self) -> None:
        """Check that the lease is still held, before writing something that only its holder may write.

        Raises:
            LeaseLost: another process has it now.
        """
        assert self._mine is not None, "take() comes first"
        if max(self._numbers(), default=0) > self._mine[0]:
            raise LeaseLost(
                f"{self._subject}: another process has taken over, because this one was silent for too long"
            )

    def _newest(self) -> tuple[int, LeaseHolder | None]:
        while numbers := self._numbers():
            data = self._store.read(self._file(max(numbers)))
            if data is not None:
                try:
                    return max(numbers), LeaseHolder.parse(data)
                except DamagedFile as error:
                    file = f"{self._store.url}/{self._file(max(numbers))}"
                    raise DamagedFile(
                        f"{file}: {error}; if no {self._holder} is running, remove this file"
                    ) from error
            # The file was removed after it was listed, by a successor, which is now the newest.
        return 0, None

    def _numbers(self) -> list[int]:
        names = (name.removesuffix(".json") for name in self._store.names(self._folder))
        return [int(name) for name in names if name.isdecimal()]

    def _file(self, number: int) -> str:
        return f"{self._folder}/{number:09d}.json"


def this_process() -> str:
    """Return a readable description of this process: user, machine and number."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}, process {os.getpid()}"


def _sentence(holder: LeaseHolder, now: int) -> str:
    held_s, silent_s = (now - holder.since_ms) // 1000, (now - holder.beat_ms) // 1000
    return (
        f"{holder.who} has held the lease for {held_s} s; last seen {silent_s} s ago, "
        f"counts as gone after {holder.lease_ms // 1000} s"
    )

"""Runs work in turns that do not wait: on a thread of its own, or on a few threads that many share."""

from __future__ import annotations

import heapq
import itertools
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from spark_events.runtime.log_once import logger

Turns = Iterator[float]
"""Work that yields after how many s it wants its next turn, unless it is woken before; inf for then only."""
FOREVER = math.inf
_USUAL_THREADS = 4
_MOST_THREADS = 12
_STUCK_S = 2.0
_LOOK_S = 0.5
_IDLE_S = 10.0
_LONGEST_WAIT_S = threading.TIMEOUT_MAX / 2


class Runner(Protocol):
    """Runs one piece of work; any thread may call it."""

    @property
    def ended(self) -> bool:
        """Whether the work has ended; True also for work that never began."""

    def start(self) -> None:
        """Begin with the first turn."""

    def wake(self) -> None:
        """Let the next turn come now. Never waits."""

    def join(self, timeout_s: float) -> bool:
        """Wait until the work has ended, and return whether it has."""


Launch = Callable[[str, Turns], Runner]
"""Makes the runner of some work, given its name."""


class OwnThread:
    """Runs one piece of work on a daemon thread of its own: what blocks there holds up nobody else."""

    def __init__(self, name: str, turns: Turns) -> None:
        self._turns = turns
        # Its lock is no lock of Python's: a signal handler may wake what is being woken.
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def ended(self) -> bool:
        """Whether the work has ended; True also for work that never began."""
        return not self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Let the next turn come now. Never waits."""
        if self._woken.empty():  # a turn that hangs may be woken any number of times
            self._woken.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait until the work has ended, and return whether it has."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, timeout_s))
        return self.ended

    def _run(self) -> None:
        try:
            for wait_s in self._turns:
                with suppress(queue.Empty):
                    self._woken.get(timeout=None if wait_s > _LONGEST_WAIT_S else max(0.0, wait_s))
                    while True:  # woken several times is woken once
                        self._woken.get_nowait()
        except BaseException:  # SystemExit would end a thread without a word
            logger.exception("%s failed unexpectedly, and is over", self._thread.name)


class SharedThreads:
    """Runs any number of pieces of work on a few daemon threads, which come and go with the work.

    Usually four threads take turns. Turns that take longer than 2 s, in a reporter that hangs, say, do not
    count, so up to twelve threads keep them from holding up the others.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._ready: deque[_Shared] = deque()
        self._due: list[tuple[float, int, _Shared]] = []
        self._numbers = itertools.count(1)
        self._waiting = self._threads = 0
        self._begun: dict[int, float] = {}  # when each thread that is in a turn began it

    def launch(self, name: str, turns: Turns) -> Runner:
        """Return the runner of some work; see ``Launch``."""
        return _Shared(self, name, turns)

    @property
    def threads(self) -> int:
        """How many threads there are now."""
        return self._threads

    def _enqueue(self, shared: _Shared) -> None:
        """Let something have its next turn; call it with the lock."""
        shared.due = None
        shared.queued = True
        self._ready.append(shared)
        if self._waiting:
            self._changed.notify()
        else:
            self._add_thread()

    def _add_thread(self) -> None:
        if self._threads < _MOST_THREADS:
            self._threads += 1
            name = f"{self._name}-{next(self._numbers)}"
            try:
                threading.Thread(target=self._run, name=name, daemon=True).start()
            except RuntimeError:  # the process may have no more
                self._threads -= 1
                logger.exception("cannot start a thread")

    # -- on the threads --------------------------------------------------------------------------------

    def _run(self) -> None:
        me = threading.get_ident()
        while True:
            with self._changed:
                shared = self._next()
                if shared is None:
                    self._threads -= 1
                    return
                self._begun[me] = time.monotonic()
                shared.queued, shared.running, shared.woken = False, True, False
                if not self._waiting:
                    self._add_thread()  # which waits, and is there when this turn is a long one
            wait_s = shared.turn()
            with self._changed:
                del self._begun[me]
                shared.running = False
                if wait_s is None:
                    shared.over.set()
                elif shared.woken:
                    self._enqueue(shared)
                elif wait_s < FOREVER:
                    shared.due = time.monotonic() + wait_s
                    heapq.heappush(self._due, (shared.due, next(self._numbers), shared))

    def _next(self) -> _Shared | None:
        """Wait for something whose turn it is; return None if this thread is not needed any more."""
        idle_until = time.monotonic() + _IDLE_S
        while True:
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                due, _, shared = heapq.heappop(self._due)
                if shared.due == due:  # it was not woken meanwhile
                    shared.due, shared.queued = None, True
                    self._ready.append(shared)
            busy = sum(1 for begun in self._begun.values() if now < begun + _STUCK_S)
            if self._ready and busy < _USUAL_THREADS:
                return self._ready.popleft()
            needed = self._ready or (self._due and not self._waiting)
            if now >= idle_until and not needed:
                return None
            until = [idle_until if not needed else math.inf]
            until += [now + _LOOK_S] if self._ready else []
            until += [self._due[0][0]] if self._due else []
            self._waiting += 1
            self._changed.wait(max(0.0, min(*until, now + _IDLE_S) - now))
            self._waiting -= 1


class _Shared:
    """One piece of work of shared threads; what it has is changed with their lock."""

    def __init__(self, threads: SharedThreads, name: str, turns: Turns) -> None:
        self._threads = threads
        self._name = name
        self._turns = turns
        self._started = False
        self.due: float | None = None
        self.queued = self.running = self.woken = False
        self.over = threading.Event()

    @property
    def ended(self) -> bool:
        """Whether the work has ended; True also for work that never began."""
        return self.over.is_set() or not self._started

    def start(self) -> None:
        """Begin with the first turn."""
        self._started = True
        self.wake()

    def wake(self) -> None:
        """Let the next turn come now. Never waits."""
        with self._threads._changed:
            self.woken = True
            if self._started and not (self.running or self.queued or self.over.is_set()):
                self._threads._enqueue(self)

    def join(self, timeout_s: float) -> bool:
        """Wait until the work has ended, and return whether it has."""
        if self._started:
            self.over.wait(max(0.0, timeout_s))
        return self.ended

    def turn(self) -> float | None:
        """Have one turn; return after how many s the next should come, None if the work is done."""
        try:
            return next(self._turns, None)
        except BaseException:
            logger.exception("%s failed unexpectedly, and is over", self._name)
            return None


@dataclass(frozen=True, slots=True)
class Threads:
    """What runs the turns of a reporter.

    Attributes:
        reporter: of the reporter itself.
        sending: of sending what it has put into its outbox.
        shared: whether other reporters have their turns on the same threads; it then rests between them.
    """

    reporter: Launch = OwnThread
    sending: Launch = OwnThread
    shared: bool = False


OWN_THREADS = Threads()


class Lanes:
    """Shared threads for reporters of many applications, others for each configuration of a reporter.

    So a reporter that hangs in some applications never holds up another one, and holds up itself in other
    applications only where it hangs in a dozen.
    """

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, str], Threads] = {}

    def of(self, kind: str, name: str) -> Threads:
        """Return the threads of a reporter, by its kind and its name in the configuration."""
        if (kind, name) not in self._lanes:
            title = f"spark-events-{kind}-{name}"
            reporter, sending = SharedThreads(title), SharedThreads(f"{title}-send")
            self._lanes[kind, name] = Threads(reporter.launch, sending.launch, shared=True)
        return self._lanes[kind, name]

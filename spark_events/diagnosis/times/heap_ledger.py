"""What became of the heap that a run's executors held, in byte-seconds: each belongs to one account.

A byte-second is a byte that was held for a second, whether something was in it or not: what a cluster bills.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WITH_STAGES = "seen in use, while stages ran"
WITHOUT_STAGES = "seen in use, while none ran"
NEVER = "not seen in use"
UNMEASURED = "not measured"
HEAP_ACCOUNTS = {
    WITH_STAGES: "the most that each executor was seen to use, for as long as any stage ran",
    WITHOUT_STAGES: "the same, for as long as none ran",
    NEVER: "the part of its heap that an executor was not seen to use",
    UNMEASURED: "the heap of executors whose use Spark has not measured",
}
"""The accounts, in the order in which they are shown, and what belongs to each."""
_MOST_EXECUTORS = 100_000


@dataclass(slots=True)
class _Held:
    """An executor that lives: since when, and for how long stages had run by then, in ms."""

    since_ms: int
    busy_ms: int


@dataclass(slots=True)
class HeapLedger:
    """Books the heap of executors, all of which have the same size, by the most that each was seen to use.

    Spark looks at a heap, garbage included, with each heartbeat, every 10 s, and says the most that it saw,
    and not when: a peak in between is not seen, and what is booked as seen was not in use all the time.
    """

    _executors: dict[str, _Held] = field(default_factory=dict)
    _peaks: dict[str, int] = field(default_factory=dict)
    _lives: list[tuple[str, int, int]] = field(default_factory=list)
    _stages: int = 0
    _busy_ms: int = 0
    _last_ms: int = 0

    def executor_added(self, executor: str, time_ms: int) -> None:
        """Called when an executor was added."""
        self._advance(time_ms)
        if executor not in self._executors and len(self._executors) + len(self._lives) < _MOST_EXECUTORS:
            self._executors[executor] = _Held(self._last_ms, self._busy_ms)

    def executor_removed(self, executor: str, time_ms: int) -> None:
        """Called when an executor was removed."""
        self._advance(time_ms)
        held = self._executors.pop(executor, None)
        if held is not None:
            self._lives.append((executor, self._last_ms - held.since_ms, self._busy_ms - held.busy_ms))

    def stages(self, time_ms: int, change: int) -> None:
        """Called when stages have begun, or ended where the change is negative."""
        self._advance(time_ms)
        self._stages = max(0, self._stages + change)

    def used(self, executor: str, heap_bytes: int) -> None:
        """Called with how much of its heap an executor has used."""
        if heap_bytes > self._peaks.get(executor, 0) and (
            executor in self._peaks or len(self._peaks) < _MOST_EXECUTORS
        ):
            self._peaks[executor] = heap_bytes

    def booked(self, heap_bytes: int, ended_ms: int) -> dict[str, int]:
        """Return what is booked to each of ``HEAP_ACCOUNTS``, in byte-seconds.

        Args:
            heap_bytes: the size of an executor's heap.
            ended_ms: the end of those that were not removed, in ms since the epoch.

        Returns:
            The accounts, which add up to the heap of each executor for as long as it lived; empty if there
            was none.
        """
        self._advance(ended_ms)
        lives = [
            *self._lives,
            *(
                (executor, self._last_ms - held.since_ms, self._busy_ms - held.busy_ms)
                for executor, held in self._executors.items()
            ),
        ]
        byte_ms = dict.fromkeys(HEAP_ACCOUNTS, 0)
        for executor, lived_ms, busy_ms in lives:
            used = min(self._peaks.get(executor, 0), heap_bytes)
            if not used:
                byte_ms[UNMEASURED] += heap_bytes * lived_ms
                continue
            byte_ms[WITH_STAGES] += used * busy_ms
            byte_ms[WITHOUT_STAGES] += used * (lived_ms - busy_ms)
            byte_ms[NEVER] += (heap_bytes - used) * lived_ms
        return {account: amount // 1_000 for account, amount in byte_ms.items()} if lives else {}

    def _advance(self, time_ms: int) -> None:
        passed_ms = max(0, time_ms - self._last_ms) if self._last_ms else 0
        self._last_ms = max(self._last_ms, time_ms)
        self._busy_ms += passed_ms if self._stages else 0

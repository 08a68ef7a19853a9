"""What else an application did at a time: a core that has other work to do is not lost to a late task."""

from __future__ import annotations

from collections import deque

from spark_events.diagnosis.times.covered import covered_ms

Key = tuple[int, int]
_MOST_ENDED = 1_000


class OtherWork:
    """The stage attempts of one application, from when to when each ran, in ms since the epoch."""

    def __init__(self) -> None:
        self._running: dict[Key, int] = {}
        self._ended: deque[tuple[Key, int, int, int]] = deque(maxlen=_MOST_ENDED)

    def begun(self, stage: Key, time_ms: int) -> None:
        """Called when a stage attempt has begun."""
        self._running[stage] = time_ms

    def ended(self, stage: Key, time_ms: int, run_ms: int) -> None:
        """Called when it has ended, with how long its tasks ran, in all."""
        begun_ms = self._running.pop(stage, None)
        if begun_ms is not None:
            self._ended.append((stage, begun_ms, time_ms, run_ms))

    def beside_ms(self, stage: Key, from_ms: int, until_ms: int, ended: bool = True) -> int:
        """Return for how long at least one other stage ran in a time; only the last 1,000 are known.

        Args:
            stage: it.
            from_ms, until_ms: the time, in ms since the epoch.
            ended: whether stages that have ended meanwhile count, too.
        """
        others = [
            (begun, end) for other, begun, end, _ in self._ended if ended and other != stage and end > from_ms
        ]
        others += [(begun, until_ms) for other, begun in self._running.items() if other != stage]
        return covered_ms((max(begun, from_ms), min(end, until_ms)) for begun, end in others)

    def core_ms(self, stage: Key, from_ms: int, until_ms: int) -> int:
        """Return how much core time others took in a time, evenly over theirs; one core if they run."""
        core_ms = 0.0
        for other, begun_ms, ended_ms, run_ms in self._ended:
            beside_ms = min(ended_ms, until_ms) - max(begun_ms, from_ms)
            if other != stage and beside_ms > 0:
                core_ms += run_ms * beside_ms / (ended_ms - begun_ms)
        running = (begun_ms for other, begun_ms in self._running.items() if other != stage)
        return round(core_ms) + sum(max(0, until_ms - max(begun_ms, from_ms)) for begun_ms in running)

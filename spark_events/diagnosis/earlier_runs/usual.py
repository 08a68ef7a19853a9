"""What is usual, and what is not: the one rule of regressions, of a report's slower runs, and of two runs."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LEAST_COMPARED = 5
"""With fewer durations, nobody knows what is usual."""
_MUCH = 1.5
_OF_EACH_RUN = re.compile(r"spark\.(app\.|driver\.(host|port)$|repl\.|yarn\.app\.|sql\.warehouse\.dir$)")


@dataclass(frozen=True, slots=True)
class Usual:
    """How long something usually takes, in ms: over how many times, the median, and the 95th percentile."""

    compared: int
    median_ms: int
    p95_ms: int

    def is_exceeded_by(self, duration_ms: int, factor: float, least_more_ms: int = 0) -> bool:
        """Return whether a duration is much longer than usual.

        Args:
            duration_ms: of the same, in ms.
            factor: how many times the 95th percentile it has to be.
            least_more_ms: how much longer than the median it has to be, in ms, to matter at all.
        """
        return (
            self.compared >= LEAST_COMPARED
            and duration_ms > factor * self.p95_ms
            and duration_ms - self.median_ms >= least_more_ms
        )


def usual(durations_ms: Iterable[int]) -> Usual:
    """Return how long something usually takes; there must be at least one duration."""
    ordered = sorted(durations_ms)
    return Usual(len(ordered), int(statistics.median(ordered)), ordered[math.ceil(0.95 * len(ordered)) - 1])


def has_grown(now: float, before: float) -> bool:
    """Return whether a figure is higher by half or more, or new."""
    return now > before and now >= _MUCH * before


def differs_in_each_run(key: str) -> bool:
    """Return whether a setting of Spark's is another one in each run, so that its change explains nothing."""
    return _OF_EACH_RUN.match(key) is not None


def settings_that_differ(settings: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Return the keys of settings that differ between two runs, or that only one of them has."""
    return sorted(key for key in settings.keys() | before.keys() if settings.get(key) != before.get(key))

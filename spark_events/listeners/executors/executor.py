"""What is known of one executor."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_events.listeners.executors.executor_metrics import ExecutorSeries, Measure, Readings


@dataclass(slots=True)
class Executor:
    """One executor that lives, or the driver.

    Attributes:
        added_ms: when it was added, in ms since the epoch; None for a driver that runs no tasks, and for an
            executor that died before it registered.
        profile: the number of its resource profile; 0 is what the configuration says.
        gauges: what it measured last.
        peaks: the highest of each so far.
        totals: what has added up since its start.
        beats: whether it tells of itself with heartbeats, and not only at the ends of tasks.
        series: its metrics; None where there are none (yet).
    """

    id: str
    host: str
    cores: int
    added_ms: int | None
    profile: int = 0
    gauges: Readings = field(default_factory=dict)
    peaks: dict[Measure, int] = field(default_factory=dict)
    totals: Readings = field(default_factory=dict)
    beats: bool = False
    series: ExecutorSeries | None = None

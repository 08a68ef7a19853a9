"""Two runs of an application, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.earlier_runs.usual import has_grown, settings_that_differ
from spark_events.listeners.work.work import SUMS
from spark_events.why.explanation import Explanation

_NS = 1_000_000
_TITLES = {
    "executorRunTime": "run time of tasks",
    "executorCpuTime": "CPU time of tasks",
    "jvmGcTime": "garbage collection in tasks",
    "inputBytes": "read from sources and caches, by tasks (misses Parquet)",
    "outputBytes": "written to sinks",
    "shuffleReadBytes": "read from shuffles",
    "shuffleWriteBytes": "written for shuffles",
    "memorySpilledBytes": "spilled, in memory",
    "diskSpilledBytes": "spilled, on disk",
}


class ComparedRow(NamedTuple):
    """One figure of both runs.

    Attributes:
        other, this: of the run that is compared with, and of the other one; ms, bytes or a number.
        other_text, this_text: the same as people read it.
    """

    name: str
    other: int
    this: int
    other_text: str
    this_text: str

    @property
    def change(self) -> str:
        """How many times as much, or that there was none."""
        if self.other == self.this:
            return ""
        return f"{self.this / self.other:.2f} times" if self.other else "new"

    @property
    def much(self) -> bool:
        """Whether it has grown by half or more, or is new."""
        return has_grown(self.this, self.other)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two runs.

    Attributes:
        other_id: the run that is compared with.
        rows: the figures that at least one of them has.
        settings: the keys of settings that differ; values may be secrets.
    """

    other_id: str
    rows: list[ComparedRow]
    settings: list[str]


def compare(this: Explanation, other: Explanation) -> Comparison:
    """Return what differs between a run and another, whose event logs were both read."""
    assert this.figures is not None
    assert other.figures is not None
    rows = [
        ComparedRow(name, before, now, text(before), text(now))
        for name, before, now, text in _figures(this, other)
        if before or now
    ]
    mine, theirs = this.figures.conf, other.figures.conf
    settings = settings_that_differ(mine, theirs)
    if this.figures.spark_version != other.figures.spark_version:
        settings.insert(0, f"Spark {other.figures.spark_version} → {this.figures.spark_version}")
    return Comparison(other.app_id, rows, settings)


def _figures(this: Explanation, other: Explanation) -> Iterator[tuple[str, int, int, Callable[[int], str]]]:
    assert this.figures is not None
    assert other.figures is not None
    yield "all", other.duration_ms, this.duration_ms, duration
    for part, part_ms in (this.parts or {}).items():
        yield part, (other.parts or {}).get(part, 0), part_ms, duration
    for name in ("cores", "jobs", "stages", "tasks", "failed tasks"):
        yield name, other.figures.counts.get(name, 0), this.figures.counts.get(name, 0), "{:,}".format
    scanned = (run.figures.scanned_files_bytes for run in (other, this) if run.figures)
    yield "size of files read, by plans", *scanned, size  # type: ignore[misc]
    for summed in SUMS:
        before, now = other.figures.sums.get(summed.name, 0), this.figures.sums.get(summed.name, 0)
        if summed.unit == "ns":
            before, now = before // _NS, now // _NS
        yield _TITLES[summed.name], before, now, size if summed.unit == "By" else duration

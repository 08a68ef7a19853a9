"""Large results that come to the driver, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import COLLECT
from spark_events.diagnosis.times.pauses import ANYWHERE, MOST_PLACES, Pauses, WorkDone

COLLECTED_AT = "collect.place"
TO_PANDAS = "toPandas at "
BY_ARROW = "spark.sql.execution.arrow.pyspark.enabled"
_LEAST_COLLECTED = 4 << 20
_ROWS_PER_MS, _ARROW_PER_MS = 4 << 10, 16 << 10
"""Python takes rows from the JVM at 4 MB a second or faster, and what Arrow brings at four times that; longer
pauses are for something else."""
_SLOWLY = 2
"""Results may come that much more slowly than is assumed; what lasts longer is work on them."""


@dataclass(slots=True)
class Collected:
    """The results that came to the driver from one place.

    Attributes:
        by_arrow: whether Arrow brings them, if it can.
        times: how often.
        size_bytes: how much.
        taken_ms: how long that may have taken.
        pauses_ms: for how long no stage ran after them.
    """

    by_arrow: bool = False
    times: int = 0
    size_bytes: int = 0
    taken_ms: int = 0
    pauses_ms: int = 0


class CollectedResults:
    """Adds up the large results of an application by their places, and tells what comes after which of them.

    Attributes:
        places: of the results.
        after: of the one that came before the pause that ends; empty if none did.
        by_arrow: whether Arrow is to bring rows to Python, where a job does not say it.
    """

    def __init__(self) -> None:
        self._places: dict[str, Collected] = {}
        self._comes: WorkDone | None = None  # the last stage, if it sent much to the driver
        # The last large result, or a larger one right before it: its place and size.
        self._result: tuple[str, int] | None = None
        self._result_goes_on = False
        self.after = ""
        self.by_arrow = False

    @property
    def places(self) -> Mapping[str, Collected]:
        """The results by where in the code they come from."""
        return self._places

    def stage_completed(self, work: WorkDone) -> None:
        """Called when a stage attempt has ended with what it was for."""
        self._comes = work if work.result_bytes >= _LEAST_COLLECTED else None
        # Another result of the same kind may follow: the stages before that have its place.
        self._result_goes_on = self._result_goes_on and work.place.startswith(TO_PANDAS)

    def take(self, pause: Pauses) -> Pauses:
        """Book the part of a pause in which a result came to the driver, and return the rest of it."""
        if self._comes is None or not pause.time_ms:
            return pause
        work, self._comes = self._comes, None
        place, result_bytes = work.place or ANYWHERE, work.result_bytes
        per_ms = _ARROW_PER_MS if place.startswith(TO_PANDAS) else _ROWS_PER_MS
        taken_ms = min(pause.time_ms, result_bytes // per_ms)
        if place in self._places or len(self._places) < MOST_PLACES:
            collected = self._places.setdefault(place, Collected())
            collected.by_arrow = self.by_arrow if work.by_arrow is None else work.by_arrow
            collected.times += 1
            collected.size_bytes += result_bytes
            collected.taken_ms += taken_ms
            collected.pauses_ms += pause.time_ms
        before, self._result = self._result, (place, result_bytes)
        if before is not None and self._result_goes_on and before[1] > result_bytes:
            self._result = before
        left_ms = pause.time_ms - taken_ms
        # A program that works for long then, works on this one before it asks for another.
        self.after, self._result_goes_on = self._result[0], left_ms <= _SLOWLY * taken_ms
        return Pauses(1, left_ms, max(0, pause.within_ms - taken_ms))

    def issues(self) -> Iterator[Issue]:
        """Yield what each place has cost so far, however little."""
        for place, collected in self._places.items():
            yield _issue(place, collected)


def _issue(place: str, collected: Collected) -> Issue:
    """Return that large results came to the driver from one place."""
    longer = 1.1 * collected.taken_ms
    return Issue(
        COLLECT,
        f"{COLLECT} {place}",
        collected.taken_ms,
        None,
        f"{place} brings {size(collected.size_bytes)} to the driver, which takes up to "
        f"{duration(collected.taken_ms)}"
        + (f"; no stage runs for {duration(collected.pauses_ms)} after it" * (collected.pauses_ms > longer)),
        "Aggregate or filter in Spark, and collect only the result; write large results to a table."
        + ("" if collected.by_arrow else f" For pandas, see that {BY_ARROW} is true."),
        evidence={
            "collect.bytes": collected.size_bytes,
            "collect.times": collected.times,
            COLLECTED_AT: place,
        },
    )

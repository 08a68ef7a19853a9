"""The answer for one application: where its time went, what slowed it, and what cores would change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spark_events.api import Event
from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.times.cores_model import Estimate, critical_path_ms, estimates
from spark_events.diagnosis.times.ledger import COMPUTING, PYTHON, REPEATED, SHUFFLE_WRITE
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from spark_events.runtime.plugins import SPANS
from spark_events.runtime.settings import key_of
from spark_events.runtime.setup import FACTORY
from spark_events.why.answer import WAITED_FOR, answer
from spark_events.why.consequences import in_order, without_held_up_starts
from spark_events.why.found_issue import FoundIssue, by_cost, issue_of, with_present_values
from spark_events.why.grouped import grouped
from spark_events.why.longest_stages import LongestStages, StagesOfPlace
from spark_events.why.reading.heap_use import HeapUse
from spark_events.why.reading.run_figures import RunFigures
from spark_events.why.shown import whole_percent

SMALL_MS = 1_000
_CPU_TIME, _LEAST_COMPUTING, _MOST_OF_IT, _LITTLE = "executorCpuTime", 0.1, 0.9, 0.5
_USE_CPU, _NEXT_TO_NOTHING = (SHUFFLE_WRITE, PYTHON, REPEATED), 0.01
"""The other accounts whose tasks may have had a CPU, and the share of computing that they may have unsaid."""
_NEARLY_ALL = 0.99
_THAT_TIME = "the time in which they read, compute and write"
LEAST = key_of(Thresholds, "min_time_ms")
_SMALL_ONES = (
    f"Issues that cost less than {LEAST} (30 s by default), and those of idle cores and loops of small jobs "
    f"below {key_of(Thresholds, 'idle_time_ms')} (2 min), are not stored."
)
_WHERE_TIME_IS = (
    "Where the time went is in Spark's event log (spark.eventLog.enabled), which why reads, or in stored "
    f"spans ({SPANS.prefix}file.{FACTORY.name}=file_log)."
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an application took as long as it did.

    Attributes:
        begun_ms, ended_ms: in ms since the epoch.
        ended: whether its end is known.
        parts: how long each account of the ledger took, in ms; they add up to all of it. None if only its
            events are known.
        core_ms: the same of its cores, in ms; None where it is not known.
        heap_byte_s: what became of its executors' heap, in byte-seconds, by ``HEAP_ACCOUNTS``; empty where
            it has none of its own, or it is not known.
        issues: by what they cost, the costliest first.
        critical_path_ms: the least time with endless cores; None as above.
        estimates: with other numbers of cores.
        figures: what it read, wrote and was given; None as above.
        least_ms: what an issue costs at least that is looked for, in ms; None if that is not known.
        failures: what was said of each failure of the application and of its jobs and queries, in order.
        longest: the stages that took longest, by place; empty as above.
        unfinished: how many tasks ran when their stage ended; None if some did where the log ends.
        to_first_work_ms: how long it took until its first job or query began; 0 if unknown.
        unread: how many records of its log could not be used.
    """

    app_name: str
    app_id: str
    begun_ms: int
    ended_ms: int
    ended: bool
    issues: list[FoundIssue]
    parts: Mapping[str, int] | None = None
    core_ms: Mapping[str, int] | None = None
    heap_byte_s: Mapping[str, int] = field(default_factory=dict)
    critical_path_ms: int | None = None
    estimates: list[Estimate] = field(default_factory=list)
    figures: RunFigures | None = None
    least_ms: int | None = None
    failures: Sequence[str] = ()
    longest: Sequence[StagesOfPlace] = ()
    unfinished: int | None = 0
    to_first_work_ms: int = 0
    unread: int = 0

    @property
    def answer(self) -> str:
        """One sentence that says what to look at first; empty if nothing says that."""
        return answer(
            self.issues,
            self.duration_ms,
            self.parts,
            self.longest,
            self.ended,
            self._little_cpu,
            self.to_first_work_ms,
            self.unread,
        )

    @property
    def cpu_share(self) -> float | None:
        """For how much of the time in which tasks read, compute and write they had a CPU at most, 0 to 1.

        Spark adds up the time of their CPUs, whatever they used these for. None where it is not known, or
        where they read, compute and write for less than a tenth of the time of all cores.
        """
        if self.core_ms is None or self.figures is None:
            return None
        cpu_ms, computing_ms = self.figures.sums.get(_CPU_TIME, 0) / 1e6, self.core_ms.get(COMPUTING, 0)
        if not cpu_ms or computing_ms <= _LEAST_COMPUTING * sum(self.core_ms.values()):
            return None
        return min(1.0, cpu_ms / computing_ms)

    @property
    def had_cpu(self) -> str:
        """A sentence about that; empty if it is not known."""
        if not (amount := self._amount_of_cpu):
            return ""  # or it says nothing
        had = f'Of "{COMPUTING}", tasks had a CPU for {amount}'
        if (self.cpu_share or 0.0) >= _MOST_OF_IT:
            return f"{had}."
        return f"{had}; otherwise they waited for {WAITED_FOR}."

    @property
    def _amount_of_cpu(self) -> str:
        """Such as ``at most 16 %``; empty if it is not known, or may be all of it."""
        if (share := self.cpu_share) is None:
            return ""
        core_ms = self.core_ms or {}
        others_ms = sum(core_ms.get(account, 0) for account in _USE_CPU)
        at_most = "at most " if others_ms > _NEXT_TO_NOTHING * core_ms.get(COMPUTING, 0) else ""
        return "" if at_most and share >= _MOST_OF_IT else f"{at_most}{whole_percent(100 * share)}"

    @property
    def _little_cpu(self) -> str:
        """The same where it is less than half; else empty."""
        return self._amount_of_cpu if (self.cpu_share or 0.0) < _LITTLE else ""

    @property
    def core_time(self) -> str:
        """A sentence about the core time if cores were there for a part of the run only; else empty."""
        if self.core_ms is None or self.figures is None:
            return ""
        cores, were_ms = self.figures.counts.get("cores", 0), sum(self.core_ms.values())
        whole_ms = cores * self.duration_ms
        if not were_ms or were_ms > _NEARLY_ALL * whole_ms:
            return ""
        share = whole_percent(100 * were_ms / whole_ms)
        return (
            f"Core time counts a core only while the run has it: each of {cores:,}, on average, for {share}."
        )

    @property
    def failed(self) -> str:
        """One sentence about what failed; empty if nothing did. A run that failed did not do all its work."""
        if not self.failures:
            return ""
        more = f"{len(self.failures):,} failures, the last: " if len(self.failures) > 1 else ""
        return f"{more}{self.failures[-1]}"

    @property
    def never_ended(self) -> str:
        """A sentence about tasks that did not end; empty if all did."""
        if self.unfinished == 0:
            return ""
        if self.unfinished is None:
            tasks = "Tasks"
        else:
            tasks = "One task" if self.unfinished == 1 else f"{self.unfinished:,} tasks"
        return (
            f"{tasks} had not ended when the stage was given up or the log ends: what they did is not known."
        )

    @property
    def none_found(self) -> str:
        """What to say where there is no issue: small ones are not looked for."""
        if self.least_ms is None:
            return "no performance issue found in the stored events"
        least = duration(self.least_ms)
        smaller = f"; for smaller ones: --conf {LEAST}=1s" if self.least_ms >= 2 * SMALL_MS else ""
        of_cpu = f"; tasks had a CPU for {self._little_cpu} of {_THAT_TIME}" if self._little_cpu else ""
        return f"no cause known to spark-events cost {least} or more{of_cpu}{smaller}"

    @property
    def duration_ms(self) -> int:
        """How long it took, in ms."""
        return max(0, self.ended_ms - self.begun_ms)


def unknown_of_events(explanations: Iterable[Explanation]) -> str:
    """Return what stored events do not say of some applications, in short; empty where that is nothing."""
    of_events = [each for each in explanations if each.least_ms is None]
    said = (
        _SMALL_ONES if any(not each.issues for each in of_events) else "",
        _WHERE_TIME_IS if any(each.parts is None for each in of_events) else "",
    )
    return " ".join(filter(None, said))


def explain(
    app_name: str,
    app_id: str,
    timeline: ApplicationTimeline,
    figures: RunFigures,
    heap: HeapUse,
    longest: LongestStages,
    ended: bool,
    issues: Iterable[Event],
    worth_ms: int,
    failures: Iterable[str],
    unread: int,
) -> Explanation:
    """Return the explanation of an application whose event log was read.

    Args:
        app_name, app_id: its own.
        timeline: what happened in it.
        figures: what it read, wrote and was given.
        heap: what became of its executors' heap.
        longest: which of its stages took longest.
        ended: whether its end is known.
        issues: the events of its issues.
        worth_ms: what an issue costs at least that is told, in ms; all stages of one place count as one.
        failures: the bodies of the events of its failures, in order.
        unread: how many records of its log could not be used.
    """
    timeline.end()
    figures.end(timeline)
    booked = timeline.booked()
    issues_found = in_order(
        grouped(by_cost(issue_of(event.all_attributes, event.severity.name) for event in issues))
    )
    lasted_ms = timeline.ended_ms - timeline.begun_ms
    issues_found = [with_present_values(issue.within(lasted_ms), figures.conf) for issue in issues_found]
    explanation = Explanation(
        app_name,
        app_id,
        timeline.begun_ms,
        timeline.ended_ms,
        ended,
        [issue for issue in issues_found if issue.is_worth(worth_ms)],
        parts=booked.time_ms,
        core_ms=booked.core_ms if any(booked.core_ms.values()) else None,
        heap_byte_s=heap.booked(timeline.ended_ms),
        critical_path_ms=critical_path_ms(timeline.run) if timeline.run else None,
        estimates=estimates(timeline.run) if timeline.run else [],
        figures=figures,
        least_ms=worth_ms,
        failures=tuple(failures),
        longest=longest.longest(lasted_ms),
        unfinished=timeline.unfinished,
        to_first_work_ms=timeline.to_first_work_ms,
        unread=unread,
    )
    return replace(explanation, issues=without_held_up_starts(explanation.issues, explanation.cpu_share))

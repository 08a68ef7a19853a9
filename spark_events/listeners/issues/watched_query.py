"""What is kept of a run of a streaming query, to say what makes it slow."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.queries.batch_rewrites import BatchRewrites
from spark_events.diagnosis.queries.complete_mode import CompleteMode
from spark_events.diagnosis.queries.foreach_code import CodeInBatches
from spark_events.diagnosis.queries.small_batches import BatchWork, SmallBatches
from spark_events.diagnosis.queries.state_parts import ManyStateParts
from spark_events.diagnosis.queries.state_rules import StateGrowth, StateRowsGrow
from spark_events.diagnosis.queries.static_sides import StaticSides
from spark_events.diagnosis.queries.streams import SlowSource, SourceStopped, StreamBehind
from spark_events.listeners.issues.issue_events import GrowingIssues


@dataclass(slots=True)
class WatchedQuery:
    """A run of a streaming query, and what it has lost, by cause and the name of what lost it.

    Attributes:
        own_ms, executions: how long the micro-batch that runs took besides its jobs and SQL executions, and
            how many of these there were.
        collected_bytes: the size of the rows that its stages have sent to the driver.
        flow: where its rows come from and go; empty if unknown.
        of_plans: what the plans of all its micro-batches say so far.
        has_written: whether the code of ``foreach`` has written rows.
        files: that the micro-batch whose progress is not there yet has written many small files, and where.
    """

    query_id: str
    name: str
    growing: GrowingIssues
    source: SourceStopped
    behind: StreamBehind
    small: SmallBatches
    sources: str = ""
    flow: str = ""
    busy_ms: int = 0
    batches_ms: int = 0
    jobs_ms: int = 0
    own_ms: int = 0
    executions: int = 0
    collected_bytes: int = 0
    code: CodeInBatches = field(default_factory=CodeInBatches)
    lost: dict[tuple[str, str], Issue] = field(default_factory=dict)
    times: dict[tuple[str, str], int] = field(default_factory=dict)
    state_growth: StateGrowth = field(default_factory=StateGrowth)
    state_rows: StateRowsGrow = field(default_factory=StateRowsGrow)
    slow_source: SlowSource = field(default_factory=SlowSource)
    state_parts: ManyStateParts = field(default_factory=ManyStateParts)
    rewrites: BatchRewrites = field(default_factory=BatchRewrites)
    complete: CompleteMode = field(default_factory=CompleteMode)
    static: StaticSides = field(default_factory=StaticSides)
    of_plans: list[Issue] = field(default_factory=list)
    work: BatchWork | None = None
    copied_ms: int = 0
    has_written: bool = False
    files: list[tuple[Issue, str]] = field(default_factory=list)

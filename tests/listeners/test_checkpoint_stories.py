"""Random lives of a query, told live and replayed, against what they owe by a small account of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_events.api import Event
from tests.support import spark_records as r
from tests.support.spark_records import T0, Feed, seen

BOOM = "org.apache.spark.SparkRuntimeException: boom\n\tat a.B.c(B.scala:1)"
IDLE_MS, SOON_MS = 10_000, 1_000
SLAS_MS = (1_000, 5_000, 9_000, 11_000, 20_000, 60_000)


class Batch(NamedTuple):
    """A micro-batch: its trigger comes after a pause; looking for data and the batch take their time."""

    pause_ms: int
    looking_ms: int
    running_ms: int
    fails: bool


class Idle(NamedTuple):
    """Spark says that the query is idle."""

    after_ms: int


class Restart(NamedTuple):
    """The query fails between batches, and is started again; with another checkpoint, it has another id."""

    after_ms: int
    down_ms: int
    is_other: bool


ms = st.one_of(st.integers(1, 3_000), st.integers(1, 40_000))
batches = st.builds(
    Batch, ms, st.one_of(st.just(5), ms), ms, st.integers(0, 5).map(lambda number: number == 0)
)
stories = st.lists(
    st.one_of(batches, batches, st.builds(Idle, ms), st.builds(Restart, ms, ms, st.booleans())),
    min_size=1,
    max_size=8,
)


class Told:
    """The records of a story, and what they owe: the time of each overdue checkpoint, and how long each was owed."""

    def __init__(self, story: list[Any], sla_ms: int) -> None:
        self.sla_ms = sla_ms
        self.records: list[tuple[int, dict[str, Any]]] = []
        self.overdue: list[int] = []
        self.owed: list[int] = []
        self.now = self.runs = self.batch = self.checkpoints = 0
        self.begin: int | None = 0  # of what the query owes; None while it is idle
        self.kind = "start"  # of that moment: start, checkpoint, down; or begun in a batch that failed
        self.is_told = False
        self.start()
        for step in story:
            {Batch: self.run, Idle: self.rest, Restart: self.restart}[type(step)](step)

    def add(self, record: dict[str, Any]) -> None:
        self.records.append((self.now, record))

    def start(self) -> None:
        self.runs += 1
        self.add(r.query_started(self.now, f"run-{self.runs}", f"query-{self.checkpoints}"))
        if self.begin is None:
            self.begin, self.kind, self.is_told = self.now, "start", False

    def tell(self, due: int, by: int, known: int = 0) -> None:
        if not self.is_told and by > max(due, known):
            self.is_told = True
            self.overdue.append(due)

    def known(self) -> int:
        """Return until when it may turn out that there is nothing to do."""
        assert self.begin is not None
        if self.kind not in ("start", "checkpoint"):
            return 0
        return self.begin + IDLE_MS + SOON_MS + min(self.sla_ms, IDLE_MS)

    def wait(self, until: int) -> None:
        """Nothing happens up to a record."""
        self.now = until
        if self.begin is not None:
            self.tell(self.begin + self.sla_ms, until, self.known())

    def rest(self, idle: Idle) -> None:
        self.wait(self.now + idle.after_ms)
        self.add(r.idle(self.now, run=f"run-{self.runs}"))
        self.begin = None

    def fail(self) -> None:
        """The record of a query's end has no time; it is taken as of the record before."""
        self.add(r.terminated(run=f"run-{self.runs}", exception=BOOM))
        if self.begin is None:
            self.begin, self.is_told = self.now, False
        self.kind = "down"

    def restart(self, restart: Restart) -> None:
        self.fail()
        self.wait(self.now + restart.down_ms)
        self.checkpoints += restart.is_other
        self.start()

    def run(self, batch: Batch) -> None:
        trigger = self.now + batch.pause_ms
        self.wait(trigger + batch.looking_ms)
        began, latest, earliest = self.now, self.begin, self.begin
        if latest is None:
            latest, earliest, self.is_told = began, trigger, False
        elif self.kind == "checkpoint" and began - latest > SOON_MS and began <= self.known():
            earliest = latest if trigger - latest <= SOON_MS else trigger
            latest = began
        assert earliest is not None
        self.add(r.batch_begins(began, self.batch, run=f"run-{self.runs}"))
        if batch.fails:
            self.begin, self.kind = latest, "begun"
            self.fail()
            self.wait(self.now + batch.running_ms)
            self.start()
            return
        self.now = began + batch.running_ms
        self.tell(latest + self.sla_ms, self.now)
        self.tell(earliest + self.sla_ms, self.now)
        self.add(r.progress(trigger, self.batch, took=self.now - trigger, run=f"run-{self.runs}"))
        self.owed.append(self.now - earliest)
        self.begin, self.kind, self.is_told = self.now, "checkpoint", False
        self.batch += 1


def told(story: Told, ticks: bool) -> tuple[list[Event], int, int]:
    """Return what the listeners say, and how many checkpoints were in time, and were not."""
    feed = Feed(checkpoint__sla=f"{story.sla_ms}ms")(r.application_start())
    last = 0
    for at, record in story.records:
        for time_ms in range(last, at, 700) if ticks else ():
            feed.tick(time_ms)
        last = at
        feed.listeners.on_record(record)
    met, missed = (feed.gauge(f"app.query.orders.checkpointSla{name}") for name in ("Met", "Missed"))
    return feed.end(), int(met or 0), int(missed or 0)


def of(events: list[Event]) -> list[tuple[str | None, int | None, dict[str, Any]]]:
    overdue = seen(events, "CheckpointOverdueEvent")
    return [(event.id, event.time_ms, dict(event.attributes)) for event in overdue]


@settings(max_examples=80, deadline=None)
@given(stories, st.sampled_from(SLAS_MS))
def test_what_a_query_owes(steps: list[Any], sla_ms: int) -> None:
    """Live and replayed, each overdue checkpoint is told once, at its time; and each one says how long it was owed."""
    story = Told(steps, sla_ms)
    live, live_met, live_missed = told(story, ticks=True)
    replayed, met, missed = told(story, ticks=False)

    assert of(live) == of(replayed)
    assert (live_met, live_missed) == (met, missed)
    assert [time_ms for _, time_ms, _ in of(replayed)] == [T0 + due for due in story.overdue]
    completed = [
        event
        for event in seen(replayed, "CheckpointEvent")
        if event.attributes["checkpointStatus"] == "COMPLETED"
    ]
    assert [event.attributes["owedMs"] for event in completed] == story.owed
    assert missed == len(story.overdue)
    assert len({event_id for event_id, _, _ in of(replayed)}) == missed
    late = sum(owed > sla_ms for owed in story.owed)
    assert met + late == len(story.owed)

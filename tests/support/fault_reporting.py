"""A registry with one OTLP reporter of events, as an application of a name would have it."""

from __future__ import annotations

from pathlib import Path

from spark_events.api import ApplicationInfo, Event
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from spark_events.runtime.workers.worker import Worker
from tests.support.waiting import wait_until

PREFIX = "spark.events.reporter.otel."


class Reporting:
    """Reports events whose ids are numbers.

    Args:
        endpoint: where they go.
        journal: the journal's folder; None has none.
        options: of the reporter; ``__`` stands for a dot.
        application: the application's name.
        start: whether to start at once.
    """

    def __init__(
        self,
        endpoint: str,
        journal: Path | None,
        application: str = "app",
        start: bool = True,
        **options: str,
    ) -> None:
        conf = {f"{PREFIX}factory.class": "otlp", f"{PREFIX}exporter.endpoint": endpoint}
        # An event about lost events would be one more than was reported here.
        conf[f"{PREFIX}filter.excludes"] = "*:RecordsDroppedEvent"
        if journal is not None:
            conf[f"{PREFIX}journal.dir"] = str(journal)
        conf |= {PREFIX + key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        setups, errors = read_all_setups(conf, ApplicationInfo(application, "app-1"))
        assert not errors, errors
        self.registry = Registry(setups)
        self.next = 0
        if start:
            self.registry.start()

    @property
    def worker(self) -> Worker:
        return self.registry.workers[0]

    def emit(self, count: int, body: str = "") -> list[str]:
        """Report so many events, and return their ids."""
        ids = [f"e{number:07d}" for number in range(self.next, self.next + count)]
        for event_id in ids:
            event = Event.builder("test", "MyEvent").set_id(event_id).set_body(body)
            self.registry.root.add_event(event)
        self.next += count
        return ids

    def stored(self) -> None:
        """Wait until all that was reported is in the journal, or in memory where there is none."""
        worker = self.worker
        wait_until(lambda: worker.delivery and worker.depth == worker.delivery.spool.pending, "stored")

    def delivered(self, count: int, timeout_s: float = 60) -> None:
        """Wait until so many events are acknowledged."""
        wait_until(lambda: self.worker.stats.reported.count >= count, f"{count} are delivered", timeout_s)

    def close(self, timeout_ms: int = 5_000) -> None:
        """Close it, and wait for what did not close in time, as if its process had ended."""
        self.registry.close(timeout_ms)
        self.gone()

    def gone(self) -> None:
        """Wait until nothing of it runs any more."""
        wait_until(lambda: self.worker.ended, "it has ended")

    def balance(self) -> dict[str, int]:
        """Return what became of all events; the sum is what was reported."""
        totals = self.worker.stats.totals().items()
        return {**{n: count for n, count in totals if not n.startswith("told.")}, "queued": self.worker.depth}

"""Dispatches what is added to the scope tree to the reporters that want it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from spark_events.api import (
    ApplicationInfo,
    Event,
    EventBuilder,
    JobStatusChangedEvent,
    Metric,
    MetricGroup,
    Span,
    SpanBuilder,
)
from spark_events.runtime.foreign_errors import describe
from spark_events.runtime.log_once import OnceLog
from spark_events.runtime.plugins import EVENTS, JOB_LISTENERS, KINDS, METRICS, SPANS, Kind
from spark_events.runtime.redaction import Redactor
from spark_events.runtime.scope import Reading, ReporterGroupView, ScopeGroup, register_gauges
from spark_events.runtime.series_limit import SeriesLimit
from spark_events.runtime.setup import ReporterSetup
from spark_events.runtime.workers.inbox import Item, estimate_bytes
from spark_events.runtime.workers.losses import Losses
from spark_events.runtime.workers.stats import LOSS_CAUSES
from spark_events.runtime.workers.turns import OWN_THREADS, Lanes, Threads
from spark_events.runtime.workers.worker import Worker

SeriesChange = Callable[[SeriesLimit, Metric, str, MetricGroup], None]


class Registry:
    """Owns the reporters and the root of the scope tree.

    Args:
        setups: the reporters to start.
        redactor: keeps secrets out of events and spans.
        driver_scope: the prefix of the dotted names of the framework's own metrics.
        tap: receives all events, redacted, whether or not a reporter wants them.
        metrics: has the metric reporters that receive the metrics instead of reporters of its own; this
            registry may have as many series as if they were its own.
        variables: added to all groups.
        application: whose events and spans these are; they name it, also those of the root.
        lanes: the threads that the reporters share with those of other registries; None if each has its own.
        before_metrics: waits, on the thread of each metric reporter, until that may open.

    Attributes:
        root: the group ``spark``, the ancestor of all others.
        shares_threads: whether its reporters have their turns on threads that other registries use as well.
        muted: while it is set, events and spans are ignored: an earlier process has reported them.
        driver: the group of the framework's own metrics.
        log: takes errors of plugins, once for each kind of error.
    """

    def __init__(
        self,
        setups: Sequence[ReporterSetup],
        redactor: Redactor | None = None,
        driver_scope: tuple[str, ...] = (),
        tap: Callable[[Event], None] | None = None,
        metrics: Registry | None = None,
        variables: Mapping[str, str] | None = None,
        application: ApplicationInfo | None = None,
        lanes: Lanes | None = None,
        before_metrics: Callable[[], None] | None = None,
    ) -> None:
        self.log = OnceLog()
        self.muted = False
        self.shares_threads = lanes is not None
        self._tap = tap
        self._metrics = metrics
        self._redactor = redactor or Redactor()
        before = {METRICS: before_metrics}
        self.workers = [
            Worker(setup, self.log, _threads(setup, lanes), before.get(setup.kind)) for setup in setups
        ]
        self._by_kind = {kind: [w for w in self.workers if w.setup.kind is kind] for kind in KINDS}
        receiving = (metrics or self)._by_kind[METRICS]
        self._limits = {worker: _limit(worker, variables or {}) for worker in receiving}
        self._limits_lock = threading.RLock()
        named = {} if application is None else {"app_name": application.name, "app_id": application.id}
        instance = {name: value for name, value in named.items() if value}
        self._sharing: set[Registry] = set()
        if metrics is not None:
            with metrics._limits_lock:
                metrics._sharing.add(self)
        self.root = ScopeGroup(self, ("spark",), (), variables or {}, instance)
        self.driver = self.root.child(components=driver_scope) if driver_scope else self.root
        self.losses = Losses(self.add_event)

    def start(self) -> None:
        """Start all reporters, each on its own thread; returns at once."""
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            self._register_self_metrics(worker)

    def wait_opened(self, timeout_ms: int) -> list[str]:
        """Wait until all reporters are open, and return one sentence for each thing that went wrong."""
        deadline = time.monotonic() + timeout_ms / 1000
        problems = []
        for worker in self.workers:
            if not worker.wait_opened(max(0.0, deadline - time.monotonic())):
                problems.append(f"{worker.title} did not open within {timeout_ms} ms")
            elif worker.error is not None:
                problems.append(f"{worker.title}: {describe(worker.error)}")
        return problems

    def await_journals(self, timeout_ms: int) -> None:
        """Wait until the journals that reporters have are open, or the time is over."""
        deadline = time.monotonic() + timeout_ms / 1000
        for worker in self.workers:
            if worker.setup.journal_dir is not None:
                worker.wait_opened(max(0.0, deadline - time.monotonic()))

    def await_journaled(self, timeout_ms: int) -> None:
        """Wait until what was added is in the journals that reporters have, or the time is over."""
        deadline = time.monotonic() + timeout_ms / 1000
        for worker in self.workers:
            if worker.setup.journal_dir is not None:
                worker.wait_journaled(max(0.0, deadline - time.monotonic()))

    def close(self, timeout_ms: int) -> None:
        """Deliver what is queued and close all reporters, within one time limit for all together."""
        self.request_close(timeout_ms)
        for worker in self.workers:
            worker.join()
        self.losses.report(lately=True, as_events=False)

    def request_close(self, timeout_ms: int) -> None:
        """Begin to close all reporters; ``close`` with what is left of the time waits for them."""
        self.losses.report(lately=True)
        deadline = time.monotonic() + timeout_ms / 1000
        for worker in self.workers:
            worker.request_close(deadline)

    def remove_series(self) -> None:
        """Remove all series from the metric reporters that it shares with other registries."""
        self.root.close()
        self._close_limits()

    def withdraw_metrics(self) -> None:
        """Remove its series from all metric reporters, and announce no more; events and spans go on."""
        self.root.withdraw_metrics()
        self._close_limits()
        self._limits = {}

    def has_reporters(self, kind: Kind) -> bool:
        """Return whether any reporter of this kind takes what is added."""
        shared = self._metrics is not None and kind is METRICS and self._metrics.has_reporters(kind)
        return shared or bool(self._by_kind[kind])

    @property
    def crowded(self) -> bool:
        """Whether a reporter is so busy that callers who can wait should do so."""
        shared = self._metrics is not None and self._metrics.crowded
        return shared or any(worker.crowded for worker in self.workers if worker.error is None)

    @property
    def at_risk(self) -> int:
        """How many items would be lost if the process died now."""
        return sum(worker.at_risk for worker in self.workers)

    @property
    def undelivered(self) -> int:
        """How many items wait or are in flight."""
        return sum(worker.depth for worker in self.workers)

    def tick(self) -> None:
        """Called as time passes: reports what was dropped."""
        self.losses.report()

    # -- from the scope tree -------------------------------------------------------------------------

    def add_event(self, group: MetricGroup, event: EventBuilder) -> None:
        """Hand an event to each event reporter whose filter it passes."""
        if self.muted:
            return
        wanting = self._wanting(EVENTS, group, event.name)
        if event.history_only:
            wanting = [worker for worker in wanting if worker.keeps_history]
        if wanting or self._tap:
            built = self._redactor.item(event.build(group.all_variables))
            if self._tap:
                self._tap(built)
            self._offer(wanting, "notify_of_added_event", built, event.routine)

    def add_span(self, group: MetricGroup, span: SpanBuilder) -> None:
        """Hand a span and each of its descendants to each span reporter whose filter it passes."""
        if self.muted or not self._by_kind[SPANS]:
            return
        for built in span.build_tree(group.all_variables):
            if wanting := self._wanting(SPANS, group, built.name):
                self._offer(wanting, "notify_of_added_span", self._redactor.item(built), span.routine)

    def add_job_event(self, event: JobStatusChangedEvent, size: int) -> None:
        """Hand an event to each job status listener.

        Args:
            event: already redacted; see ``redact``.
            size: roughly how much memory it takes, in bytes.
        """
        if not self.muted:
            for worker in self._by_kind[JOB_LISTENERS]:
                worker.offer(Item("on_event", (event,), size))

    def redact(self, text: str) -> str:
        """Return a text with the secrets replaced."""
        return self._redactor.text(text)

    def redact_name(self, name: str) -> str:
        """Return a name or a label of the user's with the secret values replaced."""
        return self._redactor.name(name)

    def add_metric(self, group: MetricGroup, name: str, metric: Metric) -> None:
        """Announce a metric to each metric reporter whose filter it passes."""
        self._change_series(SeriesLimit.added, metric, name, group)

    def remove_metric(self, group: MetricGroup, name: str, metric: Metric) -> None:
        """Tell each metric reporter that knows a metric that it is gone."""
        self._change_series(SeriesLimit.removed, metric, name, group)

    def _wanting(self, kind: Kind, group: MetricGroup, name: str) -> list[Worker]:
        scope = group.logical_scope
        return [worker for worker in self._by_kind[kind] if worker.setup.filter.passes(scope, name)]

    def _offer(self, wanting: list[Worker], method: str, built: Event | Span, routine: bool) -> None:
        size, variables = estimate_bytes(built), built.variables
        for worker in wanting:
            seen = worker.variables.seen(variables)
            handed = built if seen is variables else built.with_variables(seen)
            worker.offer(Item(method, (handed,), size, routine))

    def _change_series(self, change: SeriesChange, metric: Metric, name: str, group: MetricGroup) -> None:
        for worker, limit in self._limits.items():
            if worker.setup.filter.passes(group.logical_scope, name, metric.type.value):
                with self._limits_lock:
                    change(limit, metric, name, group)

    # -- about itself --------------------------------------------------------------------------------

    def _register_self_metrics(self, worker: Worker) -> None:
        setup, stats = worker.setup, worker.stats
        labels = {"reporter": setup.name, "reporter_kind": setup.kind.name}
        application = setup.config.application
        if application.name:  # followed applications share the metric reporters
            labels["app_name"] = application.name
        of_events = {"app_id": application.id} if application.id else {}
        group = self.driver.child("reporter", ("reporter", setup.kind.name, setup.name), labels, of_events)
        group.register("reported", stats.reported)
        group.register("failed", stats.failed)
        group.register("refused", stats.refused)
        group.register("retries", stats.retries)
        for cause, counter in stats.dropped_by_cause.items():
            group.child(components=(cause,), variables={"cause": cause}).register("dropped", counter)
        age = "Age of the oldest undelivered record."
        readings: dict[str, Reading] = {
            "queueDepth": (lambda: worker.depth, "", "Items waiting to be sent."),
            "queueBytes": (lambda: worker.queue_bytes, "By", "Approximate memory of waiting items."),
            "lastSuccessTimestamp": (lambda: stats.last_success_ms, "ms", "When it last succeeded."),
            "journalBytes": (lambda: worker.journal_bytes, "By", "Size of the journal."),
            "journalAge": (lambda: worker.oldest_age_ms, "ms", age),
        }
        if worker in self._limits:
            above = "Series left out because of max-series and max-series-per-metric."
            readings["series"] = (lambda: self._series_of(worker)[0], "{series}", "Series that it reports.")
            readings["seriesAboveLimit"] = (lambda: self._series_of(worker)[1], "{series}", above)
        register_gauges(group, readings)
        self.losses.watch(worker.title, group, stats.losses, LOSS_CAUSES, stats.note_told)

    def _close_limits(self) -> None:
        with self._limits_lock:
            for limit in self._limits.values():
                limit.close()
        if self._metrics is not None:
            with self._metrics._limits_lock:
                self._metrics._sharing.discard(self)

    def _series_of(self, worker: Worker) -> tuple[int, int]:
        """Return how many series a metric reporter has, and how many it does not get."""
        with self._limits_lock:
            limits = [self._limits[worker], *(sharing._limits[worker] for sharing in self._sharing)]
        return sum(limit.count for limit in limits), sum(limit.above for limit in limits)


def _threads(setup: ReporterSetup, lanes: Lanes | None) -> Threads:
    shares = lanes is not None and getattr(setup.factory, "shares_threads", False)
    return lanes.of(setup.kind.name, setup.name) if lanes is not None and shares else OWN_THREADS


def _limit(worker: Worker, variables: Mapping[str, str]) -> SeriesLimit:
    """Return the filter that hands a metric reporter the series it is allowed to have."""
    setup = worker.setup

    def tell(method: str, metric: Metric, name: str, group: MetricGroup) -> None:
        view = ReporterGroupView(group, worker.variables.seen(group.variables), setup.settings.delimiter)
        worker.offer(Item(method, (metric, name, view)))

    settings = setup.settings
    return SeriesLimit(worker.title, settings.max_series, settings.max_series_of_metric, tell, variables)

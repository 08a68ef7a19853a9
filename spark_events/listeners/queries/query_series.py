"""The metrics of streaming queries, shared by all runs of one name, so that they survive a restart."""

from __future__ import annotations

from spark_events.api import Gauge, MetricGroup
from spark_events.listeners.application.status_metrics import StatusMetrics
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.queries.checkpoint import CheckpointStats
from spark_events.listeners.queries.checkpoint_watch import SlaMetrics
from spark_events.listeners.queries.query_metrics import QueryMetrics
from spark_events.listeners.queries.query_run import QueryRun

_MOST_ENDED = 100


class QuerySeries:
    """The metrics of one query; those of its SLA are None if it has none.

    Attributes:
        name: the query's.
    """

    def __init__(self, context: ListenerContext, name: str) -> None:
        self._context = context
        self.name = name
        self._group = group = context.scopes.query(name)
        self._info: MetricGroup | None = None
        enabled = context.settings.status_metrics
        self.status = StatusMetrics(group, enabled)
        context.all_subtasks.register(group, name, enabled)
        self.metrics = QueryMetrics(group)
        self.checkpoints = CheckpointStats(context.emitter, group)
        sla_ms = context.settings.sla_ms_for(name)
        self.sla = None if sla_ms is None else SlaMetrics(group, sla_ms)
        self.restarts = 0
        group.register(
            "numRestarts", Gauge(lambda: self.restarts, description="How often the query was restarted.")
        )

    def follow(self, run: QueryRun, trigger_interval_ms: int | None) -> None:
        """Show the status of the newest run, and name only that run in the metric ``info``.

        Args:
            run: the newest.
            trigger_interval_ms: None if its trigger has no interval or it is unknown.
        """
        self.status.follow(run.tracker)
        self.metrics.trigger_interval_ms = trigger_interval_ms
        if self._info is not None:
            self._info.close()
        ids = {"query_id": run.query_id, "run_id": run.run_id}
        self._info = info = self._group.detached("", ("info",), ids, {})
        described = "Always 1; its labels identify the run of the query."
        info.register("info", Gauge(lambda: 1, description=described))

    def close(self) -> None:
        """Remove all metrics of the query."""
        if self._info is not None:
            self._info.close()
        self._group.close()
        self._context.emitter.forget(self.name)
        self._context.failures.metrics.forget(self.name)
        self._context.all_subtasks.forget(self.name)


class AllQuerySeries:
    """The metrics of all queries of one application; those of queries ended on purpose go after a while.

    Those of a failed query stay, so that somebody sees that it is down, but only for the hundred queries
    that ended last.
    """

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._series: dict[str, QuerySeries] = {}
        self._leaving: dict[str, float] = {}

    def of(self, name: str) -> QuerySeries:
        """Return the metrics of a query that is starting."""
        self._leaving.pop(name, None)
        if name not in self._series:
            self._series[name] = QuerySeries(self._context, name)
        return self._series[name]

    def ended(self, run: QueryRun, time_ms: int, on_purpose: bool) -> None:
        """Called when a run has ended, at a time in ms since the epoch."""
        series = self._series.get(run.name)
        if series is not None and series.status.follows(run.tracker):  # else a newer run uses the name
            due_ms = time_ms + self._context.settings.grace_ms if on_purpose else float("inf")
            self._leaving[run.name] = due_ms

    def tick(self, now_ms: int) -> list[str]:
        """Remove the series that are due to leave, and return the names of their queries."""
        gone = [name for name, due_ms in self._leaving.items() if due_ms <= now_ms]
        gone += [name for name in list(self._leaving)[:-_MOST_ENDED] if name not in gone]
        for name in gone:
            del self._leaving[name]
            self._series.pop(name).close()
        return gone

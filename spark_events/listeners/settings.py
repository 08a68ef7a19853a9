"""The settings of the listeners, below ``spark.events.``, ``spark.metrics.`` and ``spark.traces.``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_events.api import ConfigError, ReporterConfig
from spark_events.api import option_types as types
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.listeners.scopes import ScopeFormats
from spark_events.listeners.trace_context import ENVIRONMENT, TRACEPARENT, TraceParent, parse_traceparent
from spark_events.runtime.log_once import logger
from spark_events.runtime.settings import Declared, declared_in, read_declared, setting, setting_of_each

STATE, CURRENT_TIME, TOTAL_TIME = "STATE", "CURRENT_TIME", "TOTAL_TIME"
"""What there may be for each status, as in Flink's ``metrics.job.status.enable``."""
ONE_SPAN, WITH_OPERATORS, PHASES_AND_JOBS, AND_STAGES = (
    "SPAN_PER_CHECKPOINT",
    "SPAN_PER_CHECKPOINT_WITH_TASKS",
    "CHILDREN_SPANS_PER_TASK",
    "CHILDREN_SPANS_PER_SUBTASK",
)
"""Flink's levels of detail, each with all of the one before it."""
DETAIL_LEVELS = (ONE_SPAN, WITH_OPERATORS, PHASES_AND_JOBS, AND_STAGES)
ENABLED = "SPARK_EVENTS_ENABLED"
"""The environment variable that turns everything off."""
_ON, _OFF = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
"""As environment variables have it; keys of Spark's are true or false."""
STATE_DIR = "spark.events.state.dir"
_SLA = types.at_least(1, types.DURATION)
_SOURCE_IDLE = types.at_least(1, types.DURATION)
_MEANT = ("SIGHUP", "SIGINT", "SIGTERM")


def _parse_signals(text: str) -> tuple[str, ...]:
    names = tuple(name.upper() for name in types.LIST.parse(text))
    if any(name not in _MEANT for name in names):
        raise ValueError(text)
    return names


SIGNALS = types.OptionType("list", f"some of {', '.join(_MEANT)}, separated by commas", _parse_signals)
"""Names of signals."""


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """The configured settings of the listeners; durations are in ms, sizes in bytes."""

    enabled: bool = setting(
        "spark.events.enabled",
        types.BOOL,
        True,
        "With `false`, nothing is attached, and `spark-events run` is spark-submit alone. The environment "
        "variable `SPARK_EVENTS_ENABLED=false` (or `0`, `no`, `off`) does the same.",
    )
    sla_ms: int | None = setting(
        "spark.events.checkpoint.sla",
        _SLA,
        None,
        "How long a query may go without committing.",
        example="60s",
    )
    sla_ms_of_query: Mapping[str, int] = setting_of_each(
        "spark.events.checkpoint.query-sla.", "<query name>", _SLA, "The value for one query.", example="6h"
    )
    heartbeat_interval_ms: int = setting(
        "spark.events.heartbeat.interval",
        types.DURATION,
        60_000,
        "How often to emit a [HeartbeatEvent](events.md#heartbeatevent), which shows that the driver lives, "
        "to reporters that keep history. 0 disables it: a report then cannot tell a lost driver from an idle "
        "one.",
    )
    stop_signals: tuple[str, ...] = setting(
        "spark.events.stop.signals",
        SIGNALS,
        (),
        "Signals that stop an application on purpose: some of SIGHUP, SIGINT and SIGTERM, separated by "
        "commas, which your service manager or operator sends only for planned stops. By default, an "
        "application ended by a signal is FAILED.",
        default_text="none",
        example="SIGTERM",
    )
    source_idle_ms: int | None = setting(
        "spark.events.source.idle-timeout",
        _SOURCE_IDLE,
        None,
        "How long a running query may read no rows before a [SourceIdleEvent](events.md#sourceidleevent) is "
        "emitted. Off by default.",
        example="15min",
    )
    source_idle_ms_of_query: Mapping[str, int] = setting_of_each(
        "spark.events.source.query-idle-timeout.",
        "<query name>",
        _SOURCE_IDLE,
        "The value for one query.",
        example="6h",
    )
    failure_enrichers: tuple[str, ...] | None = setting(
        "spark.events.failure.enrichers",
        types.LIST,
        None,
        "Names of failure enrichers, or `module:Class`.",
        default_text="all installed",
        example="type",
    )
    lineage_timeout_ms: int = setting(
        "spark.events.lineage.timeout",
        types.at_least(1, types.DURATION),
        5_000,
        "Limit for reading the plan of one statement for the [lineage](lineage.md) of its columns.",
    )
    lineage_interval_ms: int = setting(
        "spark.events.lineage.progress-interval",
        types.at_least(0, types.DURATION),
        60_000,
        "How often job listeners are told, at most, how far a running streaming query has come: rows and "
        "offsets ([lineage](lineage.md)). 0 disables it.",
    )
    state_dir: Path | None = setting(
        STATE_DIR,
        types.LOCAL_PATH,
        None,
        "Local folder that stores the number of restarts, so that it survives the driver.",
        example="/var/lib/spark-events",
    )
    log_idle_timeout_ms: int = setting(
        "spark.events.event-log.idle-timeout",
        types.at_least(1, types.DURATION),
        3_600_000,
        "For `follow`: how long an unfinished log may go without growing before its application is marked "
        "FAILED.",
    )
    poll_interval_ms: int = setting(
        "spark.events.event-log.poll-interval",
        types.at_least(1, types.DURATION),
        2_000,
        "For `follow`: how often to look at the logs.",
    )
    stall_timeout_ms: int = setting(
        "spark.events.event-log.stall-timeout",
        types.at_least(1, types.DURATION),
        300_000,
        "For `replay`: how long to wait for a stalled reporter.",
    )
    close_timeout_ms: int = setting(
        "spark.events.close.timeout",
        types.DURATION,
        5_000,
        "How long shutdown may wait for reporters to flush.",
    )
    status_metrics: tuple[str, ...] = setting(
        "spark.metrics.job.status.enable",
        types.some_of(STATE, CURRENT_TIME, TOTAL_TIME),
        (CURRENT_TIME,),
        "Any of STATE, CURRENT_TIME, TOTAL_TIME: the gauges for each status of an application or a query.",
    )
    min_job_duration_ms: int = setting(
        "spark.metrics.job.min-duration",
        types.DURATION,
        10_000,
        "Jobs and stages shorter than this get no series of their own: there can be thousands.",
    )
    retention_ms: int = setting(
        "spark.metrics.ended.retention",
        types.DURATION,
        300_000,
        "How long metrics stay after the end of a job or stage, or of a query that did not fail. Those of a "
        "failed query stay until it is restarted; at most the 100 most recent "
        "failed queries are kept.",
    )
    max_executors: int = setting(
        "spark.metrics.max-executors",
        types.at_least(0, types.INT),
        200,
        "How many executors at once have metrics of their own. The metrics of all executors together "
        "always include every executor.",
    )
    sink_ports: range | None = setting(
        "spark.metrics.executors.sink.port",
        types.PORTS,
        None,
        "A port of the driver, or a range, for what Spark's own metrics system sends: see "
        "[metrics](executor-metrics.md). Off without it.",
        example="9270-9279",
    )
    task_reports: bool = setting(
        "spark.events.task.enabled",
        types.BOOL,
        True,
        "Whether your own Python code can report from [inside tasks](tasks.md).",
    )
    ship_task_module: bool = setting(
        "spark.events.task.ship-module",
        types.BOOL,
        False,
        "Ship `spark_events.task` to executors that lack spark-events. Leave it off where it is installed: "
        "the shipped copy shadows the package.",
    )
    task_counters_interval_ms: int = setting(
        "spark.events.task.counters.interval",
        types.DURATION,
        600_000,
        "How often to emit a [TaskCounterEvent](events.md#taskcounterevent), in addition to the one at the "
        "end of each query and application. 0 disables it.",
    )
    udf_metrics: bool = setting(
        "spark.events.task.measure-udfs",
        types.BOOL,
        False,
        "Measure each Python UDF [as `@task.measured` does](tasks.md#measured-functions). Executors need "
        "spark-events, or `spark.events.task.ship-module`.",
    )
    failed_task_reports: bool = setting(
        "spark.events.task.failures.enabled",
        types.BOOL,
        True,
        "Whether workers send the reports of tasks that fail to a port of the driver: see "
        "[inside tasks](tasks.md#tasks-that-fail).",
    )
    failed_task_ports: range | None = setting(
        "spark.events.task.failures.port",
        types.PORTS,
        None,
        "Port, or range to take the first free port from, on which the driver receives reports of failed "
        "tasks.",
        default_text="any free port",
        example="9280-9289",
    )
    failure_locals: bool = setting(
        "spark.events.task.failures.include-locals",
        types.BOOL,
        False,
        "Include the failing function's local variables in reports of failed tasks. They may be personal "
        "data; those whose names `spark.redaction.regex` matches are masked.",
    )
    receiver_names: bool = setting(
        "spark.metrics.apachesparkreceiver.enabled",
        types.BOOL,
        False,
        "Also report the metrics of the OpenTelemetry Collector's apachesparkreceiver, under its names: see "
        "[metrics](apachesparkreceiver.md).",
    )
    detail_level: str = setting(
        "spark.traces.checkpoint.span-detail-level",
        types.choice(*DETAIL_LEVELS),
        ONE_SPAN,
        "Detail of each checkpoint's trace: see [spans](spans.md).",
    )
    task_spans: bool = setting(
        "spark.traces.tasks.enabled",
        types.BOOL,
        False,
        "Whether [tasks with Python code](tasks.md#spans-of-all-tasks) have spans as well.",
    )
    trace_parent: TraceParent | None = setting(
        "spark.traces.parent",
        TRACEPARENT,
        None,
        "A W3C `traceparent`, to make the application part of that trace.",
        default_text="environment variable `TRACEPARENT`",
        example="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    sampling_ratio: float = setting(
        "spark.traces.sampling.ratio", types.RATIO, 1.0, "Share of all traces to report, from 0 to 1."
    )
    bridge_queue_bytes: int = setting(
        "spark.events.bridge.queue.max-bytes",
        types.at_least(65_536, types.SIZE),
        16 << 20,
        "How much the driver bridge, the queue of records on their way from Spark's JVM to Python, may hold "
        "before it drops its oldest records: routine ones first, beginnings and ends last.",
    )
    scopes: ScopeFormats = ScopeFormats()
    thresholds: Thresholds = field(default_factory=Thresholds)

    def detailed(self, level: str) -> bool:
        """Return whether the spans of checkpoints are at least as detailed as a level requires."""
        return DETAIL_LEVELS.index(self.detail_level) >= DETAIL_LEVELS.index(level)

    def sla_ms_for(self, query_name: str) -> int | None:
        """Return the SLA of a query, in ms; None if it has none."""
        return self.sla_ms_of_query.get(query_name, self.sla_ms)

    def source_idle_ms_for(self, query_name: str) -> int | None:
        """Return how long a query may read no rows, in ms; None for as long as it likes."""
        return self.source_idle_ms_of_query.get(query_name, self.source_idle_ms)


def declared_settings() -> Iterator[Declared]:
    """Return the declarations of all settings of the listeners."""
    for settings_class in (ListenerSettings, ScopeFormats, Thresholds):
        yield from declared_in(settings_class).values()


def read_settings(conf: Mapping[str, str]) -> tuple[ListenerSettings, list[ConfigError]]:
    """Read the listeners' keys; an invalid value counts as absent.

    Returns:
        The settings, and one error for each invalid value.
    """
    config = ReporterConfig("", conf)
    values, errors = read_declared(ListenerSettings, config)
    scopes, wrong_scopes = read_declared(ScopeFormats, config)
    thresholds, wrong_thresholds = read_declared(Thresholds, config)
    values["trace_parent"] = values["trace_parent"] or _parent_of_environment()
    settings = ListenerSettings(**values, scopes=ScopeFormats(**scopes), thresholds=Thresholds(**thresholds))
    return settings, errors + wrong_scopes + wrong_thresholds


def wrong_switch() -> str:
    """Return what is wrong with the environment's switch; an empty text if nothing is."""
    text = os.environ.get(ENABLED, "").strip()
    if not text or text.lower() in (*_ON, *_OFF):
        return ""
    return f"environment variable {ENABLED}: {text!r} is not valid; expected true or false"


def turned_off(conf: Mapping[str, str]) -> str:
    """Return what turns everything off, ``spark.events.enabled=false`` say; an empty text for nothing."""
    text = os.environ.get(ENABLED, "").strip()
    if text.lower() in _OFF:
        return f"{ENABLED}={text} in the environment"
    if problem := wrong_switch():
        logger.warning("%s", problem)
    option = declared_in(ListenerSettings)["enabled"].option
    try:
        return "" if ReporterConfig("", conf).get(option) else f"{option.name}=false"
    except ConfigError:
        return ""  # which reading the settings tells


def _parent_of_environment() -> TraceParent | None:
    """Return the environment's trace parent; log and ignore an invalid one, as Trace Context requires."""
    text = os.environ.get(ENVIRONMENT, "")
    try:
        return parse_traceparent(text) if text else None
    except ValueError as error:
        logger.warning("environment variable %s: %r is not a traceparent (%s)", ENVIRONMENT, text, error)
        return None

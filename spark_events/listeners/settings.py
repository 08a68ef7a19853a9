"""The keys that the listeners read, below ``spark.events.``, ``spark.metrics.`` and ``spark.traces.``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.api import ConfigError, Option, ReporterConfig
from spark_events.api import option_types as types
from spark_events.listeners import scope_formats
from spark_events.listeners.scope_formats import ScopeFormats
from spark_events.listeners.trace_context import ENVIRONMENT, TRACEPARENT, TraceParent, parse_traceparent
from spark_events.runtime.log_once import logger
from spark_events.runtime.setup import METRICS_DELIMITER

PREFIX = "spark.events."
SLA = Option.optional(
    "checkpoint.sla", types.at_least(1, types.DURATION), "the longest time between two checkpoints of a query"
)
SLA_OF_QUERY = SLA.name + "."
STATE_DIR = Option.optional(
    "state.dir", types.STRING, "a local folder in which restarts are counted across drivers"
)
CLOSE_TIMEOUT = Option("close.timeout", types.DURATION, 5_000, "how long the end of an application may wait")
BRIDGE_QUEUE = Option(
    "bridge.queue.bytes", types.at_least(65_536, types.SIZE), 16 << 20, "what the driver bridge may hold"
)
BRIDGE_DROP = Option(
    "bridge.drop.policy",
    types.DROP_POLICY,
    "oldest",
    "what a full driver bridge drops: its oldest records, or those that come new",
)
DEAD_AFTER = Option(
    "eventlog.dead.after",
    types.at_least(1, types.DURATION),
    3_600_000,
    "how long an event log without an end may rest until its application counts as FAILED",
)
POLL_INTERVAL = Option(
    "eventlog.poll.interval",
    types.at_least(1, types.DURATION),
    2_000,
    "how often followed event logs are looked at",
)
STALL_TIMEOUT = Option(
    "eventlog.stall.timeout",
    types.at_least(1, types.DURATION),
    300_000,
    "how long a replay waits for a reporter that takes nothing",
)
ENRICHERS = Option.optional("failure.enrichers", types.LIST, "the failure enrichers to ask; all by default")
LINEAGE_BUDGET = Option(
    "lineage.budget",
    types.at_least(1, types.DURATION),
    5_000,
    "how long the plan of one statement may be read for the lineage of its columns",
)
REPORTERS = Option.optional("reporters", types.LIST, "the event reporters to start; all by default")
METRICS_PREFIX = "spark.metrics."
STATE, CURRENT_TIME, TOTAL_TIME = "STATE", "CURRENT_TIME", "TOTAL_TIME"
"""What there may be for each status, as in Flink's ``metrics.job.status.enable``."""
STATUS_METRICS: Option[tuple[str, ...]] = Option(
    "job.status.enable",
    types.some_of(STATE, CURRENT_TIME, TOTAL_TIME),
    (CURRENT_TIME,),
    "which metrics there are for each status of an application or a query, as in Flink",
)
GRACE = Option(
    "grace", types.DURATION, 300_000, "how long the metrics of what has ended stay: jobs, stages, queries"
)
JOB_AFTER = Option(
    "job.after", types.DURATION, 10_000, "how long a job or a stage runs before it has metrics of its own"
)
TRACES_PREFIX = "spark.traces."
PARENT = Option.optional("parent", TRACEPARENT, "the span that the application is a part of")
SAMPLING = Option("sampling.ratio", types.RATIO, 1.0, "which share of all traces is reported")
ONE_SPAN, WITH_OPERATORS, PHASES_AND_JOBS, AND_STAGES = (
    "SPAN_PER_CHECKPOINT",
    "SPAN_PER_CHECKPOINT_WITH_TASKS",
    "CHILDREN_SPANS_PER_TASK",
    "CHILDREN_SPANS_PER_SUBTASK",
)
"""Flink's levels of detail, each with all of the one before it."""
DETAIL_LEVELS = (ONE_SPAN, WITH_OPERATORS, PHASES_AND_JOBS, AND_STAGES)
DETAIL_LEVEL = Option(
    "checkpoint.span-detail-level",
    types.choice(*DETAIL_LEVELS),
    ONE_SPAN,
    "how much the spans of a checkpoint tell, as in Flink",
)
OPTIONS: Mapping[str, tuple[Option[Any], ...]] = {
    PREFIX: (
        SLA,
        STATE_DIR,
        CLOSE_TIMEOUT,
        BRIDGE_QUEUE,
        BRIDGE_DROP,
        DEAD_AFTER,
        POLL_INTERVAL,
        STALL_TIMEOUT,
        ENRICHERS,
        LINEAGE_BUDGET,
        REPORTERS,
    ),
    METRICS_PREFIX: (STATUS_METRICS, GRACE, JOB_AFTER, METRICS_DELIMITER, *scope_formats.OPTIONS),
    TRACES_PREFIX: (PARENT, SAMPLING, DETAIL_LEVEL),
}
"""All keys of the framework, by what they begin with."""


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """What is configured for the listeners.

    Attributes:
        sla_ms: the longest time between two checkpoints, in ms; None watches none.
        sla_ms_of_query: the same for single queries, by name.
        state_dir: where restarts are counted; None forgets them with the driver.
        close_timeout_ms: how long closing may take, in ms.
        bridge_queue_bytes: the bound of the driver bridge's queue, in bytes.
        bridge_drop_oldest: what it drops: its oldest records, or else those that come new.
        dead_after_ms: how long an event log without an end may rest, in ms.
        poll_interval_ms: how often followed event logs are looked at, in ms.
        stall_timeout_ms: how long a replay waits for a reporter that takes nothing, in ms.
        status_metrics: which metrics there are for each status.
        scopes: what names of metrics begin with.
        grace_ms: how long the metrics of what has ended stay, in ms.
        job_after_ms: how long a job or a stage runs before it has metrics, in ms.
        trace_parent: the span that the application is a part of; None where there is none.
        sampling_ratio: which share of all traces is reported, from 0 to 1.
        detail_level: how much the spans of a checkpoint tell.
        lineage_budget_ms: how long one plan may be read for its columns, in ms.
    """

    sla_ms: int | None = None
    sla_ms_of_query: Mapping[str, int] = field(default_factory=dict)
    state_dir: str | None = None
    close_timeout_ms: int = CLOSE_TIMEOUT.default
    bridge_queue_bytes: int = BRIDGE_QUEUE.default
    bridge_drop_oldest: bool = True
    dead_after_ms: int = DEAD_AFTER.default
    poll_interval_ms: int = POLL_INTERVAL.default
    stall_timeout_ms: int = STALL_TIMEOUT.default
    status_metrics: tuple[str, ...] = STATUS_METRICS.default
    scopes: ScopeFormats = ScopeFormats()  # noqa: RUF009 - it is immutable
    grace_ms: int = GRACE.default
    job_after_ms: int = JOB_AFTER.default
    trace_parent: TraceParent | None = None
    sampling_ratio: float = SAMPLING.default
    detail_level: str = DETAIL_LEVEL.default
    lineage_budget_ms: int = LINEAGE_BUDGET.default

    def detailed(self, level: str) -> bool:
        """Tell whether the spans of checkpoints are as detailed as a level says, or more."""
        return DETAIL_LEVELS.index(self.detail_level) >= DETAIL_LEVELS.index(level)

    def sla_ms_for(self, query_name: str) -> int | None:
        """Return the SLA of a query, in ms; None where it has none."""
        return self.sla_ms_of_query.get(query_name, self.sla_ms)


def read_settings(conf: Mapping[str, str]) -> tuple[ListenerSettings, list[ConfigError]]:
    """Read the listeners' keys; a wrong value counts as absent.

    Returns:
        The settings, and one error for each wrong value.
    """
    config, metrics, traces = (ReporterConfig.below(prefix, conf) for prefix in OPTIONS)
    errors: list[ConfigError] = []

    def read(option: Option[types.T], config: ReporterConfig = config) -> types.T:
        try:
            return config.get(option)
        except ConfigError as error:
            errors.append(error)
            return option.default

    of_query = {
        key.removeprefix(SLA_OF_QUERY): read(Option.optional(key, SLA.type))  # type: ignore[arg-type]
        for key in config.values
        if key.startswith(SLA_OF_QUERY)
    }
    settings = ListenerSettings(
        sla_ms=read(SLA),
        sla_ms_of_query={name: sla for name, sla in of_query.items() if sla is not None},
        state_dir=read(STATE_DIR),
        close_timeout_ms=read(CLOSE_TIMEOUT),
        bridge_queue_bytes=read(BRIDGE_QUEUE),
        bridge_drop_oldest=read(BRIDGE_DROP) == "oldest",
        dead_after_ms=read(DEAD_AFTER),
        poll_interval_ms=read(POLL_INTERVAL),
        stall_timeout_ms=read(STALL_TIMEOUT),
        status_metrics=read(STATUS_METRICS, metrics),
        scopes=ScopeFormats(*(read(option, metrics) for option in scope_formats.OPTIONS)),
        grace_ms=read(GRACE, metrics),
        job_after_ms=read(JOB_AFTER, metrics),
        trace_parent=read(PARENT, traces) or _parent_of_environment(),
        sampling_ratio=read(SAMPLING, traces),
        detail_level=read(DETAIL_LEVEL, traces),
        lineage_budget_ms=read(LINEAGE_BUDGET),
    )
    return settings, errors


def _parent_of_environment() -> TraceParent | None:
    """Return the environment's; one that is wrong is as none, as Trace Context has it, and a warning."""
    text = os.environ.get(ENVIRONMENT, "")
    try:
        return parse_traceparent(text) if text else None
    except ValueError as error:
        logger.warning("%s in the environment: %r is no traceparent (%s)", ENVIRONMENT, text, error)
        return None

"""The keys that the listeners read, all below ``spark.events.``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_events.api import ConfigError, Option, ReporterConfig
from spark_events.api import option_types as types

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
ENRICHERS = Option.optional("failure.enrichers", types.LIST, "the failure enrichers to ask; all by default")
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
OPTIONS = (SLA, STATE_DIR, CLOSE_TIMEOUT, BRIDGE_QUEUE, BRIDGE_DROP, ENRICHERS, REPORTERS)


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
        status_metrics: which metrics there are for each status.
    """

    sla_ms: int | None = None
    sla_ms_of_query: Mapping[str, int] = field(default_factory=dict)
    state_dir: str | None = None
    close_timeout_ms: int = CLOSE_TIMEOUT.default
    bridge_queue_bytes: int = BRIDGE_QUEUE.default
    bridge_drop_oldest: bool = True
    status_metrics: tuple[str, ...] = STATUS_METRICS.default

    def sla_ms_for(self, query_name: str) -> int | None:
        """Return the SLA of a query, in ms; None where it has none."""
        return self.sla_ms_of_query.get(query_name, self.sla_ms)


def read_settings(conf: Mapping[str, str]) -> tuple[ListenerSettings, list[ConfigError]]:
    """Read the listeners' keys; a wrong value counts as absent.

    Returns:
        The settings, and one error for each wrong value.
    """
    config, metrics = _below(conf, PREFIX), _below(conf, METRICS_PREFIX)
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
        status_metrics=read(STATUS_METRICS, metrics),
    )
    return settings, errors


def _below(conf: Mapping[str, str], prefix: str) -> ReporterConfig:
    """Return the keys below a prefix."""
    return ReporterConfig(
        prefix, {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)}
    )

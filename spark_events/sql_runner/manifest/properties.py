"""The properties of a manifest: Spark's, ours, and those of Flink's that have a meaning here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api import ReporterConfig
from spark_events.api import option_types as types
from spark_events.runtime.settings import declared_in, read_declared, setting

PREFIX = "spark.events.sql."
_STRATEGY = PREFIX + "restart-strategy"
_NONE = "none"


@dataclass(frozen=True)
class QuerySettings:
    """Settings for restarting (Flink's ``restart-strategy``) and stopping a query; durations are in ms."""

    restart_strategy: str = setting(
        f"{_STRATEGY}.type",
        types.choice("fixed-delay", _NONE),
        "fixed-delay",
        "Whether to restart a failed query: `fixed-delay` or `none`.",
    )
    restart_attempts: int = setting(
        f"{_STRATEGY}.fixed-delay.attempts",
        types.at_least(0, types.INT),
        2_147_483_647,
        "How often to restart a query before it stays FAILED.",
    )
    restart_delay_ms: int = setting(
        f"{_STRATEGY}.fixed-delay.delay",
        types.DURATION,
        10_000,
        "How long a failed query waits for its restart.",
    )
    stop_timeout_ms: int = setting(
        PREFIX + "stop.timeout",
        types.DURATION,
        300_000,
        "How long a stop waits for the current micro-batch. An interrupted batch runs again later.",
    )

    @property
    def most_restarts(self) -> int:
        """The maximum number of restarts; 0 for none."""
        return 0 if self.restart_strategy == _NONE else self.restart_attempts


_OPTIONS = {name: declared.option for name, declared in declared_in(QuerySettings).items()}
_OWN_KEYS = frozenset(option.name for option in _OPTIONS.values())

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_BACKEND = "spark.sql.streaming.stateStore.providerClass"
_BACKENDS = {"rocksdb": _ROCKSDB, "hashmap": _HDFS_BACKED, "filesystem": _HDFS_BACKED}
_RENAMED = {
    "restart-strategy": _OPTIONS["restart_strategy"].name,
    "restart-strategy.type": _OPTIONS["restart_strategy"].name,
    "restart-strategy.fixed-delay.attempts": _OPTIONS["restart_attempts"].name,
    "restart-strategy.fixed-delay.delay": _OPTIONS["restart_delay_ms"].name,
    "parallelism.default": "spark.sql.shuffle.partitions",
    "state.checkpoints.num-retained": "spark.sql.streaming.minBatchesToRetain",
    "execution.checkpointing.num-retained": "spark.sql.streaming.minBatchesToRetain",
}
_INTERVAL = "execution.checkpointing.interval"
_STRATEGIES = {"off": "none", "disable": "none", "fixeddelay": "fixed-delay"}


@dataclass(frozen=True)
class FlinkProperties:
    """Flink's properties, translated for Spark.

    Attributes:
        interval: the checkpoint interval, for a processing-time trigger; empty if there is none.
        without_meaning: by key, a sentence for each one that has no meaning for Spark.
    """

    spark: dict[str, str]
    interval: str
    without_meaning: dict[str, str]


def from_flink(properties: Mapping[str, str]) -> FlinkProperties:
    """Translate Flink's properties."""
    spark: dict[str, str] = {}
    ignored: dict[str, str] = {}
    for key, value in properties.items():
        if key.startswith("spark."):
            spark[key] = value
        elif key in _RENAMED:
            spark[_RENAMED[key]] = _STRATEGIES.get(value, value) if "strategy" in key else value
        elif key == "state.backend" or key == "state.backend.type":
            if value in _BACKENDS:
                spark[_BACKEND] = _BACKENDS[value]
            else:
                ignored[key] = f"{value!r} has no meaning for Spark, which has {', '.join(_BACKENDS)}"
        elif key != _INTERVAL:
            ignored[key] = "has no meaning for Spark and is ignored"
    return FlinkProperties(spark, properties.get(_INTERVAL, ""), ignored)


def query_settings(properties: Mapping[str, str]) -> QuerySettings:
    """Return the settings of a query whose properties are valid according to ``problems_of``."""
    values, _ = read_declared(QuerySettings, ReporterConfig("", properties))
    return QuerySettings(**values)


def problems_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with properties, by the key."""
    unusable = ReporterConfig("", properties).problems(_OPTIONS.values())
    problems = {key: sentence.removeprefix(f"{key}: ") for key, sentence in unusable.items()}
    for key in properties:
        if not key.startswith("spark."):
            problems[key] = "is not a Spark property; expected keys that begin with 'spark.'"
        elif key.startswith(PREFIX) and key not in _OWN_KEYS:
            problems[key] = f"unknown key; expected {', '.join(sorted(_OWN_KEYS))}"
    return problems


def of_session(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties to pass to Spark, without our own."""
    return {key: value for key, value in properties.items() if not key.startswith(PREFIX)}

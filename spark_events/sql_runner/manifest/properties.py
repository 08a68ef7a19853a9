"""The properties of a manifest: Spark's, ours, and those of Flink that have a meaning here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.api import Option, ReporterConfig
from spark_events.api import option_types as types

PREFIX = "spark.events.sql."
STRATEGY = Option(
    "restart-strategy",
    types.choice("fixed-delay", "none"),
    "fixed-delay",
    "what becomes of a query that fails",
)
ATTEMPTS = Option(
    "restart-strategy.fixed-delay.attempts",
    types.at_least(0, types.INT),
    2_147_483_647,
    "how often a query is restarted until it stays failed",
)
DELAY = Option(
    "restart-strategy.fixed-delay.delay",
    types.DURATION,
    10_000,
    "how long a query that failed waits for its restart",
)
STOP_TIMEOUT = Option(
    "stop.timeout",
    types.DURATION,
    300_000,
    "how long a stop waits for the micro-batch that runs, until it breaks it off; it then runs again later",
)
OPTIONS: tuple[Option[Any], ...] = (STRATEGY, ATTEMPTS, DELAY, STOP_TIMEOUT)
_OWN_KEYS = frozenset(PREFIX + option.name for option in OPTIONS)

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_BACKEND = "spark.sql.streaming.stateStore.providerClass"
_BACKENDS = {"rocksdb": _ROCKSDB, "hashmap": _HDFS_BACKED, "filesystem": _HDFS_BACKED}
_RENAMED = {
    "restart-strategy": PREFIX + STRATEGY.name,
    "restart-strategy.type": PREFIX + STRATEGY.name,
    "restart-strategy.fixed-delay.attempts": PREFIX + ATTEMPTS.name,
    "restart-strategy.fixed-delay.delay": PREFIX + DELAY.name,
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
        spark: Spark's properties.
        interval: their checkpoint interval, for a processing-time trigger; empty where there is none.
        without_meaning: a sentence for each key that has no meaning for Spark, by the key.
    """

    spark: dict[str, str]
    interval: str
    without_meaning: dict[str, str]


@dataclass(frozen=True)
class RestartStrategy:
    """How often a query that fails is restarted, and when (Flink's ``restart-strategy``).

    Attributes:
        attempts: how often it is restarted; 0 for never.
        delay_ms: how long it waits for that, in ms.
    """

    attempts: int
    delay_ms: int


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
            ignored[key] = "has no meaning for Spark, and is ignored"
    return FlinkProperties(spark, properties.get(_INTERVAL, ""), ignored)


def restart_strategy(properties: Mapping[str, str]) -> RestartStrategy:
    """Return how a query that fails is restarted.

    Raises:
        ConfigError: a value cannot be used.
    """
    config = ReporterConfig.below(PREFIX, properties)
    attempts = 0 if config.get(STRATEGY) == "none" else config.get(ATTEMPTS)
    return RestartStrategy(attempts, config.get(DELAY))


def stop_timeout_ms(properties: Mapping[str, str]) -> int:
    """Return how long a stop waits for the micro-batch that runs, in ms.

    Raises:
        ConfigError: the value cannot be used.
    """
    return ReporterConfig.below(PREFIX, properties).get(STOP_TIMEOUT)


def problems_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with properties, by the key."""
    unusable = ReporterConfig.below(PREFIX, properties).problems(OPTIONS)
    problems = {key: sentence.removeprefix(f"{key}: ") for key, sentence in unusable.items()}
    for key in properties:
        if not key.startswith("spark."):
            problems[key] = "is no property of Spark; expected keys that begin with 'spark.'"
        elif key.startswith(PREFIX) and key not in _OWN_KEYS:
            problems[key] = f"is not known; expected {', '.join(sorted(_OWN_KEYS))}"
    return problems


def of_session(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that Spark is given, without our own."""
    return {key: value for key, value in properties.items() if not key.startswith(PREFIX)}

"""The keys below ``spark.events.ctas.``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.api import Option, ReporterConfig
from spark_events.api import option_types as types

PREFIX = "spark.events.ctas."
JOURNAL_DIR = Option.optional(
    "journal.dir",
    types.STRING,
    "where transactions are written down; .ctas in the warehouse by default",
)
LEASE = Option(
    "lease",
    types.at_least(1_000, types.DURATION),
    30_000,
    "how long a driver may be silent until others may recover its transactions",
)
GRACE = Option(
    "grace", types.DURATION, 600_000, "how long the files of a table that was replaced stay for its readers"
)
LOCK_TIMEOUT = Option(
    "lock.timeout", types.DURATION, 30_000, "how long a commit waits for another commit to the same table"
)
RETENTION = Option(
    "retention", types.DURATION, 604_800_000, "how long `spark-events ctas list` knows of what is over"
)
STRAGGLERS = Option(
    "stragglers.timeout",
    types.DURATION,
    10_000,
    "how long an abort waits for tasks of its statement that still run",
)
OPTIONS: tuple[Option[Any], ...] = (JOURNAL_DIR, LEASE, GRACE, LOCK_TIMEOUT, RETENTION, STRAGGLERS)
_WAREHOUSE = "spark.sql.warehouse.dir"


@dataclass(frozen=True, slots=True)
class CtasSettings:
    """What is configured for transactions.

    Attributes:
        journal_dir: a folder of any file system that Hadoop knows.
        lease_ms: how long an owner may be silent, in ms.
        grace_ms: how long replaced files stay, in ms.
        lock_timeout_ms: how long a commit waits for another one, in ms.
        retention_ms: how long ended transactions are known, in ms.
        stragglers_ms: how long an abort waits for tasks, in ms.
    """

    journal_dir: str
    lease_ms: int = LEASE.default
    grace_ms: int = GRACE.default
    lock_timeout_ms: int = LOCK_TIMEOUT.default
    retention_ms: int = RETENTION.default
    stragglers_ms: int = STRAGGLERS.default


def problems_of(conf: Mapping[str, str]) -> list[str]:
    """Return one sentence for each value that cannot be used."""
    return list(ReporterConfig.below(PREFIX, conf).problems(OPTIONS).values())


def read_settings(conf: Mapping[str, str]) -> CtasSettings:
    """Read the keys.

    Args:
        conf: Spark's configuration, with ``spark.sql.warehouse.dir`` as the session has it.

    Raises:
        ConfigError: a value cannot be used; names the key, the value and what is allowed.
    """
    config = ReporterConfig.below(PREFIX, conf)
    return CtasSettings(
        journal_dir=config.get(JOURNAL_DIR) or conf[_WAREHOUSE].rstrip("/") + "/.ctas",
        lease_ms=config.get(LEASE),
        grace_ms=config.get(GRACE),
        lock_timeout_ms=config.get(LOCK_TIMEOUT),
        retention_ms=config.get(RETENTION),
        stragglers_ms=config.get(STRAGGLERS),
    )

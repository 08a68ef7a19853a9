"""The settings of atomic CREATE TABLE AS SELECT, below ``spark.events.ctas.``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api import ConfigError, ReporterConfig
from spark_events.api import option_types as types
from spark_events.runtime.settings import declared_in, read_declared, setting

PREFIX = "spark.events.ctas."
_WAREHOUSE = "spark.sql.warehouse.dir"


@dataclass(frozen=True, slots=True)
class CtasSettings:
    """The settings of transactions; durations are in ms."""

    journal_dir: str = setting(
        PREFIX + "journal.dir",
        types.STRING,
        None,
        "Folder of the transaction journal, on any Hadoop file system.",
        default_text="`.ctas` in the warehouse",
        example="hdfs://namenode/warehouse/.ctas",
    )
    lease_ms: int = setting(
        PREFIX + "lease.duration",
        types.at_least(1_000, types.DURATION),
        30_000,
        "How long a driver may be silent before others may recover its transactions.",
    )
    grace_ms: int = setting(
        PREFIX + "replaced-files.retention",
        types.DURATION,
        600_000,
        "How long the files of a replaced table stay for its readers.",
    )
    lock_timeout_ms: int = setting(
        PREFIX + "lock.timeout",
        types.DURATION,
        30_000,
        "How long a commit waits for another commit to the same table.",
    )
    retention_ms: int = setting(
        PREFIX + "transactions.retention",
        types.DURATION,
        604_800_000,
        "How long `spark-events ctas list` shows completed transactions.",
    )
    stragglers_ms: int = setting(
        PREFIX + "abort.timeout",
        types.DURATION,
        10_000,
        "How long an abort waits for running tasks of its statement.",
    )


OF_CTAS = tuple(declared_in(CtasSettings).values())


def problems_of(conf: Mapping[str, str]) -> list[str]:
    """Return one sentence for each value that cannot be used."""
    _, errors = read_declared(CtasSettings, ReporterConfig("", conf))
    return [problem for error in errors for problem in error.problems]


def read_settings(conf: Mapping[str, str]) -> CtasSettings:
    """Read the keys.

    Args:
        conf: Spark's configuration, with ``spark.sql.warehouse.dir`` as the session has it.

    Raises:
        ConfigError: a value cannot be used; names the key, the value and what is allowed.
    """
    values, errors = read_declared(CtasSettings, ReporterConfig("", conf))
    if errors:
        raise ConfigError.of_all([problem for error in errors for problem in error.problems])
    values["journal_dir"] = values["journal_dir"] or conf[_WAREHOUSE].rstrip("/") + "/.ctas"
    return CtasSettings(**values)

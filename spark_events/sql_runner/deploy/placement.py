"""Where queries run: in a session, or each in an application of its own."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_events.api import ConfigError
from spark_events.spark.submit_options import configuration, deploy_mode, split
from spark_events.sql_runner.manifest.names import NAME, NAME_RULE
from spark_events.sql_runner.store.layout import APPLICATION, SESSION


class HostKind(enum.Enum):
    """The kinds of applications that host queries: of many, and of one."""

    SESSION = "session"
    APPLICATION = "application"


@dataclass(frozen=True)
class Placement:
    """Where queries run, and with what.

    Attributes:
        mode: in a session, or each in an application of its own.
        session: the session's name.
        master: of applications that are started; empty for Spark's own default.
        conf: Spark's properties for them, which were given with the command.
        options: of spark-submit.
        log_dir: where they write their logs.
        poll_ms: how often they look for orders, in ms.
        lease_ms: how long they may be silent, in ms.
        timeout_s: how long a query may take to start, and to stop, in seconds.
        parallel: how many queries are deployed at a time.

    Raises:
        ConfigError: a session cannot have this name.
    """

    mode: HostKind = HostKind.SESSION
    session: str = "default"
    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    log_dir: Path = Path("logs")
    poll_ms: int = 1_000
    lease_ms: int = 30_000
    timeout_s: int = 120
    parallel: int = 4

    def __post_init__(self) -> None:
        if not re.fullmatch(NAME, self.session):
            raise ConfigError.of_value("--session", self.session, NAME_RULE)

    @property
    def runs_here(self) -> bool:
        """Whether drivers run on this machine, and not in containers of their cluster."""
        options, _ = split(self.options)
        return deploy_mode(options, {**configuration(options), **self.conf}) == "client"

    @property
    def session_host(self) -> str:
        """The session application, by its name in the store."""
        return SESSION + self.session

    def host_of(self, query: str) -> str:
        """Return the application that is to run a query, by its name in the store."""
        return self.session_host if self.mode is HostKind.SESSION else APPLICATION + query

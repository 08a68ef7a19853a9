"""Shared by the commands of ``sql``; modules that need an extra are imported when a command runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError
from spark_events.cli.console import err
from spark_events.spark.conf import parse_assignments, read_conf


@dataclass(frozen=True)
class SparkOptions:
    """Spark's configuration as a command was given it.

    Attributes:
        properties_file: a spark-defaults.conf; None for the one that spark-submit reads.
        assignments: ``key=value``, of ``--conf``.
        submit: options of spark-submit.
    """

    properties_file: Path | None
    assignments: list[str] | None
    submit: list[str] | None = None

    def own_conf(self) -> dict[str, str]:
        """Return the configuration of the command's own Spark.

        Raises:
            ConfigError: the file cannot be read, or an assignment is none.
        """
        return read_conf(self.properties_file, self.assignments or ())[0]

    def for_submit(self) -> tuple[dict[str, str], list[str]]:
        """Return the properties and the options for spark-submit, as a placement takes them.

        spark-submit reads files of properties itself: on its command line everybody on the machine could read
        them.
        """
        file = ["--properties-file", str(self.properties_file)] if self.properties_file else []
        return parse_assignments(self.assignments or ()), [*file, *(self.submit or ())]


@contextmanager
def analyst_of(conf: dict[str, str], definitions: list[Path] | None) -> Iterator[Any]:
    """Give an analyst with a Spark of its own.

    Raises:
        ConfigError: Spark cannot be started, or a definition cannot be read.
    """
    from spark_events.sql_runner.analysis.analyst import Analyst
    from spark_events.sql_runner.analysis.definitions import read_definitions

    statements = read_definitions(definitions or ())
    with ExitStack() as stack:
        with err.status("starting Spark"):
            analyst = stack.enter_context(Analyst.start(conf, statements))
        yield analyst


@contextmanager
def store_errors() -> Iterator[None]:
    """Let what the store raises be a message, as a wrong configuration is."""
    from spark_events.sql_runner.store.lease import LeaseLost
    from spark_events.sql_runner.store.store import StoreError

    try:
        yield
    except (StoreError, LeaseLost) as error:
        raise ConfigError(str(error)) from error

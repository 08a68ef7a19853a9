"""What the commands of ``sql`` share; what needs an extra is imported when a command runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError
from spark_events.cli.console import err


@contextmanager
def analyst_of(conf: Any, definitions: list[Path] | None) -> Iterator[Any]:
    """Give an analyst with a Spark of its own.

    Raises:
        ConfigError: Spark cannot be started, or a definition cannot be read.
    """
    from spark_events.sql_runner.analysis.analyst import Analyst
    from spark_events.sql_runner.analysis.definitions import read_definitions

    statements = read_definitions(definitions or ())
    # What PySpark logs of each query that cannot be analysed is an error of ours, with its file and line.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        with err.status("starting Spark"):
            analyst = stack.enter_context(Analyst.start(conf, statements))
        yield analyst


def refuse_gone_hosts(workspace: Any, hosts: set[str]) -> None:
    """Make sure that the sessions that are to run queries are there.

    Raises:
        ConfigError: one is not.
    """
    start = f"spark-events sql session --store {workspace.store.url} --session {workspace.placement.session}"
    for link in map(workspace.link, sorted(hosts)):
        if not link.is_single and not (found := link.look()).is_alive:
            raise ConfigError(
                f"{found.why_gone()}; start it with `{start}`: it goes on with the queries that it is to run"
            )


@contextmanager
def store_errors() -> Iterator[None]:
    """Let what the store raises be a message, as a wrong configuration is."""
    from spark_events.sql_runner.store.lease import LeaseLost
    from spark_events.sql_runner.store.store import StoreError

    try:
        yield
    except (StoreError, LeaseLost) as error:
        raise ConfigError(str(error)) from error

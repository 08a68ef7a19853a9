"""Shared by the commands of ``sql``: their options, and what they do with them.

Modules that need an extra are imported when a command runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from spark_events.api import ConfigError
from spark_events.cli.terminal.console import err
from spark_events.cli.terminal.options import whole_number
from spark_events.spark.conf import parse_assignments
from spark_events.sql_runner.deploy.placement import HostKind

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder of YAML manifests, one per query.")]
StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="SPARK_EVENTS_SQL_STORE",
        show_envvar=False,
        help="Where to keep manifests, checkpoints and savepoints: a folder, or a URL such as "
        "s3a://bucket/queries. SPARK_EVENTS_SQL_STORE in the environment is its default.",
    ),
]
Template = Annotated[
    Path | None,
    typer.Option("--template-file", metavar="FILE", help="A YAML file with defaults for all manifests."),
]
Definitions = Annotated[
    list[Path] | None,
    typer.Option(
        "--table-definition-path",
        metavar="FILE",
        help="An SQL file that defines tables. Repeatable, in order.",
    ),
]
Session = Annotated[
    str, typer.Option("--session", metavar="NAME", help="The session application that runs the queries.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Prune = Annotated[bool, typer.Option("--prune", help="Stop queries whose manifest was deleted.")]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Master of the application that runs the queries, as for spark-submit; "
        "of `deploy`, with --mode application.",
    ),
]
EndTimeout = Annotated[
    int,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        parser=whole_number(1, "seconds"),
        help="With --end: how long to wait for the session to end, in seconds.",
    ),
]
Timeout = Annotated[
    int,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        parser=whole_number(1, "seconds"),
        help="Timeout for starting and for stopping a query, in seconds.",
    ),
]
Parallel = Annotated[
    int,
    typer.Option(
        "--parallel", metavar="N", parser=whole_number(1), help="How many queries to deploy at a time."
    ),
]
LogDir = Annotated[
    Path, typer.Option("--log-dir", metavar="DIR", help="Folder for the logs of applications.")
]
PollMs = Annotated[
    int,
    typer.Option(
        "--poll-ms",
        metavar="MS",
        parser=whole_number(50, "ms"),
        help="How often the application polls the store for commands, in ms.",
    ),
]
LeaseMs = Annotated[
    int,
    typer.Option(
        "--lease-ms",
        metavar="MS",
        parser=whole_number(1_000, "ms"),
        help="How long an application may be silent before it is marked as gone, in ms.",
    ),
]
SubmitOptions = Annotated[
    list[str] | None,
    typer.Argument(metavar="SUBMIT_OPTION", help="Options for spark-submit, after --."),
]
RunMode = Annotated[
    HostKind,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="session: all queries in one application. application: one application per query.",
    ),
]


def for_submit(
    properties_file: Path | None, conf: list[str] | None, submit_options: list[str] | None
) -> tuple[dict[str, str], list[str]]:
    """Return the properties and the options for spark-submit, as a placement takes them.

    spark-submit reads files of properties itself: everybody on the machine can read its command line.

    Raises:
        ConfigError: an assignment of ``--conf`` is none.
    """
    file = ["--properties-file", str(properties_file)] if properties_file else []
    return parse_assignments(conf or ()), [*file, *(submit_options or ())]


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

"""Options that several commands of ``spark-events sql`` have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spark_events.sql_runner.deploy.placement import HostKind

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder with a YAML manifest for each query.")]
StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="SPARK_EVENTS_SQL_STORE",
        help="Where manifests, checkpoints and savepoints are kept: a folder or a URL, as s3a://bucket/queries.",
    ),
]
Template = Annotated[
    Path | None, typer.Option("--template-file", help="A YAML file with the defaults of all manifests.")
]
Definitions = Annotated[
    list[Path] | None,
    typer.Option("--table-definition-path", help="An SQL file that defines tables; repeatable, in order."),
]
Session = Annotated[str, typer.Option("--session", help="The session application that runs the queries.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Prune = Annotated[bool, typer.Option("--prune", help="Stop queries whose manifest is gone.")]
Master = Annotated[
    str | None, typer.Option("--master", help="Where the application runs, as for spark-submit.")
]
Timeout = Annotated[
    int, typer.Option("--timeout", min=1, help="How long a query may take to start, and to stop, in seconds.")
]
LogDir = Annotated[Path, typer.Option("--log-dir", help="Where applications write their logs.")]
PollMs = Annotated[
    int, typer.Option("--poll-ms", min=50, help="How often an application looks for orders, in ms.")
]
LeaseMs = Annotated[
    int,
    typer.Option(
        "--lease-ms", min=1_000, help="How long an application may be silent until it is gone, in ms."
    ),
]

SubmitOptions = Annotated[
    list[str] | None,
    typer.Argument(help="After --: options of spark-submit, for the applications that are started."),
]


RunMode = Annotated[
    HostKind,
    typer.Option("--mode", help="All queries in one session application, or one application a query."),
]

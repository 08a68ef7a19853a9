"""The command line of ``sql``; modules that need an extra are imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError
from spark_events.cli.sql import options as own
from spark_events.cli.sql.deploy import deploy, deploy_one, session
from spark_events.cli.terminal.commands import Group
from spark_events.cli.terminal.console import (
    CONFIGURATION,
    FAILED,
    err,
    out,
    plain,
    print_error,
    print_json,
    print_warnings,
    say,
)
from spark_events.cli.terminal.options import Conf, PropertiesFile
from spark_events.cli.terminal.registering import command
from spark_events.spark.conf import read_conf
from spark_events.sql_runner.deploy.placement import HostKind, Placement

app = typer.Typer(
    cls=Group,
    help="Run streaming SQL queries from a folder of YAML manifests.",
    no_args_is_help=True,
)
_STORE = "--store s3a://bucket/queries"
command(
    app,
    f"spark-events sql deploy queries {_STORE} --prune",
    f"spark-events sql deploy queries {_STORE} --mode application -- --num-executors 4",
)(deploy)
command(app, f"spark-events sql deploy-one queries/orders.yaml {_STORE}", name="deploy-one")(deploy_one)
command(app, f"spark-events sql session {_STORE} --master yarn", f"spark-events sql session {_STORE} --end")(
    session
)


@command(app, "spark-events sql validate queries --syntax-only")
def validate(
    folder: own.Folder,
    template_file: own.Template = None,
    table_definition_path: own.Definitions = None,
    syntax_only: Annotated[
        bool, typer.Option("--syntax-only", help="Check only the YAML; needs no Spark.")
    ] = False,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
) -> None:
    """Check manifests: their YAML, their queries, and whether the rows fit their tables.

    Exits 3 if something is wrong; each error has its file and line.
    """
    from spark_events.sql_runner.deploy.planner import problems_of_queries
    from spark_events.sql_runner.manifest.folder import read_folder

    manifests = read_folder(folder, template_file)
    print_warnings(manifests.warnings)
    problems = list(manifests.problems)
    if not syntax_only and manifests.by_name:
        own_conf = read_conf(properties_file, conf or ())[0]
        with own.analyst_of(own_conf, table_definition_path) as analyst:
            problems += problems_of_queries(analyst, manifests)
    if problems:
        raise ConfigError.of_all(problems)
    say(f"[green]ok[/] {len(manifests.by_name)} manifest{'' if len(manifests.by_name) == 1 else 's'}")


@command(app, f"spark-events sql plan queries {_STORE}")
def plan(
    folder: own.Folder,
    store: own.StoreUrl,
    template_file: own.Template = None,
    table_definition_path: own.Definitions = None,
    mode: own.RunMode = HostKind.SESSION,
    session: own.Session = "default",
    prune: own.Prune = False,
    as_json: own.AsJson = False,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
) -> None:
    """Show what deploy would do with each query, and why, without doing it.

    Exits 3 if deploy could not do it: a query that Spark cannot analyze, a stopped query without a state,
    or a session that is not running.
    """
    from spark_events.cli.sql import views
    from spark_events.sql_runner.deploy.decision import Action
    from spark_events.sql_runner.deploy.planner import hosts_of
    from spark_events.sql_runner.deploy.workspace import Workspace
    from spark_events.sql_runner.manifest.folder import read_folder

    own_conf = read_conf(properties_file, conf or ())[0]
    manifests = read_folder(folder, template_file).or_fail()
    print_warnings(manifests.warnings)
    with own.store_errors():
        workspace = Workspace(store, Placement(mode, session), makes_store=False)
        print_warnings(filter(None, [workspace.lack_of_store]))
        with own.analyst_of(own_conf, table_definition_path) as analyst:
            planned = workspace.plan(analyst, manifests, prune=prune)
        print_warnings(warning for query in planned for warning in query.warnings)
        if as_json:
            print_json(views.plan_values(planned))
        elif planned:
            views.show_plan(planned, out)
        else:
            say("no manifests, and nothing to stop")
        for starting in workspace.demand_sessions(hosts_of(planned)):
            say(f"{plain(starting.described)} is starting; deploy waits for it", err)
    if any(query.decision.action is Action.FAIL for query in planned):
        raise typer.Exit(CONFIGURATION)


@command(app, f"spark-events sql status {_STORE}")
def status(store: own.StoreUrl, as_json: own.AsJson = False) -> None:
    """Show each query: whether it runs, since when, how far it is, and why it failed.

    Exits 1 if a query that should run does not, its application is silent, or the store cannot be written or
    has damaged files.
    """
    from spark_events.cli.sql import views
    from spark_events.sql_runner.deploy.workspace import Workspace

    with own.store_errors():
        workspace = Workspace.of_existing(store, Placement())
        current = workspace.status()
        rows = list(current.rows)
        problem = workspace.store.write_problem() if rows else ""
    for damaged in current.problems:
        print_error(damaged)
    if problem:
        print_error(f"{problem}; what is shown may be out of date")
    if as_json:
        print_json(rows)
    elif rows:
        views.show_status(rows, out, workspace.store.clock.now_ms())
    else:
        say("no query is deployed")
    if problem or current.problems or not all(row.is_well for row in rows):
        raise typer.Exit(FAILED)


@command(app, f"spark-events sql stop orders {_STORE} --savepoint")
def stop(
    name: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    store: own.StoreUrl,
    savepoint: Annotated[bool, typer.Option("--savepoint", help="Make a savepoint first.")] = False,
    timeout: own.Timeout = 120,
) -> None:
    """Stop a query after its current micro-batch; deploy resumes it.

    If its application is gone, the query does not start again when that is back.

    Exits 1 if it does not stop, 3 if there is no such query.
    """
    from spark_events.cli.sql import views
    from spark_events.sql_runner.deploy.workspace import Workspace

    with own.store_errors():
        workspace = Workspace.of_existing(store, Placement(timeout_s=timeout))
        with err.status(f"stopping {plain(name)}"):
            result = workspace.stop(name, savepoint)
    if result is None:
        say(f"{plain(name)} is not running")
        return
    views.show_result(result, out)
    if result.failed:
        raise typer.Exit(FAILED)


@command(app, f"spark-events sql forget orders {_STORE}")
def forget(
    name: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    store: own.StoreUrl,
    state: Annotated[
        bool, typer.Option("--state", help="Remove its checkpoints, savepoints and history, too.")
    ] = False,
) -> None:
    """Remove a stopped query, so that status does not show it any more.

    Its checkpoints, savepoints and history stay, without --state. Exits 3 if it is to run, or is not there.
    """
    from spark_events.sql_runner.deploy.workspace import Workspace

    with own.store_errors():
        Workspace.of_existing(store, Placement()).forget(name, state=state)
    say(f"[green]ok[/] {plain(name)}: forgotten")


@command(app, f"spark-events sql history orders {_STORE}")
def history(
    name: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    store: own.StoreUrl,
    as_json: own.AsJson = False,
) -> None:
    """Show what was done with a query, when, why and by whom."""
    from spark_events.cli.sql import views
    from spark_events.sql_runner.deploy.workspace import Workspace
    from spark_events.sql_runner.store.history import read_history

    with own.store_errors():
        entries = read_history(Workspace.of_existing(store, Placement()).store, name)
    if as_json:
        print_json(entries)
    elif entries:
        views.show_history(entries, out)
    else:
        raise NothingToReadError(f"{name!r}: no query of this name in the history of {store}")


@command(app, "spark-events sql schema > manifest.schema.json")
def schema() -> None:
    """Print the JSON schema of a manifest, for editors."""
    from spark_events.sql_runner.manifest.manifest import json_schema

    print_json(json_schema())


@command(
    app,
    "spark-events sql export-pipeline queries --output pipeline --storage s3a://bucket/p",
    name="export-pipeline",
)
def export_pipeline(
    folder: own.Folder,
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="The folder to write the pipeline into.")
    ],
    storage: Annotated[
        str, typer.Option("--storage", metavar="URL", help="Absolute URL of the pipeline's checkpoints.")
    ],
    template_file: own.Template = None,
    table_definition_path: own.Definitions = None,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
) -> None:
    """Write manifests as a spec of Spark Declarative Pipelines, for spark-pipelines of PySpark 4.1 and newer.

    Reports what a pipeline cannot do. Exits 1 if a manifest is left out.
    """
    from spark_events.sql_runner.analysis import pipelines
    from spark_events.sql_runner.manifest.folder import read_folder

    own_conf = read_conf(properties_file, conf or ())[0]
    manifests = read_folder(folder, template_file).or_fail()
    with own.analyst_of(own_conf, table_definition_path) as analyst:
        export = pipelines.export_pipeline(analyst, manifests, output, storage)
    for name, reason in export.left_out.items():
        say(f"[bold yellow]left out[/] {plain(name)}: {plain(reason)}", err)
    if export.files:
        say(f"[green]ok[/] {plain(str(export.files[0]))}: run it with spark-pipelines run --spec")
        say(f"not carried over: {plain(pipelines.NOT_CARRIED)}", err)
    if export.left_out:
        raise typer.Exit(FAILED)

"""The commands of ``sql`` that make queries run: deploy, deploy-one and session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from spark_events.api import ConfigError
from spark_events.cli.sql import options as own
from spark_events.cli.terminal.console import (
    CONFIGURATION,
    FAILED,
    err,
    out,
    plain,
    print_error,
    print_warnings,
    say,
)
from spark_events.cli.terminal.options import Conf, PropertiesFile
from spark_events.spark.conf import read_conf
from spark_events.sql_runner.deploy.placement import HostKind, Placement


def deploy(
    folder: own.Folder,
    store: own.StoreUrl,
    template_file: own.Template = None,
    table_definition_path: own.Definitions = None,
    mode: own.RunMode = HostKind.SESSION,
    session: own.Session = "default",
    prune: own.Prune = False,
    master: own.Master = None,
    parallel: own.Parallel = 4,
    timeout: own.Timeout = 120,
    log_dir: own.LogDir = Path("logs"),
    poll_ms: own.PollMs = 1_000,
    lease_ms: own.LeaseMs = 30_000,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    submit_options: own.SubmitOptions = None,
) -> None:
    """Make the running queries match a folder of manifests, several queries at a time.

    A query whose deployment fails keeps running as before. Exits 1 if a deployment failed, 3 if a manifest is
    wrong: a file that is not YAML stops the whole deployment; a query that Spark cannot analyze is left out.
    """
    from spark_events.sql_runner.manifest.folder import read_folder

    own_conf = read_conf(properties_file, conf or ())[0]
    manifests = read_folder(folder, template_file).or_fail()
    submit = own.for_submit(properties_file, conf, submit_options)
    placement = Placement(mode, session, master or "", *submit, log_dir, poll_ms, lease_ms, timeout, parallel)
    _deploy(manifests, store, placement, own_conf, table_definition_path, prune=prune, clean=False)


def deploy_one(
    manifest: Annotated[Path, typer.Argument(metavar="FILE", help="The manifest.")],
    store: own.StoreUrl,
    template_file: own.Template = None,
    table_definition_path: own.Definitions = None,
    mode: own.RunMode = HostKind.SESSION,
    session: own.Session = "default",
    clean: Annotated[
        bool, typer.Option("--clean", help="Start a new version with clean state, even if nothing changed.")
    ] = False,
    master: own.Master = None,
    timeout: own.Timeout = 120,
    log_dir: own.LogDir = Path("logs"),
    poll_ms: own.PollMs = 1_000,
    lease_ms: own.LeaseMs = 30_000,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    submit_options: own.SubmitOptions = None,
) -> None:
    """Deploy one manifest, as deploy does a folder."""
    from spark_events.sql_runner.manifest.folder import read_files

    own_conf = read_conf(properties_file, conf or ())[0]
    manifests = read_files([manifest], template_file).or_fail()
    submit = own.for_submit(properties_file, conf, submit_options)
    placement = Placement(mode, session, master or "", *submit, log_dir, poll_ms, lease_ms, timeout)
    _deploy(manifests, store, placement, own_conf, table_definition_path, prune=False, clean=clean)


def session(
    store: own.StoreUrl,
    name: Annotated[
        str, typer.Option("--session", metavar="NAME", help="Name of the session, as in deploy --session.")
    ] = "default",
    end: Annotated[
        bool, typer.Option("--end", help="Stop the session and its queries, and wait until it has ended.")
    ] = False,
    master: own.Master = None,
    timeout: own.EndTimeout = 600,
    poll_ms: own.PollMs = 1_000,
    lease_ms: own.LeaseMs = 30_000,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    submit_options: own.SubmitOptions = None,
) -> None:
    """Run the session application, which hosts queries until it is asked to end.

    It continues with the queries that it should run. Ctrl-C stops them after their micro-batches and ends
    the session; a second Ctrl-C ends it at once. Exits as the application does.
    """
    from spark_events.sql_runner.deploy.session import run_session
    from spark_events.sql_runner.deploy.workspace import Workspace

    given_conf, options = own.for_submit(properties_file, conf, submit_options)
    placement = Placement(
        session=name,
        master=master or "",
        conf=given_conf,
        options=options,
        poll_ms=poll_ms,
        lease_ms=lease_ms,
        timeout_s=timeout,
    )
    with own.store_errors():
        if end:
            raise typer.Exit(_end_session(Workspace.of_existing(store, placement)))
        raise typer.Exit(run_session(Workspace(store, placement), _say_stopping))


def _deploy(
    manifests: Any,
    store: str,
    placement: Placement,
    conf: dict[str, str],
    definitions: list[Path] | None,
    *,
    prune: bool,
    clean: bool,
) -> None:
    from spark_events.sql_runner.deploy.decision import Action
    from spark_events.sql_runner.deploy.workspace import Workspace

    print_warnings(manifests.warnings)
    with own.store_errors():
        workspace = Workspace(store, placement)
        _await_sessions(workspace, {placement.host_of(name) for name in manifests.by_name})
        with workspace.deploying() as lease, own.analyst_of(conf, definitions) as analyst:
            planned = workspace.plan(analyst, manifests, prune=prune, clean=clean)
            print_warnings(warning for query in planned for warning in query.warnings)
            results = _deploy_queries(workspace.deployer(lease, analyst), planned)
    if any(result.action is Action.FAIL for result in results):
        raise typer.Exit(CONFIGURATION)
    if any(result.failed for result in results):
        raise typer.Exit(FAILED)


def _await_sessions(workspace: Any, hosts: set[str]) -> None:
    """Wait for sessions that are starting."""
    from spark_events.sql_runner.deploy.host_link import DeploymentError

    for starting in workspace.demand_sessions(hosts):
        try:
            with err.status(f"waiting for {plain(starting.described)}, which is starting"):
                workspace.await_session(starting)
        except DeploymentError as error:
            raise ConfigError(str(error)) from error


def _deploy_queries(deployer: Any, planned: Any) -> list[Any]:
    from spark_events.cli.sql import views

    results: list[Any] = []
    try:
        with err.status(_left(planned, 0)) as shown:
            for result in deployer.deploy_all(planned):
                results.append(result)
                views.show_result(result, out)
                shown.update(_left(planned, len(results)))
    except KeyboardInterrupt:
        say(
            f"interrupted at {_left(planned, len(results))}: orders already given are carried out; the next "
            "deployment resumes here",
            err,
        )
        raise
    return results


def _left(planned: Any, done: int) -> str:
    """Return the next query, and how many more there are."""
    names = [query.name for query in planned[done:]]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return plain(f"{names[0]}{more}" if names else "the end")


def _say_stopping() -> None:
    say("stopping the queries after their micro-batches; press Ctrl-C again to end at once", err)


def _end_session(workspace: Any) -> int:
    from spark_events.sql_runner.deploy.host_link import DeploymentError
    from spark_events.sql_runner.deploy.session import end_session

    name = plain(workspace.link(workspace.placement.session_host).described)
    try:
        with err.status(f"waiting for {name}"):
            ran = end_session(workspace)
    except DeploymentError as error:
        print_error(str(error))
        return FAILED
    say(f"{name} has ended; its queries start again when it does" if ran else f"{name} is not running")
    return 0

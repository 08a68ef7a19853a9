"""The commands of ``sql`` that make queries run: deploy, deploy-one and session."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Annotated, Any

import typer

from spark_events.api import ConfigError
from spark_events.cli.console import FAILED, WRONG, err, out, plain, print_error, print_warnings, say
from spark_events.cli.options import Conf, PropertiesFile
from spark_events.cli.sql import options as own
from spark_events.cli.sql import support
from spark_events.spark.conf import parse_assignments, read_conf
from spark_events.sql_runner.deploy.placement import Mode, Placement


def deploy(
    folder: own.Folder,
    store: own.StoreUrl,
    template_file: own.Template = None,
    table_definition_path: own.Definitions = None,
    mode: own.RunMode = Mode.SESSION,
    session: own.Session = "default",
    prune: own.Prune = False,
    master: own.Master = None,
    timeout: own.Timeout = 120,
    log_dir: own.LogDir = Path("logs"),
    poll_ms: own.PollMs = 1_000,
    lease_ms: own.LeaseMs = 30_000,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    submit_options: own.SubmitOptions = None,
) -> None:
    """Make the queries that run equal to a folder, one after the other.

    A query whose deployment fails runs on as it was. Exits 1 where one failed, 2 where a manifest is wrong:
    one that is no YAML stops all, for what it was to be is not known; one whose query cannot be analysed is
    left out.
    """
    from spark_events.sql_runner.manifest.folder import read_folder

    found, _ = read_conf(properties_file, conf or ())
    manifests = read_folder(folder, template_file).or_fail()
    given, options = _for_submit(properties_file, conf, submit_options)
    placement = Placement(mode, session, master or "", given, options, log_dir, poll_ms, lease_ms, timeout)
    _deploy(manifests, store, placement, found, table_definition_path, prune=prune, clean=False)


def deploy_one(
    manifest: Annotated[Path, typer.Argument(help="The manifest.")],
    store: own.StoreUrl,
    template_file: own.Template = None,
    table_definition_path: own.Definitions = None,
    mode: own.RunMode = Mode.SESSION,
    session: own.Session = "default",
    clean: Annotated[
        bool, typer.Option("--clean", help="Start a new version with a clean state, whatever has changed.")
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

    found, _ = read_conf(properties_file, conf or ())
    manifests = read_files([manifest], template_file).or_fail()
    given, options = _for_submit(properties_file, conf, submit_options)
    placement = Placement(mode, session, master or "", given, options, log_dir, poll_ms, lease_ms, timeout)
    _deploy(manifests, store, placement, found, table_definition_path, prune=False, clean=clean)


def session(
    store: own.StoreUrl,
    name: Annotated[str, typer.Option("--session", help="Its name, for deploy --session.")] = "default",
    end: Annotated[
        bool, typer.Option("--end", help="Ask the session to stop its queries and end, and wait for it.")
    ] = False,
    master: own.Master = None,
    timeout: own.Timeout = 600,
    poll_ms: own.PollMs = 1_000,
    lease_ms: own.LeaseMs = 30_000,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    submit_options: own.SubmitOptions = None,
) -> None:
    """Run the session application, which hosts queries until it is asked to end.

    It goes on with the queries that it is to run. With Ctrl-C it stops them after their micro-batches and
    ends; with a second one it ends at once. Exits as the application does.
    """
    from spark_events.sql_runner.deploy.workspace import Workspace

    given, options = _for_submit(properties_file, conf, submit_options)
    placement = Placement(
        session=name,
        master=master or "",
        conf=given,
        options=options,
        poll_ms=poll_ms,
        lease_ms=lease_ms,
        timeout_s=timeout,
    )
    with support.store_errors():
        workspace = Workspace(store, placement)
        raise typer.Exit(_end_session(workspace) if end else _run_session(workspace))


def _deploy(
    manifests: Any,
    store: str,
    placement: Any,
    conf: dict[str, str],
    definitions: list[Path] | None,
    *,
    prune: bool,
    clean: bool,
) -> None:
    from spark_events.cli.sql import views
    from spark_events.sql_runner.deploy.decision import Action
    from spark_events.sql_runner.deploy.workspace import Workspace

    print_warnings(manifests.warnings)
    results = []
    with support.store_errors():
        workspace = Workspace(store, placement)
        if manifests.by_name:
            support.refuse_gone_hosts(workspace, {placement.host_of(name) for name in manifests.by_name})
        with workspace.deploying() as guard, support.analyst_of(conf, definitions) as analyst:
            planned = workspace.planner(analyst, guard).plan(manifests, prune, clean)
            print_warnings(warning for each in planned for warning in each.warnings)
            deployer = workspace.deployer(analyst, guard)
            for each in planned:
                try:
                    with err.status(f"{plain(each.name)}: {each.decision.action.value}"):
                        results.append(deployer.deploy(each))
                except KeyboardInterrupt:
                    say(
                        f"interrupted at {plain(each.name)}: what was ordered is carried out; the next "
                        "deployment goes on from there",
                        err,
                    )
                    raise
                views.show_result(results[-1], out)
    if any(result.action is Action.FAIL for result in results):
        raise typer.Exit(WRONG)
    if any(result.failed for result in results):
        raise typer.Exit(FAILED)


def _for_submit(
    properties_file: Path | None, conf: list[str] | None, options: list[str] | None
) -> tuple[dict[str, str], list[str]]:
    """Return the properties and the options for spark-submit.

    It reads files of properties itself: on its command line everybody on the machine could read them.
    """
    file = ["--properties-file", str(properties_file)] if properties_file else []
    return parse_assignments(conf or ()), [*file, *(options or ())]


def _run_session(workspace: Any) -> int:
    from spark_events.sql_runner.store import layout

    host = workspace.placement.host_of("")
    found = workspace.link(host).look()
    if found.is_alive:
        # It has taken its lease before it says anything.
        which = f": {found.status.application_id}" if found.status else ""
        raise ConfigError(
            f"{found.link.described} runs already in {workspace.store.url}{which}; give another --session, "
            "or end it with --end"
        )
    command = workspace.submit_command(host, single=False, conf={})
    # One that nobody was there to take; Ctrl-C while the application comes up is another one.
    workspace.store.delete(layout.end_request(host))
    # In a group of its own: Ctrl-C would end the JVM under the queries before their micro-batches have ended.
    process = subprocess.Popen(command, start_new_session=True)

    def ask(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        say("stopping the queries after their micro-batches; Ctrl-C again ends at once", err)
        workspace.store.write(layout.end_request(host), b"{}")

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        return process.wait()


def _end_session(workspace: Any) -> int:
    from spark_events.sql_runner.deploy.host_link import DeploymentError
    from spark_events.sql_runner.store import layout

    link = workspace.link(workspace.placement.host_of(""))
    if not link.is_alive:
        say(f"{plain(link.described)} does not run")
        return 0
    workspace.store.write(layout.end_request(link.host), b"{}")
    try:
        with err.status(f"waiting for {plain(link.described)}"):
            link.wait_gone(workspace.placement.timeout_s)
    except DeploymentError as error:
        print_error(str(error))
        return FAILED
    say(f"{plain(link.described)} has ended; its queries start again with it")
    return 0

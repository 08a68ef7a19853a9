"""The command that runs and ends the session application."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

from spark_events.api import ConfigError
from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.deploy.launch import submit_command
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.store.starting import clear_starting, mark_starting, mark_submitted
from spark_events.sql_runner.store.store import StoreError


def run_session(workspace: Workspace, on_stop: Callable[[], None]) -> int:
    """Run the session application until it ends.

    SIGINT and SIGTERM make it stop its queries and end; a second SIGINT terminates it.

    Args:
        workspace: its store and placement.
        on_stop: called when it is asked to stop.

    Returns:
        The application's exit code.

    Raises:
        ConfigError: it runs already; there is no Spark, or no Java for it.
        StoreError: the store cannot be read or written.
    """
    link = workspace.link(workspace.placement.session_host)
    session = link.snapshot()
    if session.is_alive:
        # It takes its lease before it writes a status.
        application = f": {session.status.application_id}" if session.status else ""
        raise ConfigError(
            f"{link.described} is already running in {workspace.store.url}{application}; give another "
            "--session, or end it with --end"
        )
    if session.is_starting:
        raise ConfigError(f"{link.described} is already being started in {workspace.store.url}")
    command = submit_command(workspace.store.url, link.host, workspace.placement, {}, single=False)
    # Withdraw an old request that nobody was there to take; Ctrl-C during start-up makes a new one.
    link.withdraw_end_request()
    mark_starting(workspace.store, link.host)
    is_on_its_way = False
    try:
        code = _run(command, link, on_stop)
        # The application removes the mark itself. Where spark-submit does not wait for it, nothing runs yet.
        is_on_its_way = code == 0 and not workspace.placement.runs_here and link.is_starting
        return code
    finally:
        with suppress(StoreError):  # the mark is over without it, as soon as this process is
            put = mark_submitted if is_on_its_way else clear_starting
            put(workspace.store, link.host)


def _run(command: Sequence[str], link: HostLink, on_stop: Callable[[], None]) -> int:
    # In its own process group: otherwise Ctrl-C would end the JVM before the queries' micro-batches end.
    process = subprocess.Popen(command, start_new_session=True)

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        on_stop()
        link.request_end()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        return process.wait()


def end_session(workspace: Workspace) -> bool:
    """Ask the session application to stop its queries and end, and wait for it.

    Returns:
        Whether it ran.

    Raises:
        DeploymentError: it has not ended in time.
        StoreError: the store cannot be read or written.
    """
    link = workspace.link(workspace.placement.session_host)
    if not (link.is_alive or link.is_starting):
        return False
    link.request_end()
    link.wait_gone(workspace.placement.timeout_s)
    return True

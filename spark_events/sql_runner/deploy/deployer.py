"""Carries decisions out, step by step; where one is the last, the next deployment goes on from it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from spark_events.api.event import now_ms
from spark_events.runtime.log_once import logger
from spark_events.sql_runner.deploy import launch
from spark_events.sql_runner.deploy.current import Current
from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.host_link import DeploymentError, HostLink
from spark_events.sql_runner.deploy.planner import Planned
from spark_events.sql_runner.manifest import properties as props
from spark_events.sql_runner.store.deployed import (
    Deployed,
    Deployment,
    Meta,
    add_history,
    new_id,
    write_deployed,
)
from spark_events.sql_runner.store.documents import RUN, STOP, Order
from spark_events.sql_runner.store.lease import Lease, this_process
from spark_events.sql_runner.store.savepoints import SavepointError, latest_state, restore
from spark_events.sql_runner.store.store import Store

Submit = Callable[[Deployed], "tuple[subprocess.Popen[bytes], Path]"]
_LOOK_EVERY_S = 0.3
_DONE = "done"


@dataclass(frozen=True, slots=True)
class Result:
    """What was done with one query.

    Attributes:
        name: the query's.
        action: what.
        version: the version that runs, or ran, after it.
        text: how it went.
        failed: whether it could not be done.
        savepoint: the savepoint that it made; empty for none.
    """

    name: str
    action: Action
    version: int
    text: str
    failed: bool = False
    savepoint: str = ""


class Deployer:
    """Carries decisions out.

    Args:
        store: where all of it is written down.
        lease: the lease to deploy, which is held.
        link: gives the link to an application, by its name.
        spark_version: the Spark that made the fingerprints.
        definitions: the table definitions.
        submit: starts the application of one query.
        timeout_s: how long a query may take to start, and to stop, in seconds.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        link: Callable[[str], HostLink],
        spark_version: str,
        definitions: tuple[str, ...],
        submit: Submit,
        timeout_s: float,
    ) -> None:
        self._store = store
        self._lease = lease
        self._link = link
        self._spark_version = spark_version
        self._definitions = definitions
        self._submit = submit
        self._timeout_s = timeout_s

    def deploy(self, planned: Planned) -> Result:
        """Do what was decided for one query, and write it into its history.

        Raises:
            StoreError: the store cannot be read or written.
            LeaseLost: another deployment has taken over.
        """
        decision = planned.decision
        try:
            savepoint, text = self._do(planned)
            result = Result(planned.name, decision.action, decision.version, text, savepoint=savepoint)
        except (DeploymentError, SavepointError) as error:
            result = Result(planned.name, decision.action, decision.version, str(error), failed=True)
        if decision.action not in (Action.NOTHING, Action.FAIL):
            self._note(planned.name, decision.action.value, decision.version, decision.reason, result)
        return result

    def stop(self, name: str, current: Current, savepoint: bool) -> Result:
        """Stop a query, and write it into its history.

        Raises:
            StoreError: the store cannot be read or written.
            LeaseLost: another deployment has taken over.
        """
        version = current.deployed.meta.query_version if current.deployed else 0
        try:
            made = self._stop(name, current, savepoint)
            result = Result(name, Action.STOP, version, _DONE, savepoint=made)
        except DeploymentError as error:
            result = Result(name, Action.STOP, version, str(error), failed=True)
        self._note(name, Action.STOP.value, version, "the user asked for it", result)
        return result

    def _note(self, name: str, action: str, version: int, reason: str, result: Result) -> None:
        entry = Deployment(now_ms(), action, version, reason, result.text, this_process(), result.savepoint)
        add_history(self._store, name, entry)

    def _do(self, planned: Planned) -> tuple[str, str]:
        """Do it, and return the savepoint that was made, and how it went."""
        action, current = planned.decision.action, planned.current
        if action is Action.FAIL or current is None:
            raise DeploymentError(planned.decision.reason)
        if action is Action.NOTHING:
            self._refresh(planned, current)
            return "", _DONE
        if action is Action.RECORD and current.deployed is not None and current.order is not None:
            return "", self._await(current.deployed, current.order, None)
        savepoint = self._stop(planned.name, current, savepoint=True) if current.running else ""
        if action is Action.STOP:
            return savepoint, _DONE
        if not current.running:
            # Its application may come back, and must not run it beside the one that is to run it now.
            current.link.give(planned.name, None)
        previous = current if current.running else None
        return savepoint, self._run(self._next(planned, current), self._definitions, previous)

    def _refresh(self, planned: Planned, current: Current) -> None:
        """Let the store have the text that the team has, where only that has changed."""
        assert planned.manifest is not None
        if current.recorded is not None and current.recorded.manifest != planned.manifest:
            self._lease.check()
            write_deployed(self._store, Deployed(planned.manifest, current.recorded.meta))

    def _next(self, planned: Planned, current: Current) -> Deployed:
        """Return what is to run: with a clean state, or from the latest one."""
        assert planned.manifest is not None
        version = planned.decision.version
        if planned.decision.action in (Action.START, Action.REPLACE) or current.deployed is None:
            meta = Meta.new(planned.name, version, planned.host, planned.plan, self._spark_version)
        else:
            meta = replace(
                self._from_state(planned.name, current.deployed.meta),
                host=planned.host,
                plan=planned.plan,
                spark_version=self._spark_version,
            )
        return Deployed(planned.manifest, meta)

    def _from_state(self, name: str, meta: Meta) -> Meta:
        """Return a meta with which a version goes on, as another deployment."""
        state = latest_state(self._store, name, meta)
        checkpoint = meta.checkpoint
        if state is not None and state.is_savepoint:
            checkpoint = restore(self._store, name, meta.query_version, state.path)
        return replace(meta, checkpoint=checkpoint, deployment=new_id())

    def _stop(self, name: str, current: Current, savepoint: bool) -> str:
        assert current.deployed is not None
        order = Order(new_id(), STOP, current.deployed.values(), savepoint=new_id() if savepoint else "")
        current.link.give(name, order)
        patience = props.stop_timeout_ms(current.deployed.manifest.spark_properties) / 1000
        stopped = current.link.wait_stopped(name, order, patience + self._timeout_s)
        if current.link.is_single:
            current.link.wait_gone(self._timeout_s)
        return stopped.savepoint

    def _run(self, deployed: Deployed, definitions: tuple[str, ...], previous: Current | None) -> str:
        name, link = deployed.manifest.name, self._link(deployed.meta.host)
        order = Order(deployed.meta.deployment, RUN, deployed.values(), definitions)
        if link.is_single:
            link.wait_gone(self._timeout_s)
        link.give(name, order)
        if link.is_single:
            self._start_application(deployed, link)
        return self._await(deployed, order, previous)

    def _start_application(self, deployed: Deployed, link: HostLink) -> None:
        process, log = self._submit(deployed)
        until = time.monotonic() + self._timeout_s
        while not link.is_alive:
            # In cluster mode spark-submit may end well before the application begins.
            if process.poll() or time.monotonic() > until:
                link.give(deployed.manifest.name, None)
                how = f"ended with exit code {process.poll()}" if process.poll() else "did not come up"
                raise DeploymentError(f"{link.described} {how}; the end of {log}:\n{launch.tail(log)}")
            time.sleep(_LOOK_EVERY_S)

    def _await(self, deployed: Deployed, order: Order, previous: Current | None) -> str:
        """Wait until a query runs and write that down; where it does not, go back to what ran before."""
        name, link = deployed.manifest.name, self._link(deployed.meta.host)
        started = link.wait_started(name, order, self._timeout_s)
        if started.error:
            raise DeploymentError(f"{started.error}{self._go_back(deployed, previous)}")
        self._lease.check()
        write_deployed(self._store, deployed)
        return f"{_DONE}; its first micro-batch still runs" if started.slow else _DONE

    def _go_back(self, failed: Deployed, previous: Current | None) -> str:
        """Take a deployment back that failed, and return what became of the query."""
        name = failed.manifest.name
        self._withdraw(failed)
        if previous is None or previous.deployed is None or previous.order is None:
            return "; it is not deployed"
        before = previous.deployed
        try:
            back = Deployed(before.manifest, self._from_state(name, before.meta))
            self._run(back, previous.order.definitions, None)
        except (DeploymentError, SavepointError) as error:
            return f"; what ran before could not be started again: {error}"
        return f"; version {before.meta.query_version} as it was deployed runs again"

    def _withdraw(self, failed: Deployed) -> None:
        name, link = failed.manifest.name, self._link(failed.meta.host)
        try:
            if link.is_alive:
                order = Order(new_id(), STOP, failed.values())
                link.give(name, order)
                link.wait_stopped(name, order, self._timeout_s)
            if link.is_single:
                link.wait_gone(self._timeout_s)
        except DeploymentError as error:
            logger.warning("%s", error)
        link.give(name, None)

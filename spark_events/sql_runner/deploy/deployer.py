"""Carries out decisions step by step; after an interruption, the next deployment continues from there."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from uuid import uuid4

from spark_events.api.event import now_ms
from spark_events.runtime.log_once import logger
from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.host_link import DeploymentError, HostLink
from spark_events.sql_runner.deploy.launch import submit, tail
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.planner import PlannedQuery
from spark_events.sql_runner.deploy.snapshot import QuerySnapshot
from spark_events.sql_runner.manifest import properties as props
from spark_events.sql_runner.store.deployed import DeployedQuery, Meta, write_deployed
from spark_events.sql_runner.store.history import Deployment, add_history
from spark_events.sql_runner.store.host_files import RUN, STOP, Order
from spark_events.sql_runner.store.layout import new_id
from spark_events.sql_runner.store.lease import Lease, this_process
from spark_events.sql_runner.store.savepoints import SavepointError, find_states, restore
from spark_events.sql_runner.store.store import Store

_LOOK_EVERY_S = 0.3
_DONE = "done"


@dataclass(frozen=True, slots=True)
class DeployResult:
    """How the deployment or the stop of one query went.

    Attributes:
        action: what was to be done.
        version: the version that runs, or ran, afterwards.
        text: how it went, for people to read.
        failed: whether it could not be done.
        savepoint: the savepoint that was made; empty for none.
    """

    name: str
    action: Action
    version: int
    text: str
    failed: bool = False
    savepoint: str = ""


class Deployer:
    """Carries decisions out.

    Each method raises ``StoreError`` if the store cannot be read or written, and ``LeaseLost`` if another
    deployment has taken over.

    Args:
        store: has the orders, the manifests and the history.
        lease: the deployment lease, which is held.
        placement: where queries run.
        analyst: made the fingerprints, and has the table definitions; without it, only stops are possible.
    """

    def __init__(self, store: Store, lease: Lease, placement: Placement, analyst: Analyst | None) -> None:
        self._store = store
        self._lease = lease
        self._placement = placement
        self._timeout_s = placement.timeout_s
        self._spark_version = analyst.spark_version if analyst else ""
        self._definitions = analyst.statements if analyst else ()

    def deploy(self, planned: PlannedQuery) -> DeployResult:
        """Do what was decided for one query, and record it in its history."""
        name, decision = planned.name, planned.decision
        try:
            savepoint, text = self._carry_out(planned)
            result = DeployResult(name, decision.action, decision.version, text, savepoint=savepoint)
        except (DeploymentError, SavepointError) as error:
            result = DeployResult(name, decision.action, decision.version, str(error), failed=True)
        if decision.action not in (Action.NOTHING, Action.FAIL):
            self._add_history(result, decision.reason)
        return result

    def stop(self, current: QuerySnapshot, savepoint: bool) -> DeployResult:
        """Stop a query, and record that in its history."""
        name, version = current.name, current.version
        try:
            path = self._stop(current, savepoint)
            result = DeployResult(name, Action.STOP, version, _DONE, savepoint=path)
        except DeploymentError as error:
            result = DeployResult(name, Action.STOP, version, str(error), failed=True)
        self._add_history(result, "the user asked for it")
        return result

    def _add_history(self, result: DeployResult, reason: str) -> None:
        action, who = result.action.value, this_process()
        entry = Deployment(now_ms(), action, result.version, reason, result.text, who, result.savepoint)
        add_history(self._store, result.name, entry)

    def _link(self, host: str) -> HostLink:
        return HostLink(self._store, host, self._lease.check)

    def _carry_out(self, planned: PlannedQuery) -> tuple[str, str]:
        """Carry out the decision; return the savepoint that was made, and how it went."""
        action, current = planned.decision.action, planned.current
        if action is Action.FAIL:
            raise DeploymentError(planned.decision.reason)
        if action is Action.NOTHING:
            self._update_text(planned)
            return "", _DONE
        if action is Action.RECORD and current.deployed is not None and current.order is not None:
            return "", self._await_start(current.deployed, current.order, None)
        if not current.running:
            # Its old application may come back, and must not run it in addition to the new one.
            self._link(current.host.link.host).give(planned.name, None)
            return "", self._start(self._next_deployed(planned), self._definitions, None)
        savepoint = self._stop(current, savepoint=True)
        if action is Action.STOP:
            return savepoint, _DONE
        return savepoint, self._start(self._next_deployed(planned), self._definitions, current)

    def _update_text(self, planned: PlannedQuery) -> None:
        """Update the manifest's text in the store if nothing else has changed."""
        assert planned.manifest is not None
        recorded = planned.current.recorded
        if recorded is not None and recorded.manifest != planned.manifest:
            self._lease.check()
            write_deployed(self._store, DeployedQuery(planned.manifest, recorded.meta))

    def _next_deployed(self, planned: PlannedQuery) -> DeployedQuery:
        """Return what is to run: with a clean state, or from the latest one."""
        assert planned.manifest is not None
        name, host, plan = planned.name, planned.host, planned.fingerprint
        before = planned.current.deployed
        if planned.decision.action in (Action.START, Action.REPLACE) or before is None:
            meta = Meta.new(name, planned.decision.version, host, plan, self._spark_version)
        else:
            meta = replace(
                self._from_state(name, before.meta), host=host, plan=plan, spark_version=self._spark_version
            )
        return DeployedQuery(planned.manifest, meta)

    def _from_state(self, name: str, meta: Meta) -> Meta:
        """Return the meta with which a version continues in a new deployment."""
        found = find_states(self._store, name, meta)
        if found.latest is None:
            why = "; ".join(found.passed_over) or "there is no savepoint or checkpoint"
            raise SavepointError(f"there is no state to start from: {why}")
        if not found.latest.is_savepoint:
            return replace(meta, deployment=new_id())
        query_id = str(uuid4())
        checkpoint = restore(self._store, name, meta.query_version, found.latest.path, query_id)
        return replace(meta, checkpoint=checkpoint, query_id=query_id, deployment=new_id())

    def _stop(self, current: QuerySnapshot, savepoint: bool) -> str:
        """Stop a query, and return the path of the savepoint; empty if none was requested."""
        assert current.deployed is not None
        link = self._link(current.host.link.host)
        order = Order(new_id(), STOP, current.deployed.values(), savepoint=new_id() if savepoint else "")
        link.give(current.name, order)
        patience_s = current.deployed.manifest.settings.stop_timeout_ms / 1000
        status = link.wait_stopped(current.name, order, patience_s + self._timeout_s)
        if link.is_single:
            link.wait_gone(self._timeout_s)
        if savepoint and not status.savepoint:
            # What comes next would start from an older state: that is to be planned, and said, first.
            raise DeploymentError(f"it has stopped, but there is no savepoint: {status.error}; deploy again")
        return status.savepoint

    def _start(
        self, deployed: DeployedQuery, definitions: tuple[str, ...], previous: QuerySnapshot | None
    ) -> str:
        """Start a query, and return how it went; if that fails, restart what ran before."""
        name, link = deployed.manifest.name, self._link(deployed.meta.host)
        order = Order(deployed.meta.deployment, RUN, deployed.values(), definitions)
        if link.is_single:
            link.wait_gone(self._timeout_s)
        link.give(name, order)
        if link.is_single:
            self._start_application(deployed, link)
        return self._await_start(deployed, order, previous)

    def _start_application(self, deployed: DeployedQuery, link: HostLink) -> None:
        conf = props.of_session(deployed.manifest.spark_properties)
        log = self._placement.log_dir / f"{deployed.manifest.name}.log"
        process = submit(self._store.url, link.host, self._placement, conf, log)
        until = time.monotonic() + self._timeout_s
        while not link.is_alive:
            # In cluster mode spark-submit may end well before the application begins.
            if process.poll() or time.monotonic() > until:
                link.give(deployed.manifest.name, None)
                how = f"ended with exit code {process.poll()}" if process.poll() else "did not start"
                raise DeploymentError(f"{link.described} {how}; the end of {log}:\n{tail(log)}")
            time.sleep(_LOOK_EVERY_S)

    def _await_start(self, deployed: DeployedQuery, order: Order, previous: QuerySnapshot | None) -> str:
        """Wait until a query runs, and record that; if it does not, go back to what ran before."""
        name, link = deployed.manifest.name, self._link(deployed.meta.host)
        status = link.wait_started(name, order, self._timeout_s)
        if status.has_failed_to_start:
            raise DeploymentError(f"{status.error}{self._go_back(deployed, previous)}")
        self._lease.check()
        write_deployed(self._store, deployed)
        is_slow = not status.started and not status.is_over
        return f"{_DONE}; its first micro-batch still runs" if is_slow else _DONE

    def _go_back(self, failed: DeployedQuery, previous: QuerySnapshot | None) -> str:
        """Undo a failed deployment, and return what became of the query."""
        self._withdraw(failed)
        if previous is None or previous.deployed is None or previous.order is None:
            return "; it is not deployed"
        before = previous.deployed
        try:
            deployed = DeployedQuery(before.manifest, self._from_state(previous.name, before.meta))
            self._start(deployed, previous.order.definitions, None)
        except (DeploymentError, SavepointError) as error:
            return f"; the version before could not be started again: {error}"
        return f"; version {before.meta.query_version} runs again as it was deployed"

    def _withdraw(self, failed: DeployedQuery) -> None:
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

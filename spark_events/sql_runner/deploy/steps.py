"""The steps of a deployment: stop, start, go back. Each is an order that outlives a killed deployer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from spark_events.api import ConfigError
from spark_events.runtime.log_once import logger
from spark_events.sql_runner.deploy.host_link import DeploymentError, HostLink
from spark_events.sql_runner.deploy.launch import submit, tail
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.snapshot import QuerySnapshot
from spark_events.sql_runner.deploy.waiting import Waiting
from spark_events.sql_runner.manifest import properties as props
from spark_events.sql_runner.store.deployed import DeployedQuery, Meta, read_deployed, write_deployed
from spark_events.sql_runner.store.history import DONE
from spark_events.sql_runner.store.host_files import RUN, STOP, Before, Order, QueryStatus
from spark_events.sql_runner.store.layout import new_id
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.savepoints import (
    QueryState,
    SavepointError,
    find_states,
    latest_state,
    restore,
)
from spark_events.sql_runner.store.store import Store


class Steps:
    """Gives orders, and waits for what becomes of them.

    Each method raises ``StoreError`` if the store cannot be read or written, ``LeaseLost`` if another
    deployment has taken over, and ``Interrupted`` if the deployer was told to stop.

    Args:
        store: has the orders and the manifests.
        lease: the deployment lease, which is held.
        placement: where queries run.
    """

    def __init__(self, store: Store, lease: Lease, placement: Placement) -> None:
        self.waiting = Waiting()
        self._store = store
        self._lease = lease
        self._placement = placement
        self._timeout_s = placement.timeout_s

    def stop(self, current: QuerySnapshot, savepoint: bool, before: Before | None = None) -> str:
        """Stop a query that an application runs, and return the path of the savepoint; empty for none.

        Args:
            current: the query.
            savepoint: whether to make one.
            before: what is to run if nothing follows; None if the query is to stay stopped.

        Raises:
            DeploymentError: it has not stopped in time, or without the savepoint.
        """
        assert current.deployed is not None
        link = self._link(current.host.link.host)
        order = self._give_stop(current, link, savepoint, before)
        patience_s = current.deployed.manifest.settings.stop_timeout_ms / 1000
        status = link.wait_stopped(current.name, order, patience_s + self._timeout_s)
        if link.is_single:
            link.wait_gone(self._timeout_s)
        if savepoint and not status.savepoint:
            # What comes next would start from an older state: that is to be planned, and said, first.
            raise DeploymentError(f"it has stopped, but there is no savepoint: {status.error}; deploy again")
        return status.savepoint

    def stop_when_back(self, current: QuerySnapshot, savepoint: bool) -> str:
        """Order a query to stop whose application is gone, and return a sentence about that."""
        host = current.host
        self._give_stop(current, self._link(host.link.host), savepoint, None)
        if host.link.is_single:
            return f"{host.link.described} is gone already; the query does not start again by itself"
        made = " and makes the savepoint" if savepoint else ""
        return f"{host.link.described} is not running; when it is back, it does not start the query{made}"

    def _give_stop(
        self, current: QuerySnapshot, link: HostLink, savepoint: bool, before: Before | None
    ) -> Order:
        assert current.deployed is not None
        order = Order(new_id(), STOP, current.deployed.values(), (), new_id() if savepoint else "", before)
        link.give(current.name, order)
        if before is None:
            # Nothing of an earlier deployment may bring the query back.
            self._clear(current.name, [other.link.host for other in current.elsewhere])
        return order

    def start(
        self,
        deployed: DeployedQuery,
        definitions: tuple[str, ...],
        before: Before | None,
        current: QuerySnapshot,
    ) -> str:
        """Start a query, and return how it went.

        Args:
            deployed: the query.
            definitions: the statements that define its tables.
            before: what is to run again if that fails; None for nothing.
            current: the query as it was.

        Raises:
            DeploymentError: it has failed; what ran before runs again.
        """
        host = deployed.meta.host
        leave = [each.link.host for each in (current.host, *current.elsewhere) if each.link.host != host]
        if current.ordered and current.host.link.host in leave and not current.running:
            # Its old application may come back, and must not run it in addition to the new one.
            self._give_stop(current, self._link(current.host.link.host), False, before)
        order = self._give_run(deployed, definitions, before, leave)
        if problem := self._submit(deployed):
            raise DeploymentError(problem + self._go_back(deployed, before))
        return self.await_start(deployed, order, before)

    def await_start(self, deployed: DeployedQuery, order: Order, before: Before | None) -> str:
        """Wait until a query runs, record that, and return how it went.

        Raises:
            DeploymentError: it has failed; what ran before runs again.
        """
        status = self._wait_started(deployed, order)
        if status.has_failed_to_start:
            raise DeploymentError(f"{status.error}{self._go_back(deployed, before)}")
        self._record(deployed)
        is_slow = not status.started and not status.is_over
        return f"{DONE}; its first micro-batch still runs" if is_slow else DONE

    def update(self, current: QuerySnapshot, deployed: DeployedQuery, definitions: tuple[str, ...]) -> None:
        """Change what a query starts with the next time, while it runs on."""
        order = current.order
        if order is None or order.id != deployed.meta.deployment:
            return
        changed = replace(order, deployed=deployed.values(), definitions=definitions)
        if changed != order:
            self._link(current.host.link.host).give(current.name, changed)

    def bring_back(self, current: QuerySnapshot) -> str:
        """Let run again what an interrupted deployment has stopped; return a sentence, or an empty text."""
        before, status = current.before, current.status
        if before is None or (current.ordered and not (status and status.has_failed_to_start)):
            return ""
        meta = _parsed(before).meta
        if latest_state(self._store, current.name, meta) is None:
            return ""
        return self._go_back(current.deployed if current.ordered else None, before, current)

    def resumed(self, name: str, meta: Meta, failed: Meta | None = None) -> tuple[Meta, QueryState]:
        """Return the meta with which a version continues in a new deployment, and its latest state.

        Args:
            name: the query's.
            meta: the version's.
            failed: that of a deployment of the same version that has failed, but may have gone further.

        Raises:
            SavepointError: there is none, or each is damaged.
        """
        metas = [meta]
        if failed is not None and failed.query_version == meta.query_version:
            metas.append(failed)
        of_metas = [(each, find_states(self._store, name, each)) for each in metas]
        states = [(each, states.latest) for each, states in of_metas if states.latest is not None]
        if not states:
            why = "; ".join(of_metas[0][1].passed_over) or "there is no savepoint or checkpoint"
            raise SavepointError(f"there is no state to start from: {why}")
        own, state = max(states, key=lambda pair: pair[1].batch)
        checkpoint, query_id = own.checkpoint, own.query_id
        if state.is_savepoint:
            query_id = str(uuid4())
            checkpoint = restore(self._store, name, meta.query_version, state.path, query_id)
        return replace(meta, checkpoint=checkpoint, query_id=query_id, deployment=new_id()), state

    def _link(self, host: str) -> HostLink:
        return HostLink(self._store, host, self._lease.check, self.waiting)

    def _give_run(
        self,
        deployed: DeployedQuery,
        definitions: tuple[str, ...],
        before: Before | None,
        leave: Iterable[str],
    ) -> Order:
        name, link = deployed.manifest.name, self._link(deployed.meta.host)
        order = Order(deployed.meta.deployment, RUN, deployed.values(), definitions, before=before)
        if link.is_single:
            link.wait_gone(self._timeout_s)
        link.give(name, order)
        self._clear(name, leave)
        return order

    def _clear(self, name: str, hosts: Iterable[str]) -> None:
        for host in hosts:
            self._link(host).give(name, None)

    def _wait_started(self, deployed: DeployedQuery, order: Order) -> QueryStatus:
        link = self._link(deployed.meta.host)
        return link.wait_started(deployed.manifest.name, order, self._timeout_s)

    def record_interrupted(self, current: QuerySnapshot) -> None:
        """Record a version that has state, although its deployment was interrupted: the next one resumes it.

        Without its order to run, which a stop replaces, nobody would know of it; it would start anew.
        """
        if current.deployed is None or not current.pending or current.damage:
            return
        if latest_state(self._store, current.name, current.deployed.meta) is not None:
            self._record(current.deployed)

    def _record(self, deployed: DeployedQuery) -> None:
        self._lease.check()
        write_deployed(self._store, deployed)

    def _submit(self, deployed: DeployedQuery) -> str:
        """Submit the application of a query that has its own; return what was wrong, or an empty text."""
        link = self._link(deployed.meta.host)
        if not link.is_single:
            return ""
        conf = props.of_session(deployed.manifest.spark_properties)
        log = self._placement.log_dir / f"{deployed.manifest.name}.log"
        process = submit(self._store.url, link.host, self._placement, conf, log)

        def why_not() -> str:
            # In cluster mode spark-submit may end well before the application begins.
            return f"ended with exit code {process.returncode}" if process.poll() else ""

        try:
            link.wait_alive(self._timeout_s, why_not)
        except DeploymentError as error:
            return f"{error}; the end of {log}:\n{tail(log)}"
        return ""

    def _go_back(
        self, failed: DeployedQuery | None, before: Before | None, current: QuerySnapshot | None = None
    ) -> str:
        """Undo a failed deployment, and return what became of the query."""
        if failed is not None:
            self._withdraw(failed, before)
        if before is None:
            return "; it is not deployed"
        previous = _parsed(before)
        version, leave = previous.meta.query_version, {failed.meta.host} if failed else set()
        if current is not None:
            leave |= {each.link.host for each in (current.host, *current.elsewhere)}
        try:
            meta, state = self.resumed(previous.manifest.name, previous.meta, failed.meta if failed else None)
            self._run_again(DeployedQuery(previous.manifest, meta), before.definitions, leave - {meta.host})
        except (DeploymentError, SavepointError) as error:
            return f"; version {version} is to run again, but could not be started: {error}"
        # Its checkpoint, which would have come first, was gone or damaged.
        since = f", from {state}; what it has written since comes twice" if state.is_savepoint else ""
        return f"; version {version} runs again as it was deployed{since}"

    def _run_again(self, deployed: DeployedQuery, definitions: tuple[str, ...], leave: Iterable[str]) -> None:
        """Start what ran before. If it fails, its order stays: it fails as it would have without us."""
        order = self._give_run(deployed, definitions, None, leave)
        if problem := self._submit(deployed):
            raise DeploymentError(problem)
        status = self._wait_started(deployed, order)
        self._record(deployed)
        if status.has_failed_to_start:
            raise DeploymentError(status.error)

    def _withdraw(self, failed: DeployedQuery, before: Before | None) -> None:
        """Stop what has failed; an order with what ran before stays, until that gets its own.

        If nothing ran, but something is deployed, its order to stop stays, by which it is known if its record
        is damaged.
        """
        name, link = failed.manifest.name, self._link(failed.meta.host)
        stopped = self._recorded(name) if before is None else None
        order = Order(new_id(), STOP, (stopped or failed).values(), before=before)
        link.give(name, order)
        try:
            if link.is_alive:
                link.wait_stopped(name, order, self._timeout_s)
            if link.is_single:
                link.wait_gone(self._timeout_s)
        except DeploymentError as error:
            logger.warning("%s", error)
        if before is None and stopped is None:
            link.give(name, None)

    def _recorded(self, name: str) -> DeployedQuery | None:
        try:
            return read_deployed(self._store, name)
        except ConfigError:  # then its last order is all that is known
            return None


def _parsed(before: Before) -> DeployedQuery:
    return DeployedQuery.parse(before.deployed, "what ran before")

"""Carries out decisions, several at a time; after an interruption, the next deployment continues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import Any

from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.deploy.decision import Action, Decision
from spark_events.sql_runner.deploy.host_link import DeploymentError
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.planner import PlannedQuery
from spark_events.sql_runner.deploy.snapshot import QuerySnapshot
from spark_events.sql_runner.deploy.steps import Steps
from spark_events.sql_runner.deploy.waiting import Interrupted
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import DeployedQuery, Meta, write_deployed
from spark_events.sql_runner.store.history import BEGUN, DONE, Deployment, HistoryEntry, was_deployed
from spark_events.sql_runner.store.host_files import Before
from spark_events.sql_runner.store.layout import new_id
from spark_events.sql_runner.store.lease import Lease, this_process
from spark_events.sql_runner.store.savepoints import SavepointError
from spark_events.sql_runner.store.store import Store


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

    Each method raises ``StoreError`` if the store cannot be read or written, ``LeaseLost`` if another
    deployment has taken over, and ``ConfigError`` if an application cannot be submitted at all.

    Args:
        store: has the orders, the manifests and the history.
        lease: the deployment lease, which is held.
        placement: where queries run.
        analyst: made the fingerprints, and has the table definitions; without it, only stops are possible.
    """

    def __init__(self, store: Store, lease: Lease, placement: Placement, analyst: Analyst | None) -> None:
        self._store = store
        self._lease = lease
        self._steps = Steps(store, lease, placement)
        self._parallel = placement.parallel
        self._spark_version = analyst.spark_version if analyst else ""
        self._definitions = analyst.statements if analyst else ()

    def deploy_all(self, planned: Sequence[PlannedQuery]) -> Iterator[DeployResult]:
        """Do what was decided, for several queries at a time, and yield results in the order of decisions."""
        running: dict[str, Future[DeployResult]] = {}
        with ThreadPoolExecutor(self._parallel, "deploy") as pool:
            try:
                # A query waits only for those that are submitted before it, so one of them can always go on.
                for query in _leavers_first(planned):
                    leavers = [running[name] for name in query.after]
                    running[query.name] = pool.submit(self._deploy_after, query, leavers)
                for query in planned:
                    yield running[query.name].result()
            except BaseException as error:
                self._steps.waiting.stop()
                pool.shutdown(cancel_futures=True)
                raise _first_cause(running.values(), error) from None

    def deploy(self, planned: PlannedQuery) -> DeployResult:
        """Do what was decided for one query, and record it in its history."""
        decision, before = planned.decision, planned.current.before
        silent = decision.action is Action.NOTHING or (decision.action is Action.FAIL and before is None)
        entry = None if silent else self._begin_entry(planned.name, decision)
        return self._result(planned.name, decision, lambda: self._carry_out(planned), entry)

    def stop(self, current: QuerySnapshot, savepoint: bool) -> DeployResult:
        """Stop a query, or order it to stay stopped, and record that in its history."""
        decision = Decision(Action.STOP, current.version, "the user asked for it")
        entry = self._begin_entry(current.name, decision)
        return self._result(current.name, decision, lambda: self._stop(current, savepoint), entry)

    def _begin_entry(self, name: str, decision: Decision) -> HistoryEntry:
        action, who = decision.action.value, this_process()
        begun = Deployment(self._store.clock.now_ms(), action, decision.version, decision.reason, BEGUN, who)
        return HistoryEntry(self._store, name, begun)

    def _result(
        self,
        name: str,
        decision: Decision,
        carry_out: Callable[[], tuple[str, str]],
        entry: HistoryEntry | None,
    ) -> DeployResult:
        """Carry something out, which returns a savepoint and how it went, and complete its entry."""
        try:
            savepoint, text = carry_out()
            result = DeployResult(name, decision.action, decision.version, text, savepoint=savepoint)
        except (DeploymentError, SavepointError) as error:
            result = DeployResult(name, decision.action, decision.version, str(error), failed=True)
        if entry is not None:
            entry.end(result.text, result.savepoint)
        return result

    def _deploy_after(self, planned: PlannedQuery, leavers: Iterable[Future[DeployResult]]) -> DeployResult:
        """Deploy a query when others have left its folder, unless they have not; an error ends all."""
        self._steps.waiting.check()
        try:
            return self._deploy_when_free(planned, leavers)
        except BaseException:
            self._steps.waiting.stop()
            raise

    def _deploy_when_free(
        self, planned: PlannedQuery, leavers: Iterable[Future[DeployResult]]
    ) -> DeployResult:
        stayed = [result.name for result in [future.result() for future in leavers] if result.failed]
        if not stayed:
            return self.deploy(planned)
        text = f"{stayed[0]!r} still writes into {planned.sink_folder}; the query is left as it was"
        self._begin_entry(planned.name, planned.decision).end(text, "")
        return DeployResult(planned.name, planned.decision.action, planned.current.version, text, failed=True)

    def _carry_out(self, planned: PlannedQuery) -> tuple[str, str]:
        """Carry out the decision; return the savepoint that was made, and how it went."""
        action, current = planned.decision.action, planned.current
        if action is Action.FAIL:
            raise DeploymentError(planned.decision.reason + self._steps.bring_back(current))
        self._mend_record(current)
        if action is Action.NOTHING:
            self._update_record(planned)
            return "", DONE
        if action is Action.STOP:
            return self._stop(current, savepoint=True)
        if action is Action.RECORD and current.deployed is not None and current.order is not None:
            if current.damage and current.status is not None and current.status.has_failed_to_start:
                # The damaged record, which is mended now, may have kept it from starting.
                again = replace(current.deployed, meta=replace(current.deployed.meta, deployment=new_id()))
                return "", self._steps.start(again, current.order.definitions, current.before, current)
            return "", self._steps.await_start(current.deployed, current.order, current.before)
        before = _to_go_back_to(current)
        # The state of what is undone, of a version that has never begun, or that is not whole, is of no use.
        keep = planned.undone is None and (
            action is Action.RESTART or (action is Action.REPLACE and _is_proven(current))
        )
        savepoint = self._steps.stop(current, savepoint=keep, before=before) if current.running else ""
        deployed = self._next_deployed(planned)
        return savepoint, self._steps.start(deployed, self._definitions, before, current)

    def _stop(self, current: QuerySnapshot, savepoint: bool) -> tuple[str, str]:
        self._steps.record_interrupted(current)
        if not current.host.is_alive:
            return "", self._steps.stop_when_back(current, savepoint)
        path = self._steps.stop(current, savepoint)
        self._steps.record_interrupted(current)  # it may have begun to write only since then
        return path, DONE

    def _mend_record(self, current: QuerySnapshot) -> None:
        """Write a damaged record anew, from the last order; remove that of a version that has never run."""
        if not current.damage or current.recorded is not None:
            return
        self._lease.check()
        if current.deployed and was_deployed(self._store, current.name, current.version):
            write_deployed(self._store, current.deployed)
        else:
            self._store.delete(layout.manifest(current.name))

    def _update_record(self, planned: PlannedQuery) -> None:
        """Record the manifest's text, and what is known of the same query now."""
        assert planned.manifest is not None
        recorded = planned.current.recorded
        if recorded is None:
            return
        updated = DeployedQuery(planned.manifest, replace(recorded.meta, **self._known(planned)))
        # First its order, with which the query starts when its application comes back.
        self._steps.update(planned.current, updated, self._definitions)
        if updated != recorded:
            self._lease.check()
            write_deployed(self._store, updated)

    def _known(self, planned: PlannedQuery) -> dict[str, Any]:
        """Return what the analyst knows of a query, as its meta has it."""
        return {
            "plan": planned.fingerprint,
            "spark_version": self._spark_version,
            "sink_folder": planned.sink_folder,
        }

    def _next_deployed(self, planned: PlannedQuery) -> DeployedQuery:
        """Return what is to run: with a clean state, or from the latest one."""
        assert planned.manifest is not None
        name, host, known = planned.name, planned.host, self._known(planned)
        before = planned.undone or planned.current.deployed
        if planned.decision.action in (Action.START, Action.REPLACE) or before is None:
            meta = Meta.new(name, planned.decision.version, host, **known)
        else:
            resumed, _ = self._steps.resumed(name, before.meta)
            meta = replace(resumed, host=host, **known)
        return DeployedQuery(planned.manifest, meta)


def _to_go_back_to(current: QuerySnapshot) -> Before | None:
    """Return what is to run again if a deployment fails; None if nothing ran, by order, before it."""
    if current.deployed is None or current.order is None or not current.ordered:
        return current.before
    if current.before is not None and not _is_proven(current):
        return current.before
    return Before(current.deployed.values(), current.order.definitions)


def _is_proven(current: QuerySnapshot) -> bool:
    """Return whether a deployment has recorded the query, or it has passed a micro-batch without that."""
    return not current.pending or (current.status is not None and current.status.started)


def _first_cause(futures: Iterable[Future[DeployResult]], error: BaseException) -> BaseException:
    """Return the error that has interrupted the others; ``error`` where that is none of theirs."""
    if not isinstance(error, Interrupted):
        return error
    causes = (future.exception() for future in futures if not future.cancelled())
    return next((cause for cause in causes if cause and not isinstance(cause, Interrupted)), error)


def _leavers_first(planned: Iterable[PlannedQuery]) -> list[PlannedQuery]:
    by_name = {query.name: query for query in planned}
    order = TopologicalSorter({query.name: query.after for query in planned}).static_order()
    return [by_name[name] for name in order]

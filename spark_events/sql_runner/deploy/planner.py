"""Compares manifests with what is deployed and what runs, and decides for each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spark_events.sql_runner.analysis.analyst import Analysis, Analyst
from spark_events.sql_runner.analysis.query_error import QueryError, place_of_error
from spark_events.sql_runner.deploy.ahead import rows_twice
from spark_events.sql_runner.deploy.changes import configuration_changes, without_effect
from spark_events.sql_runner.deploy.decision import Action, Decision, Situation, decide, differences
from spark_events.sql_runner.deploy.placement import HostKind, Placement
from spark_events.sql_runner.deploy.snapshot import QuerySnapshot, Snapshot
from spark_events.sql_runner.deploy.waiting import Waiting
from spark_events.sql_runner.deploy.writers import FolderClaim, Refusal, Settled, settle
from spark_events.sql_runner.manifest.folder import Manifests
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.checkpoints import damage
from spark_events.sql_runner.store.deployed import DeployedQuery, last_version
from spark_events.sql_runner.store.fixed import fixed_properties
from spark_events.sql_runner.store.history import has_only_failed, was_deployed
from spark_events.sql_runner.store.savepoints import FoundStates, QueryState, find_states
from spark_events.sql_runner.store.store import Store

_STOPS_ARE_SEEN_S = 10.0


@dataclass(frozen=True)
class PlannedQuery:
    """A query with what will be done with it.

    Attributes:
        manifest: the new manifest; None if the query is to be stopped.
        fingerprint: of the manifest's plan.
        host: the application that is to run it.
        warnings: what is ignored.
        sink_folder: the folder that Spark's file sink will write; empty for another sink.
        after: the queries that have to leave that folder first.
        undone: what ran before an interrupted deployment, and goes on now; None in all other cases.
    """

    name: str
    decision: Decision
    current: QuerySnapshot
    manifest: Manifest | None = None
    fingerprint: str = ""
    host: str = ""
    warnings: tuple[str, ...] = ()
    sink_folder: str = ""
    after: tuple[str, ...] = ()
    undone: DeployedQuery | None = None


class Planner:
    """Decides from the store's content, an analyst's view of manifests, and where queries are to run."""

    def __init__(self, store: Store, analyst: Analyst, placement: Placement) -> None:
        self._store = store
        self._analyst = analyst
        self._placement = placement

    def plan(self, manifests: Manifests, prune: bool, clean: bool) -> list[PlannedQuery]:
        """Decide for each manifest, and for each query deployed without one.

        Args:
            manifests: of the folder.
            prune: whether queries without a manifest are stopped.
            clean: whether all are to start with a clean state.

        Raises:
            ConfigError: a table definition cannot be run.
            StoreError: the store cannot be read.
            DamagedFile: the orders or the status of an application cannot be understood.
        """
        analyses = self._analyst.analyze_all(manifests.by_name.values())
        looks: list[list[PlannedQuery]] = []

        def look() -> bool | None:
            planned, is_free_soon = self._plan_now(analyses, manifests, prune, clean)
            looks.append(planned)
            return None if is_free_soon else True

        Waiting().wait_for(look, _STOPS_ARE_SEEN_S)
        return looks[-1]

    def _plan_now(
        self, analyses: Mapping[str, Analysis | QueryError], manifests: Manifests, prune: bool, clean: bool
    ) -> tuple[list[PlannedQuery], bool]:
        """Return what is decided, and whether a query is refused that soon need not be.

        That is so if the one that is in its folder has an order to stop, which its application has not seen
        yet: it has just come back, say.
        """
        snapshot = Snapshot(self._store)
        snapshot.demand_whole()
        planned = [
            self._plan_query(snapshot, manifest, manifests, analyses[name], clean)
            for name, manifest in manifests.by_name.items()
        ]
        without = [
            snapshot.query(name, self._placement.host_of(name))
            for name in snapshot.names()
            if name not in manifests.by_name
        ]
        if prune:
            planned += [_stopped(query) for query in without if query.may_write or query.is_unknown]
            without = [query for query in without if not query.may_write]
        settled = self._settled(planned, without)
        leaving = {query.name for query in without if query.may_write and not query.wanted}
        decided = [
            _refused(query, manifests, settled.refused[query.name])
            if query.name in settled.refused
            else replace(query, after=settled.leave_first.get(query.name, ()))
            for query in planned
        ]
        return decided, any(refusal.other in leaving for refusal in settled.refused.values())

    def _settled(self, planned: list[PlannedQuery], without: list[QuerySnapshot]) -> Settled:
        """Decide whose folder others write, and who leaves one first."""
        claims = [
            FolderClaim(query.name, folder := self._sink_now(query), folder, False) for query in without
        ]
        return settle([*claims, *map(self._claim, planned)])

    def _claim(self, planned: PlannedQuery) -> FolderClaim:
        now = self._sink_now(planned.current)
        action = planned.decision.action
        if action is Action.FAIL:
            return FolderClaim(planned.name, now, now, refusable=False)
        if action is Action.STOP:
            return FolderClaim(planned.name, now, "", refusable=False)
        return FolderClaim(planned.name, now, planned.sink_folder, refusable=True)

    def _sink_now(self, query: QuerySnapshot) -> str:
        """Return the folder that a query writes; empty if it writes none."""
        if query.deployed is None or not query.may_write:
            return ""
        recorded = query.deployed.meta.sink_folder
        if recorded is None:  # by an older spark-events
            try:
                return self._analyst.analyze(query.deployed.manifest).sink
            except QueryError:
                return ""
        return recorded

    def _plan_query(
        self,
        snapshot: Snapshot,
        manifest: Manifest,
        manifests: Manifests,
        analysis: Analysis | QueryError,
        clean: bool,
    ) -> PlannedQuery:
        name, host = manifest.name, self._placement.host_of(manifest.name)
        current = snapshot.query(name, host)
        if isinstance(analysis, QueryError):
            reason = f"{place_of_error(manifests, name, analysis)}: {analysis}"
            return PlannedQuery(name, Decision(Action.FAIL, current.version, reason), current, manifest)
        if current.damage and current.deployed is None:
            return PlannedQuery(name, _not_understood(current), current, manifest)
        undone = None if clean else self._undone(current, manifest, analysis)
        situation = self._situation(manifest, analysis, current, undone, clean)
        decision = decide(situation)
        if undone is not None:
            reason = f"the deployment of version {current.version} was interrupted; {decision.reason}"
            decision = replace(decision, reason=reason)
        goes_on = decision.version == situation.deployed_version and decision.action is not Action.FAIL
        fixed = self._fixed(current.deployed, situation.state) if goes_on else {}
        warnings = without_effect(manifest, decision.version, fixed)
        if current.damage:
            warnings += (f"{current.damage}; a deployment writes it anew, from the last order",)
        if self._placement.mode is HostKind.SESSION:
            warnings += tuple(
                f"{name}: sparkProperties.{key}: is fixed when an application starts, and has no effect in a "
                "session; give it to `spark-events sql session`"
                for key in analysis.without_effect
            )
        return PlannedQuery(
            *(name, decision, current, manifest, analysis.fingerprint, host, warnings, analysis.sink),
            undone=undone,
        )

    def _undone(self, current: QuerySnapshot, manifest: Manifest, analysis: Analysis) -> DeployedQuery | None:
        """Return what ran before an interrupted deployment, if the manifest is of that query again."""
        before = current.undoable
        if current.deployed is None or before is None:
            return None
        if not self._query_change(current.deployed, manifest, analysis):
            return None
        return None if self._query_change(before, manifest, analysis) else before

    def _situation(
        self,
        manifest: Manifest,
        analysis: Analysis,
        current: QuerySnapshot,
        undone: DeployedQuery | None,
        clean: bool,
    ) -> Situation:
        deployed = undone or current.deployed
        running = current.running and undone is None and not self._is_about_to_fail(current)
        next_version = last_version(self._store, manifest.name) + 1
        if deployed is None:
            return Situation(None, False, False, "", (), None, next_version)
        host = self._placement.host_of(manifest.name)
        query_changed = self._query_change(deployed, manifest, analysis)
        states = FoundStates(None)
        notes: tuple[str, ...] = ()
        if not running and not query_changed and not clean:
            states = find_states(self._store, manifest.name, deployed.meta)
            notes = (*states.passed_over, *rows_twice(self._store, self._analyst, analysis, states.latest))
        changes = configuration_changes(deployed, manifest, host, self._fixed(deployed, states.latest))
        return Situation(
            deployed_version=deployed.meta.query_version,
            pending=current.pending,
            running=running,
            query_changed=query_changed,
            configuration_changed=changes.effective,
            state=states.latest,
            next_version=max(next_version, current.version + 1),
            clean=clean,
            notes=notes,
            without_effect=changes.without_effect,
            unproven=self._is_unproven(current, deployed.meta.query_version),
        )

    def _is_unproven(self, current: QuerySnapshot, version: int) -> bool:
        """Return whether a version was ordered, and never recorded as deployed.

        Where the record is damaged, the history has to say that its deployments failed.
        """
        if not current.pending:
            return False
        if current.damage:
            return has_only_failed(self._store, current.name, version)
        return current.recorded is None or current.recorded.meta.query_version != version

    def _is_about_to_fail(self, current: QuerySnapshot) -> bool:
        """Return whether a query has not started yet in a checkpoint that has been gone or damaged since.

        Its application has just come back, say.
        """
        if current.deployed is None or (current.status and current.status.run_id):
            return False
        if not damage(self._store, current.deployed.meta.checkpoint):
            return False
        return self._had_begun(current)

    def _had_begun(self, current: QuerySnapshot) -> bool:
        """Return whether the version was recorded as deployed; where the record is damaged, history knows."""
        if not current.damage:
            return not current.pending
        return was_deployed(self._store, current.name, current.version)

    def _fixed(self, deployed: DeployedQuery | None, state: QueryState | None) -> dict[str, str]:
        """Return the properties that the state from which a query goes on has fixed."""
        if deployed is None:
            return {}
        path = state.path if state is not None else deployed.meta.checkpoint
        return fixed_properties(self._store, path)

    def _query_change(self, deployed: DeployedQuery, manifest: Manifest, analysis: Analysis) -> str:
        changes = differences(deployed.manifest.query, manifest.query)
        if changes:
            return "; ".join(changes)
        same = self._analyst.is_same_query(deployed, manifest, analysis.fingerprint)
        return "" if same else "the plan of the query has changed"


def problems_of_queries(analyst: Analyst, manifests: Manifests) -> list[str]:
    """Return what is wrong with the queries of manifests, each with its file and line.

    Raises:
        ConfigError: a table definition cannot be run.
    """
    analyses = analyst.analyze_all(manifests.by_name.values())
    errors = {name: error for name, error in analyses.items() if isinstance(error, QueryError)}
    claims = [
        FolderClaim(name, "", analysis.sink, True)
        for name, analysis in analyses.items()
        if isinstance(analysis, Analysis)
    ]
    errors |= {name: _of_writer(refusal, here=True) for name, refusal in settle(claims).refused.items()}
    return [
        f"{place_of_error(manifests, name, errors[name])}: {name}: {errors[name]}"
        for name in manifests.by_name
        if name in errors
    ]


def hosts_of(planned: Iterable[PlannedQuery]) -> set[str]:
    """Return the applications that are to run queries."""
    return {query.host for query in planned if query.host and query.decision.action is not Action.FAIL}


def _of_writer(refusal: Refusal, here: bool) -> QueryError:
    """Return the error of a query whose folder another one writes, which has a manifest here or not."""
    if refusal.in_a_ring:
        what = "they wait for each other's folders; stop one of them first"
    elif here:
        what = "give each query its own table, or use a format such as Delta"
    else:
        what = (
            "it has no manifest in this deployment; stop it with "
            f"`spark-events sql stop {refusal.other}`, or deploy the whole folder with --prune"
        )
    return QueryError(
        f"its target-table is in {refusal.folder}, which {refusal.other!r} writes to as well: "
        f"Spark's file sink supports one query per folder; {what}",
        of_target=True,
    )


def _refused(planned: PlannedQuery, manifests: Manifests, refusal: Refusal) -> PlannedQuery:
    error = _of_writer(refusal, here=refusal.other in manifests.by_name)
    reason = f"{place_of_error(manifests, planned.name, error)}: {error}"
    return replace(planned, decision=Decision(Action.FAIL, planned.current.version, reason))


def _stopped(query: QuerySnapshot) -> PlannedQuery:
    if query.deployed is None:
        return PlannedQuery(query.name, _not_understood(query), query)
    reason = "its manifest was deleted"
    if not query.host.is_alive:
        reason += f"; {query.host.why_gone()}"
    return PlannedQuery(query.name, Decision(Action.STOP, query.version, reason), query)


def _not_understood(query: QuerySnapshot) -> Decision:
    reason = (
        f"{query.damage}; restore it, or remove the query with `spark-events sql forget {query.name}`: "
        "deployed again, it starts as a new version"
    )
    return Decision(Action.FAIL, query.version, reason)

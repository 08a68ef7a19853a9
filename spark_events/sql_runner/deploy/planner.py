"""Compares manifests with what is deployed and what runs, and decides for each query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.runtime.redaction import DEFAULT_REGEX, REDACTED
from spark_events.sql_runner.analysis.analyst import Analysis, Analyst
from spark_events.sql_runner.analysis.query_data import QueryError
from spark_events.sql_runner.deploy.ahead import rows_twice
from spark_events.sql_runner.deploy.decision import Action, Decision, Situation, decide, differences
from spark_events.sql_runner.deploy.placement import HostKind, Placement
from spark_events.sql_runner.deploy.snapshot import QuerySnapshot, Snapshot
from spark_events.sql_runner.manifest.folder import Manifests
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import DeployedQuery, deployed_names, last_version
from spark_events.sql_runner.store.savepoints import FoundStates, find_states
from spark_events.sql_runner.store.store import Store

_SECRET = re.compile(DEFAULT_REGEX)


@dataclass(frozen=True)
class PlannedQuery:
    """A query with what will be done with it.

    Attributes:
        manifest: the new manifest; None if the query is to be stopped.
        fingerprint: of the manifest's plan.
        host: the application that is to run it.
        warnings: what is ignored.
    """

    name: str
    decision: Decision
    current: QuerySnapshot
    manifest: Manifest | None = None
    fingerprint: str = ""
    host: str = ""
    warnings: tuple[str, ...] = ()


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
            ConfigError: a table definition cannot be run, or a manifest in the store cannot be understood.
            StoreError: the store cannot be read.
        """
        snapshot = Snapshot(self._store)
        analyses = _analyses(self._analyst, manifests)
        planned = [
            self._plan_query(snapshot, manifest, manifests.places[name], analyses[name], clean)
            for name, manifest in manifests.by_name.items()
        ]
        if prune:
            gone = [name for name in deployed_names(self._store) if name not in manifests.by_name]
            queries = [snapshot.query(name, self._placement.host_of(name)) for name in gone]
            planned += [_stopped(query) for query in queries if query.running]
        return planned

    def _plan_query(
        self, snapshot: Snapshot, manifest: Manifest, place: str, analysis: Analysis | QueryError, clean: bool
    ) -> PlannedQuery:
        name, host = manifest.name, self._placement.host_of(manifest.name)
        current = snapshot.query(name, host)
        if isinstance(analysis, QueryError):
            reason = f"{_line(place, analysis)}: {analysis}"
            return PlannedQuery(name, Decision(Action.FAIL, current.version, reason), current, manifest)
        decision = decide(self._situation(manifest, analysis, current, clean))
        warnings: tuple[str, ...] = ()
        if self._placement.mode is HostKind.SESSION:
            warnings = tuple(
                f"{name}: sparkProperties.{key}: is fixed when an application starts, and has no effect in a "
                "session; give it to `spark-events sql session`"
                for key in analysis.without_effect
            )
        return PlannedQuery(name, decision, current, manifest, analysis.fingerprint, host, warnings)

    def _situation(
        self, manifest: Manifest, analysis: Analysis, current: QuerySnapshot, clean: bool
    ) -> Situation:
        deployed = current.deployed
        next_version = last_version(self._store, manifest.name) + 1
        if deployed is None:
            return Situation(None, False, False, "", (), None, next_version)
        host = self._placement.host_of(manifest.name)
        query_changed = self._query_change(deployed, manifest, analysis)
        found = FoundStates(None)
        notes: tuple[str, ...] = ()
        if not current.running and not query_changed and not clean:
            found = find_states(self._store, manifest.name, deployed.meta)
            notes = (*found.passed_over, *rows_twice(self._store, self._analyst, analysis, found.latest))
        return Situation(
            deployed_version=current.version,
            pending=current.pending,
            running=current.running,
            query_changed=query_changed,
            configuration_changed=_configuration_changes(deployed, manifest, host),
            state=found.latest,
            next_version=max(next_version, current.version + 1),
            clean=clean,
            notes=notes,
        )

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
    return [
        f"{_line(manifests.places[name], analysis)}: {name}: {analysis}"
        for name, analysis in _analyses(analyst, manifests).items()
        if isinstance(analysis, QueryError)
    ]


def hosts_of(planned: Iterable[PlannedQuery]) -> set[str]:
    """Return the applications that are to run queries."""
    return {query.host for query in planned if query.host and query.decision.action is not Action.FAIL}


def _analyses(analyst: Analyst, manifests: Manifests) -> dict[str, Analysis | QueryError]:
    """Analyse manifests; two queries that write into one folder with Spark's file sink are an error.

    The sink keeps one log per folder, keyed by batch number.
    """
    analyses: dict[str, Analysis | QueryError] = dict(analyst.analyse_all(manifests.by_name.values()))
    writers: dict[str, str] = {}
    for name in manifests.by_name:
        analysis = analyses[name]
        if isinstance(analysis, QueryError) or not analysis.sink_folder:
            continue
        writer = writers.setdefault(analysis.sink_folder, name)
        if writer != name:
            analyses[name] = QueryError(
                f"its target-table is in {analysis.sink_folder}, which {writer!r} writes to as well: "
                "Spark's file sink supports one query per folder; give each query its own table, or use a "
                "format such as Delta"
            )
    return analyses


def _stopped(query: QuerySnapshot) -> PlannedQuery:
    return PlannedQuery(query.name, Decision(Action.STOP, query.version, "its manifest was deleted"), query)


def _configuration_changes(deployed: DeployedQuery, manifest: Manifest, host: str) -> tuple[str, ...]:
    before, after = deployed.manifest.configuration, manifest.configuration
    changes = differences(_redacted(before), _redacted(after))
    if before != after and not changes:
        changes = ("a secret",)
    if deployed.meta.host != host:
        changes += (f"runs in: {deployed.meta.host} -> {host}",)
    return changes


def _line(place: str, error: QueryError) -> str:
    """Return ``file:line``, with the line in the query that is at fault, if known."""
    file, _, line = place.rpartition(":")
    return f"{file}:{int(line) + error.line - 1}" if error.line else place


def _redacted(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _redacted(value) if isinstance(value, Mapping) else REDACTED if _SECRET.search(key) else value
        for key, value in configuration.items()
    }

"""Compares manifests with what is deployed and what runs, and decides for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.runtime.redaction import DEFAULT_REGEX, REDACTED
from spark_events.sql_runner.analysis.analyst import Analysis, Analyst
from spark_events.sql_runner.analysis.query_data import QueryError
from spark_events.sql_runner.deploy.current import Current, Hosts, find_current, look_at_hosts
from spark_events.sql_runner.deploy.decision import Action, Decision, Situation, decide, differences
from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.manifest.folder import Manifests
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import Deployed, deployed_names, last_version
from spark_events.sql_runner.store.savepoints import latest_state
from spark_events.sql_runner.store.store import Store

_SECRET = re.compile(DEFAULT_REGEX)


@dataclass(frozen=True)
class Planned:
    """What will be done with one query.

    Attributes:
        name: the query's.
        decision: what, and why.
        current: what there is of it.
        manifest: what it is to be; None where it is to be stopped.
        plan: the fingerprint of that.
        host: the application that is to run it.
        warnings: what is ignored.
    """

    name: str
    decision: Decision
    current: Current | None
    manifest: Manifest | None = None
    plan: str = ""
    host: str = ""
    warnings: tuple[str, ...] = ()


class Planner:
    """Decides.

    Args:
        store: knows what is deployed.
        analyst: analyses manifests.
        host_of: says which application is to run a query, by its name.
        link: gives the link to an application, by its name.
    """

    def __init__(
        self, store: Store, analyst: Analyst, host_of: Callable[[str], str], link: Callable[[str], HostLink]
    ) -> None:
        self._store = store
        self._analyst = analyst
        self._host_of = host_of
        self._link = link
        self._hosts: Hosts = {}

    def plan(self, manifests: Manifests, prune: bool, clean: bool = False) -> list[Planned]:
        """Decide for each manifest, and for what is deployed without one.

        Args:
            manifests: those that are right.
            prune: whether queries without a manifest are stopped.
            clean: whether all are to begin with a clean state.

        Raises:
            ConfigError: a table definition cannot be run, or a manifest in the store cannot be understood.
            StoreError: the store cannot be read.
        """
        folders: dict[str, str] = {}
        self._hosts = look_at_hosts(self._store, self._link)
        analyses = self._analyst.analyse_all(manifests.by_name.values())
        found = [
            self._plan_one(manifest, analyses[name], manifests.places[name], folders, clean)
            for name, manifest in manifests.by_name.items()
        ]
        if prune:
            gone = [name for name in deployed_names(self._store) if name not in manifests.by_name]
            found += [planned for name in gone if (planned := self._plan_gone(name)) is not None]
        return found

    def _current(self, name: str) -> Current:
        return find_current(self._store, name, self._host_of(name), self._hosts, self._link)

    def _plan_one(
        self,
        manifest: Manifest,
        analysed: Analysis | QueryError,
        place: str,
        folders: dict[str, str],
        clean: bool,
    ) -> Planned:
        name = manifest.name
        current = self._current(name)
        version = current.deployed.meta.query_version if current.deployed else 0
        try:
            analysis = _usable(analysed, name, folders)
        except QueryError as error:
            return Planned(
                name, Decision(Action.FAIL, version, f"{_line(place, error)}: {error}"), current, manifest
            )
        decision = decide(self._situation(manifest, analysis, current, clean))
        single = self._link(self._host_of(name)).is_single
        warnings = () if single else analysis.without_effect
        return Planned(
            name,
            decision,
            current,
            manifest,
            analysis.plan,
            self._host_of(name),
            tuple(
                f"{name}: sparkProperties.{key}: is fixed when an application starts, and has no effect in a "
                "session; give it to `spark-events sql session`"
                for key in warnings
            ),
        )

    def _situation(self, manifest: Manifest, analysis: Analysis, current: Current, clean: bool) -> Situation:
        deployed = current.deployed
        version = last_version(self._store, manifest.name) + 1
        if deployed is None:
            return Situation(None, False, False, "", (), None, version)
        changed = differences(_shown(deployed.manifest.configuration), _shown(manifest.configuration))
        if deployed.manifest.configuration != manifest.configuration and not changed:
            changed = ("a secret",)
        if deployed.meta.host != self._host_of(manifest.name):
            changed += (f"runs in: {deployed.meta.host} -> {self._host_of(manifest.name)}",)
        query_changed = self._query_change(deployed, manifest, analysis)
        state = None if current.running else latest_state(self._store, manifest.name, deployed.meta)
        return Situation(
            deployed.meta.query_version,
            current.pending,
            current.running,
            query_changed,
            changed,
            state,
            max(version, deployed.meta.query_version + 1),
            clean,
        )

    def _query_change(self, deployed: Deployed, manifest: Manifest, analysis: Analysis) -> str:
        changed = differences(deployed.manifest.query, manifest.query)
        if changed:
            return "; ".join(changed)
        same = self._analyst.is_same_query(deployed, manifest, analysis.plan)
        return "" if same else "the plan of the query has changed"

    def _plan_gone(self, name: str) -> Planned | None:
        current = self._current(name)
        if not current.running or current.deployed is None:
            return None
        version = current.deployed.meta.query_version
        return Planned(name, Decision(Action.STOP, version, "its manifest is gone"), current)


def problems_of_queries(analyst: Analyst, manifests: Manifests) -> list[str]:
    """Return what is wrong with the queries of manifests, each with its file and line.

    Raises:
        ConfigError: a table definition cannot be run.
    """
    found: list[str] = []
    folders: dict[str, str] = {}
    for name, analysed in analyst.analyse_all(manifests.by_name.values()).items():
        try:
            _usable(analysed, name, folders)
        except QueryError as error:
            found.append(f"{_line(manifests.places[name], error)}: {name}: {error}")
    return found


def _usable(analysed: Analysis | QueryError, name: str, folders: dict[str, str]) -> Analysis:
    """Return an analysis, unless it is an error, or of a second query into one folder.

    Spark's file sink keeps one log for each folder, by batch numbers.
    """
    if isinstance(analysed, QueryError):
        raise analysed
    first = folders.setdefault(analysed.files, name) if analysed.files else name
    if first != name:
        raise QueryError(
            f"its target-table lies in {analysed.files}, into which {first!r} writes, too: Spark's file sink "
            "takes the rows of one query for a folder; give each a table, or use a format such as Delta"
        )
    return analysed


def _line(place: str, error: QueryError) -> str:
    """Return ``file:line``, with the line of the query that the error is about where that is known."""
    file, _, line = place.rpartition(":")
    return f"{file}:{int(line) + error.line - 1}" if error.line else place


def _shown(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _shown(value) if isinstance(value, Mapping) else REDACTED if _SECRET.search(key) else value
        for key, value in configuration.items()
    }

"""Deploys a folder of manifests, or stops a query; what Spark would say of a manifest is derived from its text.

Prints a JSON object for each query: what was decided, why, and how it went. Without a Spark of its own it starts
in a second, so that many can be started, and killed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError
from spark_events.sql_runner.analysis.analyst import Analysis
from spark_events.sql_runner.analysis.target import TargetTable
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.planner import PlannedQuery
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.manifest.folder import read_folder
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import DeployedQuery
from spark_events.sql_runner.store.lease import LeaseLost
from spark_events.sql_runner.store.store import StoreError


class Known:
    """Stands for the analyst; tables of files are in folders of their names below one folder."""

    spark_version = "known"

    def __init__(self, definitions: list[str], tables: str) -> None:
        self.statements = tuple(definitions)
        self._tables = tables

    def analyze(self, manifest: Manifest) -> Analysis:
        text = hashlib.sha256(str(manifest.code).encode()).hexdigest()
        if not self._tables:
            return Analysis(text, (), "")
        name = manifest.target_table or ""
        folder = f"file:{self._tables}/{name}"
        return Analysis(text, (), folder, TargetTable(name, "json", folder, {}, (), {}), folder)

    def analyze_all(self, manifests: Iterable[Manifest]) -> dict[str, Analysis]:
        return {each.name: self.analyze(each) for each in manifests}

    def is_same_query(self, deployed: DeployedQuery, manifest: Manifest, fingerprint: str) -> bool:
        return deployed.meta.plan == fingerprint

    def last_written(self, target: TargetTable, _: str) -> int:
        names = [path.name.partition(".")[0] for path in Path(target.location[5:]).glob("_spark_metadata/*")]
        return max((int(name) for name in names if name.isdigit()), default=-1)


def carry_out(workspace: Workspace, given: argparse.Namespace, say: Callable[..., None]) -> int:
    """Do what the command line says, tell each result, and return the exit code."""
    try:
        if not given.stop:
            deploy(workspace, given, say)
        elif result := workspace.stop(given.stop, given.savepoint):
            say(name=given.stop, failed=result.failed, text=result.text, savepoint=result.savepoint)
    except (ConfigError, StoreError, LeaseLost) as error:
        say(error=str(error))
        return 2
    return 0


def deploy(workspace: Workspace, given: argparse.Namespace, say: Callable[..., None]) -> None:
    analyst: Any = Known(given.definition, given.tables)
    manifests = read_folder(Path(given.folder), None).or_fail()
    workspace.demand_sessions({workspace.placement.host_of(name) for name in manifests.by_name})
    with workspace.deploying() as lease:
        planned = workspace.plan(analyst, manifests, prune=given.prune, clean=False)
        for query in planned:
            say(**_decision(query))
        deployer = workspace.deployer(lease, analyst)
        for result in deployer.deploy_all(planned):
            say(name=result.name, failed=result.failed, text=result.text, savepoint=result.savepoint)


def _decision(query: PlannedQuery) -> dict[str, Any]:
    decision = query.decision
    return {
        "name": query.name,
        "action": decision.action.value,
        "version": decision.version,
        "reason": decision.reason,
    }


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what a command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("--folder", default="")
    parser.add_argument("--definition", action="append", default=[])
    parser.add_argument("--tables", default="")
    parser.add_argument("--prune", action="store_true")
    parser.add_argument("--stop", default="")
    parser.add_argument("--savepoint", action="store_true")
    return parser.parse_args(words)


def main() -> None:
    given = arguments()

    def say(**values: Any) -> None:
        sys.stdout.write(json.dumps(values) + "\n")
        sys.stdout.flush()

    try:
        workspace = Workspace(given.store, Placement(poll_ms=100, lease_ms=15_000, timeout_s=180))
    except ConfigError as error:
        say(error=str(error))
        sys.exit(2)
    sys.exit(carry_out(workspace, given, say))


if __name__ == "__main__":
    main()

"""Deploys one manifest, and is killed after one of its steps; what Spark would say of the manifest is given."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spark_events.sql_runner.analysis.analyst import Analysis
from spark_events.sql_runner.analysis.definitions import read_definitions
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.manifest.folder import read_files
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import DeployedQuery
from spark_events.sql_runner.store.store import Store


class Known:
    """Stands for the analyst: Spark has analysed the manifest before, in the test."""

    statements: tuple[str, ...]
    spark_version = "4.3.0"

    def __init__(self, statements: tuple[str, ...], fingerprint: str) -> None:
        self.statements, self._fingerprint = statements, fingerprint

    def analyze_all(self, manifests: Iterable[Manifest]) -> dict[str, Analysis]:
        return {each.name: Analysis(self._fingerprint, (), "") for each in manifests}

    def is_same_query(self, deployed: DeployedQuery, manifest: Manifest, fingerprint: str) -> bool:
        return deployed.meta.plan == fingerprint


class KilledStore(Store):
    """Ends the process after so many changes."""

    left = 0

    def _change(self, change: Any, *arguments: Any) -> Any:
        result = change(*arguments)
        KilledStore.left -= 1
        if KilledStore.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def write(self, path: str, data: bytes) -> None:
        self._change(super().write, path, data)

    def create(self, path: str, data: bytes) -> bool:
        return bool(self._change(super().create, path, data))

    def delete(self, path: str) -> None:
        self._change(super().delete, path)


def main(url: str, manifest: str, definitions: str, fingerprint: str, kill_after: str) -> None:
    KilledStore.left = int(kill_after)
    workspace = Workspace(url, Placement(poll_ms=50, lease_ms=3_000, timeout_s=60))
    workspace.store.__class__ = KilledStore
    analyst: Any = Known(read_definitions([Path(definitions)]), fingerprint)
    with workspace.deploying() as lease:
        planned = workspace.plan(analyst, read_files([Path(manifest)], None).or_fail())
        for result in workspace.deployer(lease, analyst).deploy_all(planned):
            print(result.action.value, result.failed, result.text, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

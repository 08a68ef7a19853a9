"""A query as the store has it, without one that runs."""

from __future__ import annotations

from typing import Any

from spark_events.sql_runner.manifest.manifest import parse_manifest
from spark_events.sql_runner.manifest.yaml_text import YamlText
from spark_events.sql_runner.store.deployed import DeployedQuery, Meta
from spark_events.sql_runner.store.host_files import RUN, Order


def deployed_in(host: str, version: int = 1, **more: Any) -> DeployedQuery:
    """Return a query as it is deployed; ``more`` are keys of its manifest."""
    keys = {"name": "q", "target-table": "t", "sql": "SELECT 1", **more}
    manifest, _ = parse_manifest(YamlText("q.yaml", keys, {}))
    return DeployedQuery(manifest, Meta.new("q", version, host, "fingerprint", "4.3.0"))


def run_order(deployed: DeployedQuery) -> Order:
    return Order(deployed.meta.deployment, RUN, deployed.values(), ("CREATE TABLE t (id INT)",))

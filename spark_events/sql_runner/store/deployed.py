"""Deployed queries: their manifests with their meta, in the store.

All functions raise ``StoreError`` if the store cannot be read or written.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from spark_events.api import ConfigError
from spark_events.sql_runner.manifest.manifest import Manifest, parse_manifest
from spark_events.sql_runner.manifest.yaml_text import YamlText, read_yaml, write_yaml
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.store import Store
from spark_events.sql_runner.store.typed_values import with_types

_TIME = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class Meta:
    """The part of a deployed manifest that the deployment adds to the team's.

    Attributes:
        query_id: a UUID; Spark's id of the query, too.
        query_version: from 1; increases with each change of the query.
        query_create_timestamp: when the version was made, in UTC.
        checkpoint: the folder of its checkpoint, relative to the store.
        host: the application that runs it.
        deployment: the id of the order under which it runs.
        plan: the fingerprint of its plan.
        spark_version: the version of Spark that made the fingerprint.
        sink_folder: the folder that Spark's file sink writes; empty for another sink, None where an older
            spark-events has not recorded it.
    """

    query_id: str
    query_version: int
    query_create_timestamp: str
    checkpoint: str
    host: str
    deployment: str
    plan: str
    spark_version: str
    sink_folder: str | None = None

    @classmethod
    def new(
        cls,
        name: str,
        version: int,
        host: str,
        plan: str,
        spark_version: str,
        sink_folder: str | None = None,
    ) -> Meta:
        """Make the meta of a new version, with an empty checkpoint."""
        checkpoint = f"{layout.checkpoints(name, version)}/{layout.new_id()}"
        now = datetime.now(timezone.utc).strftime(_TIME)
        own = (str(uuid.uuid4()), version, now, checkpoint, host, layout.new_id())
        return cls(*own, plan, spark_version, sink_folder)


@dataclass(frozen=True, slots=True)
class DeployedQuery:
    """A manifest that is, or is being, deployed."""

    manifest: Manifest
    meta: Meta

    def values(self) -> dict[str, Any]:
        """Return the values as in YAML."""
        meta = {key.replace("_", "-"): value for key, value in asdict(self.meta).items()}
        return {**self.manifest.values(), "meta": meta}

    @classmethod
    def parse(cls, values: dict[str, Any], where: str) -> DeployedQuery:
        """Return the query whose ``values`` these are.

        Args:
            values: from its YAML or from an order.
            where: their origin, for errors.

        Raises:
            ConfigError: they were changed by hand, or are from another version of spark-events.
        """
        own = dict(values)
        try:
            meta = with_types(Meta, {key.replace("-", "_"): value for key, value in own.pop("meta").items()})
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{where}: its meta is not what a deployment writes ({error})") from error
        manifest, _ = parse_manifest(YamlText(where, own, {}))
        return cls(manifest, meta)


def read_deployed(store: Store, name: str) -> DeployedQuery | None:
    """Return the query that is deployed under a name; None if none ever was.

    Raises:
        ConfigError: the manifest in the store cannot be understood.
    """
    path = layout.manifest(name)
    data = store.read(path)
    if data is None:
        return None
    where = store.spark_url(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: cannot be read: {error}") from error
    return DeployedQuery.parse(read_yaml(text, where).values, where)


def deployed_names(store: Store) -> list[str]:
    """Return the names of all queries that were deployed."""
    files = store.names(layout.MANIFESTS)
    return [file.removesuffix(".yaml") for file in files if file.endswith(".yaml")]


def write_deployed(store: Store, deployed: DeployedQuery) -> None:
    """Record that a query is deployed."""
    store.write(layout.manifest(deployed.manifest.name), write_yaml(deployed.values()).encode())


def last_version(store: Store, name: str) -> int:
    """Return the highest version of a query that ever had a checkpoint or a savepoint; 0 if none had."""
    versions = store.names(layout.checkpoints(name)) + store.names(layout.savepoints(name))
    return max((int(version) for version in versions if version.isdecimal()), default=0)

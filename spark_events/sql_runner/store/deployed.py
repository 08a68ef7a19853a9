"""What is deployed: manifests with their meta, and the history of each, in the store."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

import orjson

from spark_events.api import ConfigError
from spark_events.sql_runner.manifest.manifest import Manifest, parse_manifest
from spark_events.sql_runner.manifest.yaml_text import YamlText, read_yaml, write_yaml
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.store import Store

_TIME = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class Meta:
    """What the deployment adds to a manifest.

    Attributes:
        query_id: a UUID; Spark's id of the query, too.
        query_version: from 1; another one for each change of the query.
        query_create_timestamp: when the version was made, in UTC.
        checkpoint: the folder of its checkpoint, from the store's.
        host: the application that runs it.
        deployment: the id of the order by which it does.
        plan: the fingerprint of its plan.
        spark_version: the Spark that made the fingerprint.
    """

    query_id: str
    query_version: int
    query_create_timestamp: str
    checkpoint: str
    host: str
    deployment: str
    plan: str
    spark_version: str

    @classmethod
    def new(cls, name: str, version: int, host: str, plan: str, spark_version: str) -> Meta:
        """Make that of a new version, with an empty checkpoint."""
        checkpoint = f"{layout.checkpoints(name, version)}/{new_id()}"
        now = datetime.now(timezone.utc).strftime(_TIME)
        return cls(str(uuid.uuid4()), version, now, checkpoint, host, new_id(), plan, spark_version)


@dataclass(frozen=True, slots=True)
class Deployed:
    """A manifest that is deployed, or on its way there."""

    manifest: Manifest
    meta: Meta

    def values(self) -> dict[str, Any]:
        """Return it as its YAML has it."""
        meta = {key.replace("_", "-"): value for key, value in asdict(self.meta).items()}
        return {**self.manifest.values(), "meta": meta}

    @classmethod
    def parse(cls, values: dict[str, Any], where: str) -> Deployed:
        """Read what ``values`` returned.

        Raises:
            ConfigError: it was changed by hand, or is of another version of spark-events.
        """
        own = dict(values)
        try:
            meta = Meta(**{key.replace("-", "_"): value for key, value in own.pop("meta").items()})
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{where}: its meta is not what a deployment writes ({error})") from error
        manifest, _ = parse_manifest(YamlText(where, own, {}))
        return cls(manifest, meta)


@dataclass(frozen=True, slots=True)
class Deployment:
    """One entry of a query's history.

    Attributes:
        at_ms: when, in ms since the epoch.
        action: what was done.
        version: the query's version after it.
        reason: why.
        result: how it ended.
        who: by whom.
        savepoint: the savepoint that it made; empty for none.
    """

    at_ms: int
    action: str
    version: int
    reason: str
    result: str
    who: str
    savepoint: str = ""


def new_id() -> str:
    """Return what tells one thing from all others of its kind: twelve letters and digits."""
    return uuid.uuid4().hex[:12]


def read_deployed(store: Store, name: str) -> Deployed | None:
    """Return what is deployed under a name; None where nothing ever was.

    Raises:
        ConfigError: the manifest in the store cannot be understood.
        StoreError: the store cannot be read.
    """
    path = layout.manifest(name)
    data = store.read(path)
    if data is None:
        return None
    where = store.spark_url(path)
    return Deployed.parse(read_yaml(data.decode(), where).values, where)


def deployed_names(store: Store) -> list[str]:
    """Return the names of all queries that were deployed.

    Raises:
        StoreError: the store cannot be listed.
    """
    found = store.names(layout.MANIFESTS)
    return [name.removesuffix(".yaml") for name in found if name.endswith(".yaml")]


def write_deployed(store: Store, deployed: Deployed) -> None:
    """Say that a manifest is deployed.

    Raises:
        StoreError: the store cannot be written.
    """
    store.write(layout.manifest(deployed.manifest.name), write_yaml(deployed.values()).encode())


def last_version(store: Store, name: str) -> int:
    """Return the highest version of a query that ever had a checkpoint or a savepoint; 0 where none had.

    Raises:
        StoreError: the store cannot be listed.
    """
    found = store.names(layout.checkpoints(name)) + store.names(layout.savepoints(name))
    return max((int(version) for version in found if version.isdigit()), default=0)


def add_history(store: Store, name: str, entry: Deployment) -> None:
    """Add to the history of a query.

    Raises:
        StoreError: the store cannot be written.
    """
    store.write(f"{layout.history(name)}/{entry.at_ms:015d}-{new_id()}.json", orjson.dumps(entry))


def read_history(store: Store, name: str) -> list[Deployment]:
    """Return the history of a query, the oldest first.

    Raises:
        StoreError: the store cannot be read.
    """
    folder = layout.history(name)
    found = (store.read(f"{folder}/{file}") for file in store.names(folder))
    return [Deployment(**orjson.loads(data)) for data in found if data is not None]

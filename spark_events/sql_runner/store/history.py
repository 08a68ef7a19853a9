"""The history of a query: each of its deployments, a file each.

All functions raise ``StoreError`` where the store cannot be read or written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.store import Store, StoreError
from spark_events.sql_runner.store.typed_values import with_types

BEGUN = "it has begun; if no deployment is running any more, the deployer was killed before it ended"
"""The result of an entry whose deployment has not ended."""
STOP = "stop"
"""The action of an entry that is a stop."""
DONE = "done"
"""How the result of an entry begins whose deployment went well."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One entry of a query's history.

    Attributes:
        at_ms: when it began, in ms since the epoch.
        version: the query's version after it.
        result: how it ended, for a person.
        who: user, machine and process of the deployer.
        savepoint: the savepoint that it made; empty for none.
    """

    at_ms: int
    action: str
    version: int
    reason: str
    result: str
    who: str
    savepoint: str = ""

    @property
    def went_well(self) -> bool:
        """Whether everything was done."""
        return self.result.startswith(DONE)


class HistoryEntry:
    """An entry, which is in the history of a query from the beginning of its deployment.

    Args:
        store: has the history.
        name: the query's.
        begun: the entry without its result.
    """

    def __init__(self, store: Store, name: str, begun: Deployment) -> None:
        self._store = store
        self._path = f"{layout.history(name)}/{begun.at_ms:015d}-{layout.new_id()}.json"
        self._begun = begun
        self._write(begun)

    def end(self, result: str, savepoint: str) -> None:
        """Complete the entry."""
        self._write(replace(self._begun, result=result, savepoint=savepoint))

    def _write(self, entry: Deployment) -> None:
        self._store.write(self._path, orjson.dumps(entry))


def read_history(store: Store, name: str) -> list[Deployment]:
    """Return the history of a query, the oldest first."""
    folder = layout.history(name)
    paths = [f"{folder}/{file}" for file in store.names(folder)]
    entries = ((path, store.read(path)) for path in paths)
    return [_read_entry(store, path, entry) for path, entry in entries if entry is not None]


def was_deployed(store: Store, name: str, version: int) -> bool:
    """Return whether a deployment of a version has ever gone well."""
    return any(entry.went_well for entry in _starts(store, name, version))


def has_only_failed(store: Store, name: str, version: int) -> bool:
    """Return whether a version was deployed, and each time it failed, as far as its deployers know."""
    starts = _starts(store, name, version)
    return bool(starts) and not any(entry.went_well or entry.result == BEGUN for entry in starts)


def _starts(store: Store, name: str, version: int) -> list[Deployment]:
    """Return the entries of a version that a stop has not made."""
    history = read_history(store, name)
    return [entry for entry in history if entry.version == version and entry.action != STOP]


def _read_entry(store: Store, path: str, entry: bytes) -> Deployment:
    try:
        return with_types(Deployment, orjson.loads(entry))
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"store {store.url}: {path} is not what this version of spark-events writes ({error}); remove it "
            "to leave this deployment out"
        ) from error

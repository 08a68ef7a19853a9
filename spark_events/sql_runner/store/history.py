"""The history of a query: each of its deployments, a file each.

All functions raise ``StoreError`` where the store cannot be read or written.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.store import Store


@dataclass(frozen=True, slots=True)
class Deployment:
    """One entry of a query's history.

    Attributes:
        at_ms: when, in ms since the epoch.
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


def add_history(store: Store, name: str, entry: Deployment) -> None:
    """Add to the history of a query."""
    store.write(f"{layout.history(name)}/{entry.at_ms:015d}-{layout.new_id()}.json", orjson.dumps(entry))


def read_history(store: Store, name: str) -> list[Deployment]:
    """Return the history of a query, the oldest first."""
    folder = layout.history(name)
    entries = (store.read(f"{folder}/{file}") for file in store.names(folder))
    return [Deployment(**orjson.loads(entry)) for entry in entries if entry is not None]

"""Marks an application that is being started, until it gives its own first sign of life.

All functions raise ``StoreError`` if the store cannot be read or written.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import orjson

from spark_events.spark.owner import Owner
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.store import Store
from spark_events.sql_runner.store.typed_values import with_types

_LONGEST_MS = 600_000


def mark_starting(store: Store, host: str) -> None:
    """Record that this process starts an application."""
    values = {"owner": asdict(Owner.this_process("")), "at_ms": store.clock.now_ms()}
    store.write(layout.starting(host), orjson.dumps(values))


def mark_submitted(store: Store, host: str) -> None:
    """Record that an application is on its way to its cluster, with no process that waits for it."""
    owner = replace(Owner.this_process(""), started="")  # of such a one, nobody can say that it is dead
    store.write(layout.starting(host), orjson.dumps({"owner": asdict(owner), "at_ms": store.clock.now_ms()}))


def clear_starting(store: Store, host: str) -> None:
    """Remove the mark: the application is there, or will not be."""
    store.delete(layout.starting(host))


def is_starting(store: Store, host: str) -> bool:
    """Return whether a process is starting an application, and has not been at it for too long."""
    data = store.read(layout.starting(host))
    if data is None:
        return False
    try:
        values = orjson.loads(data)
        owner, at_ms = with_types(Owner, values["owner"]), int(values["at_ms"])
    except (ValueError, KeyError, TypeError):
        return False
    return not owner.is_dead and store.clock.now_ms() - at_ms < _LONGEST_MS

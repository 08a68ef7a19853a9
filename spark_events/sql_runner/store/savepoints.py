"""Savepoints and checkpoints: the state from which a query resumes.

All functions raise ``StoreError`` if the store cannot be read or written.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from spark_events.api import SparkEventsError
from spark_events.api.event import now_ms
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import Meta
from spark_events.sql_runner.store.store import Store

_COMMITS, _OFFSETS = "commits", "offsets"
_SPARK_METADATA = "metadata"


class SavepointError(SparkEventsError):
    """The error of a savepoint whose files are missing, or have a different size than when it was made."""


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A copy of a checkpoint, made after a graceful stop, as its ``_metadata`` has it.

    Attributes:
        path: its folder, from the store's.
        batch: the last micro-batch that is in it; -1 for none.
        at_ms: when it was made, in ms since the epoch.
        files: how many files it has.
        size: their size in bytes.
        checkpoint: the folder that it is a copy of.
    """

    path: str
    batch: int
    at_ms: int
    files: int
    size: int
    checkpoint: str


@dataclass(frozen=True, slots=True)
class QueryState:
    """The state from which a query resumes.

    Attributes:
        path: the folder of a checkpoint or a savepoint, from the store's.
        batch: the last micro-batch that is in it; -1 for none.
        is_savepoint: whether it has to be copied before it is used.
    """

    path: str
    batch: int
    is_savepoint: bool

    def __str__(self) -> str:
        return f"{'savepoint' if self.is_savepoint else 'checkpoint'} {self.path}, batch {self.batch}"


def make_savepoint(store: Store, name: str, meta: Meta, savepoint_id: str) -> Savepoint:
    """Copy the checkpoint of a stopped query; a savepoint that is already complete stays unchanged."""
    path = layout.savepoint(name, meta.query_version, savepoint_id)
    if whole := read_savepoint(store, path):
        return whole
    store.delete(path)
    sizes = store.copy(meta.checkpoint, path)
    batch = last_batch(store, path)
    savepoint = Savepoint(path, batch, now_ms(), len(sizes), sum(sizes.values()), meta.checkpoint)
    store.write(f"{path}/{layout.SAVEPOINT_COMPLETE}", orjson.dumps(savepoint))
    return savepoint


def read_savepoint(store: Store, path: str) -> Savepoint | None:
    """Return a savepoint; None if it is incomplete."""
    data = store.read(f"{path}/{layout.SAVEPOINT_COMPLETE}")
    return Savepoint(**orjson.loads(data)) if data is not None else None


def all_savepoints(store: Store, name: str, version: int) -> list[Savepoint]:
    """Return the whole savepoints of a version, the oldest first."""
    folder = layout.savepoints(name, version)
    savepoints = (read_savepoint(store, f"{folder}/{name}") for name in store.names(folder))
    return sorted((savepoint for savepoint in savepoints if savepoint), key=lambda whole: whole.at_ms)


def latest_state(store: Store, name: str, meta: Meta) -> QueryState | None:
    """Return the state from which a version resumes: its checkpoint, or a savepoint that is ahead of it.

    A checkpoint in which no micro-batch has begun is not a state; Spark records the first before it reads.
    """
    states = [
        QueryState(savepoint.path, savepoint.batch, is_savepoint=True)
        for savepoint in all_savepoints(store, name, meta.query_version)
    ]
    if any(file.isdigit() for file in store.names(f"{meta.checkpoint}/{_OFFSETS}")):
        batch = last_batch(store, meta.checkpoint)
        states.append(QueryState(meta.checkpoint, batch, is_savepoint=False))
    # For two with the same batch, max() returns the first: the checkpoint, which need not be copied.
    return max(reversed(states), key=lambda state: state.batch, default=None)


def restore(store: Store, name: str, version: int, savepoint: str) -> str:
    """Make a checkpoint from a savepoint, and return its folder.

    Raises:
        SavepointError: files of the savepoint are missing or have changed.
    """
    checkpoint = f"{layout.checkpoints(name, version)}/{layout.new_id()}"
    original = read_savepoint(store, savepoint)
    sizes = store.copy(savepoint, checkpoint)
    sizes.pop(layout.SAVEPOINT_COMPLETE, None)
    copied = (len(sizes), sum(sizes.values()))
    if original is None or copied != (original.files, original.size):
        store.delete(checkpoint)
        was = f"{original.files} files of {original.size} bytes" if original else "whole"
        raise SavepointError(
            f"savepoint {savepoint} is damaged: it was {was}, but has {copied[0]} files of {copied[1]} "
            "bytes; remove it to use the latest state before it"
        )
    store.delete(f"{checkpoint}/{layout.SAVEPOINT_COMPLETE}")
    return checkpoint


def begin_checkpoint(store: Store, meta: Meta) -> None:
    """Write the query's id into an empty checkpoint, so that Spark uses it for the query."""
    path = f"{meta.checkpoint}/{_SPARK_METADATA}"
    if store.read(path) is None:
        store.write(path, orjson.dumps({"id": meta.query_id}))


def last_batch(store: Store, checkpoint: str) -> int:
    """Return the last micro-batch that a checkpoint has committed; -1 for none."""
    names = store.names(f"{checkpoint}/{_COMMITS}")
    return max((int(name) for name in names if name.isdigit()), default=-1)

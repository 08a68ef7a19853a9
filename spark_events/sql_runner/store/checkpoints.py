"""Spark's checkpoint of a query: how far it is, whether it is whole, and the query's id in it.

All functions raise ``StoreError`` if the store cannot be read or written.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from spark_events.sql_runner.store.store import DamagedFile, Store

COMMITS, OFFSETS = "commits", "offsets"
_SPARK_METADATA = "metadata"
_SINK = "spark-events-sink.json"
_LOG_BEGINS = b"v"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a checkpoint is; -1 for none.

    Attributes:
        committed: the last micro-batch that has ended.
        begun: the last one whose offsets are written: the committed one, or the one after it.
    """

    committed: int
    begun: int


def progress(store: Store, checkpoint: str) -> Progress:
    """Return how far a checkpoint is."""
    return Progress(_last(store, checkpoint, COMMITS), _last(store, checkpoint, OFFSETS))


def begin_checkpoint(store: Store, checkpoint: str, query_id: str) -> None:
    """Write a query's id into a checkpoint, from which Spark takes it."""
    store.write(f"{checkpoint}/{_SPARK_METADATA}", orjson.dumps({"id": query_id}))
    # Hadoop's checksum of the file before, where Spark wrote it.
    store.delete(f"{checkpoint}/.{_SPARK_METADATA}.crc")


def query_id_of(store: Store, checkpoint: str) -> str:
    """Return the id that Spark takes from a checkpoint; empty if there is none, or it cannot be read."""
    data = store.read(f"{checkpoint}/{_SPARK_METADATA}")
    try:
        return str(orjson.loads(data)["id"]) if data is not None else ""
    except (ValueError, KeyError, TypeError):
        return ""


def batches_before(store: Store, checkpoint: str) -> int | None:
    """Return by how much the numbers in the log of a target's folder are ahead of the checkpoint's own.

    None if no query has written files from this checkpoint.
    """
    data = store.read(f"{checkpoint}/{_SINK}")
    try:
        return int(orjson.loads(data)["batchesBefore"]) if data is not None else None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(
            f"store {store.url}: {checkpoint}/{_SINK} is not what this version of spark-events writes "
            f"({error}); restore it"
        ) from error


def write_batches_before(store: Store, checkpoint: str, number: int) -> None:
    """Record by how much the numbers in the log of a target's folder are ahead."""
    store.write(f"{checkpoint}/{_SINK}", orjson.dumps({"batchesBefore": number}))


def damage(store: Store, checkpoint: str) -> str:
    """Return why Spark could not continue from a checkpoint in which a query has begun; empty if it could.

    Where Spark finds no offsets, it begins anew without a word.
    """
    if store.read(f"{checkpoint}/{_SPARK_METADATA}") is None:
        return "is gone" if not store.names(checkpoint) else f"has no file {_SPARK_METADATA}"
    if not query_id_of(store, checkpoint):
        return f"has a damaged file {_SPARK_METADATA}"
    own = progress(store, checkpoint)
    if own.committed > own.begun:
        return f"has no {OFFSETS}/{own.committed}, though it has {COMMITS}/{own.committed}"
    for folder, number in ((OFFSETS, own.begun), (COMMITS, own.committed)):
        content = store.read(f"{checkpoint}/{folder}/{number}") if number >= 0 else _LOG_BEGINS
        if content is not None and not content.startswith(_LOG_BEGINS):
            return f"has a damaged file {folder}/{number}"
    return ""


def _last(store: Store, checkpoint: str, log: str) -> int:
    names = store.names(f"{checkpoint}/{log}")
    return max((int(name) for name in names if name.isdecimal()), default=-1)

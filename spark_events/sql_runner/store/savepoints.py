"""Savepoints, and the state from which a query resumes.

All functions raise ``StoreError`` if the store cannot be read or written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from spark_events.api import SparkEventsError
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.checkpoints import begin_checkpoint, damage, progress
from spark_events.sql_runner.store.deployed import Meta
from spark_events.sql_runner.store.store import Store
from spark_events.sql_runner.store.typed_values import with_types


class SavepointError(SparkEventsError):
    """The error of a savepoint, or of a checkpoint that it is to be made of, that is not whole."""


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
        checksums: of each file, by its path from the folder; empty in savepoints of older versions.
    """

    path: str
    batch: int
    at_ms: int
    files: int
    size: int
    checkpoint: str
    checksums: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryState:
    """A state from which a query resumes.

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


@dataclass(frozen=True, slots=True)
class FoundStates:
    """The states of a version.

    Attributes:
        latest: from which it resumes; None if there is none.
        passed_over: sentences about those that are further but cannot be used.
    """

    latest: QueryState | None
    passed_over: tuple[str, ...] = ()


def make_savepoint(store: Store, name: str, meta: Meta, savepoint_id: str) -> Savepoint:
    """Copy the checkpoint of a stopped query; a savepoint that is already complete stays unchanged.

    Raises:
        SavepointError: the checkpoint is not whole.
    """
    path = layout.savepoint(name, meta.query_version, savepoint_id)
    if whole := read_savepoint(store, path):
        return whole
    if problem := damage(store, meta.checkpoint):
        raise SavepointError(f"there is no savepoint: checkpoint {meta.checkpoint} {problem}")
    store.delete(path)
    sizes = store.copy(meta.checkpoint, path)
    checksums = _checksums(store, path, sizes)
    batch = progress(store, path).committed
    size = sum(sizes.values())
    savepoint = Savepoint(path, batch, store.clock.now_ms(), len(sizes), size, meta.checkpoint, checksums)
    store.write(f"{path}/{layout.SAVEPOINT_COMPLETE}", orjson.dumps(savepoint))
    return savepoint


def read_savepoint(store: Store, path: str) -> Savepoint | None:
    """Return a savepoint; None if it is incomplete, or what it says of itself cannot be read."""
    data = store.read(f"{path}/{layout.SAVEPOINT_COMPLETE}")
    try:
        return with_types(Savepoint, orjson.loads(data)) if data is not None else None
    except (ValueError, TypeError):
        return None


def all_savepoints(store: Store, name: str, version: int) -> list[Savepoint]:
    """Return the complete savepoints of a version, the oldest first."""
    savepoints = (read_savepoint(store, path) for path in _paths(store, name, version))
    return sorted((savepoint for savepoint in savepoints if savepoint), key=lambda whole: whole.at_ms)


def latest_state(store: Store, name: str, meta: Meta) -> QueryState | None:
    """Return the state from which a version resumes: see ``find_states``."""
    return find_states(store, name, meta).latest


def find_states(store: Store, name: str, meta: Meta) -> FoundStates:
    """Return the state from which a version resumes: its checkpoint, or a savepoint that is ahead of it.

    Savepoints that are ahead are read completely, and the next one is taken if one is damaged.
    """
    passed_over: list[str] = []
    for state, problem in _states(store, name, meta):
        if not problem:
            return FoundStates(state, tuple(passed_over))
        kind = "savepoint" if state.is_savepoint else "checkpoint"
        passed_over.append(f"{kind} {state.path} {problem}")
    return FoundStates(None, tuple(passed_over))


def _states(store: Store, name: str, meta: Meta) -> Iterator[tuple[QueryState, str]]:
    """Yield the states of a version, the latest first, each with what is wrong with it.

    Of two with the same batch, the checkpoint comes first, which need not be copied; then the newer one.
    """
    paths = _paths(store, name, meta.query_version)
    savepoints = {path: read_savepoint(store, path) for path in paths}
    states = [(progress(store, path).committed, 0, path) for path, whole in savepoints.items() if not whole]
    states += [(whole.batch, whole.at_ms, path) for path, whole in savepoints.items() if whole]
    states.sort(reverse=True)
    problem = damage(store, meta.checkpoint)
    own = progress(store, meta.checkpoint).committed
    checkpoint = QueryState(meta.checkpoint, own, is_savepoint=False)
    if problem:  # nobody knows how far it was
        yield checkpoint, problem
    for batch, _, path in states:
        if problem or batch > own:
            savepoint = savepoints[path]
            yield QueryState(path, batch, is_savepoint=True), _problem(store, savepoint)
    if not problem:
        yield checkpoint, ""


def _problem(store: Store, savepoint: Savepoint | None) -> str:
    if savepoint is None:
        return f"has no readable {layout.SAVEPOINT_COMPLETE}, so it is not complete"
    return whole_or_damaged(store, savepoint)


def whole_or_damaged(store: Store, savepoint: Savepoint, folder: str = "") -> str:
    """Return what is wrong with a savepoint, or with its copy in another folder; empty if it is whole."""
    folder = folder or savepoint.path
    sizes = store.sizes(folder)
    sizes.pop(layout.SAVEPOINT_COMPLETE, None)
    now = (len(sizes), sum(sizes.values()))
    if now != (savepoint.files, savepoint.size):
        return (
            f"is damaged: it was {savepoint.files} files of {savepoint.size} bytes, but has {now[0]} files "
            f"of {now[1]} bytes"
        )
    if not savepoint.checksums:
        return ""
    checksums = _checksums(store, folder, sizes)
    changed = sorted(file for file in sizes if checksums[file] != savepoint.checksums.get(file))
    return f"is damaged: {', '.join(changed[:3])} changed after it was made" if changed else ""


def restore(store: Store, name: str, version: int, savepoint: str, query_id: str) -> str:
    """Make a checkpoint from a savepoint, and return its folder.

    Args:
        store: has the savepoint, and gets the checkpoint.
        name: the query's.
        version: the query's.
        savepoint: its folder.
        query_id: Spark's id of the query that continues from it. A new one: under the old one, targets such
            as Delta's consider the micro-batches after the savepoint written.

    Raises:
        SavepointError: files of the savepoint are missing or have changed.
    """
    checkpoint = f"{layout.checkpoints(name, version)}/{layout.new_id()}"
    original = read_savepoint(store, savepoint)
    if original is None:
        raise SavepointError(f"savepoint {savepoint} has no readable {layout.SAVEPOINT_COMPLETE}")
    store.copy(savepoint, checkpoint)
    if problem := whole_or_damaged(store, original, checkpoint):
        store.delete(checkpoint)
        raise SavepointError(f"savepoint {savepoint} {problem}")
    begin_checkpoint(store, checkpoint, query_id)
    store.delete(f"{checkpoint}/{layout.SAVEPOINT_COMPLETE}")
    return checkpoint


def _paths(store: Store, name: str, version: int) -> list[str]:
    folder = layout.savepoints(name, version)
    return [f"{folder}/{savepoint}" for savepoint in store.names(folder)]


def _checksums(store: Store, folder: str, files: dict[str, int]) -> dict[str, str]:
    return {file: store.checksum(f"{folder}/{file}") for file in files}

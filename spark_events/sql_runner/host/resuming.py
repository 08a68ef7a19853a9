"""From where a query resumes, compared with what its target already has.

A target's log of written micro-batches may be ahead of the state: the state is an older savepoint, or another
query has written there meanwhile. Then micro-batches get numbers, or the query an id, that the log does not
have: rows written since come twice, but none is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import uuid4

from spark_events.api import SparkEventsError
from spark_events.runtime.log_once import logger
from spark_events.sql_runner.analysis.prepared import PreparedQuery
from spark_events.sql_runner.analysis.written import last_written
from spark_events.sql_runner.host.claims import SinkClaim, SinkClaims
from spark_events.sql_runner.store.checkpoints import (
    Progress,
    batches_before,
    begin_checkpoint,
    damage,
    progress,
    query_id_of,
    write_batches_before,
)
from spark_events.sql_runner.store.deployed import DeployedQuery, Meta, read_deployed
from spark_events.sql_runner.store.store import Store


class StateLost(SparkEventsError):  # noqa: N818 - says what happened, and no fault of the caller's
    """The error of a query whose checkpoint has gone or is damaged; a restart would not help."""


class TargetBehind(SparkEventsError):  # noqa: N818 - says what happened, and no fault of the caller's
    """The error of a query whose target has lost what it wrote, or is away for a while."""


@dataclass(frozen=True, slots=True)
class Resuming:
    """How a query resumes.

    Attributes:
        query_id: Spark's id of it.
        batches_before: what is added to the numbers of its micro-batches in the log of its target's folder.
    """

    query_id: str
    batches_before: int = 0


def demand_state(store: Store, deployed: DeployedQuery) -> bool:
    """Return whether a query has begun in its checkpoint.

    Raises:
        StateLost: it has, but the checkpoint is not whole any more.
    """
    name, meta = deployed.manifest.name, deployed.meta
    problem = damage(store, meta.checkpoint)
    if not problem:
        return True
    recorded = read_deployed(store, name)
    if store.names(meta.checkpoint) or (recorded and recorded.meta.checkpoint == meta.checkpoint):
        raise StateLost(
            f"checkpoint {meta.checkpoint} {problem}: from there, it would begin anew without its state; "
            "deploy again: it resumes from the latest whole savepoint, or says that there is none"
        )
    return False


def begun(store: Store, deployed: DeployedQuery) -> Meta:
    """Return the meta with the id that Spark takes from the checkpoint; an empty one gets the query's.

    Raises:
        StateLost: see ``demand_state``.
    """
    meta = deployed.meta
    if demand_state(store, deployed):
        return replace(meta, query_id=query_id_of(store, meta.checkpoint))
    begin_checkpoint(store, meta.checkpoint, meta.query_id)
    return meta


def resuming(prepared: PreparedQuery, meta: Meta, store: Store) -> Resuming:
    """Compare the checkpoint with the target's log, and return how the query resumes."""
    state = progress(store, meta.checkpoint)
    last = last_written(prepared.session, prepared.target, meta.query_id)
    if last is None:
        return Resuming(meta.query_id)
    if prepared.target.has_file_sink:
        return Resuming(
            meta.query_id, _numbered(prepared.target.location, meta.checkpoint, state, last, store)
        )
    if last <= state.begun:
        return Resuming(meta.query_id)
    query_id = str(uuid4())
    logger.warning("%s; it continues as query %s", _ahead(prepared.target.name, last, state), query_id)
    begin_checkpoint(store, meta.checkpoint, query_id)
    return Resuming(query_id)


def _numbered(folder: str, checkpoint: str, state: Progress, last: int, store: Store) -> int:
    """Return what to add to the numbers of micro-batches, so that the next one follows the log's last."""
    claims, before = SinkClaims(store, folder, last), batches_before(store, checkpoint)
    if before is not None and last - before < state.committed:
        raise TargetBehind(
            f"{folder} no longer has the micro-batches that were written there, or is another folder: its "
            f"log ends with {last - before}, the checkpoint with {state.committed}; bring it back, or start "
            "with a clean state: deploy-one --clean"
        )
    wrote_last = before is not None and claims.wrote_last(SinkClaim(folder, checkpoint, before))
    if before is None or not _fits(state, last - before, wrote_last):
        if before is not None:
            logger.warning("%s; its batches are numbered anew", _ahead(folder, last - before, state))
        before = last - state.committed
        write_batches_before(store, checkpoint, before)
    # After the numbers: killed in between, it compares again as one that has not written last.
    claims.take(SinkClaim(folder, checkpoint, before))
    return before


def _fits(state: Progress, last: int, wrote_last: bool) -> bool:
    """Return whether the log ends with the state, or with the micro-batch that was broken off.

    Whether it is that one is only known if nothing else was written there since.
    """
    return last == state.committed or (wrote_last and last == state.begun)


def _ahead(target: str, last: int, state: Progress) -> str:
    return f"the last micro-batch in the log of {target} is {last}, but {state.committed} in the checkpoint"

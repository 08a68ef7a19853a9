"""Says, before a query resumes, which of its rows will be in the target twice."""

from __future__ import annotations

from spark_events.spark.sql_errors import error_summary
from spark_events.sql_runner.analysis.analyst import Analysis, Analyst
from spark_events.sql_runner.store.checkpoints import batches_before, progress, query_id_of
from spark_events.sql_runner.store.savepoints import QueryState
from spark_events.sql_runner.store.store import Store


def rows_twice(
    store: Store, analyst: Analyst, analysis: Analysis, state: QueryState | None
) -> tuple[str, ...]:
    """Compare a state with the log of the target, and return a sentence if the two differ.

    Args:
        store: has the state.
        analyst: can read the target.
        analysis: of the manifest.
        state: from which the query would resume; None if there is none.
    """
    target = analysis.target
    if state is None or target is None:
        return ()
    try:
        last = analyst.last_written(target, query_id_of(store, state.path))
    except Exception as error:  # each format has errors of its own
        return (f"what target-table {target.name} has already cannot be read: {error_summary(error)}",)
    if last is None:
        again = f"{target.name} has no log of micro-batches: what came after this state is written again"
        return (again,) if state.is_savepoint else ()
    if target.has_file_sink:
        last -= batches_before(store, state.path) or 0
    own = progress(store, state.path)
    # Of a savepoint it is not known whether the batch that was broken off is the one that was written.
    ahead = last - (own.committed if state.is_savepoint else own.begun)
    if ahead > 0:
        return (
            f"{target.name} has {ahead} later micro-batches: their rows are written again, and come twice",
        )
    if target.has_file_sink and last < own.committed:
        return (
            f"{target.name} no longer has micro-batches {last + 1} to {own.committed}: it will not start "
            "before they are back; deploy-one --clean starts a new version, which writes all again",
        )
    return ()

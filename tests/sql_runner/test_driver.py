"""When Spark ends, it ends its queries without an error: none of them has come to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_events.sql_runner.analysis.definitions import TableDefinitions
from spark_events.sql_runner.host import hosted_query
from spark_events.sql_runner.host.hosted_query import HostedQuery
from spark_events.sql_runner.store.store import Store
from tests.support.sql_engine import Life
from tests.support.sql_orders import deployed_in, run_order
from tests.support.sql_simulated import SimulatedSpark, simulate


class Ended:
    """A query that runs no more, and has not failed."""

    runId = "a run"  # noqa: N815 - PySpark's name
    isActive = False  # noqa: N815
    lastProgress = None  # noqa: N815
    status = {"isTriggerActive": False, "message": "Stopped"}  # noqa: RUF012

    def exception(self) -> None:
        return None


ENDS: dict[str, Any] = {"trigger": {"available-now": True}}
HAS_NO_END: dict[str, Any] = {"sparkProperties": {"spark.events.sql.restart-strategy.type": "none"}}


@pytest.mark.parametrize(
    ("keys", "spark_has_ended", "state"),
    [
        (ENDS, False, "FINISHED"),
        (ENDS, True, "RUNNING"),
        (HAS_NO_END, False, "FAILED"),
        (HAS_NO_END, True, "RUNNING"),
    ],
)
def test_a_query_that_ends_without_an_error(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: dict[str, Any],
    spark_has_ended: bool,
    state: str,
) -> None:
    """It has finished if it has an end; with Spark, none has; else something else has stopped it."""
    simulate(monkeypatch)
    monkeypatch.setattr(hosted_query, "start_query", lambda *_: Ended())
    spark: Any = SimulatedSpark(Life(lambda: True), tmp_path)
    spark.stopped = spark_has_ended
    query = HostedQuery(spark, store, TableDefinitions(), run_order(deployed_in("session-a", **keys)))
    query.join(60)

    assert query.is_over
    assert query.status.state == state
    assert ("nobody has asked for it" in query.status.error) == (state == "FAILED")

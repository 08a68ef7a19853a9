"""A query that starts: what is in its checkpoint by then."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from spark_events.sql_runner.host import start
from spark_events.sql_runner.host.resuming import Resuming
from spark_events.sql_runner.store.checkpoints import begin_checkpoint, query_id_of
from spark_events.sql_runner.store.deployed import DeployedQuery
from spark_events.sql_runner.store.store import Store
from tests.support.sql_orders import deployed_in

LONG_AGO_S = 1_000_000_000


Started = Callable[[], tuple[float, str]]


@pytest.fixture
def deployed() -> DeployedQuery:
    return deployed_in("session-default")


@pytest.fixture
def started(
    store: Store, deployed: DeployedQuery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Started:
    """Start a query that takes long to prepare; return when the file with its id was written, and the id."""
    file = tmp_path / "store" / deployed.meta.checkpoint / "metadata"

    def prepare(*_: Any) -> MagicMock:
        os.utime(file, (LONG_AGO_S, LONG_AGO_S))
        return MagicMock()

    def look(*_: Any) -> tuple[float, str]:
        return file.stat().st_mtime, query_id_of(store, deployed.meta.checkpoint)

    monkeypatch.setattr(start, "prepare", prepare)
    monkeypatch.setattr(start, "resuming", lambda prepared, meta, store: Resuming(meta.query_id))
    monkeypatch.setattr(start, "_start_into", look)
    return lambda: start.start_query(MagicMock(), deployed, store)  # type: ignore[no-any-return]


def test_a_new_one_is_not_taken_for_one_that_ran_before(deployed: DeployedQuery, started: Started) -> None:
    """That is told by the age of its checkpoint, however long it takes to prepare the query."""
    written_s, query_id = started()
    assert written_s > LONG_AGO_S
    assert query_id == deployed.meta.query_id


def test_one_that_ran_before_is_told_by_its_age(
    store: Store, deployed: DeployedQuery, started: Started
) -> None:
    """Also where that run has committed nothing."""
    begin_checkpoint(store, deployed.meta.checkpoint, "id-of-before")
    assert started() == (LONG_AGO_S, "id-of-before")

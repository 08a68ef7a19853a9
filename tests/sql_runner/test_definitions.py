"""Queries of one application that define a table in two ways: none finds the other's, or none at all."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from spark_events.sql_runner.analysis.definitions import TableDefinitions
from tests.support.query_shop import Bench
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark


def definition(folder: Path, table: str, files: int) -> str:
    options = f"OPTIONS ('maxFilesPerTrigger' = '{files}')"
    return f"CREATE TABLE IF NOT EXISTS {table} (id INT) USING json {options} LOCATION '{folder}'"


def files_of(session: Any, table: str) -> str:
    rows = session.sql(f"SHOW CREATE TABLE {table}").collect()
    return str(rows[0][0]).partition("'maxFilesPerTrigger' = '")[2].partition("'")[0]


@pytest.mark.extended
def test_a_table_stays_as_a_query_defines_it_while_that_starts(session: Any, tmp_path: Path) -> None:
    one, two = (definition(tmp_path, "raced", files) for files in (1, 2))
    definitions = TableDefinitions()
    seen: list[str] = []

    def other() -> None:
        with definitions.in_force(session, [two]):
            seen.append(files_of(session, "raced"))

    thread = threading.Thread(target=other)
    with definitions.in_force(session, [one]):
        thread.start()
        wait_until(lambda: definitions._changed._waiters or seen, "the other has come")  # type: ignore[attr-defined]
        # Queries that agree do not wait for each other.
        with definitions.in_force(session, [one]):
            assert files_of(session, "raced") == "1"
        assert seen == []
    thread.join(60)

    assert seen == ["2"]
    with definitions.in_force(session, [one]):
        assert files_of(session, "raced") == "1", "each query finds its own again"


@pytest.mark.extended
def test_each_query_reads_by_its_own_definition_after_a_restart(bench: Bench) -> None:
    """The application starts both at once, each in a thread."""
    shop = bench.shop
    slow, fast = (
        shop.definitions,
        shop.definitions.replace("'maxFilesPerTrigger' = '1'", "'maxFilesPerTrigger' = '9'"),
    )
    other = shop.manifest("other", target_table=f"{shop.prefix}other")
    with bench.hosting():
        bench.deploy(shop.manifest())
        shop.definitions = fast
        bench.define("")
        bench.deploy(other)
    shop.definitions = slow
    shop.order(6)
    # The application that comes back has an empty catalog.
    bench.spark.sql(f"DROP TABLE {shop.prefix}orders")
    with bench.hosting():
        shop.wait_ids(shop.cheap_ids())
        shop.wait_ids(shop.cheap_ids(), "other")
        bench.wait_batch(5)

        assert (bench.status().batch, bench.status("other").batch) == (5, 0)
        assert (bench.status().restarts, bench.status("other").restarts) == (0, 0)

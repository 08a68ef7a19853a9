"""The databases that read a history: DuckDB for all tests, one Spark session for those that hold both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.history.reading.database import Database
from spark_events.history.reading.on_duckdb import DuckDb
from tests.support.history_story import write
from tests.support.spark import INTERPRETED, local_spark
from tests.support.story_told import read, told


@pytest.fixture(scope="package")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session, as small as it goes."""
    conf = {
        "spark.sql.session.timeZone": "America/New_York",  # days are UTC's, whatever the session's zone
        "spark.log.level": "ERROR",
        "spark.sql.adaptive.enabled": "false",
        **INTERPRETED,
    }
    with local_spark("history", tmp_path_factory.mktemp("warehouse"), conf) as session:
        yield session


@pytest.fixture
def duckdb() -> Iterator[DuckDb]:
    database = DuckDb()
    yield database
    database.close()


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.extended])])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Each of the two."""
    if request.param == "duckdb":
        yield request.getfixturevalue("duckdb")
        return
    from spark_events.history.reading.on_spark import Spark

    on_spark = Spark(request.getfixturevalue("spark"))
    yield on_spark
    on_spark.close()


@pytest.fixture(scope="package")
def facts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The facts of the story, as a file log tells it; ``test_file_log`` holds what is made of them."""
    database = DuckDb()
    try:
        facts, duplicates, problems = read(database, write(tmp_path_factory.mktemp("told") / "log", told()))
    finally:
        database.close()
    assert (duplicates, problems) == (0, {})
    return facts

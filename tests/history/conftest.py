"""One Spark session for all tests of histories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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


@pytest.fixture(scope="package")
def facts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The facts of the story, as a file log tells it; ``test_file_log`` holds what is made of them."""
    facts, duplicates, problems = read(spark, write(tmp_path_factory.mktemp("told") / "log", told()))
    assert (duplicates, problems) == (0, {})
    return facts

"""One Spark session for the tests of hostile records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.spark import INTERPRETED, local_spark


@pytest.fixture(scope="package")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    conf = {**INTERPRETED, "spark.sql.adaptive.enabled": "false"}
    with local_spark("hostile", tmp_path_factory.mktemp("hostile"), conf) as session:
        yield session

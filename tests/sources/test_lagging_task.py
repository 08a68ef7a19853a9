"""The driver bridge tells of a task that lags behind by the settings, not by figures of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.sources.driver.bridge import DriverBridge
from tests.support.spark import local_spark
from tests.support.waiting import wait_until

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with local_spark("lagging", tmp_path_factory.mktemp("lagging")) as session:
        yield session


@pytest.fixture
def bridges(spark: Any) -> Iterator[tuple[DriverBridge, DriverBridge]]:
    """One for which 1 ms is long, and one for which an hour is not."""
    both = tuple(DriverBridge(spark.sparkContext, 16 << 20, 0, (1.0, ms)) for ms in (1, HOUR_MS))
    for bridge in both:
        bridge.subscribe()
    yield both  # type: ignore[misc]
    for bridge in both:
        spark.sparkContext._jsc.sc().listenerBus().removeListener(bridge.java)


def lagging(bridge: DriverBridge) -> list[Any]:
    records = (record for _, record in bridge.drain(1_000, 0))
    return [record["Lagging Task"] for record in records if "Lagging Task" in record]


@pytest.mark.spark
def test_by_the_settings(spark: Any, tmp_path: Path, bridges: tuple[DriverBridge, DriverBridge]) -> None:
    go = tmp_path / "go"

    def wait(numbers: Iterator[int]) -> Iterator[int]:
        import time

        if 3 in set(numbers):
            while not go.exists():
                time.sleep(0.05)
        yield 1

    rows = spark.sparkContext.parallelize(range(4), 4).mapPartitions(wait)
    job = threading.Thread(target=rows.count)
    job.start()
    found: list[Any] = []
    try:
        wait_until(lambda: found.extend(lagging(bridges[0])) or found, "a task lags behind")
        of_other = lagging(bridges[1])
    finally:
        go.touch()
        job.join()

    assert found[0]["Index"] == 3
    assert of_other == []

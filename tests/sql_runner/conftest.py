"""Stores, and one Spark session, for the tests of the SQL runner."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.spark.file_systems import WEBHDFS
from spark_events.sql_runner.store.store import Store
from tests.support.query_shop import Bench, Shop
from tests.support.s3_server import running_s3
from tests.support.servers import Hdfs, running_hdfs
from tests.support.spark import local_spark
from tests.support.spark_cluster import SparkCluster, running_spark_cluster


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.fixture(scope="package")
def s3() -> Iterator[str]:
    """Give the endpoint of an S3 with the bucket ``queries``."""
    with running_s3("queries") as endpoint:
        yield endpoint


@pytest.fixture(scope="package")
def hdfs(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as hdfs, pytest.MonkeyPatch.context() as patch:
        patch.setenv(WEBHDFS, hdfs.web)
        yield hdfs


@pytest.fixture(scope="package")
def cluster(java: str) -> Iterator[SparkCluster]:
    with running_spark_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="package")
def session(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    conf = {"spark.scheduler.mode": "FAIR", "spark.sql.streaming.pollingDelay": "10ms"}
    with local_spark("sql runner", tmp_path_factory.mktemp("warehouse"), conf) as session:
        yield session


_shops = itertools.count(1)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Give a shop in a folder whose name has to be escaped in a URI."""
    return Shop(tmp_path / "the shop, 50%", f"shop{next(_shops)}_")


@pytest.fixture
def bench(shop: Shop, session: Any) -> Bench:
    return Bench(shop, session)

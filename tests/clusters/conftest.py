"""Clusters that start for the tests of this folder: one of each a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.yarn_cluster import YarnCluster, running_yarn


@pytest.fixture(scope="session")
def yarn(java: str) -> Iterator[YarnCluster]:
    """A YARN with two nodes, and HDFS."""
    with running_yarn() as cluster:
        yield cluster

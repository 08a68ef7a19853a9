"""Clusters that start for the tests of this folder: one of each a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kubernetes.cluster import KubernetesCluster, running_kubernetes
from tests.support.yarn_cluster import YarnCluster, running_yarn


@pytest.fixture(scope="session")
def yarn(java: str) -> Iterator[YarnCluster]:
    """A YARN with two nodes, and HDFS."""
    with running_yarn() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubernetes(java: str) -> Iterator[KubernetesCluster]:
    """A Kubernetes with one node, and Spark's account in it."""
    with running_kubernetes() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def pods_of_a_failure(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let a test that fails say what its pods have said."""
    yield
    if "kubernetes" in request.fixturenames:
        request.node.add_report_section("teardown", "pods", request.getfixturevalue("kubernetes").logs())


@pytest.fixture(autouse=True)
def room_on_yarn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave nothing running that takes the room of the next: a test that fails leaves its application."""
    if "yarn" not in request.fixturenames:
        yield
        return
    cluster = request.getfixturevalue("yarn")
    cluster.clear()
    yield
    cluster.clear()

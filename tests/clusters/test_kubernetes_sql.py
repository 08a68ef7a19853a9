"""Queries of manifests in a session in Kubernetes' cluster mode, with the store on a volume: its driver is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kubernetes.cluster import KubernetesCluster
from tests.support.kubernetes.submission import base_conf, host_path
from tests.support.sql_session import ALL_RUNNING, FILES, SqlSession, manifests, order
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]


def session_of(kubernetes: KubernetesCluster, folder: Path) -> SqlSession:
    """Submit a session; its executors, too, see the folder of its tables."""
    volumes = host_path("share", folder)
    conf = {
        **kubernetes.conf(),
        **volumes,
        **{key.replace("driver.volumes", "executor.volumes"): value for key, value in volumes.items()},
        "spark.kubernetes.file.upload.path": f"file://{folder}/uploads",
    }
    environment = {"SPARK_EVENTS_SQL_STORE": str(folder / "store"), "KUBECONFIG": "/dev/null"}
    return SqlSession(folder, conf, environment, kubernetes.logs, base_conf(in_cluster=True))


def submitted_again(kubernetes: KubernetesCluster, folder: Path) -> SqlSession | None:
    """Try once, as an operator does again and again: None while the session before may be just silent."""
    session = session_of(kubernetes, folder)
    wait_until(lambda: session.app.ended or kubernetes.running("driver"), "it is submitted, or refused")
    return None if session.app.ended else session


def test_three_queries_outlive_their_driver(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    """Deployed while their session is still on its way; somebody submits it again, and each row comes once."""
    manifests(tmp_path)
    order(tmp_path, 1, 120)
    session = session_of(kubernetes, tmp_path)
    try:
        session.app.wait_for(lambda: kubernetes.running("driver"), "the session is submitted")
        session.command("deploy", "queries", *FILES, "--timeout", "500")
        assert session.states() == ALL_RUNNING
        session.app.wait_for(lambda: session.rows("expensive_orders") == [1], "the first row is there")

        (driver,) = kubernetes.running("driver")
        kubernetes.kill_pod(driver)
        assert "exit code: 137" in session.app.end().err
        order(tmp_path, 2, 130)
        session = wait_until(lambda: submitted_again(kubernetes, tmp_path), "the session runs again")
        session.app.wait_for(lambda: session.rows("expensive_orders") == [1, 2], "the next row is there")
        wait_until(lambda: session.states() == ALL_RUNNING, "all three run again")
        order(tmp_path, 3, 10)
        session.app.wait_for(lambda: session.rows("cheap_orders") == [3], "a row of another query is there")

        session.command("session", "--end")
        assert "exit code: 0" in session.app.end().err
    finally:
        if not session.app.ended:
            session.app.kill()
        kubernetes.clear()

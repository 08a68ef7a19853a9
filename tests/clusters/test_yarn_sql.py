"""Queries of manifests in a session in YARN's cluster mode, with the store in HDFS: its driver is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.sql_session import ALL_RUNNING, FILES, SqlSession, manifests, order
from tests.support.waiting import wait_until
from tests.support.yarn_cluster import YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]


class YarnSession(SqlSession):
    """A session on YARN.

    Args:
        yarn: where it runs.
        folder: of manifests and tables.
        more: more of Spark's settings.
    """

    def __init__(self, yarn: YarnCluster, folder: Path, more: Mapping[str, str] | None = None) -> None:
        environment = {
            "HADOOP_CONF_DIR": str(yarn.conf_dir),
            "SPARK_EVENTS_WEBHDFS": yarn.hdfs.web,
            "SPARK_EVENTS_SQL_STORE": f"{yarn.hdfs.url}/{folder.name}",
        }
        conf = {
            **yarn.conf(),
            "spark.yarn.maxAppAttempts": "2",
            "spark.yarn.appMasterEnv.SPARK_EVENTS_WEBHDFS": yarn.hdfs.web,
            **(more or {}),
        }
        super().__init__(folder, conf, environment, lambda: yarn.logs(self.application))

    @property
    def application(self) -> str:
        """The id of the application; empty while it is not submitted."""
        return self.submitted(r"application_\d+_\d+")


def test_three_queries_outlive_their_driver(yarn: YarnCluster, tmp_path: Path) -> None:
    """Deployed while their session is still on its way to YARN; each row comes once."""
    manifests(tmp_path)
    order(tmp_path, 1, 120)
    session = YarnSession(yarn, tmp_path)
    try:
        session.app.wait_for(lambda: session.application, "the session is submitted")
        session.command("deploy", "queries", *FILES, "--timeout", "500")
        assert session.states() == ALL_RUNNING
        session.app.wait_for(lambda: session.rows("expensive_orders") == [1], "the first row is there")

        driver = yarn.driver(session.application)
        os.kill(driver, signal.SIGKILL)
        order(tmp_path, 2, 130)
        session.app.wait_for(lambda: session.rows("expensive_orders") == [1, 2], "the next row is there")
        assert yarn.driver(session.application) != driver
        wait_until(lambda: session.states() == ALL_RUNNING, "all three run again")
        order(tmp_path, 3, 10)
        session.app.wait_for(lambda: session.rows("cheap_orders") == [3], "a row of another query is there")

        session.command("session", "--end")
        assert session.app.end().code == 0
    finally:
        if not session.app.ended:
            session.app.kill()


def test_a_session_that_is_only_submitted(yarn: YarnCluster, tmp_path: Path) -> None:
    """Its command has ended, and nothing of it runs yet: a deployment waits for it all the same."""
    manifests(tmp_path)
    session = YarnSession(yarn, tmp_path, {"spark.yarn.submit.waitAppCompletion": "false"})
    assert session.app.end().code == 0
    session.command("deploy", "queries", *FILES, "--timeout", "500")
    assert session.states() == ALL_RUNNING
    session.command("session", "--end")
    state = f"apps/{session.application}"
    wait_until(lambda: yarn.ask(state)["app"]["finalStatus"] == "SUCCEEDED", "YARN has seen it end")

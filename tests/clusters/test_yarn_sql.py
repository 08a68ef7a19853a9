"""Queries of manifests in YARN's cluster mode, with the store in HDFS: drivers are killed, and executors."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.applications import reported
from tests.support.file_log import events_and_spans
from tests.support.paths import REPO
from tests.support.spark import _BASE_CONF
from tests.support.sql_session import (
    ALL_RUNNING,
    FILES,
    QUERIES,
    SqlCommands,
    SqlSession,
    manifests,
    order,
)
from tests.support.waiting import wait_until
from tests.support.yarn_cluster import YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]


def environment_of(yarn: YarnCluster, folder: Path) -> dict[str, str]:
    """Return the variables of all commands."""
    return {
        "HADOOP_CONF_DIR": str(yarn.conf_dir),
        "SPARK_EVENTS_WEBHDFS": yarn.hdfs.web,
        "SPARK_EVENTS_SQL_STORE": f"{yarn.hdfs.url}/{folder.name}",
    }


def conf_of(yarn: YarnCluster) -> dict[str, str]:
    """Return Spark's settings of applications that host queries."""
    return {
        **yarn.conf(),
        "spark.yarn.maxAppAttempts": "2",
        "spark.yarn.appMasterEnv.SPARK_EVENTS_WEBHDFS": yarn.hdfs.web,
    }


class YarnSession(SqlSession):
    """A session on YARN.

    Args:
        yarn: where it runs.
        folder: of manifests and tables.
        more: more of Spark's settings.
    """

    def __init__(self, yarn: YarnCluster, folder: Path, more: Mapping[str, str] | None = None) -> None:
        conf = {**conf_of(yarn), **(more or {})}
        super().__init__(folder, conf, environment_of(yarn, folder), lambda: yarn.logs(self.application))

    @property
    def application(self) -> str:
        """The id of the application; empty while it is not submitted."""
        return self.submitted(r"application_\d+_\d+")


def test_three_queries_outlive_their_driver(yarn: YarnCluster, tmp_path: Path) -> None:
    """Deployed while their session is still on its way to YARN; each row comes once.

    They outlive an executor, too.
    """
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

        (executor,) = yarn.executors(session.application).values()
        os.kill(executor, signal.SIGKILL)
        order(tmp_path, 4, 140)
        session.app.wait_for(lambda: session.rows("expensive_orders") == [1, 2, 4], "the last row is there")
        assert session.states() == ALL_RUNNING

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


class YarnApplications(SqlCommands):
    """An application for each query.

    Args:
        yarn: where they run.
        folder: of manifests and tables; for their events, too.
    """

    def __init__(self, yarn: YarnCluster, folder: Path) -> None:
        self._yarn, self.events = yarn, folder / "events"
        environment = {
            **environment_of(yarn, folder),
            "PYTHONPATH": os.pathsep.join(map(str, (REPO, *REPO.glob("reporters/*")))),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        super().__init__(folder, environment, self._all_logs)
        conf = {
            **_BASE_CONF,
            **conf_of(yarn),
            **events_and_spans(self.events),
            "spark.events.heartbeat.interval": "1s",
            "spark.executor.instances": "1",
            "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
        }
        self._properties = folder / "yarn.properties"
        self._properties.write_text("".join(f"{key}  {value}\n" for key, value in conf.items()))

    def deploy(self) -> None:
        """Submit them, and wait until all run."""
        where = ("--mode", "application", "--master", "yarn", "--timeout", "500")
        properties = ("--properties-file", str(self._properties))
        self.command("deploy", "queries", *FILES, *where, *properties, "--", "--deploy-mode", "cluster")

    def application(self, query: str) -> str:
        """Return the id of a query's application."""
        log = self._folder / "logs" / f"{query}.log"
        found = re.search(r"application_\d+_\d+", log.read_text()) if log.exists() else None
        return found.group() if found else ""

    def end(self) -> None:
        """End those that run, whatever they do."""
        for application in filter(None, map(self.application, QUERIES)):
            self._yarn.kill_application(application)

    def _all_logs(self) -> str:
        said = "\n".join(log.read_text()[-3000:] for log in (self._folder / "logs").glob("*.log"))
        return "\n".join((said, *(self._yarn.logs(self.application(query)) for query in QUERIES)))


def test_three_applications_one_of_which_loses_its_driver_and_an_executor(
    yarn: YarnCluster, tmp_path: Path
) -> None:
    """It is seen as down, with the reason, and up again, and each row comes once; the others never notice."""
    manifests(tmp_path)
    order(tmp_path, 1, 120)
    applications = YarnApplications(yarn, tmp_path)
    try:
        applications.deploy()
        assert applications.states() == ALL_RUNNING
        wait_until(lambda: applications.rows("expensive_orders") == [1], "the first row is there")
        application = applications.application("expensive-orders")

        driver = yarn.driver(application)
        os.kill(driver, signal.SIGKILL)
        order(tmp_path, 2, 130)
        wait_until(lambda: applications.rows("expensive_orders") == [1, 2], "the next row is there")
        assert yarn.driver(application) != driver
        wait_until(lambda: applications.states() == ALL_RUNNING, "all three run again")
        executor = max(yarn.executors(application).values())
        os.kill(executor, signal.SIGKILL)
        order(tmp_path, 3, 140)
        wait_until(lambda: applications.rows("expensive_orders") == [1, 2, 3], "the last row is there")
        wait_until(lambda: applications.states() == ALL_RUNNING, "all three run")

        for query in QUERIES:
            applications.command("stop", query, "--timeout", "500")
        ids = [applications.application(query) for query in QUERIES]
        for each in ids:
            state = f"apps/{each}"
            wait_until(lambda state=state: yarn.ask(state)["app"]["finalStatus"] == "SUCCEEDED", "YARN knows")
    finally:
        applications.end()

    report = reported(applications.events, tmp_path / "report.json")
    queries = {row["query_name"]: row for row in report["uptime"] if row["query_name"]}
    assert {name: (row["outages"], row["restarts"]) for name, row in queries.items()} == {
        "cheap-orders": (0, 0),
        "expensive-orders": (1, 1),
        "revenue": (0, 0),
    }
    errors = {(row["kind"], row["error"]): row["message"] for row in report["failures"]}
    assert errors["application", ""] == "the driver's JVM is gone"
    assert ("executor", "killed") in errors

"""Queries of manifests in a session in YARN's cluster mode, with the store in HDFS: its driver is killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.paths import REPO
from tests.support.waiting import wait_until
from tests.support.yarn_cluster import YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]
QUERIES = ("cheap-orders", "expensive-orders", "revenue")
ALL_RUNNING = dict.fromkeys(QUERIES, "RUNNING")


class SqlSession:
    """A session, and the commands of its users.

    Args:
        yarn: where it runs.
        folder: of manifests and tables.
        conf: more of Spark's settings.
    """

    def __init__(self, yarn: YarnCluster, folder: Path, conf: Mapping[str, str] | None = None) -> None:
        self._yarn, self._folder = yarn, folder
        self._environment = {
            "HADOOP_CONF_DIR": str(yarn.conf_dir),
            "SPARK_EVENTS_WEBHDFS": yarn.hdfs.web,
            "SPARK_EVENTS_SQL_STORE": f"{yarn.hdfs.url}/{folder.name}",
        }
        conf = {
            **yarn.conf(),
            **(conf or {}),
            "spark.executor.instances": "1",
            "spark.executor.cores": "3",
            "spark.yarn.maxAppAttempts": "2",
            "spark.yarn.appMasterEnv.SPARK_EVENTS_WEBHDFS": yarn.hdfs.web,
            "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
        }
        words = ("sql", "session", "--", "--deploy-mode", "cluster")
        self.app = App(cli(*words), conf, folder, more=self._environment)

    @property
    def application(self) -> str:
        """The id of the application; empty while it is not submitted."""
        found = re.search(r"application_\d+_\d+", (self._folder / "stderr.txt").read_text())
        return found.group() if found else ""

    def command(self, *words: str, expected: int = 0) -> str:
        done = subprocess.run(
            cli("sql", *words),
            env={**os.environ, "COLUMNS": "200", **self._environment},
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == expected, f"{done.stdout}{done.stderr}\n{self._yarn.logs(self.application)}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """Return the state of each query, as ``sql status`` says it."""
        found = re.findall(r"^ *([\w-]+) +([A-Z]+)\b", self.command("status"), re.MULTILINE)
        return {name: state for name, state in found if name in QUERIES}

    def rows(self, table: str) -> list[int]:
        """Return the ids of the orders in a table, once for each row that a micro-batch has committed."""
        import duckdb

        # A killed driver leaves files that belong to no micro-batch; Spark passes them over, too.
        logs = (self._folder / table / "_spark_metadata").glob("[0-9]*")
        lines = [line for log in logs for line in log.read_text().splitlines() if line.startswith("{")]
        files = sorted({json.loads(line)["path"].removeprefix("file://") for line in lines})
        return sorted(row[0] for file in files for row in duckdb.sql(f"SELECT id FROM '{file}'").fetchall())


def manifests(folder: Path) -> None:
    """Write the examples, and a third one."""
    shutil.copytree(REPO / "conf" / "sql-runner", folder, dirs_exist_ok=True)
    tables = (folder / "tables.sql").read_text().replace("/tmp/spark-events-sql", f"file://{folder}")
    of_expensive = next(part for part in tables.split("\n\n") if "EXISTS expensive_orders" in part)
    (folder / "tables.sql").write_text(
        f"{tables}\n{of_expensive.replace('expensive_orders', 'cheap_orders')}"
    )
    expensive = (folder / "queries" / "expensive-orders.yaml").read_text()
    cheap = expensive.replace("expensive", "cheap").replace("> 100", "<= 100")
    (folder / "queries" / "cheap-orders.yaml").write_text(cheap)
    (folder / "orders").mkdir()


def order(folder: Path, number: int, price: int) -> None:
    """Write an order, whole at once."""
    row = {"id": number, "item": "lamp", "price": price, "ordered_at": "2026-11-22T10:00:00"}
    unfinished = folder / f"{number}.tmp"
    unfinished.write_text(json.dumps(row) + "\n")
    unfinished.rename(folder / "orders" / f"{number}.json")


FILES = ("--template-file", "template.yaml", "--table-definition-path", "tables.sql")


def test_three_queries_outlive_their_driver(yarn: YarnCluster, tmp_path: Path) -> None:
    """Deployed while their session is still on its way to YARN; each row comes once."""
    manifests(tmp_path)
    order(tmp_path, 1, 120)
    session = SqlSession(yarn, tmp_path)
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
    session = SqlSession(yarn, tmp_path, {"spark.yarn.submit.waitAppCompletion": "false"})
    assert session.app.end().code == 0
    session.command("deploy", "queries", *FILES, "--timeout", "500")
    assert session.states() == ALL_RUNNING
    session.command("session", "--end")
    state = f"apps/{session.application}"
    wait_until(lambda: yarn.ask(state)["app"]["finalStatus"] == "SUCCEEDED", "YARN has seen it end")

"""Queries of manifests in a cluster's cluster mode, in a session or each on its own, with what their users do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.applications import App, cli
from tests.support.paths import REPO
from tests.support.spark import _BASE_CONF

QUERIES = ("cheap-orders", "expensive-orders", "revenue")
ALL_RUNNING = dict.fromkeys(QUERIES, "RUNNING")
FILES = ("--template-file", "template.yaml", "--table-definition-path", "tables.sql")


class SqlCommands:
    """The commands of those who deploy queries.

    Args:
        folder: of manifests and tables.
        environment: of all commands; it names the store.
        logs: returns what the cluster has to say if a command fails.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], logs: Callable[[], str]) -> None:
        self._folder, self._environment, self._logs = folder, environment, logs

    def command(self, *words: str, expected: int = 0) -> str:
        """Run a command of a user, and return what it prints."""
        done = subprocess.run(
            cli("sql", *words),
            env={**os.environ, "COLUMNS": "200", **self._environment},
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == expected, f"{done.stdout}{done.stderr}\n{self._logs()}"
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


class SqlSession(SqlCommands):
    """A session, and the commands of its users.

    Args:
        folder: of manifests and tables.
        conf: Spark's settings.
        environment: of all commands; it names the store.
        logs: returns what the cluster has to say if a command fails.
        base: the settings of all tests that hold for it.
    """

    def __init__(
        self,
        folder: Path,
        conf: Mapping[str, str],
        environment: Mapping[str, str],
        logs: Callable[[], str],
        base: Mapping[str, str] = _BASE_CONF,
    ) -> None:
        super().__init__(folder, environment, logs)
        own = {"spark.executor.instances": "1", "spark.executor.cores": "3"}
        all_conf = {**conf, **own, "spark.sql.warehouse.dir": f"file://{folder}/warehouse"}
        words = ("sql", "session", "--", "--deploy-mode", "cluster")
        self.app = App(cli(*words), all_conf, folder, more=environment, base=base)

    def submitted(self, pattern: str) -> str:
        """Return what spark-submit has said of it that matches a pattern; an empty text if nothing does."""
        found = re.search(pattern, (self._folder / "stderr.txt").read_text())
        return found.group() if found else ""


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

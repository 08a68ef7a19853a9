"""Where random sequences happen: a source of numbered rows, manifests, deployers, a session, a store that fails."""

from __future__ import annotations

import json
import os
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError
from spark_events.api.event import now_ms
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.query_row import QueryRow
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.manifest.yaml_text import write_yaml
from spark_events.sql_runner.store.deployed import Meta, read_deployed
from spark_events.sql_runner.store.history import read_history
from spark_events.sql_runner.store.savepoints import all_savepoints
from spark_events.sql_runner.store.store import Store
from tests.support.clocks import Clock, library
from tests.support.small_disk import Disk
from tests.support.sql_oracle import Oracle, Query
from tests.support.sql_processes import Deployer, Said, Session
from tests.support.sql_targets import FileTarget
from tests.support.waiting import wait_until

ROWS = 5
"""Rows of a file."""
_BEGAN_S = 1_700_000_000
_TOLERATED_MS = 60_000
"""Of times: far more than a loaded machine is late, and far less than a wrong clock is off."""

# What a query does with the numbered rows; {n} makes another query of it that gives the same rows.
_CODE = {
    "plain": "",
    "distinct": '.dropDuplicates(["id"])',
}
_SOURCE = """
execution_output = (
    spark.readStream.schema("id INT").option("maxFilesPerTrigger", spark.conf.get("spark.at.once"))
    .json("{folder}/source").where("id > -{n}"){more}{bad}
)
"""
_BAD = ".selectExpr(\"CAST(raise_error('a bad version') AS INT) + id AS id\")"


class World:
    """All of it, in one folder.

    Args:
        folder: of its files.
        seed: of the chance.
        store: the store's URL; by default a folder, which can be full and read-only where that can be mounted.
        target: the tables.
        conf: more of Spark's keys for the session.
    """

    pace = 1.0
    """By what times are multiplied."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        store: str = "",
        target: Any = None,
        conf: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self._seed = seed
        (folder / "source").mkdir(parents=True)
        self.disk = Disk(folder / "disk") if not store else None
        self.store_url = store or str(folder / "disk" / "store")
        self.target = target or FileTarget(folder)
        self.oracle = Oracle(self.target, seed)
        self.began_ms = now_ms()
        self.renamed = False
        self.deployers_ahead_ms: tuple[int, ...] = (0,)
        self.has_clocks = bool(library())
        self._clock = Clock(folder / "session.clock")
        self.session = Session(self.store_url, folder, conf, self._environment(self._clock))
        self.queries = [Query("plain", "plain"), Query("distinct", "distinct")]
        self.files = 0
        self.log: list[str] = []

    def add_rows(self, files: int) -> None:
        """Let files of rows come."""
        for _ in range(files):
            path = self.folder / "source" / f"{self.files:06d}.json"
            first = self.files * ROWS
            hidden = path.with_name(f".{path.name}")
            hidden.write_text("\n".join(json.dumps({"id": first + row}) for row in range(ROWS)))
            # Spark reads in the order of times: here that of the numbers.
            os.utime(hidden, (_BEGAN_S + self.files,) * 2)
            hidden.rename(path)
            self.files += 1

    def set_session_clock(self, ahead_ms: int) -> None:
        """Set the clock of the session's machine, while it runs."""
        self._clock.set(ahead_ms)

    def _environment(self, clock: Clock) -> dict[str, str]:
        return clock.environment if self.has_clocks else {}

    def any_query(self) -> Query:
        """Return one of the queries, by chance."""
        return self.chance.choice(self.queries)

    # -- deployments ----------------------------------------------------------------------------------------

    def deploy(self, prune: bool = False) -> Said:
        """Deploy all manifests, and wait for the end."""
        said = self.deployer(prune=prune).result()
        self.heard(said)
        return said

    def deployer(self, bad: str = "", without: str = "", prune: bool = False) -> Any:
        """Start to deploy all manifests.

        Args:
            bad: the query that gets a version whose first micro-batch fails.
            without: the query whose manifest is left out.
            prune: whether queries without a manifest are stopped.
        """
        folder = self.folder / f"manifests-{len(self.log)}-{self.chance.randrange(10**9)}"
        folder.mkdir()
        for query in self.queries:
            if query.name != without:
                text = write_yaml(self._manifest(query, query.name == bad))
                (folder / f"{query.name}.yaml").write_text(text)
        definitions = [self.target.definition(query.table) for query in self.queries]
        (self.folder / "tables.sql").write_text(";\n".join(definitions))
        arguments = ["--folder", str(folder), *(["--prune"] if prune else [])]
        for definition in definitions:
            arguments += ["--definition", definition]
        return self.command([*arguments, "--tables", self.target.tables])

    def command(self, arguments: list[str]) -> Any:
        """Start a deployer."""
        ahead_ms = self.chance.choice(self.deployers_ahead_ms)
        clock = Clock(self.folder / f"deployer{ahead_ms:+d}.clock", ahead_ms)
        return Deployer(self.store_url, arguments, self.folder, self._environment(clock) if ahead_ms else {})

    def wait(self, least_s: float, most_s: float) -> None:
        """Let time pass, by chance, so that what comes next can come at any moment."""
        time.sleep(self.pace * self.chance.uniform(least_s, most_s))

    def _manifest(self, query: Query, bad: bool) -> dict[str, Any]:
        # A bad version is another text each time, and that of no good one.
        number = query.text + 1_000_000 + len(self.log) if bad else query.text
        code = _SOURCE.format(folder=self.folder, n=number, more=_CODE[query.kind], bad=_BAD if bad else "")
        return {
            "name": query.name,
            "target-table": self.target.name(query.table),
            "code": code,
            "trigger": {"processing-time": "100 milliseconds"},
            "sparkProperties": {
                "spark.at.once": query.at_once,
                "spark.sql.shuffle.partitions": 1,
                "spark.events.sql.restart-strategy.fixed-delay.delay": "300ms",
                "spark.events.sql.stop.timeout": self._stop_timeout(query),
            },
        }

    def _stop_timeout(self, query: Query) -> str:
        """Return one that some batches exceed, for one of the queries."""
        return "1ms" if query.kind == "distinct" and self._seed % 2 else "20s"

    def heard(self, said: Said) -> None:
        """Write down what a deployer said."""
        for name, decided in said.decided.items():
            self.note(f"  {name}: {decided['action']}, version {decided['version']}: {decided['reason']}")
            for query in self.queries:
                if query.name == name:
                    query.told.append(decided["reason"])
        for name, result in said.results.items():
            self.note(f"  {name}: {'failed' if result['failed'] else 'ok'}: {result['text']}")
            for query in self.queries:
                if query.name == name:
                    query.told.append(result["text"])
            if name in said.decided and said.decided[name]["action"] not in ("nothing", "error"):
                self._check_history(name, said.decided[name], result["text"])
        if said.error or said.code:
            self.note(f"  exit code {said.code} {said.error}")

    def _check_history(self, name: str, decided: dict[str, Any], result: str) -> None:
        """Check that the history has what a deployer said that it did."""
        did = (decided["action"], decided["version"], decided["reason"], result)
        entries = read_history(self.kept, name)
        if did not in [(each.action, each.version, each.reason, each.result) for each in entries]:
            self.oracle.fault(f"history of {name} does not have {did}: {entries}")

    def heal(self) -> None:
        """Check that one deployment makes everything run, whatever was before."""
        if not self.session.runs:
            self.session.start()
        said = self.deploy(prune=self.renamed)
        if not said.went_well:
            self.oracle.fault(f"the deployment does not heal: {said}")
            return
        self.renamed = False
        wait_until(lambda: all(self._state(query) == "RUNNING" for query in self.queries), "all run", 180)
        checked = self.deploy()
        actions = {name: decided["action"] for name, decided in checked.decided.items()}
        if actions != {query.name: "nothing" for query in self.queries}:
            self.oracle.fault(f"another deployment does {checked}")
        self._check_status()

    def _check_status(self) -> None:
        """Check what status says of queries that all run: what the store has, at times that can be."""
        rows = self.status()
        for query in self.queries:
            row, meta = rows[query.name], self.meta(query)
            if meta is None or not row.is_well or row.version != meta.query_version:
                self.oracle.fault(f"{query.name} is well, and its version is that of {meta}: {row}")
            times = [row.since_ms, row.batch_ms, row.error_ms, row.progress_ms, *row.restarted_ms]
            times += [entry.at_ms for entry in read_history(self.kept, query.name)]
            least, most = self.began_ms - _TOLERATED_MS, now_ms() + _TOLERATED_MS
            if odd := [at_ms for at_ms in times if at_ms is not None and not least <= at_ms <= most]:
                self.oracle.fault(f"{query.name}: at {odd}, which is not between {least} and {most}: {row}")

    def _state(self, query: Query) -> str:
        row = self.status().get(query.name)
        return row.state if row is not None else ""

    def status(self) -> dict[str, QueryRow]:
        """Return what status says of each query."""
        return {row.name: row for row in self.workspace.rows()}

    def meta(self, query: Query) -> Meta | None:
        """Return what the store has of a query that is deployed."""
        with suppress(ConfigError):  # a step may have damaged it
            deployed = read_deployed(self.kept, query.name)
            return deployed.meta if deployed is not None else None
        return None

    def made_ms(self, savepoint: str) -> int:
        """Return when a savepoint was made, in ms since the epoch."""
        name, version = savepoint.split("/")[1:3]
        return next(
            each.at_ms for each in all_savepoints(self.kept, name, int(version)) if each.path == savepoint
        )

    @property
    def workspace(self) -> Workspace:
        """The store, as deployers see it."""
        return Workspace(self.store_url, Placement())

    @property
    def kept(self) -> Store:
        """The store itself."""
        return Store(self.store_url)

    def note(self, text: str) -> None:
        """Write a line into the story."""
        self.log.append(f"{time.strftime('%H:%M:%S')} {text}")

"""A small shop: tables of orders, manifests over them, an application that hosts their queries, deployments."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.analysis.definitions import split_statements
from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.deployer import DeployResult
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.planner import PlannedQuery
from spark_events.sql_runner.deploy.query_row import QueryRow
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.host.host import QueryHost
from spark_events.sql_runner.manifest.folder import Manifests
from spark_events.sql_runner.manifest.manifest import parse_manifest
from spark_events.sql_runner.manifest.yaml_text import read_yaml, write_yaml
from spark_events.sql_runner.store.deployed import read_deployed
from spark_events.sql_runner.store.savepoints import all_savepoints
from tests.support.waiting import wait_until

METADATA = """__create_timestamp TIMESTAMP, __query_name STRING, __query_description STRING,
  __query_id STRING, __query_version INT, __query_create_timestamp TIMESTAMP"""
COLUMNS = f"id INT, price DOUBLE, {METADATA}"
HOST = "session-default"


class Shop:
    """All of it in one folder.

    Args:
        folder: where it lies.
        prefix: of the names of its tables, where several shops share a catalog.
    """

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder = folder
        self.prefix = prefix
        self.store_url = str(folder / "store")
        (folder / "orders").mkdir(parents=True, exist_ok=True)
        self._rows = 0
        self.definitions = self._definitions()

    def table(self, name: str, columns: str, more: str = "", place: str = "") -> str:
        """Return the definition of a table of files, in a folder of its name or at another place."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self.prefix}{name} ({columns}) USING json {more} "
            f"LOCATION '{self.folder}/{place or name}';\n"
        )

    def _definitions(self) -> str:
        return (
            self.table("orders", "id INT, item STRING, price DOUBLE", "OPTIONS ('maxFilesPerTrigger' = '1')")
            + self.table("out", COLUMNS)
            + self.table("other", COLUMNS)
            + f"CREATE TEMPORARY VIEW {self.prefix}items AS SELECT * FROM VALUES ('tea', 'hot') AS t(item, kind);\n"
        )

    def order(self, files: int = 1, rows: int = 10) -> None:
        """Let orders come, with the prices 0 to 9."""
        for _ in range(files):
            lines = [
                json.dumps({"id": self._rows + row, "item": "tea", "price": float(row)})
                for row in range(rows)
            ]
            path = self.folder / "orders" / f"{self._rows:06d}.json"
            path.with_suffix(".tmp").write_text("\n".join(lines))
            path.with_suffix(".tmp").rename(path)
            self._rows += rows

    def manifest(self, name: str = "cheap", **keys: Any) -> dict[str, Any]:
        """Return the manifest of the cheap orders, with other keys."""
        given = {key.replace("_", "-"): value for key, value in keys.items()}
        default = {
            "name": name,
            "target-table": f"{self.prefix}out",
            "sparkProperties": {"spark.events.sql.restart-strategy.fixed-delay.delay": "100ms"},
        }
        if "code" not in given:
            default["sql"] = f"SELECT id, price FROM {self.prefix}orders WHERE price < 5"
        return {**default, **given}

    def step(self, name: str, source: str, target: str) -> dict[str, Any]:
        """Return the manifest of a query that reads one table and writes another."""
        sql = f"SELECT id, price FROM {self.prefix}{source}"
        return self.manifest(name, sql=sql, target_table=self.prefix + target)

    def write(self, folder: str, *manifests: dict[str, Any]) -> Path:
        """Write manifests into a folder of YAML files, and the tables beside it."""
        (self.folder / "tables.sql").write_text(self.definitions)
        path = self.folder / folder
        path.mkdir(exist_ok=True)
        for found in path.iterdir():
            found.unlink()
        for manifest in manifests:
            (path / f"{manifest['name']}.yaml").write_text(write_yaml(manifest))
        return path

    # -- what came out ----------------------------------------------------------------------------------------

    def rows(self, table: str = "out") -> list[dict[str, Any]]:
        """Return the rows that readers of a table see: those that its log has, where there is one."""
        folder = self.folder / table
        log = folder / "_spark_metadata"
        committed: set[str] | None = None
        if log.is_dir():
            lines = [line for path in log.glob("[0-9]*") for line in path.read_text().splitlines()[1:]]
            committed = {json.loads(line)["path"].rpartition("/")[2] for line in lines}
        return [
            json.loads(line)
            for path in sorted(folder.glob("part-*.json"))
            if committed is None or path.name in committed
            for line in path.read_text().splitlines()
        ]

    def ids(self, table: str = "out", version: int | None = None) -> list[int]:
        """Return the ids of the rows of a table, or of one version, sorted."""
        found = self.rows(table)
        return sorted(row["id"] for row in found if version in (None, row.get("__query_version")))

    def cheap_ids(self) -> list[int]:
        """Return the ids that the cheap orders should have."""
        return [number for number in range(self._rows) if number % 10 < 5]

    def wait_ids(self, expected: list[int], table: str = "out", version: int | None = None) -> None:
        """Wait until a table has the rows, each once."""
        wait_until(lambda: self.ids(table, version) == expected, f"{table} has {len(expected)} rows")


class Bench:
    """A shop with an application in this process, for deployments through the objects that the commands use.

    Args:
        shop: the shop.
        spark: hosts the queries, and analyses them.
        session: the application's name.
    """

    def __init__(self, shop: Shop, spark: Any, session: str = "default") -> None:
        self.shop = shop
        self.spark = spark
        self.host = f"session-{session}"
        self.placement = Placement(session=session, poll_ms=50, timeout_s=120)
        self.analyst = Analyst(spark, split_statements(shop.definitions))
        self.workspace = Workspace(shop.store_url, self.placement)
        self.store = self.workspace.store

    @contextmanager
    def hosting(self, lease_ms: int = 30_000) -> Iterator[QueryHost]:
        """Host queries in a thread, as the application does; a loaded machine may give it no turn for seconds."""
        host = QueryHost(self.spark, self.store, self.host, single=False, poll_s=0.05, lease_ms=lease_ms)
        thread = threading.Thread(target=host.run, daemon=True)
        thread.start()
        wait_until(lambda: self.workspace.link(self.host).is_alive, "the application is there")
        try:
            yield host
        finally:
            host.end()
            thread.join(60)
            assert not thread.is_alive()

    def define(self, more: str) -> None:
        """Define tables besides those of the shop."""
        self.analyst = Analyst(self.spark, split_statements(self.shop.definitions + more))

    def plan(
        self, *manifests: dict[str, Any], prune: bool = False, clean: bool = False
    ) -> list[PlannedQuery]:
        """Decide."""
        return self.workspace.plan(self.analyst, self._read(manifests), prune=prune, clean=clean)

    def deploy(
        self, *manifests: dict[str, Any], prune: bool = False, clean: bool = False
    ) -> list[DeployResult]:
        """Deploy."""
        with self.workspace.deploying() as lease:
            deployer = self.workspace.deployer(lease, self.analyst)
            planned = self.workspace.plan(self.analyst, self._read(manifests), prune=prune, clean=clean)
            return list(deployer.deploy_all(planned))

    def stop(self, name: str, savepoint: bool = False) -> DeployResult:
        """Stop a query."""
        with self.workspace.deploying() as lease:
            return self.workspace.deployer(lease, None).stop(self.workspace.queries()[name], savepoint)

    def status(self, name: str = "cheap") -> QueryRow:
        """Return what status says of a query."""
        return QueryRow.of(self.workspace.queries()[name])

    def wait_state(self, state: str, name: str = "cheap") -> QueryRow:
        """Wait until a query is in a state."""
        wait_until(lambda: self.status(name).state == state, f"{name} is {state}")
        return self.status(name)

    def wait_batch(self, batch: int, name: str = "cheap") -> None:
        """Wait until a micro-batch has ended."""
        wait_until(lambda: (self.status(name).batch or 0) >= batch, f"{name} has ended batch {batch}")

    def meta(self, name: str = "cheap") -> Any:
        """Return the meta that is written down."""
        found = read_deployed(self.store, name)
        assert found is not None
        return found.meta

    def live_through_savepoints(self) -> None:
        """Deploy a query with state, reconfigure it, stop it, lose its checkpoint, and start it again."""
        shop = self.shop
        code = "execution_output = spark.readStream.table('{}orders').where('price < 5').dropDuplicates(['id']).select('id', 'price')"
        manifest = shop.manifest(code=code.format(shop.prefix))
        faster = {**manifest, "trigger": {"processing-time": "200 milliseconds"}}
        with self.hosting():
            shop.order(2)
            for given, action in ((manifest, Action.START), (faster, Action.RESTART)):
                (result,) = self.deploy(given)
                assert (result.action, result.failed) == (action, False), result.text
                shop.wait_ids(shop.cheap_ids())
            assert len(all_savepoints(self.store, "cheap", 1)) == 1
            assert not self.stop("cheap", savepoint=True).failed
            lost = self.meta().checkpoint
            self.store.delete(lost)
            again = (shop.folder / "orders" / "000000.json").read_text()
            (shop.folder / "orders" / "again.json").write_text(again)
            shop.order(1)

            (result,) = self.deploy(faster)

            assert (result.action, result.failed) == (Action.RESUME, False), result.text
            assert self.meta().checkpoint != lost
            self.wait_batch(max(each.batch for each in all_savepoints(self.store, "cheap", 1)) + 2)
            shop.wait_ids(shop.cheap_ids())

    def _read(self, manifests: tuple[dict[str, Any], ...]) -> Manifests:
        texts = [read_yaml(write_yaml(each), f"{each['name']}.yaml") for each in manifests]
        found = {text.values["name"]: parse_manifest(text)[0] for text in texts}
        return Manifests(found, {name: f"{name}.yaml:1" for name in found}, [], [])

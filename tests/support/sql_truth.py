"""Random sequences of what happens to streaming queries, and an oracle that looks for each row of their source.

The source is files of numbered rows. Each row must be in the target once for the newest version of a query, and for
each older one up to where it was replaced; twice only if the deployment that made it so had said so before.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.snapshot import QueryRow
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.manifest.yaml_text import write_yaml
from spark_events.sql_runner.store.deployed import Meta, read_deployed
from spark_events.sql_runner.store.history import read_history
from spark_events.sql_runner.store.savepoints import all_savepoints
from spark_events.sql_runner.store.store import Store
from tests.support.query_shop import METADATA
from tests.support.sql_processes import Deployer, Said, Session
from tests.support.waiting import wait_until

ROWS = 5
"""Rows of a file."""
_BEGAN_S = 1_700_000_000
SAID_TWICE = ("come twice", "is written again")

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


@dataclass
class Query:
    """A query as its manifest wants it.

    Attributes:
        kind: what it does with the rows.
        text: changes with each change of the query.
        at_once: how many files it reads in a micro-batch; its configuration.
        twice: by name and version, how often more than once a row may be there.
        told: what the plans of its deployments said.
    """

    name: str
    kind: str
    text: int = 1
    at_once: int = 1
    twice: dict[tuple[str, int], Counter[int]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        """Its target."""
        return f"out_{self.kind}"


class FileTarget:
    """Tables of JSON files, in folders of their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def tables(self) -> str:
        """The folder of all tables, for a deployer."""
        return str(self._folder)

    def definition(self, table: str) -> str:
        """Return the statement that defines a table."""
        return (
            f"CREATE TABLE IF NOT EXISTS {table} (id INT, {METADATA}) USING json "
            f"LOCATION '{self._folder}/{table}'"
        )

    def rows(self, table: str) -> list[tuple[int, tuple[str, int]]]:
        """Return the id of each row that readers of the table see, with the name and version of its query."""
        folder = self._folder / table
        lines = [
            line
            for path in (folder / "_spark_metadata").glob("[0-9]*")
            for line in path.read_text().splitlines()[1:]
        ]
        files = {json.loads(line)["path"].rpartition("/")[2] for line in lines}
        texts = [(folder / file).read_text().splitlines() for file in files]
        rows = [json.loads(line) for lines in texts for line in lines]
        return [(row["id"], (row["__query_name"], row["__query_version"])) for row in rows]


@dataclass
class Faults:
    """What went wrong, each with the step at which it was seen."""

    seed: int
    found: list[str] = field(default_factory=list)

    def add(self, step: str, text: str) -> None:
        """Remember a fault."""
        self.found.append(f"seed {self.seed}, {step}: {text}")


class Sequence:
    """One sequence.

    Args:
        folder: of its files.
        seed: of the chance.
        steps: how many things happen.
        store: the store's URL; a folder of its own, which can be full and read-only where that can be mounted.
        target: the tables.
        conf: more of Spark's keys for the session.
        left_out: steps that are not taken.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        steps: int = 12,
        store: str = "",
        target: Any = None,
        conf: dict[str, str] | None = None,
        left_out: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        self._chance = random.Random(seed)
        self._steps = steps
        (folder / "source").mkdir(parents=True)
        self._disk = Disk(folder / "disk") if not store else None
        self.store_url = store or str(folder / "disk" / "store")
        self.target = target or FileTarget(folder)
        self.faults = Faults(seed)
        self.session = Session(self.store_url, folder, conf)
        self.queries = [Query("plain", "plain"), Query("distinct", "distinct")]
        self._files = 0
        self._at = "start"
        self.log: list[str] = []
        self._left_out = left_out

    # -- the steps ------------------------------------------------------------------------------------------

    def run(self) -> list[str]:
        """Go through it, and return what was wrong."""
        steps = self._all_steps()
        try:
            self._add_rows(2)
            self._heal()
            for number in range(self._steps):
                name = self._chance.choice(sorted(steps))
                self._at = f"step {number} ({name})"
                self._note(self._at)
                self._add_rows(self._chance.randrange(1, 4))
                steps[name]()
                if self._chance.random() < 0.5:
                    self._heal()
            self._at = "the end"
            self._add_rows(2)
            self._heal()
            self._check()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            self.faults.add(self._at, f"{type(error).__name__}: {error}")
        finally:
            self.session.close()
            if self._disk is not None:
                self._disk.close()
            (self.folder / "story.txt").write_text("\n".join([*self.log, *self.faults.found]))
        return self.faults.found

    def _all_steps(self) -> dict[str, Callable[[], None]]:
        steps = {
            "configuration": self._change_configuration,
            "query": self._change_query,
            "bad version": self._deploy_bad,
            "stop": self._stop,
            "roll back": self._roll_back,
            "roll back in place": self._roll_back_in_place,
            "damage": self._damage,
            "race": self._race,
            "prune": self._prune,
            "kill deployer": self._kill_deployer,
            "kill session": self._kill_session,
            "kill session while deploying": self._kill_both,
            "end session": self._end_session,
            "lose checkpoint": self._lose_checkpoint,
            "rename": self._rename,
        }
        if self._disk is not None and self._disk.mounted:
            steps |= {"full store": self._full_store, "read-only store": self._read_only_store}
        return {name: step for name, step in steps.items() if name not in self._left_out}

    def _add_rows(self, files: int) -> None:
        for _ in range(files):
            path = self.folder / "source" / f"{self._files:06d}.json"
            first = self._files * ROWS
            hidden = path.with_name(f".{path.name}")
            hidden.write_text("\n".join(json.dumps({"id": first + row}) for row in range(ROWS)))
            # Spark reads in the order of times: here that of the numbers.
            os.utime(hidden, (_BEGAN_S + self._files,) * 2)
            hidden.rename(path)
            self._files += 1

    def _any(self) -> Query:
        return self._chance.choice(self.queries)

    def _change(self) -> Query:
        """Change a query or its configuration, in its manifest alone."""
        query = self._any()
        if self._chance.random() < 0.5:
            query.at_once = self._chance.choice([each for each in (1, 2, 3, 7) if each != query.at_once])
        else:
            query.text += 1
        return query

    def _change_configuration(self) -> None:
        query = self._any()
        query.at_once = self._chance.choice([each for each in (1, 2, 3, 7) if each != query.at_once])
        self._deploy()

    def _change_query(self) -> None:
        self._any().text += 1
        self._deploy()

    def _deploy_bad(self) -> None:
        """A version whose first micro-batch fails; sometimes its deployer is killed, too."""
        self._add_rows(1)
        deployer = self._deployer(self._any().name)
        if self._chance.random() < 0.4:
            time.sleep(self._chance.uniform(0.5, 4.0))
            deployer.kill()
        self._heard(deployer.result())

    def _stop(self) -> Query:
        query = self._any()
        arguments = ["--stop", query.name, *(["--savepoint"] if self._chance.random() < 0.7 else [])]
        self._heard(Deployer(self.store_url, arguments, self.folder).result())
        return query

    def _roll_back(self) -> None:
        """Stop a query, and remove its checkpoint and all savepoints after one of them."""
        for query, meta, kept in self._rolled_back():
            self._twice(query, meta.query_version)
            self._store.delete(meta.checkpoint)
            for savepoint in all_savepoints(self._store, query.name, meta.query_version):
                if savepoint.path != kept and savepoint.at_ms >= self._made_ms(kept):
                    self._store.delete(savepoint.path)

    def _roll_back_in_place(self) -> None:
        """Stop a query, and put a savepoint in the place of its checkpoint."""
        for query, meta, kept in self._rolled_back():
            self._twice(query, meta.query_version)
            for savepoint in all_savepoints(self._store, query.name, meta.query_version):
                if savepoint.path != kept and savepoint.at_ms >= self._made_ms(kept):
                    self._store.delete(savepoint.path)
            self._store.delete(meta.checkpoint)
            self._store.copy(kept, meta.checkpoint)
            self._store.delete(f"{meta.checkpoint}/_metadata")

    def _damage(self) -> None:
        """Stop a query, lose its checkpoint, and damage the newest of its savepoints, if there are two."""
        for query, meta, _ in self._rolled_back(least=2):
            self._twice(query, meta.query_version)
            newest = max(
                all_savepoints(self._store, query.name, meta.query_version),
                key=lambda each: (each.batch, each.at_ms),
            )
            if self._chance.random() < 0.5:
                self._store.delete(f"{newest.path}/_metadata")
            else:
                self._store.write(f"{newest.path}/commits/{newest.batch}", b"XX\n{}")
            self._store.delete(meta.checkpoint)

    def _lose_checkpoint(self) -> None:
        """Lose a checkpoint while the session is away."""
        query = self._any()
        self._deploy()
        meta = self._meta(query)
        if meta is None or not all_savepoints(self._store, query.name, meta.query_version):
            return
        self.session.kill(self._chance.choice(["jvm", "both"]))
        self._twice(query, meta.query_version)
        self._store.delete(meta.checkpoint)
        self.session.start()

    def _rolled_back(self, least: int = 1) -> list[tuple[Query, Meta, str]]:
        query = self._stop()
        meta, row = self._meta(query), self._rows().get(query.name)
        if meta is None or (row is not None and row.state in ("RUNNING", "RESTARTING", "CANCELLING")):
            return []
        savepoints = all_savepoints(self._store, query.name, meta.query_version)
        if len(savepoints) < least or row is None or row.version != meta.query_version:
            return []
        kept = self._chance.choice(savepoints).path
        self._note(f"{query.name} back to {kept}, of {len(savepoints)}")
        return [(query, meta, kept)]

    def _race(self) -> None:
        """Two or three deployers at once, each with another change."""
        deployers = []
        for _ in range(self._chance.randrange(2, 4)):
            self._change()
            deployers.append(self._deployer())
            time.sleep(self._chance.choice([0.0, 0.3]))
        if self._chance.random() < 0.3:
            time.sleep(self._chance.uniform(0.5, 3.0))
            self._chance.choice(deployers).kill()
        for deployer in deployers:
            self._heard(deployer.result())

    def _prune(self) -> None:
        """Deploy without one of the queries, which comes back with the next deployment."""
        gone = self._any()
        self._heard(self._deployer(without=gone.name, prune=True).result())

    def _rename(self) -> None:
        """Give a query another name, with the same target, and prune."""
        query = self._any()
        before, number = query.name, len(self.log)
        query.name = f"{query.kind}-{number}"
        self._heard(self._deployer(prune=True).result())
        self._note(f"{before} is {query.name} now")

    def _kill_deployer(self) -> None:
        self._change()
        deployer = self._deployer()
        time.sleep(self._chance.uniform(0.5, 4.0))
        deployer.kill()
        self._heard(deployer.result())

    def _kill_session(self) -> None:
        time.sleep(self._chance.uniform(0.0, 1.0))
        self.session.kill(self._chance.choice(["jvm", "python", "both"]))
        if self._chance.random() < 0.7:
            self.session.start()

    def _kill_both(self) -> None:
        """Kill the session while it is told to change, and sometimes the deployer, too."""
        self._change()
        deployer = self._deployer()
        time.sleep(self._chance.uniform(0.5, 3.0))
        self.session.kill(self._chance.choice(["jvm", "python", "both"]))
        if self._chance.random() < 0.3:
            deployer.kill()
        self._heard(deployer.result())

    def _end_session(self) -> None:
        self.session.end()
        self._add_rows(1)
        self.session.start()

    def _full_store(self) -> None:
        assert self._disk is not None
        with self._disk.full():
            self._suffer()

    def _read_only_store(self) -> None:
        assert self._disk is not None
        with self._disk.read_only():
            self._suffer()

    def _suffer(self) -> None:
        self._add_rows(1)
        deployer = None
        if self._chance.random() < 0.5:
            self._change()
            deployer = self._deployer()
        time.sleep(self._chance.uniform(1.0, 8.0))
        if deployer is not None:
            deployer.kill()
            self._heard(deployer.result())

    # -- deployments ----------------------------------------------------------------------------------------

    def _deploy(self) -> Said:
        said = self._deployer().result()
        self._heard(said)
        return said

    def _deployer(self, bad: str = "", without: str = "", prune: bool = False) -> Deployer:
        folder = self.folder / f"manifests-{len(self.log)}-{self._chance.randrange(10**9)}"
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
        return Deployer(self.store_url, [*arguments, "--tables", self.target.tables], self.folder)

    def _manifest(self, query: Query, bad: bool) -> dict[str, Any]:
        # A bad version is another text each time, and that of no good one.
        number = query.text + 1_000_000 + len(self.log) if bad else query.text
        code = _SOURCE.format(folder=self.folder, n=number, more=_CODE[query.kind], bad=_BAD if bad else "")
        return {
            "name": query.name,
            "target-table": query.table,
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
        return "1ms" if query.kind == "distinct" and self.faults.seed % 2 else "20s"

    def _heard(self, said: Said) -> None:
        for name, decided in said.decided.items():
            self._note(f"  {name}: {decided['action']}, version {decided['version']}: {decided['reason']}")
            for query in self.queries:
                if query.name == name:
                    query.told.append(decided["reason"])
        for name, result in said.results.items():
            self._note(f"  {name}: {'failed' if result['failed'] else 'ok'}: {result['text']}")
        if said.error or said.code:
            self._note(f"  exit code {said.code} {said.error}")

    def _heal(self) -> None:
        """Check that one deployment makes everything run, whatever was before."""
        if not self.session.runs:
            self.session.start()
        said = self._deploy()
        if not said.went_well:
            self.faults.add(self._at, f"the deployment does not heal: {said}")
            return
        wait_until(lambda: all(self._state(query) == "RUNNING" for query in self.queries), "all run", 60)
        checked = self._deploy()
        actions = {name: decided["action"] for name, decided in checked.decided.items()}
        if actions != {query.name: "nothing" for query in self.queries}:
            self.faults.add(self._at, f"another deployment does {checked}")

    def _state(self, query: Query) -> str:
        row = self._rows().get(query.name)
        return row.state if row is not None else ""

    def _rows(self) -> dict[str, QueryRow]:
        return {row.name: row for row in self._workspace.rows()}

    def _meta(self, query: Query) -> Meta | None:
        deployed = read_deployed(self._store, query.name)
        return deployed.meta if deployed is not None else None

    def _made_ms(self, savepoint: str) -> int:
        name, version = savepoint.split("/")[1:3]
        return next(
            each.at_ms for each in all_savepoints(self._store, name, int(version)) if each.path == savepoint
        )

    @property
    def _workspace(self) -> Workspace:
        return Workspace(self.store_url, Placement())

    @property
    def _store(self) -> Store:
        return Store(self.store_url)

    def _note(self, text: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S')} {text}")

    # -- the oracle -----------------------------------------------------------------------------------------

    def _twice(self, query: Query, version: int) -> None:
        """What a version has written by now may come once more."""
        made = (query.name, version)
        query.twice.setdefault(made, Counter()).update(self._of(query, made).keys())

    def _check(self) -> None:
        """Look for each row, and at what is said of the queries."""
        everything = set(range(self._files * ROWS))
        for query in self.queries:
            made = (query.name, self._rows()[query.name].version)
            try:
                wait_until(lambda: self._of(query, made).keys() >= everything, "all rows", 60)  # noqa: B023
            except AssertionError:
                self._lost(made, everything - self._of(query, made).keys())
            for each in sorted({of for _, of in self.target.rows(query.table)}):
                self._check_version(query, each)
            entries = read_history(self._store, query.name)
            if not entries or entries[-1].version != made[1]:
                self.faults.add(self._at, f"history of {query.name} ends with {entries[-1:]}, not {made}")

    def _of(self, query: Query, made: tuple[str, int]) -> Counter[int]:
        return Counter(number for number, of in self.target.rows(query.table) if of == made)

    def _check_version(self, query: Query, made: tuple[str, int]) -> None:
        """Check that a version has no gap up to where it was replaced, and nothing too often."""
        found = self._of(query, made)
        self._lost(made, set(range(max(found) + 1)) - found.keys())
        allowed = query.twice.get(made, Counter())
        often = sorted(number for number in found if found[number] > 1 + allowed[number])
        if often:
            self.faults.add(self._at, f"{made}: too often {_ranges(often)}")
        if max(found.values()) > 1 and not any(word in text for text in query.told for word in SAID_TWICE):
            self.faults.add(self._at, f"{made}: no plan said that rows come twice")

    def _lost(self, made: tuple[str, int], numbers: set[int]) -> None:
        if numbers:
            self.faults.add(self._at, f"{made}: lost {_ranges(sorted(numbers))}")


class Disk:
    """A small file system of its own, where that can be mounted; otherwise a folder."""

    _MOST = "64m"

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        mount = ["mount", "-t", "tmpfs", "-o", f"size={self._MOST}", "tmpfs", str(folder)]
        self.mounted = (
            os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        )

    def close(self) -> None:
        """Unmount it."""
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)

    def full(self) -> Any:
        """Leave no room while a block runs."""
        return _Full(self._folder / "filler")

    def read_only(self) -> Any:
        """Allow no writes while a block runs."""
        return _ReadOnly(self._folder)


class _Full:
    def __init__(self, filler: Path) -> None:
        self._filler = filler

    def __enter__(self) -> None:
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 65_536):
                    pass
            except OSError:
                return

    def __exit__(self, *_: object) -> None:
        self._filler.unlink()


class _ReadOnly:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        wait_until(lambda: self._remount("ro"), "nobody has a file open for writing")

    def __exit__(self, *_: object) -> None:
        assert self._remount("rw")

    def _remount(self, how: str) -> bool:
        command = ["mount", "-o", f"remount,{how}", str(self._folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _ranges(numbers: list[int]) -> str:
    """Return numbers in short: their count, the first and the last."""
    return f"{len(numbers)} rows, {numbers[0]} to {numbers[-1]}"

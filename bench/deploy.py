"""How long 30 new streaming queries take to be deployed: one by one, and several at a time.

Each time there is a new session application, in a process of its own, and a new store; one query is deployed
before, so that neither pays for the JVM's first one. The deployer is this process, which analyses the queries
with a Spark of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.table import machine, write
from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.manifest.folder import read_folder
from spark_events.sql_runner.manifest.yaml_text import write_yaml
from tests.support.query_shop import METADATA
from tests.support.spark import local_spark
from tests.support.sql_processes import Session

_QUERIES = 30
_ROWS = 1_000
_PARALLEL = (1, 4)


def main() -> None:
    """Run the bench, and write its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    took: dict[int, list[float]] = {parallel: [] for parallel in _PARALLEL}
    planning: list[float] = []
    with tempfile.TemporaryDirectory() as name, local_spark("analyst", Path(name), {}) as spark:
        for number in range(rounds):
            for parallel in _PARALLEL:
                folder = Path(name) / f"{number}-{parallel}"
                plan_s, deploy_s = _deploy(spark, folder, parallel)
                planning.append(plan_s)
                took[parallel].append(deploy_s)
    alone = statistics.median(took[1])
    lines = [
        f"{_QUERIES} new queries from JSON files into folders of files, in a session with 2 cores; medians "
        f"of {rounds} rounds, in turn ({machine()}; `python -m bench.deploy`):",
        "",
        "| `--parallel` | deployed in | relative to 1 |",
        "| --- | --- | --- |",
    ]
    for parallel in _PARALLEL:
        median = statistics.median(took[parallel])
        lines.append(f"| {parallel} | {median:.0f} s | {median / alone:.2f} |")
    lines += ["", f"Before that, planning takes {statistics.median(planning):.1f} s."]
    write("deploy", lines)


def _deploy(spark: Any, folder: Path, parallel: int) -> tuple[float, float]:
    """Deploy all queries, and return the seconds of planning and of deploying."""
    (folder / "orders").mkdir(parents=True)
    rows = (json.dumps({"id": number, "price": number / 7}) for number in range(_ROWS))
    (folder / "orders" / "1.json").write_text("\n".join(rows))
    session = Session(str(folder / "store"), folder)
    session.start()
    try:
        _timed(spark, folder, "warm", 1, 1)
        return _timed(spark, folder, "query", _QUERIES, parallel)
    finally:
        session.close()


def _timed(spark: Any, folder: Path, prefix: str, queries: int, parallel: int) -> tuple[float, float]:
    names = [f"{prefix}{number}" for number in range(queries)]
    tables = f"{folder.name.replace('-', '_')}"
    manifests = folder / prefix
    manifests.mkdir()
    for number, name in enumerate(names):
        sql = f"SELECT id, price FROM orders_{tables} WHERE id > {number}"
        manifest = {"name": name, "target-table": f"{name}_{tables}", "sql": sql}
        (manifests / f"{name}.yaml").write_text(write_yaml(manifest))
    definitions = [_table(f"orders_{tables}", "", folder / "orders")]
    definitions += [_table(f"{name}_{tables}", f", {METADATA}", folder / name) for name in names]
    workspace = Workspace(str(folder / "store"), Placement(parallel=parallel))
    analyst = Analyst(spark, definitions)
    read = read_folder(manifests, None).or_fail()
    with workspace.deploying() as lease:
        began = time.perf_counter()
        planned = workspace.plan(analyst, read)
        is_planned = time.perf_counter()
        results = list(workspace.deployer(lease, analyst).deploy_all(planned))
        ended = time.perf_counter()
    failed = [result for result in results if result.failed]
    if failed or len(results) != queries:
        raise RuntimeError(f"not all queries were deployed: {failed}")
    return is_planned - began, ended - is_planned


def _table(name: str, more: str, folder: Path) -> str:
    columns = f"id INT, price DOUBLE{more}"
    return f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING json LOCATION '{folder}'"


if __name__ == "__main__":
    main()

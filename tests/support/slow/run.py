"""Runs one case, or its twin, in a process of its own, and asks ``spark-events why`` about it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.applications import App, cli
from tests.support.slow.case import Case
from tests.support.slow.expected import THRESHOLDS
from tests.support.spark_cluster import running_spark_cluster

LONGEST_S = 300
_USUAL = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "8",
    # Few bytes that take long are what cases are made of: let AQE make no single task of them.
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1b",
    "spark.events.reporter.file.factory.class": "file_log",
    "spark.driver.memory": "1g",
}


@dataclass(frozen=True)
class Told:
    """What one run was, and what was said of it.

    Attributes:
        outcome: the injected truth, and how long the work took.
        issues: that ``why`` tells of it, in its order.
    """

    case: str
    seed: int
    bad: bool
    outcome: Mapping[str, Any]
    issues: list[dict[str, Any]]


def run(case: Case, seed: int, bad: bool, master: str, conf: Mapping[str, str], folder: Path) -> None:
    """Run a case in a folder, which keeps its event log, its live events and its truth.

    What was there of an earlier run is deleted.

    Raises:
        RuntimeError: it failed; the message has the end of what it said.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("logs", "events"):
        (folder / name).mkdir(parents=True)
    with _master(case.master or master) as (url, cores):
        app = Path(__file__).with_name("application.py")
        arguments = [case.name, str(seed), "bad" if bad else "twin", str(cores), str(folder)]
        own = {
            **_USUAL,
            "spark.eventLog.dir": (folder / "logs").as_uri(),
            "spark.events.reporter.file.path": str(folder / "events"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            **THRESHOLDS,
            **conf,
            **_own(case, bad, folder),
        }
        ended = App(cli("run", "--master", url, str(app), *arguments), own, folder).end(LONGEST_S)
    if ended.code != 0:
        raise RuntimeError(f"{case.name} {arguments[2]} ended with {ended.code}:\n{ended.err[-3_000:]}")


def ask(case: Case, seed: int, bad: bool, conf: Mapping[str, str], folder: Path, live: bool = False) -> Told:
    """Ask ``spark-events why`` about the last event log in a folder, or about the live events.

    Raises:
        RuntimeError: it failed.
    """
    outcome = json.loads((folder / "outcome.json").read_text())
    path = folder / "events" if live else max((folder / "logs").iterdir(), key=lambda log: log.name)
    conf = {**THRESHOLDS, **conf, **_own(case, bad, folder)}
    of_issues = {key: value for key, value in conf.items() if key.startswith("spark.events.issue")}
    return Told(case.name, seed, bad, outcome, _issues(path, of_issues, folder))


def _issues(path: Path, conf: Mapping[str, str], folder: Path) -> list[dict[str, Any]]:
    figures = folder / "why.json"
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command = [sys.executable, "-m", "spark_events.cli.main", "why", str(path), "--json", str(figures)]
    done = subprocess.run([*command, *settings], capture_output=True, text=True, check=False)
    figures.with_suffix(".txt").write_text(done.stdout + done.stderr)
    if done.returncode != 0:
        raise RuntimeError(f"why {path} ended with {done.returncode}:\n{done.stderr[-2_000:]}")
    issues: list[dict[str, Any]] = json.loads(figures.read_text())["applications"][-1]["issues"]
    return issues


def _own(case: Case, bad: bool, folder: Path) -> dict[str, str]:
    """Return a case's own settings; ``{folder}`` in them is its folder."""
    own = {**case.conf, **(case.bad if bad else case.twin)}
    return {key: value.replace("{folder}", str(folder)) for key, value in own.items()}


@contextmanager
def _master(wanted: str, cores: int = 4) -> Iterator[tuple[str, int]]:
    """Give a master's URL and how many cores its applications have."""
    if hosts := re.fullmatch(r"hosts\[(\d+)\]", wanted):
        addresses = [f"127.0.0.{number + 1}" for number in range(int(hosts[1]))]
        with running_spark_cluster(addresses, 1) as cluster:
            yield cluster.master, len(addresses)
        return
    url = wanted.format(cores=cores)
    numbers = [int(number) for number in re.findall(r"\d+", url)]
    yield url, numbers[0] * numbers[1] if url.startswith("local-cluster") else numbers[0]

"""The command that shows which data feeds which, from what a job listener wrote down."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spark_events.lineage.job_listeners import STATEMENT_CREATED, STATEMENT_ENDED
from tests.lineage.test_listeners import Told
from tests.support import cli


def flow(source: str, sink: str, table: str = "") -> dict[str, Any]:
    """Return a write of one column from one path to another."""
    target: dict[str, Any] = {"paths": [sink], "format": "parquet"}
    if table:
        target["table"] = {"catalog": "spark_catalog", "database": "shop", "table": table}
    return {
        "sources": [{"identity": {"paths": [source], "format": "parquet"}, "streaming": False}]
        if source
        else [],
        "columns": [[0, "a", "int"]] if source else [],
        "sinks": [{"identity": target, "modify": "INSERT", "columns": [["b", "int", 0]]}],
        "groups": [{"0": 1}] if source else [{}],
        "indirect": {},
    }


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """raw → orders → totals → report, of which the last failed, and a circle."""
    told = Told(s="file_log", __file_log__path=str(tmp_path))
    flows = [
        flow("", "/d/raw"),
        flow("/d/raw", "/d/orders", "orders"),
        flow("/d/orders", "/d/totals", "totals"),
        flow("/d/totals", "/d/report"),
        flow("/d/ring", "/d/back"),
        flow("/d/back", "/d/ring"),
    ]
    for number, one in enumerate(flows):
        told.record(STATEMENT_CREATED, executionId=number, lineage=one)
        failure = {"text": "java.lang.X: no"} if number == 3 else None
        told.record(STATEMENT_ENDED, executionId=number, failure=failure)
    told.close()
    return tmp_path


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(cli("lineage", *map(str, arguments)), capture_output=True, text=True)


def test_what_feeds_a_table_and_what_it_feeds(logs: Path) -> None:
    done = run(logs, "--of", "orders", "--columns")
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == "shop.orders is fed by"
    assert lines[1].startswith("└── /d/raw by shop.insert.shop.orders FINISHED 1970-01-01")
    assert lines[2] == "└── b ← a"
    assert lines[3] == "shop.orders feeds"
    assert lines[4].startswith("└── shop.totals by shop.insert.shop.totals FINISHED")
    assert lines[6].startswith("└── /d/report by shop.insert.d.report FAILED")


def test_all_of_it(logs: Path) -> None:
    done = run(logs)
    assert done.returncode == 0
    assert done.stdout.count("FINISHED") == 5
    assert done.stdout.count("FAILED") == 1


def test_a_circle_ends(logs: Path) -> None:
    done = run(logs, "--of", "/d/ring")
    assert done.returncode == 0
    assert done.stdout.count("it goes in a circle") == 2


def test_for_mermaid_and_for_graphviz(logs: Path) -> None:
    mermaid = run(logs, "--as", "mermaid").stdout.splitlines()
    assert mermaid[0] == "flowchart LR"
    assert '  d0 -->|"shop.insert.shop.orders"| d1' in mermaid
    dot = run(logs, "--as", "dot").stdout
    assert dot.startswith("digraph lineage {")
    assert '  d0 -> d1 [label="shop.insert.shop.orders"];' in dot


def test_a_compressed_file_and_one_with_nonsense(logs: Path) -> None:
    (log,) = logs.iterdir()
    packed = logs / f"{log.name}.gz"
    packed.write_bytes(gzip.compress(b"nonsense\n" + log.read_bytes() + b'{"jobId": "cut'))
    log.unlink()
    done = run(logs, "--of", "shop.totals")
    assert done.returncode == 0, done.stderr
    assert "2 line(s) were no events of jobs" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--of", "ordres"], "did you mean shop.orders"),
        (["--of", "nothing-like-it-at-all"], "there are 6 others"),
    ],
)
def test_data_that_is_not_there(logs: Path, arguments: list[str], said: str) -> None:
    done = run(logs, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_nothing_to_read(tmp_path: Path) -> None:
    assert "no file log of jobs below it" in run(tmp_path).stderr
    gone = run(tmp_path / "gone")
    assert gone.returncode == 2
    assert "is not there" in gone.stderr

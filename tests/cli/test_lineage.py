"""The command that shows which data feeds which, from what a job listener wrote down."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_events.jobs.plan_records import STATEMENT_CREATED, STATEMENT_ENDED
from spark_events.lineage.job_logs import read_job_logs
from tests.support.forked_commands import run_forked
from tests.support.told_jobs import Told


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
    environment = {**os.environ, "COLUMNS": "160"}
    return run_forked("lineage", *map(str, arguments), env=environment, timeout=280)


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
    assert done.stdout.count("and so on: a cycle") == 2


def test_for_mermaid_and_for_graphviz(logs: Path) -> None:
    mermaid = run(logs, "--format", "mermaid").stdout.splitlines()
    assert mermaid[0] == "flowchart LR"
    assert '  d0 -->|"shop.insert.shop.orders"| d1' in mermaid
    dot = run(logs, "--format", "dot").stdout
    assert dot.startswith("digraph lineage {")
    assert '  d0 -> d1 [label="shop.insert.shop.orders"];' in dot


def test_a_compressed_file_and_one_with_nonsense(logs: Path) -> None:
    (log,) = logs.iterdir()
    packed = logs / f"{log.name}.gz"
    packed.write_bytes(gzip.compress(b"nonsense\n" + log.read_bytes() + b'{"jobId": "cut'))
    log.unlink()
    done = run(logs, "--of", "shop.totals")
    assert done.returncode == 0, done.stderr
    assert f"{packed}: skipped 2 lines that are not job events" in done.stderr


def event(**fields: Any) -> dict[str, Any]:
    """Return an event of a job as the file log writes it, with some fields in place of its own."""
    vertex = {"datasets": [{"namespace": "file", "name": "/d/in"}]}
    graph = {"sources": [vertex], "sinks": [], "relations": []}
    whole = {"jobId": "j", "jobName": "reads", "newStatus": "RUNNING", "timeUnixNano": "1000000"}
    return {**whole, "application": {"name": "shop"}, "lineage": graph, **fields}


@pytest.mark.parametrize(
    "wrong",
    [
        {"application": None},
        {"application": {}},
        {"jobId": ["a", "list"]},
        {"jobName": 7},
        {"timeUnixNano": "soon"},
        {"newStatus": {"a": 1}},
        {"lineage": {"sources": [], "sinks": []}},
        {"lineage": {"sources": [], "sinks": [], "relations": [{"source": 3, "sink": 0}]}},
        {"lineage": {"sources": [{"datasets": [{"name": "x"}]}], "sinks": [], "relations": []}},
    ],
    ids=repr,
)
def test_a_line_that_lacks_something(logs: Path, wrong: dict[str, Any]) -> None:
    """It is skipped, counted and named; the others are shown."""
    path = logs / "more.lineage.000001.jsonl"
    path.write_text(json.dumps(event(**wrong)) + "\n")
    flow = read_job_logs([logs])

    assert flow.skipped == {path: 1}
    assert len(flow.flows) == 6


def test_a_torn_file(logs: Path) -> None:
    """What can be read of it is shown."""
    (log,) = logs.iterdir()
    packed = logs / f"{log.name}.gz"
    packed.write_bytes(gzip.compress(log.read_bytes() * 50)[:-20])
    log.unlink()
    done = run(logs, "--of", "shop.totals")
    assert done.returncode == 0, done.stderr
    assert f"{packed}: cannot be read to its end" in done.stderr
    assert "shop.totals is fed by" in done.stdout


@pytest.mark.parametrize("kind", ["link to nothing", "link in a circle", "pipe", "folder"])
def test_what_is_no_file(logs: Path, kind: str) -> None:
    """It is left out with a warning, and the rest is read."""
    odd = logs / "a__b.lineage.000001.jsonl"
    make: dict[str, Callable[[Path], object]] = {
        "link to nothing": lambda path: path.symlink_to("nothing"),
        "link in a circle": lambda path: path.symlink_to(path),
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
    }
    make[kind](odd)
    done = run(logs)
    alone = run(odd)

    assert done.returncode == 0, done.stderr
    assert "shop.orders" in done.stdout
    assert odd.name in done.stderr.replace("\n", "")
    assert alone.returncode == 4
    assert "Traceback" not in done.stderr + alone.stderr


def test_a_job_without_a_known_sink(logs: Path) -> None:
    """It is in the table, and is found by its name."""
    nothing = {"sources": [], "sinks": [], "relations": []}
    lines = [event(), event(jobId="k", jobName="knows nothing", lineage=nothing)]
    (logs / "more.lineage.000001.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    table = " ".join(run(logs).stdout.split())
    assert "shop.reads" in table
    assert "shop.knows nothing" in table
    of_job = [" ".join(line.split()) for line in run(logs, "--of", "reads").stdout.splitlines()]
    assert of_job[0].startswith("shop.reads RUNNING 1970-01-01")
    assert of_job[1:] == ["├── reads", "│ └── /d/in", "└── writes", "└── nothing known"]


@pytest.mark.extended
def test_a_long_chain_and_many_ways(tmp_path: Path) -> None:
    """Of 3,000 tables each feeding the next two, what is drawn ends."""
    lines = []
    for number in range(3_000):
        names = [f"/d/{number}", f"/d/{number + 1}", f"/d/{number + 2}"]
        vertices = [{"datasets": [{"namespace": "file", "name": name}]} for name in names]
        relations = [{"source": 0, "sink": 0}, {"source": 0, "sink": 1}]
        graph = {"sources": vertices[:1], "sinks": vertices[1:], "relations": relations}
        lines.append(json.dumps(event(jobId=str(number), jobName=f"j{number}", lineage=graph)))
    (tmp_path / "a.lineage.000001.jsonl").write_text("\n".join(lines))
    done = run(tmp_path, "--of", "/d/0")
    assert done.returncode == 0, done.stderr
    assert "… as above" in done.stdout
    assert "… and so on: use --of to see more" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--of", "ordres"], "did you mean shop.orders"),
        (["--of", "nothing-like-it-at-all"], "reads or writes it; there are /d/back, /d/raw, "),
    ],
)
def test_data_that_is_not_there(logs: Path, arguments: list[str], said: str) -> None:
    done = run(logs, *arguments)
    assert done.returncode == 4
    assert said in done.stderr


def test_a_time_before_all_events_is_no_file_of_something_else(logs: Path) -> None:
    """Although a line of it is no event."""
    (log,) = logs.iterdir()
    log.write_bytes(b"nonsense\n" + log.read_bytes())
    done = run(logs, "--as-of", "1970-01-01")
    assert done.returncode == 0, done.stderr
    assert "no job is known" in done.stdout


def test_files_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print(1)\nprint(2)\n")
    done = run(tmp_path / "app.py")
    assert done.returncode == 4
    assert "skipped 2 lines that are not job events" in done.stderr
    assert "app.py: no job event among its lines" in done.stderr


def test_nothing_to_read(tmp_path: Path) -> None:
    assert (
        "to write some, set spark.job-status-changed.listener.log.factory.class=file_log"
        in run(tmp_path).stderr
    )
    gone = run(tmp_path / "gone")
    assert gone.returncode == 4
    assert "no such file or folder" in gone.stderr

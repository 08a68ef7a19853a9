"""What the command ``lineage`` answers about several applications over some days."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked_commands import run_forked


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "160"}
    return run_forked("lineage", *map(str, arguments), env=environment)


HOUR_MS = 3_600_000
FIRST_MS = 1_767_225_600_000
"""2026-01-01T00:00 UTC."""


class Log:
    """A job log that grows."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "a.lineage.000001.jsonl"
        self._number = 0

    def write(
        self,
        hour: float,
        application: str,
        source: str,
        sink: str,
        columns: dict[str, list[str]] | None = None,
        influences: tuple[str, ...] = (),
        modify: str = "INSERT",
        incomplete: str = "",
        status: str = "FINISHED",
        before: dict[str, Any] | None = None,
        renamed_from: str = "",
    ) -> None:
        """Add a job that has ended at an hour, and is named after what it writes.

        What was known of it ``before``, when it began, is another graph.
        """
        self._number += 1
        vertex: Any = [{"datasets": [{"namespace": "file", "name": name}]} for name in (source, sink)]
        relation = {
            "source": 0,
            "sink": 0,
            "columns": {
                name: [{"column": one} for one in sources] for name, sources in (columns or {}).items()
            },
            "influences": [{"column": one} for one in influences],
        }
        if renamed_from:
            schema = [{"name": name, "type": "int"} for name in columns or {}]
            place = {"namespace": "file", "name": renamed_from}
            vertex[1]["datasets"][0] |= {"schema": schema, "renamedFrom": place}
        graph = {
            "sources": vertex[:1] if source else [],
            "sinks": [{**vertex[1], "modifyType": modify}],
            "relations": [relation] if source else [],
            "incomplete": incomplete,
        }
        event = {
            "jobId": f"{application}/{self._number}",
            "jobName": f"{modify.lower()}{sink.replace('/', '.')}",
            "jobKind": "statement",
            "timeUnixNano": str(int(FIRST_MS + hour * HOUR_MS) * 1_000_000),
            "application": {"name": "shop", "id": application, "attemptId": ""},
        }
        with self._path.open("a") as file:
            if before is not None:
                file.write(json.dumps({**event, "event": "JobCreatedEvent", "lineage": before}) + "\n")
                running = {**event, "event": "JobExecutionStatusEvent", "newStatus": "RUNNING"}
                file.write(json.dumps(running) + "\n")
            kind = "JobCreatedEvent" if before is None else "JobLineageEvent"
            file.write(json.dumps({**event, "event": kind, "lineage": graph}) + "\n")
            ended = {**event, "event": "JobExecutionStatusEvent", "newStatus": status}
            file.write(json.dumps(ended) + "\n")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


@pytest.fixture
def days(log: Log, tmp_path: Path) -> Path:
    """On the first day raw → orders → totals; on the second, totals is made of raw, by other columns."""
    log.write(0, "app-1", "/d/raw", "/d/orders", {"amount": ["price", "n"], "day": ["day"]})
    log.write(1, "app-1", "/d/orders", "/d/totals", {"sum": ["amount"]}, influences=("day",))
    log.write(24, "app-2", "/d/raw", "/d/orders", {"amount": ["price"], "day": ["day"]})
    log.write(25, "app-2", "/d/raw", "/d/totals", {"sum": ["price"]})
    return tmp_path


def answer(*arguments: object) -> Any:
    done = run(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_flows_that_a_job_no_longer_has(days: Path) -> None:
    """They are shown, and marked as such in each format: totals is made of raw now."""
    rows = {(row["source"], row["sink"]): row["current"] for row in answer(days)}
    assert rows == {
        ("/d/raw", "/d/orders"): True,
        ("/d/orders", "/d/totals"): False,
        ("/d/raw", "/d/totals"): True,
    }
    (row,) = [line for line in run(days).stdout.splitlines() if "(no longer)" in line]
    assert "/d/orders" in row
    row, arrow = [
        line for line in run(days, "--format", "markdown").stdout.splitlines() if "(no longer)" in line
    ]
    assert "/d/orders" in row
    assert "-.->" in arrow
    (arrow,) = [line for line in run(days, "--format", "dot").stdout.splitlines() if "(no longer)" in line]
    assert "style=dotted" in arrow
    fed = [line for line in run(days, "--of", "totals").stdout.splitlines() if "by" in line]
    assert ["/d/orders" in line for line in fed if "(no longer)" in line] == [True]
    job = [line for line in run(days, "--of", "shop.insert.d.totals").stdout.splitlines() if "/d/" in line]
    assert ["(no longer)" in line for line in job if "/d/orders" in line] == [True]
    assert ["(no longer)" in line for line in job if "/d/raw" in line] == [False]


def test_a_table_that_is_renamed(log: Log, tmp_path: Path) -> None:
    """What its column contributes to includes what is made of it under its new name."""
    log.write(0, "app-1", "/d/raw", "/d/new", {"amount": ["price"], "day": ["day"]})
    log.write(1, "app-1", "", "/d/old", {"amount": []}, modify="RENAME", renamed_from="/d/orders")
    columns = {"amount": [], "day": []}
    log.write(2, "app-1", "", "/d/orders", columns, modify="RENAME", renamed_from="/d/new")
    log.write(3, "app-1", "/d/orders", "/d/totals", {"sum": ["amount"]})

    affected = answer(tmp_path, "--impact", "/d/raw.price")

    assert [(row["data"], row["column"], row["steps"]) for row in affected] == [
        ("/d/new", "amount", 1),
        ("/d/orders", "amount", 2),
        ("/d/totals", "sum", 3),
    ]
    assert [row["data"] for row in answer(tmp_path, "--orphans")] == ["/d/totals"]
    # Nothing else is known of the first table's old name.
    assert {"source": "-", "sink": "/d/old"}.items() <= answer(tmp_path)[1].items()


def test_as_of_a_time(days: Path) -> None:
    edges = {(row["source"], row["sink"]) for row in answer(days, "--as-of", "2026-01-01T12:00")}
    assert edges == {("/d/raw", "/d/orders"), ("/d/orders", "/d/totals")}
    assert answer(days, "--as-of", "2025-12-31") == []


def test_which_edges_came_and_went(days: Path) -> None:
    rows = answer(days, "--diff", "2026-01-01T12:00", "2026-01-02T12:00")
    shown = {(row["change"], row["source"], row["sink"], *row["columns"]) for row in rows}
    assert shown == {
        ("added", "/d/raw", "/d/totals"),
        ("removed", "/d/orders", "/d/totals"),
        ("changed", "/d/raw", "/d/orders", "amount"),
    }
    same = run(days, "--diff", "2026-01-02T12:00", "2026-01-03T12:00")
    assert same.stdout.strip() == "no edge came or went"


def test_all_statements_of_an_application_count(log: Log, tmp_path: Path) -> None:
    """Two that write the same table have one name, and both are current."""
    log.write(0, "app-1", "/d/a", "/d/t")
    log.write(1, "app-1", "/d/b", "/d/t")
    log.write(24, "app-2", "/d/b", "/d/t")
    rows = answer(tmp_path, "--diff", "2025-12-31", "2026-01-01T12:00")
    assert {row["source"] for row in rows} == {"/d/a", "/d/b"}
    (gone,) = answer(tmp_path, "--diff", "2026-01-01T12:00", "2026-01-02T12:00")
    assert (gone["change"], gone["source"]) == ("removed", "/d/a")


@pytest.mark.parametrize("sinks", [[], ["/d/provisional"]])
def test_what_is_known_later_is_in_place_of_what_was_known_before(
    log: Log, tmp_path: Path, sinks: list[str]
) -> None:
    """A query of foreachBatch writes later than it reads; a table's place may be known once it is there."""
    vertices = [{"datasets": [{"namespace": "file", "name": name}]} for name in ("/d/a", *sinks)]
    graph = {
        "sources": vertices[:1],
        "sinks": vertices[1:],
        "relations": [{"source": 0, "sink": 0} for _ in sinks],
        "incomplete": "it is not known yet",
    }
    log.write(0, "app-1", "/d/a", "/d/t", before=graph, status="RUNNING")
    (edge,) = answer(tmp_path, "--as-of", "2026-01-02")
    assert (edge["source"], edge["sink"], edge["status"]) == ("/d/a", "/d/t", "RUNNING")
    assert answer(tmp_path, "--missing") == []
    before = run(tmp_path, "--of", "provisional")
    assert "/d/provisional" not in before.stdout + before.stderr
    assert before.returncode != 0


def test_one_of_several_that_have_a_name(log: Log, tmp_path: Path) -> None:
    """The error says what to write instead, and that has an answer."""
    log.write(0, "app-1", "/a/t", "/b/t", {"x": ["y"]})
    several = run(tmp_path, "--of", "t")
    assert (
        several.stderr.replace("\n", " ")
        .strip()
        .endswith(
            "--of t: more than one match: file /a/t, file /b/t; write the whole of one, such as 'file /a/t'"
        )
    )
    assert "/b/t" in run(tmp_path, "--of", "file /a/t").stdout
    (reached,) = answer(tmp_path, "--impact", "file /a/t.y")
    assert (reached["data"], reached["column"]) == ("/b/t", "x")


def test_what_a_column_contributes_to(days: Path) -> None:
    def reached(column: str, *more: str) -> set[tuple[str, str, str, int]]:
        rows = answer(days, "--impact", column, *more)
        return {(row["data"], row["column"], row["how"], row["steps"]) for row in rows}

    assert reached("raw.price") == {
        ("/d/orders", "amount", "value", 1),
        ("/d/totals", "sum", "value", 1),
    }
    # On the first day, by way of the orders.
    before = ("--as-of", "2026-01-01T12:00")
    assert reached("/d/raw.price", *before) == {
        ("/d/orders", "amount", "value", 1),
        ("/d/totals", "sum", "value", 2),
    }
    assert reached("/d/raw.day", *before) == {
        ("/d/orders", "day", "value", 1),
        ("/d/totals", "*", "rows", 2),
    }


def test_a_circle_of_columns_ends(log: Log, tmp_path: Path) -> None:
    log.write(0, "app-1", "/d/a", "/d/b", {"x": ["y"]})
    log.write(1, "app-1", "/d/b", "/d/a", {"y": ["x"]})
    assert len(answer(tmp_path, "--impact", "/d/a.y")) == 2


def test_behind_lineage_without_columns_all_may_be_affected(log: Log, tmp_path: Path) -> None:
    log.write(0, "app-1", "/d/a", "/d/b", {"x": ["y"]})
    log.write(1, "app-1", "/d/b", "/d/c", incomplete="RDDs have no columns")
    log.write(2, "app-1", "/d/c", "/d/e", {"z": ["w"], "literal": []})
    rows = answer(tmp_path, "--impact", "/d/a.y")
    assert [(row["data"], row["column"], row["how"]) for row in rows] == [
        ("/d/b", "x", "value"),
        ("/d/c", "*", "unknown"),
        ("/d/e", "z", "value"),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--impact", "raw.nothing"], 4, "/d/raw is not known to have a column nothing; known columns: day"),
        (["--impact", "raw"], 2, "expected a table and its column"),
        (["--impact", "rew.price"], 4, "did you mean"),
        (["--as-of", "yesterday"], 2, "--as-of yesterday: expected a time such as"),
        (["--stale", "soon"], 2, "soon"),
        (["--orphans", "--missing"], 2, "--orphans and --missing: give only one of them"),
        (["jobs.sql"], 2, "jobs.sql` reads SQL files and manifests"),
        (["--columns"], 2, "--columns: goes with --of"),
        (["--of", "raw", "--columns", "--format", "dot"], 2, "--columns: needs --format tree, not dot"),
        (
            ["--diff", "2026-01-01", "2026-01-02", "--as-of", "2026-01-01"],
            2,
            "--diff has two times of its own",
        ),
        (["--template-file", "t.yaml"], 2, "which lineage plan reads"),
        (
            ["--fail-on", "sla"],
            2,
            "--fail-on sla: expected one of impact, diff, base, stale, orphans, missing",
        ),
        (["--fail-on", "stale"], 2, "--fail-on stale: give --stale, too"),
    ],
)
def test_wrong_questions(days: Path, arguments: list[str], code: int, said: str) -> None:
    (days / "jobs.sql").write_text("SELECT 1")
    arguments = [str(days / argument) if argument == "jobs.sql" else argument for argument in arguments]
    done = run(days, *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr


def test_what_is_older_than_its_sources(days: Path, log: Log) -> None:
    assert answer(days, "--stale", "24h") == []
    log.write(60, "app-3", "", "/d/raw")
    log.write(61, "app-3", "", "/d/orders", modify="ALTER")  # which makes no rows newer
    rows = answer(days, "--stale", "24h")
    assert [(row["data"], row["source"], row["late_ms"] // HOUR_MS) for row in rows] == [
        ("/d/orders", "/d/raw", 36),
        ("/d/totals", "/d/raw", 35),
    ]
    assert [row["data"] for row in answer(days, "--stale", "35h")] == ["/d/orders"]


def test_a_table_that_replaces_another_is_as_old_as_its_rows(log: Log, tmp_path: Path) -> None:
    """As where each night a new table is written, and gets the name of the old one."""
    columns = {"amount": ["price"]}
    log.write(0, "app-1", "/d/raw", "/d/orders", columns)
    log.write(47, "app-2", "", "/d/raw")
    log.write(48, "app-2", "/d/raw", "/d/new", columns)
    log.write(48.1, "app-2", "", "/d/orders", {"amount": []}, modify="RENAME", renamed_from="/d/new")
    assert answer(tmp_path, "--stale", "1h") == []

    log.write(72, "app-3", "", "/d/raw")
    log.write(72.1, "app-3", "/d/raw", "/d/new", columns)  # which has not got the name yet
    rows = answer(tmp_path, "--stale", "1h")
    assert [(row["data"], row["source"], row["late_ms"] // HOUR_MS) for row in rows] == [
        ("/d/orders", "/d/raw", 23)
    ]


def test_a_table_that_replaces_another_is_no_newer_than_its_rows(log: Log, tmp_path: Path) -> None:
    """However late the one that it replaces was written; what is written after that counts."""
    log.write(40, "app-1", "/d/raw", "/d/new", {"amount": ["price"]})
    log.write(45, "app-1", "", "/d/raw")
    log.write(50, "app-1", "/d/raw", "/d/orders", {"amount": ["price"]})
    log.write(51, "app-1", "", "/d/orders", {"amount": []}, modify="RENAME", renamed_from="/d/new")
    late = [(row["data"], row["late_ms"] // HOUR_MS) for row in answer(tmp_path, "--stale", "1h")]
    assert ("/d/orders", 5) in late

    log.write(52, "app-1", "/d/raw", "/d/orders", {"amount": ["price"]})
    late = [(row["data"], row["late_ms"] // HOUR_MS) for row in answer(tmp_path, "--stale", "1h")]
    assert "/d/orders" not in [data for data, _ in late]


def test_a_job_that_failed_has_made_nothing_newer(days: Path, log: Log) -> None:
    """The table is as old as the last run that finished, and so all the more older than its source."""
    log.write(60, "app-3", "", "/d/raw")
    log.write(61, "app-4", "/d/raw", "/d/orders", {"amount": ["price"]}, status="FAILED")
    rows = answer(days, "--stale", "24h")
    assert ("/d/orders", 36) in [(row["data"], row["late_ms"] // HOUR_MS) for row in rows]


def test_what_nobody_reads(days: Path, log: Log) -> None:
    assert {row["data"] for row in answer(days, "--orphans")} == {"/d/totals", "/d/orders"}
    assert {row["data"] for row in answer(days, "--orphans", "--as-of", "2026-01-01T12:00")} == {"/d/totals"}
    log.write(70, "app-3", "", "/d/totals", modify="DROP")
    assert {row["data"] for row in answer(days, "--orphans")} == {"/d/orders"}


def test_what_is_missing_and_why(log: Log, tmp_path: Path) -> None:
    log.write(0, "app-1", "/d/a", "/d/b", {"x": ["y"]})
    assert run(tmp_path, "--missing").stdout.strip() == "nothing is known to be missing"
    log.write(1, "app-1", "/d/b", "/d/c", incomplete="RDDs have no columns")
    (row,) = answer(tmp_path, "--missing")
    assert (row["job"], row["missing"]) == ("shop.insert.d.c", "RDDs have no columns")
    assert "RDDs have no columns" in run(tmp_path, "--missing").stdout


def test_a_rule_fails_the_command_if_its_answer_is_not_empty(days: Path) -> None:
    rules = ("--fail-on", "orphans,missing")
    done = run(days, "--impact", "raw.price", "--fail-on", "impact", *rules, "--format", "dot")
    assert done.returncode == 1
    assert done.stdout.startswith("digraph lineage {")
    assert "--fail-on impact: /d/orders.amount, /d/totals.sum" in done.stderr
    assert "--fail-on orphans: /d/orders, /d/totals" in done.stderr
    assert "missing" not in done.stderr
    same = run(days, "--diff", "2026-01-02T12:00", "2026-01-03T12:00", "--fail-on", "diff")
    assert (same.returncode, same.stderr) == (0, "")


def test_a_column_that_nothing_reads_breaks_nothing(days: Path) -> None:
    done = run(days, "--impact", "/d/totals.SUM", "--fail-on", "impact")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "/d/totals.sum contributes to nothing that is known"


def test_the_page_of_an_answer(days: Path) -> None:
    """In place of the table on standard output, or besides it in a file."""
    done = run(days, "--impact", "raw.price", "--html", "-")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<!doctype html>")
    assert '"asked":{"index":0,"column":"price"}' in done.stdout
    beside = run(days, "--html", days / "page.html")
    assert "/d/orders" in beside.stdout
    assert (days / "page.html").read_text().startswith("<!doctype html>")
    assert run(days, "--html", days / "no" / "page.html").returncode == 2

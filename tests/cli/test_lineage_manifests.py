"""The lineage of SQL files and manifests together, none of which is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.applications import cli
from tests.support.paths import REPO
from tests.support.warm_commands import WarmCommands, run_command

pytestmark = [pytest.mark.spark, pytest.mark.extended]

TABLES = """
CREATE TABLE clicks USING kafka OPTIONS ('kafka.bootstrap.servers' = 'nowhere:9092', 'subscribe' = 'clicks')
  TBLPROPERTIES ('watermark.column' = 'timestamp', 'watermark.delay' = '1 minute');
CREATE TABLE alarms USING kafka OPTIONS ('kafka.bootstrap.servers' = 'nowhere:9092', 'topic' = 'alarms');
CREATE OR REPLACE TABLE `page_views` (page STRING, at TIMESTAMP, `how many` INT)
  USING iceberg PARTITIONED BY (days(at)) LOCATION 's3a://nowhere/views';
CREATE TABLE pages (page STRING, owner STRING) USING delta LOCATION '/nowhere/pages';
"""
JOBS = """
MERGE INTO pages USING `page_views` AS v ON pages.page = v.page WHEN MATCHED THEN UPDATE SET owner = 'x';
INSERT INTO pages SELECT page, string(`how many`) FROM `page_views`;
INSERT INTO pages SELECT page, string(at) FROM `page_views`;
"""
QUERIES = {
    "views.yaml": """
name: views
target-table: '`page_views`'
sql: |
  SELECT string(value) AS page, timestamp AS at, 1 AS `how many` FROM clicks
""",
    "alarms.yaml": """
name: alarms
target-table: alarms
sql: |
  SELECT page, `how many` FROM `page_views`
""",
    "code.yaml": """
name: by-code
target-table: pages
code: |
  open("ran", "w")
  execution_output = spark.readStream.table("page_views")
""",
}


def run(warm: WarmCommands | None, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"COLUMNS": "160"}
    return run_command("lineage", "plan", *arguments, cwd=folder, environment=environment, warm=warm)


@pytest.fixture
def pipeline(java: str, tmp_path: Path) -> Path:
    (tmp_path / "tables.sql").write_text(TABLES)
    (tmp_path / "jobs.sql").write_text(JOBS)
    (tmp_path / "queries").mkdir()
    for name, text in QUERIES.items():
        (tmp_path / "queries" / name).write_text(text)
    (tmp_path / "template.yaml").write_text("include-query-metadata: false\n")
    return tmp_path


def test_a_pipeline_of_statements_and_manifests(pipeline: Path, warm: WarmCommands) -> None:
    """The graph of all, tables of connectors included; no code is run, and nothing is written."""
    files = ("queries", "tables.sql", "jobs.sql", "--template-file", "template.yaml")
    done = run(warm, pipeline, *files, "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {(row["source"], row["sink"], row["job"]): row for row in json.loads(done.stdout)}

    views = rows["default.clicks", "default.page_views", "queries.views"]
    assert (views["columns"]["page"], views["columns"]["at"]) == (["value"], ["timestamp"])
    assert views["at"] == "queries/views.yaml:5"
    alarms = rows["default.page_views", "default.alarms", "queries.alarms"]
    assert alarms["columns"]["value"] == ["page", "how many"]
    merge = rows["default.page_views", "default.pages", "jobs.merge.default.pages"]
    assert merge["influences"] == ["page"]
    # Two statements that do the same to the same table are both there.
    first = rows["default.page_views", "default.pages", "jobs.insert.default.pages (line 3)"]
    second = rows["default.page_views", "default.pages", "jobs.insert.default.pages (line 4)"]
    assert (first["columns"]["owner"], second["columns"]["owner"]) == (["how many"], ["at"])
    assert rows["-", "default.pages", "queries.by-code"]["incomplete"].startswith(
        "its rows are made by Python"
    )
    assert ("-", "default.pages", "tables.create.default.pages") in rows
    assert {path.name for path in pipeline.iterdir()} == {
        "queries",
        "tables.sql",
        "jobs.sql",
        "template.yaml",
    }
    assert not Path("/nowhere").exists()


def test_what_a_change_breaks_fails_a_check_of_a_pull_request(pipeline: Path) -> None:
    files = ("tables.sql", "jobs.sql", "queries", "--template-file", "template.yaml")
    asked = ("--impact", "`page_views`.`how many`", "--fail-on", "impact,missing", "--format", "markdown")
    done = run(None, pipeline, *files, *asked)
    assert done.returncode == 1
    assert "--fail-on impact: default.alarms.value, default.pages.owner" in done.stderr
    assert "--fail-on missing: queries.by-code" in done.stderr
    affected, _, rest = done.stdout.partition("```mermaid")
    assert affected.startswith("### What default.page_views.how many contributes to")
    assert (
        "| `default.alarms` | `value` | `value` | `queries.alarms` | `1` | `queries/alarms.yaml:5` |"
        in affected
    )
    drawn, _, folded = rest.partition("```")
    assert '["default.page_views<br/>how many"]:::asked' in drawn
    assert "clicks" not in drawn  # which is not affected
    assert "<details>" in folded
    assert "clicks" in folded


def test_mistakes_in_manifests_are_named_and_the_rest_is_shown(pipeline: Path, warm: WarmCommands) -> None:
    queries = pipeline / "queries"
    (queries / "typo.yaml").write_text("name: typo\ntarget-tabel: pages\nsql: SELECT 1\n")
    (queries / "column.yaml").write_text(
        "name: column\ntarget-table: pages\nsql: |\n  SELECT page,\n    ownr AS owner\n  FROM pages\n"
    )
    done = run(warm, pipeline, ".", "--template-file", "template.yaml", "--of", "clicks", "--columns")
    assert done.returncode == 1
    assert "queries/typo.yaml:2: target-tabel: unknown key" in done.stderr
    assert "queries/column.yaml:5: [UNRESOLVED_COLUMN" in done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "└── default.page_views by queries.views queries/views.yaml:5" in lines
    assert "Py4J" not in done.stderr


def test_the_example_in_the_docs(java: str) -> None:
    page = (REPO / "docs" / "lineage-plan.md").read_text()
    command, *lines = page.split("<!-- example -->\n```\n$ ")[1].split("\n```")[0].splitlines()
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    arguments = shlex.split(command.removeprefix("spark-events "))
    done = subprocess.run(
        cli(*arguments), capture_output=True, text=True, env=environment, cwd=REPO / "conf/sql-runner"
    )
    assert done.returncode == 0, done.stderr
    shown = [re.findall(r"[^\s│┃]+", line) for line in done.stdout.splitlines()]
    assert [words for words in shown if words[0][0] not in "┏┡└"] == [line.split() for line in lines]

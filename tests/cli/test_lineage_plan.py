"""The lineage of SQL files, which Spark analyzes and does not run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from tests.support.warm_commands import WarmCommands, run_command

pytestmark = pytest.mark.spark

TABLES = """
-- What others make; a location is nobody's business here.
CREATE TABLE raw (id INT, price DECIMAL(10,2), day DATE) USING parquet LOCATION '/nowhere/raw';
CREATE TABLE totals (day DATE, total DECIMAL(20,2)) USING parquet;
"""
JOBS = """
CREATE TABLE orders USING parquet AS SELECT id, price * 2 AS amount, day FROM raw WHERE price > 0; -- makes it
CREATE VIEW recent AS SELECT * FROM orders WHERE day > DATE'2026-01-01';
INSERT INTO totals SELECT day, sum(amount) FROM recent GROUP BY day;
SELECT 1 /* reads nothing; */;
"""


def run(warm: WarmCommands | None, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"COLUMNS": "160"}
    return run_command("lineage", "plan", *arguments, cwd=folder, environment=environment, warm=warm)


@pytest.fixture(scope="module")
def files(java: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "tables.sql").write_text(TABLES)
    (folder / "jobs.sql").write_text(JOBS)
    (folder / "picture.sql").write_bytes(b"\x89PNG")
    (folder / "hidden" / ".ci").mkdir(parents=True)
    (folder / "hidden" / ".ci" / "jobs.sql").write_text(JOBS)
    return folder


def test_what_a_change_of_a_column_affects_as_markdown(files: Path) -> None:
    done = run(None, files, "tables.sql", "jobs.sql", "--impact", "raw.price", "--format", "markdown")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "| `default.raw` | `default.orders` | `jobs.ctas.default.orders` | `jobs.sql:2` |" in lines
    assert "| `default.orders` | `default.totals` | `jobs.insert.default.totals` | `jobs.sql:4` |" in lines
    assert "```mermaid" in lines
    affected = lines[lines.index("### What default.raw.price contributes to") :]
    assert (
        "| `default.orders` | `amount` | `value` | `jobs.ctas.default.orders` | `1` | `jobs.sql:2` |"
        in affected
    )
    assert (
        "| `default.totals` | `total` | `value` | `jobs.insert.default.totals` | `2` | `jobs.sql:4` |"
        in affected
    )
    assert "Cannot be analyzed" not in done.stdout
    assert not Path("/nowhere").exists()


@pytest.mark.extended
def test_a_statement_that_is_nested_too_deeply_hides_no_other(files: Path) -> None:
    """Java's stack is not enough for it; the other statements are planned all the same."""
    nested = f"SELECT id FROM raw WHERE {'(' * 6_000}id > 0{')' * 6_000}"
    (files / "deep.sql").write_text(f"SELECT 1;\nCREATE TABLE deep USING parquet AS {nested};\n{JOBS}")
    done = run(None, files, "tables.sql", "deep.sql", "--format", "json")
    assert done.returncode == 1
    assert "deep.sql:2: " in done.stderr
    assert "StackOverflowError" in done.stderr
    assert "Traceback" not in done.stderr
    edges = {(row["source"], row["sink"]) for row in json.loads(done.stdout)}
    assert {("default.raw", "default.orders"), ("default.orders", "default.totals")} <= edges


def test_a_statement_that_is_wrong_fails_and_the_others_are_shown(files: Path, warm: WarmCommands) -> None:
    (files / "wrong.sql").write_text(
        "SELECT 1;\n\nINSERT INTO totals SELECT day, nothing FROM orders;\n"
        "CREATE TABLE lazy USING parquet LOCATION '/nowhere' COMMENT 'like orders'; CREATE TABLE same LIKE orders;"
    )
    done = run(warm, files, "tables.sql", "jobs.sql", "wrong.sql", "--format", "json")
    assert done.returncode == 1
    assert "wrong.sql:3: [UNRESOLVED_COLUMN" in done.stderr
    assert "wrong.sql:4: CREATE TABLE without columns" in done.stderr
    assert done.stderr.count("wrong.sql:") == 2
    edges = {(row["source"], row["sink"]) for row in json.loads(done.stdout)}
    assert ("default.raw", "default.orders") in edges


def test_a_statement_within_another_is_analyzed_and_not_run(files: Path, warm: WarmCommands) -> None:
    """Spark runs EXECUTE IMMEDIATE to analyze it."""
    if pyspark.__version__ < "4.1":
        pytest.skip("Spark 4.1 has statements within others")
    write = f"INSERT OVERWRITE DIRECTORY '{files}/out' USING json SELECT 1 AS one, day FROM orders"
    (files / "immediate.sql").write_text(
        f'EXECUTE IMMEDIATE "{write}";\nEXECUTE IMMEDIATE "{write} WHERE day = ?" USING 1;'
    )
    done = run(warm, files, "tables.sql", "jobs.sql", "immediate.sql", "--format", "json")
    assert done.returncode == 1
    assert "immediate.sql:2: EXECUTE IMMEDIATE of a text that is not known before it runs" in done.stderr
    assert "immediate.sql:1" not in done.stderr
    assert f"{files}/out" in {row["sink"] for row in json.loads(done.stdout)}
    assert not (files / "out").exists()


RENAMED = """
CREATE TABLE x.made USING parquet AS SELECT id * 2 AS twice FROM raw;
ALTER TABLE x.made RENAME TO `now`;
CREATE TABLE fed USING parquet AS SELECT twice FROM x.now; ALTER TABLE fed RENAME TO default.found;
"""


def test_a_table_is_followed_under_its_new_name(files: Path, warm: WarmCommands) -> None:
    (files / "renamed.sql").write_text(f"CREATE DATABASE x; {RENAMED}")
    done = run(warm, files, "tables.sql", "renamed.sql", "--impact", "raw.id", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [(row["data"], row["column"]) for row in json.loads(done.stdout)] == [
        ("x.made", "twice"),
        ("x.now", "twice"),
        ("default.fed", "twice"),
        ("default.found", "twice"),
    ]


MOVED = """
CREATE DATABASE shop LOCATION '{0}/shop'; CREATE TABLE shop.orders (id INT); DROP DATABASE shop CASCADE;
CREATE TABLE parts (id INT, d STRING) USING parquet PARTITIONED BY (d) LOCATION '{0}/parts';
ALTER TABLE parts ADD PARTITION (d = '1') LOCATION r'{0}/parts/d=1' PARTITION (d = '2') LOCATION "{0}/parts/d=2";
ALTER TABLE parts DROP PARTITION (d = '1');
CREATE TABLE moved (id INT) USING parquet LOCATION '{0}/old';
ALTER TABLE moved SET LOCATION /* here */ '{0}/new'; DROP TABLE moved;
CREATE TABLE again (id INT) USING parquet;
ALTER TABLE again SET LOCATION '{0}/again'; CREATE OR REPLACE TABLE again (id INT) USING parquet;
CREATE TABLE named (id INT) USING parquet; ALTER TABLE named SET LOCATION '{0}/named';
ALTER TABLE named RENAME TO other; DROP TABLE other;
CREATE DATABASE cloud LOCATION 's3a://nowhere/cloud'; CREATE DATABASE fresh LOCATION '{0}/fresh';
"""


def test_what_is_there_stays_as_it_is(files: Path, tmp_path: Path, warm: WarmCommands) -> None:
    """Whatever the statements would drop, move or create: they change the catalog of the analysis alone."""
    places = ["shop", "parts/d=1", "parts/d=2", "old", "new", "again", "named"]
    for place in places:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "rows").write_text("mine")
    (files / "moved.sql").write_text(MOVED.format(tmp_path))
    before = sorted(tmp_path.rglob("*"))

    done = run(warm, files, "moved.sql")

    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_each_file_of_a_folder_begins_in_the_same_database(files: Path, warm: WarmCommands) -> None:
    """And a statement that has to wait for another file is analyzed in its own."""
    folder = files / "folder"
    folder.mkdir()
    (folder / "a_jobs.sql").write_text(
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT); INSERT INTO orders SELECT id FROM raw.events;"
    )
    (folder / "b_raw.sql").write_text(
        "CREATE DATABASE raw; USE raw; CREATE TABLE events (id INT); CREATE TABLE orders (id INT);"
    )
    (folder / "c_plain.sql").write_text("CREATE TABLE copies AS SELECT * FROM shop.orders;")
    done = run(warm, files, "folder", "--format", "json")
    assert done.returncode == 0, done.stderr
    edges = {(row["source"], row["sink"]) for row in json.loads(done.stdout)}
    assert {edge for edge in edges if "-" not in edge} == {
        ("raw.events", "shop.orders"),
        ("shop.orders", "default.copies"),
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "expected SQL files, manifests, or folders of them"),
        (("gone.sql",), 4, "gone.sql: no such file or folder"),
        (("hidden",), 4, "no SQL file (*.sql) and no manifest"),
        (("jobs.sql", "--template-file", "gone.yaml"), 2, "--template-file gone.yaml: no such file"),
        (
            ("jobs.sql", "--template-file", "tables.sql"),
            2,
            "has defaults for manifests, but the paths have none",
        ),
        (("picture.sql",), 3, "picture.sql: is not text in UTF-8"),
        (("/dev/zero",), 3, "/dev/zero: is too long; a SQL file may have at most 16,777,216 characters"),
        (("jobs.sql", "--orphans"), 2, "--orphans is a question about jobs that have run"),
    ],
)
def test_wrong_arguments(
    files: Path, arguments: tuple[str, ...], code: int, said: str, warm: WarmCommands
) -> None:
    done = run(warm, files, *arguments)
    assert done.returncode == code, done.stderr
    assert said in " ".join(done.stderr.split())


class Clone:
    """A Git repository with some SQL.

    Args:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)

    def commit(self, files: Mapping[str, str]) -> None:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "one")


@pytest.fixture(scope="module")
def clone(java: str, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Its base has two jobs; since then, one reads another column, one is gone, and one is new, in a new file."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    tables = "CREATE TABLE raw (id INT, price INT, day DATE); CREATE TABLE kept (id INT, price INT);"
    gone = "CREATE TABLE gone AS SELECT id FROM raw;"
    clone.commit({"sql/a.sql": tables, "sql/jobs.sql": f"INSERT INTO kept SELECT id, price FROM raw; {gone}"})
    clone.write(
        {
            "sql/jobs.sql": "INSERT INTO kept SELECT id, id + 1 FROM raw;",
            "more/new.sql": "CREATE TABLE fresh AS SELECT day FROM raw;",
        }
    )
    return clone


@pytest.mark.parametrize("inside", [True, False], ids=["in the clone", "elsewhere"])
def test_what_a_branch_changes(clone: Clone, inside: bool, warm: WarmCommands) -> None:
    """Wherever the command runs, jobs are named after the same files; a folder that is new is not a mistake."""
    at, paths = (clone.folder, "") if inside else (clone.folder.parent, f"{clone.folder.name}/")

    done = run(
        warm, at, f"{paths}sql", f"{paths}more", "--base", "main", "--fail-on", "base", "--format", "json"
    )

    changes = {
        (row["change"], row["source"], row["sink"], row["job"], *row["columns"])
        for row in json.loads(done.stdout)
    }
    assert changes == {
        ("changed", "default.raw", "default.kept", "jobs.insert.default.kept", "price"),
        ("removed", "default.raw", "default.gone", "jobs.ctas.default.gone"),
        ("added", "default.raw", "default.fresh", "new.ctas.default.fresh"),
    }
    assert done.returncode == 1, done.stderr
    assert "--fail-on base" in done.stderr


def test_nothing_differs_from_what_is_checked_out(clone: Clone, tmp_path: Path, warm: WarmCommands) -> None:
    same = tmp_path / "same"
    clone.git("worktree", "add", "--detach", str(same), "main")

    done = run(warm, same, ".", "--base", "HEAD", "--fail-on", "base")

    assert (done.returncode, done.stdout.strip()) == (0, "no edge came or went"), done.stderr


def test_a_base_that_cannot_be_analyzed_is_said(clone: Clone, warm: WarmCommands) -> None:
    clone.commit({"sql/jobs.sql": "INSERT INTO kept SELECT nothing FROM raw"})
    clone.write({"sql/jobs.sql": "INSERT INTO kept SELECT id, price FROM raw"})

    done = run(warm, clone.folder, "sql", "--base", "HEAD", "--format", "json")

    assert done.returncode == 0, done.stderr
    assert "--base HEAD: 1 statements cannot be analyzed there" in done.stderr
    assert [row["change"] for row in json.loads(done.stdout)] == ["added"]


def test_files_that_are_not_exported_and_links_are_in_the_base(
    java: str, tmp_path: Path, warm: WarmCommands
) -> None:
    clone = Clone(tmp_path)
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "linked.sql").symlink_to("../shared.sql")
    clone.commit(
        {
            ".gitattributes": "sql export-ignore\n",
            "shared.sql": "CREATE TABLE shared AS SELECT 1 AS id;",
            "sql/b.sql": "CREATE TABLE b AS SELECT id FROM shared;",
        }
    )

    done = run(warm, tmp_path, "sql", "--base", "HEAD")

    assert (done.returncode, done.stdout.strip()) == (0, "no edge came or went"), done.stderr


def test_a_path_that_is_not_there_is_named(clone: Clone, warm: WarmCommands) -> None:
    done = run(warm, clone.folder, "nowhere/sql", "--base", "HEAD")
    assert done.returncode == 4
    assert "nowhere/sql: no such file or folder" in done.stderr


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("nosuch", "--base nosuch: {0} has no such branch, tag or commit"),
        ("--output=x", "--base --output=x: {0} has no such branch, tag or commit"),
    ],
)
def test_a_base_that_is_not_known(clone: Clone, base: str, message: str, warm: WarmCommands) -> None:
    done = run(warm, clone.folder, "sql", f"--base={base}")
    assert done.returncode == 2
    assert message.format(clone.folder) in done.stderr.replace("\n", " ")


def test_a_base_of_files_in_no_clone(files: Path, warm: WarmCommands) -> None:
    done = run(warm, files, "tables.sql", "--base", "main")
    assert done.returncode == 2
    assert "not a git repository" in done.stderr


def test_scripts_and_caches(warm: WarmCommands, tmp_path: Path) -> None:
    """Each statement of a script is one of the plan; a query that is cached is read under its name."""
    (tmp_path / "jobs.sql").write_text("""
CREATE TABLE raw (id INT, price INT) USING parquet;
CACHE LAZY TABLE `dear` OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT id, price FROM raw WHERE price > 10;
CACHE TABLE raw;
BEGIN
  DECLARE n INT DEFAULT 0;
  CREATE TABLE all_dear USING parquet AS SELECT id, CASE WHEN price > 20 THEN 2 ELSE 1 END AS kind FROM dear;
  IF n = 0 THEN
    INSERT INTO all_dear SELECT id, 0 FROM raw;
  ELSE
    INSERT INTO all_dear SELECT nothing FROM raw;
  END IF;
END;
CREATE TABLE after USING parquet AS SELECT id FROM all_dear;
""")
    done = run(warm, tmp_path, "jobs.sql", "--format", "markdown")
    assert done.returncode == 1
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert "jobs.sql:11: [UNRESOLVED_COLUMN" in error
    rows = [line for line in done.stdout.splitlines() if line.startswith("| `")]
    places = {row.rsplit("|", 2)[1].strip() for row in rows if "`jobs." in row}
    assert places == {"`jobs.sql:2`", "`jobs.sql:7`", "`jobs.sql:9`", "`jobs.sql:14`"}

"""The folder of past runs: what is written is read, in order, bounded, whatever else lies there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_events.api import ConfigError
from spark_events.diagnosis.earlier_runs.past_runs import PastRun
from spark_events.diagnosis.earlier_runs.run_folder import RunFolder, probe_run_folder
from tests.support.s3_server import running_s3

NIGHT = 1_700_000_000_000


def keep(folder: RunFolder, *nights: int) -> None:
    for night in nights:
        folder.write(PastRun(f"app-{night}", NIGHT + night))


def nights(folder: RunFolder, before: int = 1_000, app_id: str = "") -> list[int]:
    return [run.start_ms - NIGHT for run in folder.read(NIGHT + before, app_id)]


def test_the_last_runs_before_a_time(tmp_path: Path) -> None:
    """The oldest first, without the run itself: what a replay compares with is what the run was compared with."""
    folder = RunFolder(str(tmp_path / "runs"), "nightly", 5)
    assert nights(folder) == []
    keep(folder, *range(8))
    assert nights(folder) == [3, 4, 5, 6, 7]
    assert nights(folder, before=6) == [1, 2, 3, 4, 5]
    assert nights(folder, app_id="app-7") == [2, 3, 4, 5, 6]
    assert nights(RunFolder(str(tmp_path / "runs"), "hourly", 5)) == []


def test_it_does_not_grow(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path.as_uri(), "nightly", 5)
    keep(folder, *range(30))
    keep(folder, 29)
    assert len(list(tmp_path.rglob("*.json"))) == 15
    assert nights(folder) == [25, 26, 27, 28, 29]


def test_what_else_lies_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Other files are left alone; a run that cannot be read is said, and left out."""
    folder = RunFolder(str(tmp_path), "nightly", 5)
    keep(folder, 1, 2)
    (of_application,) = tmp_path.iterdir()
    (of_application / "notes.txt").write_text("mine")
    (of_application / f"{NIGHT + 3}-app.json").write_text("{")
    assert nights(folder) == [1, 2]
    assert "app.json is left out of the past runs" in caplog.text
    keep(folder, *range(4, 40))
    assert (of_application / "notes.txt").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("duration_ms", "1 h"), ("duration_ms", None), ("duration_ms", -5), ("name", 5), ("plan", ["x"]),
        ("figures", None), ("figures", {"tasks": "x"}), ("times", True),
        ("settings", "x"), ("settings", {"k": {}}), ("start_ms", "x"), ("app_id", None),
    ],
)  # fmt: skip
def test_a_run_with_a_part_of_another_type(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str, value: object
) -> None:
    """It is left out like one that is torn: comparing with it would fail for all work of the application."""
    folder = RunFolder(str(tmp_path), "nightly", 5)
    keep(folder, 1)
    (of_application,) = tmp_path.iterdir()
    (written,) = of_application.iterdir()
    read = json.loads(written.read_bytes())
    of = read["run"] if key in read["run"] else read["run"]["whole"]
    of[key] = value
    (of_application / f"{NIGHT + 3}-app.json").write_text(json.dumps(read))

    assert nights(folder) == [1]
    assert "app.json is left out of the past runs" in caplog.text


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", "", "ünï 🎉", "x" * 5_000])
def test_any_name_of_an_application(tmp_path: Path, name: str) -> None:
    folder = RunFolder(str(tmp_path / "runs"), name, 5)
    keep(folder, 1)
    assert nights(folder) == [1]
    (made,) = (tmp_path / "runs").iterdir()
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert made.name.isascii()


def test_s3() -> None:
    pytest.importorskip("s3fs")
    with running_s3("ops"):
        probe_run_folder("s3a://ops/runs")
        keep(RunFolder("s3a://ops/runs", "nightly", 5), 1, 2)
        assert nights(RunFolder("s3a://ops/runs", "nightly", 5)) == [1, 2]


def test_no_such_file_system() -> None:
    with pytest.raises(ConfigError, match="nowhere://x: its file system cannot be used"):
        RunFolder("nowhere://x", "nightly", 5)

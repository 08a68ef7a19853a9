"""Ctrl-C while the command line is only being loaded, which takes a second where the machine is busy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("start", ["-m spark_events", "script"])
def test_it_ends_without_a_word(tmp_path: Path, start: str) -> None:
    (tmp_path / "typer.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(600)\n")
    script = "from importlib.metadata import entry_points\n[each] = entry_points(name='spark-events')\neach.load()()"
    words = start.split() if start != "script" else ["-c", script]
    paths = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    process = subprocess.Popen(
        [sys.executable, *words, "check"],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"loading\n"
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert (process.returncode, said) == (-signal.SIGINT, b"")

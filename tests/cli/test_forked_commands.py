"""A command that is forked is the command that a user starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.applications import cli
from tests.support.forked_commands import run_forked

_COMMANDS = (
    ("--help",),
    ("plugins", "--json"),
    ("why", "nowhere"),
    ("report",),
    ("show", "--no-such-option"),
)


def test_it_says_the_same(tmp_path: Path) -> None:
    environment = {"PATH": "", "COLUMNS": "77", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    run_forked("--version")
    for arguments in _COMMANDS:
        command = cli(*arguments)
        started = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        forked = run_forked(*arguments, cwd=tmp_path, env=environment)
        assert (forked.returncode, forked.stdout, forked.stderr) == (
            started.returncode,
            started.stdout,
            started.stderr,
        )


def test_one_that_does_not_end(tmp_path: Path) -> None:
    """It is killed, and the next one runs."""
    run_forked("--version")
    (tmp_path / "events").mkdir()
    with pytest.raises(subprocess.TimeoutExpired):
        run_forked(
            "follow", str(tmp_path / "events"), "--state", str(tmp_path / "state"), cwd=tmp_path, timeout=1
        )
    assert run_forked("--version", cwd=tmp_path).stdout.startswith("spark-events ")

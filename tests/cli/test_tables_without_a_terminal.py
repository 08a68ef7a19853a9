"""Tables that go to a pipe or a file, where nobody knows how wide a line may be."""

from __future__ import annotations

import io
import os
import re
import subprocess
from pathlib import Path

import pytest
from rich.box import HEAVY_HEAD, SIMPLE_HEAD, Box
from rich.console import Console
from rich.table import Table

from spark_events.cli.terminal.console import show_table
from tests.support.applications import cli
from tests.support.event_log_sample import small_log

LONG = " ".join(["tasks wait for a core"] * 15)


@pytest.mark.parametrize("box", [SIMPLE_HEAD, HEAVY_HEAD, None], ids=["rule", "lines", "plain"])
def test_lines_end_where_their_text_does(box: Box | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule has 120 characters at most, and no cell is cut."""
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table("what", "where", title="Where the time went", title_justify="left", box=box)
    table.add_row(LONG, "x")
    table.add_row("short", "")
    written = io.StringIO()
    show_table(table, Console(file=written, highlight=False, emoji=False))

    lines = written.getvalue().splitlines()

    assert [line for line in lines if line != line.rstrip()] == []
    assert any(LONG in line for line in lines)
    assert all(len(line) <= 120 for line in lines if not re.search(r"\w", line))
    assert lines[0] == "Where the time went"


def test_why_into_a_pipe(tmp_path: Path) -> None:
    log = tmp_path / "app-1"
    log.write_bytes(small_log())
    done = subprocess.run(
        cli("why", str(log)),
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stdout.splitlines()

    assert "Where the time went" in lines
    assert [line for line in lines if line != line.rstrip()] == []
    rules = [line for line in lines if line and not line.strip(" ─")]
    assert rules
    assert max(map(len, rules)) <= 120

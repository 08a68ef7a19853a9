"""Whether somebody types the program."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from spark_events.sources.interactive import is_interactive

ASK = "from spark_events.sources.interactive import is_interactive; print(is_interactive())"


def answer(*arguments: str, typed: str = "") -> str:
    run = subprocess.run(
        [sys.executable, *arguments], input=typed, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_a_file_is_not_typed(tmp_path: Path) -> None:
    """A program from a file, and a module that is run."""
    (tmp_path / "app.py").write_text(ASK)
    assert answer(str(tmp_path / "app.py")) == "False"


def test_a_prompt_is() -> None:
    """What is typed, comes through a pipe, or is an argument."""
    assert answer("-i", "-q", typed=f"{ASK}\n") == "True"
    assert answer("-", typed=ASK) == "True"
    assert answer("-c", ASK) == "True"


def test_a_kernel_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jupyter's kernel is a file that is run, and what is typed goes there."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "launcher.py", raising=False)
    monkeypatch.delattr(sys, "ps1", raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert not is_interactive()
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    assert is_interactive()

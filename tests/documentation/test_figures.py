"""README and docs/benchmarks.md show what was measured, and whether the code has changed since."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from docs import figures

PAGE = "<!-- replay -->\n<!-- /replay -->\n"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with 100 lines of code, and a figure of them."""
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    for name, file in (("STORE", "benchmarks.json"), ("PAGE", "benchmarks.md"), ("README", "README.md")):
        monkeypatch.setattr(figures, name, tmp_path / file)
    monkeypatch.setattr(figures, "MEASURED", {"replay": ("code",)})
    monkeypatch.setattr(figures, "_COSTS", (("Replaying", "replay", r"\| replay \| (\d+) \|"),))
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("x = 1\n" * 100)
    (tmp_path / "benchmarks.json").write_text("{}")
    (tmp_path / "benchmarks.md").write_text(PAGE)
    (tmp_path / "README.md").write_text("<!-- costs -->\n<!-- /costs -->\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "code"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    figures.keep("replay", ["| replay | 700 |"])
    figures.write_pages()
    return tmp_path


def test_a_figure_older_than_its_code_is_seen(clone: Path) -> None:
    """A few changed lines are tolerated; after more, both pages have to say that the figure is old."""
    assert "| Replaying | 700 MB/s |" in (clone / "README.md").read_text()
    code = clone / "code" / "a.py"
    code.write_text("x = 2\n" * 4 + "x = 1\n" * 96)
    assert list(figures.problems()) == []

    code.write_text("x = 2\n" * 40 + "x = 1\n" * 60)
    assert len(list(figures.problems())) == 2

    figures.write_pages()
    assert list(figures.problems()) == []
    assert "older code" in (clone / "README.md").read_text()
    assert "the code has changed since" in (clone / "benchmarks.md").read_text()


def test_a_figure_written_by_hand_is_seen(clone: Path) -> None:
    readme = clone / "README.md"
    readme.write_text(readme.read_text().replace("700", "900"))
    assert [problem.split()[0] for problem in figures.problems()] == ["README.md"]


def test_a_clone_without_history_leaves_the_marks(clone: Path) -> None:
    (clone / "code" / "a.py").write_text("x = 2\n" * 100)
    figures.write_pages()
    kept = json.loads((clone / "benchmarks.json").read_text())
    kept["replay"]["commit"] = "0000001"
    (clone / "benchmarks.json").write_text(json.dumps(kept))
    figures.write_pages()

    assert figures.is_old(kept["replay"]) is None
    assert "older code" in (clone / "README.md").read_text()
    assert list(figures.problems()) == []

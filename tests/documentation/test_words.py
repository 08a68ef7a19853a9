"""The words of README, docs and docstrings: phrases that read as a translation come back easily."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.paths import REPO

PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
PHRASES = re.compile(
    r"who(?:ever)? wants? to|whoever\b|what is said|as of a\b|had better|none the less|"
    r"by way of|at the most\b|goes on\b|go on from|lie in\b|misses? that|stands? in the|so is\b",
    re.IGNORECASE,
)
FIRST_WORDS = re.compile(r"(?:Take that|Tell whether|Learn that|Learn of)\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_is_in_plain_words(page: Path) -> None:
    prose = re.sub(
        r"```.*?```|`[^`\n]*`|<!-- settings.*?end of settings -->", "", page.read_text(), flags=re.S
    )

    assert PHRASES.findall(prose) == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem != "plugins"], ids=lambda path: path.stem
)
def test_code_fits_the_page(page: Path) -> None:
    """A window of 1400 pixels shows 101 columns of code. The plugin's code is in files, whose lines are longer."""
    code = re.findall(r"^```[^\n]*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)

    assert code or page.stem != "why"
    assert [line for block in code for line in block.splitlines() if len(line) > 101] == []


def test_docstrings_begin_as_a_reader_expects() -> None:
    odd = []
    for root in ("spark_events", "reporters"):
        for path in (REPO / root).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    text = ast.get_docstring(node) or ""
                    odd += [f"{path.name}:{node.lineno}: {text[:50]}"] if FIRST_WORDS.match(text) else []

    assert odd == []

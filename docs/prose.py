"""Lints the prose of the docs and docstrings with proselint: ``python -m docs.prose`` in a clone.

proselint reads prose alone, so code, names in backticks, links and headings are blanked out first.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from proselint.checks import __register__
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

REPO = Path(__file__).parents[1]
PAGES = ("README.md", "CHANGELOG.md", "docs/**/*.md", "reporters/*/README.md")
CODE = ("spark_events/**/*.py", "reporters/**/*.py")
# Straight quotes are what Markdown and docstrings have.
_CONFIG = Config(max_errors=DEFAULT["max_errors"], checks={**DEFAULT["checks"], "typography": False})
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
_LINK = re.compile(r"\]\([^)]*\)")
_HEADING = re.compile(r"^(#+ .*|\w+:)$", re.MULTILINE)


def prose(text: str) -> str:
    """Return a text without what is not prose, with its lines where they were."""
    for pattern in (_FENCED, _HEADING):
        # A word between two paragraphs, so that both together are not read as a phrase.
        text = pattern.sub(lambda match: "Code." + "\n" * match.group().count("\n"), text)
    text = _CODE.sub(lambda match: "code" + "\n" * match.group().count("\n"), text)
    return _LINK.sub("]", text)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, with the lines that they begin on."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def complaints() -> Iterator[str]:
    """Yield what proselint complains of, as ``file:line: what``."""
    CheckRegistry().register_many(__register__)
    texts = [(path, 1, path.read_text()) for pattern in PAGES for path in sorted(REPO.glob(pattern))]
    for pattern in CODE:
        for path in sorted(REPO.glob(pattern)):
            texts += [(path, line, text) for line, text in docstrings(path)]
    for path, line, text in texts:
        for result in LintFile(str(path), prose(text)).lint(_CONFIG):
            where = f"{path.relative_to(REPO)}:{line + result.pos[0] - 2}"
            yield f"{where}: {result.check_result.check_path}: {result.check_result.message}"


if __name__ == "__main__":
    sys.exit("\n".join(complaints()) or 0)

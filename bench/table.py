"""Writes a bench's table between its markers in docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PAGE = ROOT / "docs" / "benchmarks.md"


def machine() -> str:
    """Return where a figure was measured."""
    return (
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, PySpark {version('pyspark')}, "
        f"{platform.system()}"
    )


def write(name: str, lines: list[str]) -> None:
    """Print a table, and put it between ``<!-- name -->`` and ``<!-- /name -->`` in docs/benchmarks.md.

    Raises:
        ValueError: the page has no such place.
    """
    text = "\n".join(lines)
    print(text)
    page = _PAGE.read_text()
    pattern = re.compile(f"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{_PAGE} has no <!-- {name} --> … <!-- /{name} -->")
    block = f"<!-- {name} -->\n{text}\n<!-- /{name} -->"
    _PAGE.write_text(pattern.sub(lambda _: block, page))

"""Writes a bench's table between its markers in bench/RESULTS.md and in the README."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def machine() -> str:
    """Return where a figure was measured."""
    return (
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, PySpark {version('pyspark')}, "
        f"{platform.system()}"
    )


def write(name: str, lines: list[str]) -> None:
    """Print a table, and put it between ``<!-- name -->`` and ``<!-- /name -->``."""
    text = "\n".join(lines)
    print(text)
    block = f"<!-- {name} -->\n{text}\n<!-- /{name} -->"
    for path in (ROOT / "bench" / "RESULTS.md", ROOT / "README.md"):
        old = path.read_text() if path.exists() else ""
        pattern = re.compile(f"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
        if pattern.search(old):
            path.write_text(pattern.sub(lambda _: block, old))
        elif path.name == "RESULTS.md":
            path.write_text(f"{old.rstrip()}\n\n{block}\n" if old else f"# Results\n\n{block}\n")

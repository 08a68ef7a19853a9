"""Keeps a bench's table in docs/benchmarks.json, with the commit and the date at which it was measured."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version

from docs import figures

ROOT = figures.ROOT


def machine() -> str:
    """Return where a figure was measured, and beside how much other work: the load of the last 15 minutes."""
    return (
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, PySpark {version('pyspark')}, "
        f"{platform.system()}, load {os.getloadavg()[2]:.1f}"
    )


def write(name: str, lines: list[str]) -> None:
    """Print a table, keep it as measured now, and write it into its page in docs/ and the README.

    Raises:
        KeyError: nobody says which code the bench measures.
        ValueError: its page has no place for it.
    """
    print("\n".join(lines))
    figures.keep(name, lines)
    figures.write_pages()

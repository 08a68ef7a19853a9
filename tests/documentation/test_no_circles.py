"""No module imports, by way of others, itself: not at its top, in a function, or for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.paths import REPO

PACKAGE = REPO / "spark_events"


def modules() -> dict[str, Path]:
    """Return the modules of the package, by name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(REPO).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imported_by(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules that a module imports, wherever in it; a package, where it wants its own names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: set(imported_by(path, known)) - {name} for name, path in known.items()}


def test_no_circles() -> None:
    """Modules have an order in which each can be read after those that it builds on."""
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as circle:
        pytest.fail(" imports ".join(reversed(circle.args[1])))


def test_siblings_do_not_import_each_other() -> None:
    """A source of records knows no other source."""
    sources = "spark_events.sources."
    rooms = ("driver", "event_log")
    across = [
        f"{name} imports {other}"
        for name, others in graph().items()
        for other in others
        if name.startswith(sources) and other.startswith(sources)
        for ours, theirs in (rooms, rooms[::-1])
        if name.startswith(sources + ours) and other.startswith(sources + theirs)
    ]
    assert across == []

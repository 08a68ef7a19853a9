"""The folders are the architecture: docs/how-it-works.md draws them, and imports, names and Java keep to them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import REPO

ROOT = REPO / "spark_events"
REPORTERS = sorted(path.parent for path in (REPO / "reporters").glob("*/spark_events_*/__init__.py"))
SOURCES = sorted([*ROOT.rglob("*.py"), *(REPO / "reporters").rglob("*.py")])
LAYERS = re.findall(
    r'^  "(?!__main__)([^"]+)",$',
    (REPO / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0],
    re.M,
)
TESTS = sorted((REPO / "tests").rglob("*.py"))


def rooms() -> Iterator[str]:
    """Return a line for each package, from the top layer to the bottom: its folder, and its first sentence."""
    order = [name for layer in LAYERS for name in layer.split(" | ")]
    packages = [path.parent for path in ROOT.rglob("__init__.py")]
    for folder in sorted(packages, key=lambda path: _place(path, order)):
        if folder != ROOT:
            yield _line(folder)
    for folder in REPORTERS:
        yield _line(folder)


def _place(folder: Path, order: list[str]) -> tuple[int, str]:
    inner = folder.relative_to(ROOT).parts
    return (order.index(inner[0]) if inner else -1, "/".join(inner))


def _line(folder: Path) -> str:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert docstring, folder
    return f"| `{folder.relative_to(REPO)}/` | {docstring.splitlines()[0].replace('``', '`')} |"


def test_the_page_draws_the_rooms_as_they_are() -> None:
    page = (REPO / "docs" / "how-it-works.md").read_text()
    drawn = page.split("<!-- rooms -->\n")[1].split("<!-- end of rooms -->")[0]

    assert drawn.splitlines() == ["| folder | |", "| --- | --- |", *rooms()]


def test_at_the_root_stand_packages_and_the_public_entry_alone() -> None:
    files = {path.name for path in ROOT.iterdir() if path.is_file()}

    assert files == {"__init__.py", "__main__.py", "py.typed"}
    assert {path.name for path in ROOT.iterdir() if path.is_dir()} - {"__pycache__"} == {
        name for layer in LAYERS for name in layer.split(" | ")
    }


def test_each_folder_can_be_read_at_a_glance() -> None:
    """What one listing shows, a reader keeps in mind; a folder that grows beyond it has two subjects."""
    files = Counter(path.parent for path in SOURCES if path.name != "__init__.py")

    assert {folder: count for folder, count in files.items() if count > 17} == {}


def test_the_library_has_no_console() -> None:
    """Commands print; what they call returns values."""
    for path in ROOT.rglob("*.py"):
        if "cli" not in path.relative_to(ROOT).parts:
            assert not re.search(r"^\s*(import|from) (typer|rich)\b", path.read_text(), re.M), path


def test_each_reporter_is_held_to_the_api() -> None:
    """A reporter that import-linter does not know would be free to import anything."""
    contract = (REPO / "pyproject.toml").read_text().split("as a stranger's does")[1]
    held = set(re.findall(r'^  "(spark_events_\w+)",$', contract.split("]")[0], re.M))

    assert held == {folder.name for folder in REPORTERS}


def test_the_glossary_names_classes_that_there_are() -> None:
    rows = [
        line for line in (REPO / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")
    ]
    named = {name for row in rows for name in re.findall(r"`([A-Z]\w+)`", row.split("|")[2])}
    classes = {
        node.name
        for path in SOURCES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    }

    assert len(named) > 40
    assert named - classes == set()


def test_no_two_public_classes_share_a_name() -> None:
    names = Counter(
        node.name
        for path in SOURCES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )

    assert len(names) > 250
    assert [name for name, count in names.items() if count > 1] == []


def test_no_name_is_a_filler() -> None:
    """A name says what a value is, or what a function does."""
    fillers = {
        "found",
        "one",
        "it",
        "thing",
        "stuff",
        "_attend",
        "_settle",
        "_told",
        "told",
        "_note",
        "_leave",
        "_gone",
    }
    places = [
        f"{path.relative_to(REPO)}:{node.lineno}: {name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _names(node)
        if name in fillers
    ]
    java = [
        f"{path.relative_to(REPO)}: {match}"
        for path in ROOT.rglob("*.java")
        for match in re.findall(r"\b[A-Za-z\[\]<>.]+ ((?:found|one|it|thing)) (?:=|:)", path.read_text())
    ]

    assert places + java == []


def _names(node: ast.AST) -> list[str]:
    """Return the names that a node gives: to a function, a parameter, a variable."""
    if isinstance(node, ast.FunctionDef):
        return [node.name, *(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))]
    if isinstance(node, ast.Lambda):
        return [argument.arg for argument in node.args.args]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


@pytest.mark.parametrize(
    "room", sorted({path.parents[1] for path in ROOT.rglob("java/*.java")}), ids=lambda path: path.name
)
def test_java_names_no_class_of_a_room_above_its_own(room: Path) -> None:
    """Only what several rooms share, which lies at the bottom, is imported from elsewhere."""
    sources = [path.read_text() for path in sorted((room / "java").glob("*.java"))]
    (package,) = {re.findall(r"^package ([\w.]+);$", source, re.M)[0] for source in sources}
    ours = {
        name for source in sources for name in re.findall(r"io\.sparkevents(?:\.[a-z]\w*)*(?=[.;])", source)
    }

    assert ours <= {package, "io.sparkevents.jvm"}


def test_no_test_imports_another_test_a_bench_or_a_conftest() -> None:
    """What tests share lies in tests/support."""
    wrong = []
    for path in TESTS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("tests", "bench"):
                shared = (node.module or "").startswith("tests.support")
                wrong += [] if shared else [f"{path.relative_to(REPO)}: {node.module}"]

    assert wrong == []


def test_each_room_has_a_folder_of_tests() -> None:
    tested = {path.parent.name for path in (REPO / "tests").glob("*/test_*.py")}
    elsewhere = {"submit": "integration", "jvm": "lineage"}

    assert [
        name for layer in LAYERS for name in layer.split(" | ") if elsewhere.get(name, name) not in tested
    ] == []


if __name__ == "__main__":
    print("\n".join(["| folder | |", "| --- | --- |", *rooms()]))  # noqa: T201 - for the page

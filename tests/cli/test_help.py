"""The help of the commands: nothing is garbled, and each has what a newcomer types next."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from docs.command_pages import page
from spark_events.api.errors import UsageError
from spark_events.cli.main import app


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    command = command or get_command(app)
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from commands(child, (*path, name))
    else:
        yield path, command


ALL = [pytest.param(path, command, id=" ".join(path)) for path, command in commands() if path != ("run",)]


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_version() -> None:
    assert said("--version") == f"spark-events {importlib.metadata.version('spark-events')}"


def test_the_first_help_is_whole() -> None:
    shown = said("-h")

    assert "run [spark-submit options] app.py [arguments]." in shown
    assert "--install-completion" in shown
    for panel in ("Report live", "See what happened", "Set up", "Tables and queries"):
        assert f"─ {panel} ─" in shown


@pytest.mark.parametrize(("path", "command"), ALL)
def test_each_help_has_examples_of_its_command(path: tuple[str, ...], command: Any) -> None:
    shown = said(*path, "-h")
    first = command.epilog.split("$ ")[1].strip().replace("\\[", "[")

    assert f"spark-events {' '.join(path)}" in first
    assert " ".join(first.split()) in shown


@pytest.mark.parametrize(("path", "command"), ALL)
def test_no_argument_is_empty(path: tuple[str, ...], command: Any) -> None:
    """As of a variable that is not set: an empty path was the folder that the shell is in."""
    result = CliRunner().invoke(app, (*path, ""))
    assert isinstance(result.exception, UsageError), result.output
    assert f"{path[-1]}: its first argument is empty" in str(result.exception)


@pytest.mark.parametrize(("path", "command"), ALL)
def test_each_example_is_of_options_that_there_are(path: tuple[str, ...], command: Any) -> None:
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    for example in command.epilog.split("$ ")[1:]:
        words = example.split(" -- ")[0].split()
        assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("path", [pytest.param(each.values[0], id=each.id) for each in ALL])
def test_options_say_what_they_take(path: tuple[str, ...]) -> None:
    """Not the name of a type of Python's, but KEY=VALUE, FILE and so on, and nothing for a flag."""
    assert re.findall(r"\S+ <(?:str|path|bool|list\[str\])>", said(*path, "-h")) == []


@pytest.mark.parametrize("path", [(), ("ctas",), ("sql",)])
def test_nor_does_the_help_of_a_group_name_types(path: tuple[str, ...]) -> None:
    assert "<bool>" not in said(*path, "-h")


def test_the_page_has_no_marks_of_a_terminal() -> None:
    assert "\\[" not in page()

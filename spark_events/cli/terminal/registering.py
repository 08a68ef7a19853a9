"""Registers commands, so that all have the same kind of help: joined lines, examples, and a panel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from rich.markup import escape

from spark_events.cli.terminal.commands import Command

Function = TypeVar("Function", bound=Callable[..., Any])


def command(
    app: typer.Typer, *examples: str, name: str | None = None, panel: str | None = None, **settings: Any
) -> Callable[[Function], Function]:
    """Return a decorator that makes a function a command.

    Args:
        app: the command's group.
        examples: command lines, which the help shows at its end.
        name: of the command; by default the function's.
        panel: the heading under which the group's help lists it.
        settings: more, as of ``typer.Typer.command``.
    """

    def register(function: Function) -> Function:
        app.command(
            name,
            help=escape(paragraphs(inspect.getdoc(function) or "")),
            epilog=_epilog(examples),
            rich_help_panel=panel,
            cls=Command,
            **settings,
        )(function)
        return function

    return register


def paragraphs(text: str) -> str:
    """Return a text with a line for each paragraph: the terminal wraps it, at its own width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _epilog(examples: tuple[str, ...]) -> str | None:
    if not examples:
        return None
    # Typer makes a line of each paragraph.
    return escape("\n\n".join(("Examples:", *(f"$ {example}" for example in examples))))

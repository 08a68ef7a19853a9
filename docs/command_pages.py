"""Writes docs/commands.md from the commands themselves: ``python -m docs.command_pages`` in a clone."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.main import get_command

from spark_events.cli.main import app
from spark_events.submit.spark_submit import HELP as RUN_HELP

PAGE = Path(__file__).with_name("commands.md")
_HEAD = (
    "# Commands\n\n"
    "Every command of `spark-events`, with its arguments and options. "
    "`python -m docs.command_pages` writes this page.\n\n"
    "`-h` shows the help of each, with examples; `spark-events --version` the version; "
    "`spark-events --install-completion` completes names in your shell. Tables go to stdout, everything else "
    "to stderr. Where the output is not a terminal, tables are as wide as they are, unless `COLUMNS` is set: "
    "no cell is cut, no line ends with blanks, and rules have 120 characters at most; "
    "`NO_COLOR=1` and `FORCE_COLOR=1` turn colors off and on. All times are UTC.\n\n"
    "| exit code | meaning |\n| --- | --- |\n"
    "| 0 | success |\n"
    "| 1 | the command did its work, and something in it failed |\n"
    "| 2 | wrong use: an unknown option, or a value that it does not take |\n"
    "| 3 | a wrong configuration, manifest or environment |\n"
    "| 4 | nothing to read: no such file, no events in it, or none that match |\n"
    "| 130 | interrupted by Ctrl-C; `serve`, which only Ctrl-C ends, exits 0 |\n"
)


def page() -> str:
    """Return the page, in Markdown."""
    return _HEAD + "".join(_sections(get_command(app), ("spark-events",)))


def _sections(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from _sections(child, (*path, name))
        return
    if command.name == "run":  # spark-submit has the options
        yield f"\n## {' '.join(path)}\n\n```\n{RUN_HELP.strip()}\n```\n"
        return
    arguments = [each for each in command.params if isinstance(each, TyperArgument)]
    options = [each for each in command.params if isinstance(each, TyperOption) and each.name != "help"]
    usage = [*path, *(["[OPTIONS]"] if options else []), *(_usage_of(each) for each in arguments)]
    yield f"\n## {' '.join(path)}\n\n```\n{' '.join(usage)}\n```\n\n{_prose(command.help or '')}\n"
    rows = [(_usage_of(each), each) for each in arguments]
    rows += [(_option(each), each) for each in options]
    if rows:
        yield "\n| argument or option | meaning |\n| --- | --- |\n"
    for name, parameter in rows:
        yield f"| `{name}` | {_meaning(parameter)} |\n"
    if command.epilog:
        examples = [line[2:] for line in _plain(command.epilog).splitlines() if line.startswith("$ ")]
        yield "\n```\n" + "\n".join(examples) + "\n```\n"


def _usage_of(argument: TyperArgument) -> str:
    name = str(argument.metavar or argument.name)
    name = name if "|" in name else name.upper()  # values are as they are given
    name += "..." if argument.nargs == -1 else ""
    return name if argument.required else f"[{name}]"


def _option(option: TyperOption) -> str:
    names = ", ".join(option.opts + option.secondary_opts)
    return f"{names} {option.metavar}" if option.metavar else names


def _prose(text: str) -> str:
    """Return a help text as Markdown; typer marks the end of its first part by a form feed."""
    return inspect.cleandoc(_plain(text.replace("\f", ""))).strip()


def _plain(text: str) -> str:
    """Return a text without the marks that keep its brackets from being rich's markup."""
    return text.replace("\\[", "[")


def _meaning(parameter: TyperArgument | TyperOption) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split())
    default = parameter.default
    default = getattr(default, "value", default)  # of an enumeration
    shown = default not in (None, False, True, (), [], "") and not callable(default) and default is not ...
    return f"{text} Default: `{default}`.".strip() if shown else text


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

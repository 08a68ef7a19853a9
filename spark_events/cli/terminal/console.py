"""Output of all commands: two consoles, exit codes, and texts of users made safe for a terminal."""

from __future__ import annotations

import codecs
import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterable
from typing import Any

import orjson
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.logging import RichHandler
from rich.markup import escape
from rich.measure import Measurement
from rich.segment import Segment

from spark_events.api import printable
from spark_events.api.toolkit.formatting import cut, text_without_url_secrets

FAILED = 1
"""The exit code where the command did its work, and not all of it went well."""
USAGE = 2
"""The exit code where the command line is wrong, as Click has it."""
CONFIGURATION = 3
"""The exit code where the configuration, or a manifest, is wrong."""
NOTHING_TO_READ = 4
"""The exit code where a command finds nothing to read."""
STATE_COLORS = {
    "up": "green",
    "down": "bold red",
    "failed": "bold red",
    "unknown": "bold magenta",
    "starting": "yellow",
    "stopped": "dim",
}
"""The colors of what applications and queries are in."""
INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""
_STREAMS = 3
"""How many standard streams there are."""
_WIDEST = 1_000_000_000
_LONGEST_MESSAGE, _LONGEST_NAME = 4_000, 2_000
"""In characters. Names that listeners report are shorter, those in files of other programs may not be."""
_LONGEST_RULE = 120
_NEXT_LINE = re.compile(r"\n(?=\S)")
_RULE = re.compile(r"[ \u2500-\u257f]*")
"""Characters that lines of tables are drawn with."""

_NARROWEST = 20
"""What is narrower shows no table: a terminal that does not know its width says that it has none."""
for name, least in (("COLUMNS", _NARROWEST), ("LINES", 1)):
    if (size := os.environ.get(name)) and not (size.isdecimal() and int(size) >= least):
        del os.environ[name]

out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)


def say(markup: str, console: Console = out) -> None:
    """Print one line, which a terminal may wrap and a file has as it is."""
    console.print(markup, soft_wrap=True)


def open_what_is_closed() -> None:
    """Open standard streams that whoever started this process has closed, to nothing.

    Otherwise, Python has none, and the next file that is opened gets the number of one.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < _STREAMS:
        pass
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def print_whatever_the_encoding() -> None:
    """Let characters that an output does not have be question marks: tables and names have some."""
    for output in (sys.stdout, sys.stderr):
        # The latter is what Python takes in the locale C; it is of no help for characters.
        if isinstance(output, io.TextIOWrapper) and output.errors in ("strict", "surrogateescape"):
            output.reconfigure(errors="replace")


def has_all_characters() -> bool:
    """Return whether standard output has all characters; if not, JSON has to escape them."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"


def print_json(values: Any) -> None:
    """Print values as JSON, whatever the encoding."""
    try:
        text = orjson.dumps(values, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # a number of more than 64 bits, which others have written
        text = json.dumps(values, indent=2, ensure_ascii=False)
    if not has_all_characters():
        text = json.dumps(json.loads(text), indent=2)
    sys.stdout.write(text + "\n")


def print_error(text: str) -> None:
    """Print an error."""
    say(f"[bold red]error[/] {_shown(text)}", err)


def print_warnings(texts: Iterable[str]) -> None:
    """Print warnings."""
    for text in texts:
        say(f"[bold yellow]warning[/] {_shown(text)}", err)


def _shown(text: str) -> str:
    """Return a message; further lines are indented, because those of a file's name may look like messages."""
    shown = plain_lines(cut(text_without_url_secrets(text), _LONGEST_MESSAGE))
    return _NEXT_LINE.sub("\n  ", shown)


def plain(text: str) -> str:
    """Return a name of users for a rich console: one printable line of bounded length, and no markup."""
    return escape(printable(cut(text, _LONGEST_NAME)))


def plain_lines(text: str) -> str:
    """Return a message of users for a rich console: printable, and no markup; lines stay lines."""
    return escape(printable(text, but="\n"))


class AsWide:
    """Something for a rich console that is as wide as it is, on any terminal; printed with ``crop=False``.

    Its lines end where their text does, and a rule is no longer than people can see at once.

    Args:
        renderable: a table, a tree.
    """

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widest = options.update(width=_WIDEST, max_width=_WIDEST)
        needed = Measurement.get(console, widest, self._renderable).maximum
        for line in console.render_lines(
            self._renderable, options.update(width=needed, max_width=needed), pad=False
        ):
            is_rule = all(_RULE.fullmatch(segment.text) for segment in line)
            yield from _without_blanks(
                Segment.adjust_line_length(line, _LONGEST_RULE, pad=False) if is_rule else line
            )
            yield Segment.line()


def _without_blanks(line: list[Segment]) -> list[Segment]:
    """Return a line without the blanks at its end."""
    kept = list(line)
    while kept:
        last = kept.pop()
        if text := last.text.rstrip(" "):
            return [*kept, Segment(text, last.style)]
    return kept


def has_width(console: Console) -> bool:
    """Return whether output goes to a terminal, or COLUMNS says how wide it is to be."""
    return console.is_terminal or "COLUMNS" in os.environ


def show_table(table: RenderableType, console: Console = out) -> None:
    """Print a table as wide as the terminal; where no width is known, as wide as it is, for grep and awk."""
    if has_width(console):
        console.print(table)
    else:
        console.print(AsWide(table), crop=False)


def log_to_terminal(level: int = logging.WARNING) -> None:
    """Let what the framework and its reporters log go to stderr; plain lines where that is not a terminal."""
    logger = logging.getLogger("spark_events")
    handler: logging.Handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    if err.is_terminal:
        handler = RichHandler(console=err, show_path=False, markup=False)
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False

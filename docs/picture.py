"""Runs the demo and draws what commands say of it: ``python -m docs.picture`` writes docs/demo*.svg."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

_WIDTH = 96
_QUERY = "orders_per_customer"
_COMMANDS = (
    "spark-events demo --output .",
    f'spark-events show events --query {_QUERY} | grep -E "query.*(->|failed:|no micro)"',
    f"spark-events report events --query {_QUERY} --sla 5s",
)
_LEFT_OUT = "Failures, the latest first"
_THEMES = {"demo.svg": SVG_EXPORT_THEME, "demo-light.svg": DEFAULT_TERMINAL_THEME}


def main() -> None:
    """Draw what a newcomer types after the demo, on a dark and on a light terminal."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = [(command, _said(folder, command)) for command in _COMMANDS]
    for file, theme in _THEMES.items():
        _draw(Path(__file__).with_name(file), texts, theme)


def _draw(file: Path, texts: list[tuple[str, str]], theme: TerminalTheme) -> None:
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=_WIDTH, file=nowhere)
        for command, said in texts:
            console.print(Text(f"$ {command}", "bold"))
            if command != _COMMANDS[0]:  # whose output fills several screens
                console.print(Text.from_ansi(said.split(_LEFT_OUT)[0].rstrip()), overflow="fold")
                console.print()
    file.write_text(console.export_svg(title="spark-events", theme=theme, unique_id="demo"))


def _said(folder: Path, command: str) -> str:
    """Return what a command prints on a terminal as wide as the picture."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(_WIDTH), "PATH": path}
    return subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    ).stdout


if __name__ == "__main__":
    main()

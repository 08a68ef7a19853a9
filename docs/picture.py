"""Runs the demo and draws what it printed: ``python docs/picture.py`` writes docs/demo.svg."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

_WIDTH = 132
REPO = Path(__file__).parents[1]


def main() -> None:
    """Draw the demo from its first event to the end of its report."""
    command = [str(Path(sys.executable).with_name("spark-events")), "demo"]
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(_WIDTH)}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    begin = done.stdout.index("As it happens") - len("\x1b[1m")
    shown = Text.from_ansi(done.stdout[begin : done.stdout.index("written to ")].replace(f"{REPO}/", ""))
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=_WIDTH, file=nowhere)
        console.print(shown, no_wrap=True, overflow="crop", crop=True)
    Path(__file__).with_name("demo.svg").write_text(console.export_svg(title="make demo"))


if __name__ == "__main__":
    main()

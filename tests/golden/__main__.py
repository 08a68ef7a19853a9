"""Writes down what each stored event log gives: python -m tests.golden [FOLDER]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.stored_logs import stored_logs
from tests.support.told_by_log import told_by


def main(out: Path) -> None:
    """Write one file for each log into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        for name, log in stored_logs(Path(folder)).items():
            lines = told_by(log)
            (out / f"{name}.txt").write_text("\n".join(lines) + "\n")
            sys.stdout.write(f"{name}: {len(lines)}\n")


main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "told")
